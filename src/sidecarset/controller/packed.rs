//! Pairs of short strings in one allocation.

use std::sync::Arc;

use admission::format::selector::Labels;

use crate::sidecarset::controller::texts::Texts;

/// Pairs in one piece of text. A map or a list of owned strings takes three times the memory for the labels of a pod, and
/// there is one for each pod that carries a set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Packed(Arc<str>);

/// Ends each string. The API server lets it into neither names nor labels; pairs with it inside are left out.
const END: char = '\0';

impl Packed {
    /// Packs the pairs, in their order.
    pub fn of<'s>(pairs: impl IntoIterator<Item = (&'s str, &'s str)>) -> Self {
        let mut text = String::new();
        for (key, value) in pairs {
            if !key.contains(END) && !value.contains(END) {
                for part in [key, value] {
                    text.push_str(part);
                    text.push(END);
                }
            }
        }
        Self(text.into())
    }

    /// Takes the same text of another pod in place of its own.
    pub fn share(&mut self, texts: &mut Texts) {
        self.0 = texts.shared(&self.0);
    }

    /// The bytes that a pair takes.
    pub const fn cost(key: &str, value: &str) -> usize {
        key.len().saturating_add(value.len()).saturating_add(2)
    }

    /// The bytes that all pairs take.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.0.split_terminator(END);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Labels for Packed {
    fn get(&self, key: &str) -> Option<&str> {
        self.iter().find_map(|(candidate, value)| (candidate == key).then_some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_back_as_they_went_in() {
        let cases: [&[(&str, &str)]; 4] =
            [&[], &[("a", "")], &[("", ""), ("b", "c")], &[("app", "web"), ("tier", "front")]];
        for pairs in cases {
            let packed = Packed::of(pairs.iter().copied());
            assert_eq!(packed.iter().collect::<Vec<_>>(), pairs);
            assert_eq!(packed.is_empty(), pairs.is_empty());
            assert_eq!(packed.bytes(), pairs.iter().map(|(key, value)| Packed::cost(key, value)).sum::<usize>());
        }
        assert_eq!(Packed::of([("a\0b", "c"), ("d", "e\0"), ("f", "g")]).iter().collect::<Vec<_>>(), [("f", "g")]);
    }

    #[test]
    fn a_label_is_found_by_its_whole_key() {
        let packed = Packed::of([("app", "web"), ("web", "app")]);
        assert_eq!((packed.get("web"), packed.get("ap"), packed.get("")), (Some("app"), None, None));
    }
}
