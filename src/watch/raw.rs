//! The JSON text of an object, whichever way it comes.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// What `serde_json` knows the wish for unparsed text by. Under another name the text is made anew, as below.
const TOKEN: &str = "$serde_json::private::RawValue";

/// As `RawValue`, which cannot be had where `serde` has put a value aside. It does that with the object of a watch event whose
/// type comes behind it: the API server writes the type first, but a proxy that decodes JSON may sort it.
#[derive(Debug, Clone)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// The text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value that is not decoded.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Raw;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Box::<RawValue>::deserialize(MapAccessDeserializer::new(map)).map(Raw)
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
                let value = Value::deserialize(deserializer)?;
                serde_json::value::to_raw_value(&value).map(Raw).map_err(D::Error::custom)
            }
        }

        deserializer.deserialize_newtype_struct(TOKEN, Text)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt as _;
    use kube::core::WatchEvent;

    use super::*;
    use crate::watch::lenient::Lenient;

    #[test]
    fn the_text_is_taken_as_it_is() {
        let text = r#"{"b": 1, "a": [ ]}"#;
        assert_eq!(serde_json::from_str::<Raw>(text).unwrap().get(), text);
        assert_eq!(serde_json::from_str::<Vec<Raw>>("[1, {}]").unwrap()[1].get(), "{}");
    }

    #[test]
    fn an_object_of_a_watch_event_is_read_on_either_side_of_its_type() {
        let object = r#"{"metadata": {"name": "a"}}"#;
        for event in [
            format!(r#"{{"type": "ADDED", "object": {object}}}"#),
            format!(r#"{{"object": {object}, "type": "ADDED"}}"#),
        ] {
            let WatchEvent::Added(pod) = serde_json::from_str::<WatchEvent<Lenient<Pod>>>(&event).unwrap() else {
                panic!("{event}");
            };
            assert_eq!(pod.name_any(), "a");
            assert!(pod.object().is_ok(), "{event}");
        }
    }
}
