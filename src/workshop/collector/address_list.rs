//! The addresses in the status of a Collector: those that were found, or those that are stored.

use std::borrow::Cow;

use admission::bounded::first;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::api::{MOST_IPS, PodAddress};

/// A list of addresses.
#[derive(Debug, Clone)]
pub enum AddressList {
    /// What was found.
    Found(Vec<PodAddress>),
    /// What is stored, as it is written: ten thousand empty addresses are 30 KB of JSON, and 1 MB when they are decoded. They are needed
    /// only while a status is written.
    Stored(Box<RawValue>),
}

impl AddressList {
    /// Whether it has no addresses.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Found(addresses) => addresses.is_empty(),
            Self::Stored(text) => matches!(text.get(), "[]" | "null"),
        }
    }

    /// The addresses, and one more than may be listed where there are more; none of what is no list of them.
    fn decoded(&self) -> Option<Cow<'_, [PodAddress]>> {
        let text = match self {
            Self::Found(addresses) => return Some(addresses.into()),
            Self::Stored(text) => text,
        };
        let max = usize::try_from(MOST_IPS).ok()?.saturating_add(1);
        let addresses = first(&mut serde_json::Deserializer::from_str(text.get()), max).ok()?;
        Some(addresses.unwrap_or_default().into())
    }
}

impl Default for AddressList {
    fn default() -> Self {
        Self::Found(Vec::new())
    }
}

/// What is no list equals nothing, and is replaced.
impl PartialEq for AddressList {
    fn eq(&self, other: &Self) -> bool {
        self.decoded().is_some_and(|addresses| other.decoded() == Some(addresses))
    }
}

impl<'de> Deserialize<'de> for AddressList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::Stored)
    }
}

impl Serialize for AddressList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.decoded().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn list(value: Value) -> AddressList {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn lists_are_equal_by_what_they_hold() {
        let address = PodAddress { pod: "a".to_owned(), pod_ip: "10.0.0.1".to_owned(), ..PodAddress::default() };
        let found = AddressList::Found(vec![address]);
        let stored = json!({"pod": "a", "podIP": "10.0.0.1", "podIPs": [], "ready": false});
        assert_eq!(found, list(json!([stored])));
        for other in [json!(null), json!([]), json!([{"pod": "b"}]), json!([stored, stored]), json!({}), json!([3])] {
            assert!(found != list(other.clone()), "{other}");
        }
        for empty in [json!(null), json!([])] {
            assert!(AddressList::default() == list(empty.clone()) && list(empty).is_empty());
        }
    }

    #[test]
    fn what_is_no_list_is_replaced_also_by_an_empty_one() {
        for wrong in [json!({}), json!("a"), json!([3])] {
            let wrong = list(wrong);
            assert!(wrong != AddressList::default() && !wrong.is_empty());
            assert_eq!(json!(wrong), Value::Null);
        }
    }

    #[test]
    fn of_a_list_that_is_too_long_the_rest_is_not_decoded() {
        let long = list(json!(vec![json!({}); 20_000]));
        assert_eq!(json!(long).as_array().unwrap().len(), 10_001);
    }
}
