//! Texts and lists of a user, cut to a length: whatever repeats or keeps them stays small.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The beginning of a text, of `bytes` bytes at most.
pub fn beginning(text: &str, bytes: usize) -> &str {
    let longest = text.len().min(bytes);
    (0..=longest).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// The beginning of a text, of `chars` characters at most.
pub fn first_chars(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// A text of up to `chars` characters as it is, and of a longer one so many, and an ellipsis.
pub fn ellipsis(text: &str, chars: usize) -> String {
    let first = first_chars(text, chars);
    if first.len() < text.len() { format!("{first}…") } else { text.to_owned() }
}

/// Decodes the first `max` items of a list, and none of the rest; `None` for `null`.
///
/// # Errors
/// Those of the deserializer, and of the items that are decoded.
pub fn first<'de, T, D>(deserializer: D, max: usize) -> Result<Option<Vec<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_option(First { max, items: PhantomData })
}

struct First<T> {
    max: usize,
    items: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for First<T> {
    type Value = Option<Vec<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut first = Vec::new();
        while first.len() < self.max {
            match items.next_element()? {
                Some(item) => first.push(item),
                None => break,
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Some(first))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_decoded_up_to_so_many_items() {
        for (list, expected) in [
            (json!(null), None),
            (json!([]), Some(vec![])),
            (json!([1, 2]), Some(vec![1, 2])),
            (json!([1, 2, 3, "x"]), Some(vec![1, 2, 3])),
        ] {
            assert_eq!(first::<u8, _>(list.clone(), 3).unwrap(), expected, "{list}");
        }
        assert!(first::<u8, _>(json!("x"), 3).is_err());
        let text = "[1, 2, 3, 4, 5]";
        let mut deserializer = serde_json::Deserializer::from_str(text);
        assert_eq!(first::<u8, _>(&mut deserializer, 3).unwrap(), Some(vec![1, 2, 3]));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!((beginning("aé", 2), beginning("aé", 3), beginning("aé", 9)), ("a", "aé", "aé"));
        assert_eq!((ellipsis("éaé", 2).as_str(), ellipsis("éa", 2).as_str()), ("éa…", "éa"));
        assert_eq!((first_chars("éaé", 2), first_chars("éa", 2), first_chars("éa", 0)), ("éa", "éa", ""));
    }
}
