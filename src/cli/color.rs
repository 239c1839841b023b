//! Colour on a terminal: the word that says how bad a line is.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use clap::ValueEnum;

use crate::visible::Visible;

/// When lines are coloured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

static CHOSEN: OnceLock<Color> = OnceLock::new();

/// Takes the choice for the process; the first one counts.
pub fn choose(color: Color) {
    let _ = CHOSEN.set(color);
}

/// Words that a line begins with, or that follow its place, and their colours (ECMA-48, SGR).
const WORDS: [(&str, &str); 4] = [("error: ", "31"), ("refused: ", "31"), ("warning: ", "33"), ("note: ", "36")];

/// Writes what a terminal shows as it is, with colours of our own where they are wanted.
pub struct Painted<W: Write> {
    out: Visible<W>,
    /// A line whose end has not come yet; only kept where it may be coloured.
    line: Vec<u8>,
    is_on: bool,
}

impl<W: Write> Painted<W> {
    /// In front of `out`, which is a terminal or not.
    pub fn new(out: W, is_terminal: bool) -> Self {
        let is_on = match CHOSEN.get().copied().unwrap_or_default() {
            Color::Always => true,
            Color::Never => false,
            // https://no-color.org: whatever its value, unless it is empty.
            Color::Auto => {
                let says = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
                is_terminal && says("NO_COLOR").is_none() && says("TERM").is_none_or(|terminal| terminal != "dumb")
            }
        };
        Self { out: Visible::new(out), line: Vec::new(), is_on }
    }

    fn paint(&mut self, line: &[u8]) -> io::Result<()> {
        let Some((at, word, colour)) = std::str::from_utf8(line).ok().and_then(word) else {
            return self.out.write_all(line);
        };
        let (before, rest) = line.split_at(at);
        let (word, rest) = rest.split_at(word.trim_end_matches(": ").len());
        self.out.write_all(before)?;
        write!(self.out.unseen(), "\u{1b}[1;{colour}m")?;
        self.out.write_all(word)?;
        self.out.unseen().write_all(b"\x1b[0m")?;
        self.out.write_all(rest)
    }
}

/// The word of a line, and where it is: at its beginning, or behind `FILE:LINE: `.
fn word(line: &str) -> Option<(usize, &'static str, &'static str)> {
    WORDS.iter().find_map(|&(word, colour)| {
        let at = if line.starts_with(word) { 0 } else { line.find(&format!(": {word}"))? + 2 };
        let place = line.get(..at.saturating_sub(2))?;
        let is_place = at == 0
            || place
                .rsplit_once(':')
                .is_some_and(|(_, line)| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()));
        is_place.then_some((at, word, colour))
    })
}

impl<W: Write> Write for Painted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_on {
            return self.out.write(bytes);
        }
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            self.paint(&line)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.paint(&line)?;
        }
        self.out.flush()
    }
}

/// stderr of the process.
pub fn stderr() -> Painted<io::StderrLock<'static>> {
    Painted::new(io::stderr().lock(), io::stderr().is_terminal())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(text: &str, is_on: bool) -> String {
        let mut out = Vec::new();
        let mut painted = Painted { out: Visible::new(&mut out), line: Vec::new(), is_on };
        painted.write_all(text.as_bytes()).unwrap();
        painted.flush().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_word_that_says_how_bad_a_line_is_has_a_colour() {
        assert_eq!(painted("a.yaml:3: error: x\n", true), "a.yaml:3: \u{1b}[1;31merror\u{1b}[0m: x\n");
        assert_eq!(painted("warning: x", true), "\u{1b}[1;33mwarning\u{1b}[0m: x");
        for plain in ["image is in error: x\n", "3 injected\n"] {
            assert_eq!(painted(plain, true), plain);
        }
        assert_eq!(painted("a.yaml:3: error: x\n", false), "a.yaml:3: error: x\n");
    }

    #[test]
    fn sequences_of_others_stay_visible() {
        assert_eq!(painted("error: \u{1b}[2J\n", true), "\u{1b}[1;31merror\u{1b}[0m: \\u001b[2J\n");
    }
}
