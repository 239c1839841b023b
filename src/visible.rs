//! What a terminal shows as it is. Manifests and the names of files are other people's text: a terminal would carry out the
//! sequences in them, which move the cursor, change what was printed before, or set the clipboard.

pub use engine::hidden::is_hidden;

use std::io::{self, Write};

/// Writes hidden characters as `\uXXXX`. In JSON, where they can only be in strings, that is the same value.
pub struct Visible<W> {
    out: W,
    /// The beginning of a character, or of the end of a line, whose rest has not come yet.
    begun: Vec<u8>,
}

impl<W: Write> Visible<W> {
    /// In front of `out`.
    pub const fn new(out: W) -> Self {
        Self { out, begun: Vec::new() }
    }

    /// What is behind, for what is to be carried out: the colours of a line.
    pub const fn unseen(&mut self) -> &mut W {
        &mut self.out
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let mut shown = 0;
        // A return in front of the end of a line moves nothing that the end does not.
        let ends_line = |at: usize| text.as_bytes().get(at..at + 2) == Some(b"\r\n");
        for (at, character) in text.char_indices().filter(|(at, character)| is_hidden(*character) && !ends_line(*at)) {
            self.out.write_all(&text.as_bytes()[shown..at])?;
            write!(self.out, "\\u{:04x}", u32::from(character))?;
            shown = at + character.len_utf8();
        }
        self.out.write_all(&text.as_bytes()[shown..])
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let mut rest = bytes;
        if !self.begun.is_empty() {
            joined = [std::mem::take(&mut self.begun).as_slice(), bytes].concat();
            rest = &joined;
        }
        let returned = rest.strip_suffix(b"\r");
        rest = returned.unwrap_or(rest);
        for chunk in rest.utf8_chunks() {
            self.text(chunk.valid())?;
            let invalid = chunk.invalid();
            let is_last = invalid.as_ptr_range().end == rest.as_ptr_range().end;
            if is_last
                && !invalid.is_empty()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
            {
                self.begun = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.text("\u{fffd}")?;
            }
        }
        if returned.is_some() {
            self.begun.push(b'\r');
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.begun == b"\r" {
            self.begun.clear();
            self.text("\r")?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> String {
        let mut out = Vec::new();
        let mut visible = Visible::new(&mut out);
        for piece in pieces {
            visible.write_all(piece).unwrap();
        }
        visible.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_a_terminal_acts_on_is_written_out_and_everything_else_is_as_it_was() {
        for (text, expected) in [
            ("a: b\n\tc\n", "a: b\n\tc\n"),
            ("a: b\r\n\r\r\n", "a: b\r\n\\u000d\r\n"),
            ("a\r", "a\\u000d"),
            ("äöü 日本語 🦀", "äöü 日本語 🦀"),
            ("\u{1b}[2Jgone", "\\u001b[2Jgone"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}", "\\u001b]52;c;ZXZpbA==\\u0007"),
            ("a\rb\u{8}\u{b}\0", "a\\u000db\\u0008\\u000b\\u0000"),
            ("\u{7f}\u{9b}31m\u{85}", "\\u007f\\u009b31m\\u0085"),
            ("\u{202e}evil\u{2066}", "\\u202eevil\\u2066"),
        ] {
            assert_eq!(shown(&[text.as_bytes()]), expected);
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(shown(&bytes), expected, "byte by byte");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(shown(&[b"a\x9b31mb"]), "a\u{fffd}31mb");
        assert_eq!(shown(&[b"a\xe2", b"b"]), "a\u{fffd}b");
    }

    #[test]
    fn json_means_the_same_afterwards() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}[0m", "\u{202e}", "\\u001b", "\u{7f}\""]});
        let text = shown(&[serde_json::to_string_pretty(&value).unwrap().as_bytes()]);
        assert!(!text.chars().any(is_hidden));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
