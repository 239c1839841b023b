//! Characters that a terminal does not show as they are.

/// Whether a terminal acts on the character, or shows the text around it in another order. Line breaks and tabs are layout.
pub const fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{8}'
            | '\u{b}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
    )
}
