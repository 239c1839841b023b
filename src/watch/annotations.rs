//! The annotations of a namespace that plugins read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use engine::plugins::placement::ANNOTATIONS;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The annotations that plugins read; others are not kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SomeAnnotations(pub BTreeMap<String, String>);

impl<'de> Deserialize<'de> for SomeAnnotations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Annotations;
        impl<'de> Visitor<'de> for Annotations {
            type Value = SomeAnnotations;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of annotations")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut kept = BTreeMap::new();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    if ANNOTATIONS.contains(&key.as_ref()) {
                        kept.insert(key.into_owned(), map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(SomeAnnotations(kept))
            }
        }
        deserializer.deserialize_map(Annotations)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_plugins_read_is_kept() {
        let key = "scheduler.alpha.kubernetes.io/node-selector";
        let found: SomeAnnotations = serde_json::from_value(json!({key: "a=b", "other": "x"})).unwrap();
        assert_eq!(found.0, [(key.to_owned(), "a=b".to_owned())].into());
    }
}
