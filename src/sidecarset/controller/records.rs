//! What pods say about their sets, decoded from their annotations as far as it may be long.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use engine::pod::select::SKIP_ANNOTATION;
use engine::pod::view::MIRROR_ANNOTATION;
use engine::sidecarset::injection::{INJECTED_ANNOTATION, RECORD_MAX_BYTES};

/// Sets in a pod injected by OpenKruise, comma-separated.
pub const OPENKRUISE_LIST: &str = "kruise.io/sidecarset-injected-list";
/// What OpenKruise injected, by set: an object with `hash` and `sidecarList`, in old versions the hash alone.
pub const OPENKRUISE_HASH: &str = "kruise.io/sidecarset-hash";

/// What a rollout writes of the containers whose image it changed: an object by set, as OpenKruise's under its own domain.
pub const IN_PLACE_STATE: &str = engine::pod::in_place::STATE_ANNOTATION;

/// The longest annotation that is read, in bytes. What is written of the sets that a pod may count for takes a sixth of it; the
/// API server lets 256 KiB through.
pub const MAX_BYTES: usize = RECORD_MAX_BYTES;

/// The longest list of sets to go without that is kept.
const SKIP_MAX_BYTES: usize = 256;

/// The annotations of a pod that are about sets. Of one that is too long nothing is kept.
#[derive(Debug, Clone, Default)]
pub struct Records {
    /// What Outrider injected.
    pub injected: Option<Box<str>>,
    /// What OpenKruise injected.
    pub openkruise_list: Option<Box<str>>,
    /// Of which form that was.
    pub openkruise_hash: Option<Box<str>>,
    /// What containers were before a rollout changed their images.
    pub in_place_state: Option<Box<str>>,
    /// Sets that the pod goes without.
    pub skip: Option<Box<str>>,
    /// Whether the pod is the kubelet's mirror of a static pod.
    pub is_mirror: bool,
    /// Whether something was too long.
    pub some_left_out: bool,
}

impl Records {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        let (place, max) = match key {
            INJECTED_ANNOTATION => (&mut self.injected, MAX_BYTES),
            OPENKRUISE_LIST => (&mut self.openkruise_list, MAX_BYTES),
            OPENKRUISE_HASH => (&mut self.openkruise_hash, MAX_BYTES),
            IN_PLACE_STATE => (&mut self.in_place_state, MAX_BYTES),
            SKIP_ANNOTATION => (&mut self.skip, SKIP_MAX_BYTES),
            _ => {
                self.is_mirror |= key == MIRROR_ANNOTATION;
                map.next_value::<IgnoredAny>()?;
                return Ok(());
            }
        };
        let text = map.next_value_seed(Short { max })?;
        self.some_left_out |= text.is_none();
        *place = text;
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Records {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Annotations;

        impl<'de> Visitor<'de> for Annotations {
            type Value = Records;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of annotations")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut records = Records::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    records.take(&key, &mut map)?;
                }
                Ok(records)
            }
        }

        deserializer.deserialize_map(Annotations)
    }
}

/// A string of at most so many bytes; nothing where it is longer.
struct Short {
    max: usize,
}

impl<'de> DeserializeSeed<'de> for Short {
    type Value = Option<Box<str>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Short {
    type Value = Option<Box<str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok((text.len() <= self.max).then(|| text.into()))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of a pod with these annotations.
    pub fn records(annotations: &[(&str, &str)]) -> Records {
        let annotations: std::collections::BTreeMap<_, _> = annotations.iter().copied().collect();
        serde_json::from_value(serde_json::json!(annotations)).unwrap()
    }

    #[test]
    fn annotations_about_sets_are_kept_unless_they_are_too_long() {
        let long = "x".repeat(MAX_BYTES + 1);
        let longest = long.get(1..).unwrap();
        let first = records(&[
            (INJECTED_ANNOTATION, longest),
            (OPENKRUISE_LIST, &long),
            (MIRROR_ANNOTATION, &long),
            ("other", &long),
        ]);
        assert_eq!(first.injected.as_deref(), Some(longest));
        assert!(first.openkruise_list.is_none() && first.openkruise_hash.is_none() && first.skip.is_none());
        assert!(first.is_mirror && first.some_left_out);
        let records = records(&[(OPENKRUISE_HASH, "h"), (SKIP_ANNOTATION, "true"), ("other", &long)]);
        assert_eq!((records.openkruise_hash.as_deref(), records.skip.as_deref()), (Some("h"), Some("true")));
        assert!(!records.is_mirror && !records.some_left_out);
    }
}
