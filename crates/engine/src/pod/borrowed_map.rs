//! A map of strings as it is in the body.

use std::cell::{Cell, OnceCell};
use std::fmt;

use admission::Text;
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use admission::format::selector::Labels;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::pod::limits;

/// Up to this many pairs a linear search beats every index.
const FEW: usize = 16;

/// So many searches are cheaper than an index of a long map, and most decisions need fewer.
const SEARCHES: u8 = 16;

/// Labels or annotations, borrowed, in the order of the body. Of a repeated key, which the API server never sends, the last value counts.
///
/// One that is too long is cut: it is read within an object that is known to be whole ([`Decoded`](crate::pod::decoded::Decoded)).
#[derive(Debug, Clone, Default)]
pub struct BorrowedMap<'a> {
    pairs: Vec<(Text<'a>, Text<'a>)>,
    is_cut: bool,
    searches: Cell<u8>,
    // Positions in the order of their keys, once there were many searches.
    by_key: OnceCell<Vec<u32>>,
}

impl BorrowedMap<'_> {
    /// Whether pairs are missing that there are in the body.
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether both are whole and the same.
    pub fn is_as(&self, other: &Self) -> bool {
        !self.is_cut && !other.is_cut && self.pairs == other.pairs
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
        UpTo::<{ limits::PAIRS }, { usize::MAX }>::deserialize(deserializer).map(|UpTo(pairs)| pairs)
    }
}

/// Decodes annotations: as many as the API server stores. What may be cut of them would otherwise be for the author of an object to
/// choose.
///
/// # Errors
/// Where they are no map of strings.
pub fn annotations<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BorrowedMap<'a>>, D::Error> {
    type Annotations<'a> = UpTo<'a, { limits::ANNOTATIONS }, { ANNOTATIONS_MAX_BYTES }>;
    Ok(Option::<Annotations<'a>>::deserialize(deserializer)?.map(|UpTo(pairs)| pairs))
}

/// Decodes the labels of an object that has little else: as many as can be stored.
///
/// # Errors
/// Where they are no map of strings.
pub fn labels_alone<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BorrowedMap<'a>>, D::Error> {
    type Labels<'a> = UpTo<'a, { limits::STORABLE_PAIRS }, { usize::MAX }>;
    Ok(Option::<Labels<'a>>::deserialize(deserializer)?.map(|UpTo(pairs)| pairs))
}

/// So many pairs, with so many bytes in all keys and values together.
struct UpTo<'a, const PAIRS: usize, const BYTES: usize>(BorrowedMap<'a>);

impl<'de: 'a, 'a, const PAIRS: usize, const BYTES: usize> Deserialize<'de> for UpTo<'a, PAIRS, BYTES> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BorrowedMapVisitor<const PAIRS: usize, const BYTES: usize>;
        impl<'de, const PAIRS: usize, const BYTES: usize> Visitor<'de> for BorrowedMapVisitor<PAIRS, BYTES> {
            type Value = BorrowedMap<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                // An empty map costs no allocation.
                let mut next: Option<(Text<'de>, Text<'de>)> = map.next_entry()?;
                let mut read = BorrowedMap::default();
                if next.is_some() {
                    read.pairs.reserve(8);
                }
                let mut bytes = 0_usize;
                while let Some(pair) = next {
                    bytes = bytes.saturating_add(pair.0.len() + pair.1.len());
                    if read.pairs.len() >= PAIRS || bytes > BYTES {
                        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                        read.is_cut = true;
                        return Ok(read);
                    }
                    read.pairs.push(pair);
                    next = map.next_entry()?;
                }
                Ok(read)
            }
        }
        deserializer.deserialize_map(BorrowedMapVisitor::<PAIRS, BYTES>).map(Self)
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
