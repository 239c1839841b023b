//! A map of strings as it is in the body.

use std::cell::{Cell, OnceCell};
use std::fmt;

use admission::Text;
use admission::format::selector::Labels;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::pod::limits;

/// Up to this many pairs a linear search beats every index.
const FEW: usize = 16;

/// So many searches are cheaper than an index of a long map, and most decisions need fewer.
const SEARCHES: u8 = 16;

/// Labels or annotations, borrowed, in the order of the body. Of a repeated key, which the API server never sends, the last value counts.
#[derive(Debug, Clone, Default)]
pub struct BorrowedMap<'a> {
    pairs: Vec<(Text<'a>, Text<'a>)>,
    searches: Cell<u8>,
    // Positions in the order of their keys, once there were many searches.
    by_key: OnceCell<Vec<u32>>,
}

impl PartialEq for BorrowedMap<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.pairs == other.pairs
    }
}

impl Eq for BorrowedMap<'_> {}

impl<'a> BorrowedMap<'a> {
    fn new(pairs: Vec<(Text<'a>, Text<'a>)>) -> Self {
        Self { pairs, ..Self::default() }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        if self.pairs.len() <= FEW || self.may_search() {
            return Labels::get(&self.pairs, key);
        }
        let by_key = self.by_key.get_or_init(|| {
            let mut by_key: Vec<u32> = (0..u32::try_from(self.pairs.len()).unwrap_or(u32::MAX)).collect();
            by_key.sort_by(|one, other| self.key_at(*one).cmp(self.key_at(*other)));
            by_key
        });
        let behind = by_key.partition_point(|position| self.key_at(*position) <= key);
        let (found, value) = self.pairs.as_slice().get(*by_key.get(behind.checked_sub(1)?)? as usize)?;
        (found.as_str() == key).then_some(value.as_str())
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone + '_ {
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

    fn may_search(&self) -> bool {
        let searches = self.searches.get();
        self.searches.set(searches.saturating_add(1));
        searches < SEARCHES
    }

    fn key_at(&self, position: u32) -> &str {
        self.pairs.as_slice().get(position as usize).map_or("", |(key, _)| key.as_str())
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
            // More often than pairs are searched.
            for number in (0..further).cycle().take(100) {
                assert_eq!(pairs.get(&format!("key{number}")), Some(number.to_string().as_str()));
            }
            assert_eq!(pairs.get("a"), Some("3"), "{further}");
            assert_eq!((pairs.get("c"), pairs.get("")), (None, None), "{further}");
        }
    }
}
