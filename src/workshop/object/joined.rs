//! Texts that are made of others when Outrider is compiled.

/// Bytes of the longest text: an entry `<kind>.<group>` with both as long as the API server accepts.
const MAX: usize = 63 + 1 + 253;

/// Several texts, one behind the other.
pub struct Joined {
    bytes: [u8; MAX],
    len: usize,
}

impl Joined {
    /// Puts them together. A text of more than [`MAX`] bytes does not compile.
    pub const fn of(texts: &[&str]) -> Self {
        let mut joined = Self { bytes: [0; MAX], len: 0 };
        let mut next = 0;
        while next < texts.len() {
            let text = texts[next].as_bytes();
            let mut byte = 0;
            while byte < text.len() {
                joined.bytes[joined.len] = text[byte];
                joined.len += 1;
                byte += 1;
            }
            next += 1;
        }
        joined
    }

    /// The same in lower case.
    pub const fn lower(mut self) -> Self {
        self.bytes.make_ascii_lowercase();
        self
    }

    /// The text.
    pub const fn as_str(&self) -> &str {
        match str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_one_behind_the_other() {
        const TEXT: &Joined = &Joined::of(&["apps.Example", "/", "", "v1é"]);
        assert_eq!(TEXT.as_str(), "apps.Example/v1é");
        assert_eq!(Joined::of(&["CronJob"]).lower().as_str(), "cronjob");
        assert_eq!(Joined::of(&[]).as_str(), "");
        assert_eq!(Joined::of(&["a".repeat(MAX).as_str()]).as_str().len(), MAX);
    }
}
