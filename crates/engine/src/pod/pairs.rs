//! A map of strings as it stands in the body.

use std::fmt;

use admission::Text;
use admission::format::selector::Labels;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Labels or annotations, borrowed, in the order of the body. A linear search beats a map at the sizes pods have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs<'a>(Vec<(Text<'a>, Text<'a>)>);

impl Pairs<'_> {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        Labels::get(&self.0, key)
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + '_ {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Number of pairs.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no pair.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Labels for Pairs<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        Self::get(self, key)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                // An empty map costs no allocation.
                let Some(first) = map.next_entry()? else { return Ok(Pairs::default()) };
                let mut pairs = Vec::with_capacity(8);
                pairs.push(first);
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}
