//! Strings that borrow from the body.

use std::borrow::{Borrow, Cow};
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// A text without characters, at an address that is mapped. An empty `String` and `""` have none. With glibc on processors with AVX-512,
/// comparing no bytes at an address that is not mapped takes half a microsecond, a hundred times as long as at another one.
pub const EMPTY: &str = " ".split_at(0).0;

/// A string that borrows from the body unless it holds escapes. `null` reads as empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Default for Text<'_> {
    fn default() -> Self {
        Self(Cow::Borrowed(EMPTY))
    }
}

impl Text<'_> {
    /// The string without escapes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Text<'_> {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// Decodes `null` as the default value: for fields marked `#[serde(default, deserialize_with = "null_as_default")]`.
///
/// # Errors
/// What the value's own decoder reports.
pub fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_there_is_at_an_address_that_is_mapped() {
        assert!(Text::default().as_str().as_ptr().addr() > 4096);
        assert_eq!(Text::default(), Text(Cow::Borrowed("")));
    }
}
