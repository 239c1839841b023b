//! A map of strings as it is in the body.

use std::collections::HashSet;
use std::fmt;

use admission::Text;
use admission::format::selector::Labels;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::pod::limits;

/// Up to this many pairs a linear search beats every index.
const FEW: usize = 16;

/// Labels or annotations, borrowed, in the order of the body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BorrowedMap<'a> {
    pairs: Vec<(Text<'a>, Text<'a>)>,
    // Positions in the order of their keys; empty where there are few pairs.
    by_key: Vec<u32>,
}

impl<'a> BorrowedMap<'a> {
    fn new(mut pairs: Vec<(Text<'a>, Text<'a>)>) -> Self {
        if pairs.len() <= FEW {
            return Self { pairs, by_key: Vec::new() };
        }
        // What was cut must stay as long as it is: that it was cut shows by its length.
        if pairs.len() <= limits::PAIRS {
            without_repetitions(&mut pairs);
        }
        let mut by_key: Vec<u32> = (0..u32::try_from(pairs.len()).unwrap_or(u32::MAX)).collect();
        by_key.sort_by(|one, other| key_at(&pairs, *one).cmp(key_at(&pairs, *other)));
        Self { pairs, by_key }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        if self.by_key.is_empty() {
            return Labels::get(&self.pairs, key);
        }
        let found = self.by_key.binary_search_by(|position| key_at(&self.pairs, *position).cmp(key)).ok()?;
        let position = *self.by_key.get(found)?;
        let (_, value) = self.pairs.as_slice().get(position as usize)?;
        Some(value.as_str())
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Number of pairs.
    pub const fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is no pair.
    pub const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

fn key_at<'p>(pairs: &'p [(Text<'_>, Text<'_>)], position: u32) -> &'p str {
    pairs.get(position as usize).map_or("", |(key, _)| key.as_str())
}

/// Keeps the last pair of each key, which is the one that counts. The API server repeats no key; a body that does would make every
/// set that a label can select a candidate once more for each repetition.
fn without_repetitions(pairs: &mut Vec<(Text<'_>, Text<'_>)>) {
    let mut seen: HashSet<&str> = HashSet::with_capacity(pairs.len());
    let last: Vec<bool> = pairs.iter().rev().map(|(key, _)| seen.insert(key.as_str())).collect();
    if seen.len() < pairs.len() {
        let mut last = last.into_iter().rev();
        pairs.retain(|_| last.next().unwrap_or(true));
    }
}

impl Labels for BorrowedMap<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        Self::get(self, key)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for BorrowedMap<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = BorrowedMap<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                // An empty map costs no allocation.
                let Some(first) = map.next_entry()? else { return Ok(BorrowedMap::default()) };
                let mut pairs = Vec::with_capacity(8);
                pairs.push(first);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                    if pairs.len() > limits::PAIRS {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        break;
                    }
                }
                Ok(BorrowedMap::new(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn of_a_repeated_key_the_last_value_counts_among_few_and_among_many() {
        for further in [0, 10, 1000] {
            let mut json = r#"{"a":"1","b":"2""#.to_owned();
            for number in 0..further {
                write!(json, r#","key{number}":"{number}""#).unwrap();
            }
            json.push_str(r#","a":"3"}"#);
            let pairs: BorrowedMap<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(pairs.get("a"), Some("3"), "{further}");
            assert_eq!(pairs.get("b"), Some("2"), "{further}");
            assert_eq!(pairs.get("c"), None, "{further}");
            for number in 0..further {
                assert_eq!(pairs.get(&format!("key{number}")), Some(number.to_string().as_str()));
            }
            let first = pairs.iter().filter(|(key, _)| *key == "a").count();
            assert_eq!(first, if further > FEW { 1 } else { 2 }, "{further}");
        }
    }
}
