//! The cheap answer: a container that reads as the set's, compared while it is read, without memory of its own.
//!
//! A set is stored with the defaults that the API server gives its containers, so that most containers of pods read like this.
//! What is not found equal here is compared with care elsewhere.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Around;
use super::identities::Room;
use crate::sidecarset::flat::FlatValue;

/// Whether the container reads as `ours`, but for the mount of the service account's token.
pub(super) fn is_same(found: &RawValue, ours: FlatValue<'_>, room: Room, pod: &Around<'_>) -> bool {
    let container = Verbatim { ours, top: Some((room, pod)) };
    container.deserialize(&mut serde_json::Deserializer::from_str(found.get())).unwrap_or_default()
}

/// Members of one map that are distinguished here.
const MAX_MEMBERS: usize = 64;

struct Verbatim<'e, 'p> {
    ours: FlatValue<'e>,
    // Set for the container itself.
    top: Option<(Room, &'e Around<'p>)>,
}

impl<'e> Verbatim<'e, '_> {
    const fn of(ours: FlatValue<'e>) -> Self {
        Self { ours, top: None }
    }
}

impl<'de> DeserializeSeed<'de> for Verbatim<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Verbatim<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<bool, E> {
        Ok(self.ours.is_bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<bool, E> {
        Ok(self.ours.is_number(&value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<bool, E> {
        Ok(self.ours.is_number(&value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<bool, E> {
        Ok(self.ours.is_number(&value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<bool, E> {
        Ok(self.ours.is_text(value))
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(self.ours.is_null())
    }

    // Whatever differs ends the reading: what follows does not matter.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let Some(ours) = self.ours.list() else { return Err(differs()) };
        for ours in ours {
            if list.next_element_seed(Verbatim::of(ours))? != Some(true) {
                return Err(differs());
            }
        }
        if list.next_element::<IgnoredAny>()?.is_some() { Err(differs()) } else { Ok(true) }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let members = || self.ours.map().into_iter().flatten();
        let Some(all) = self.ours.map() else { return Err(differs()) };
        let mut seen = 0_u64;
        while let Some(key) = map.next_key::<admission::Text<'de>>()? {
            let at = members().take(MAX_MEMBERS).enumerate().find(|(_, (name, _))| *name == key.as_str());
            let Some((position, (_, ours))) = at else { return Err(differs()) };
            let is_same = match self.top {
                Some((room, pod)) if key.as_str() == "volumeMounts" && ours.list().is_some() => {
                    map.next_value_seed(Mounts { ours, room, pod })?
                }
                _ => map.next_value_seed(Verbatim::of(ours))?,
            };
            if !is_same {
                return Err(differs());
            }
            seen |= 1 << position;
        }
        // Not by counting: a key that is there twice must not make up for one that is missing.
        if seen.count_ones() as usize == all.len() { Ok(true) } else { Err(differs()) }
    }
}

/// The mounts of the container, behind which the plugin `ServiceAccount` puts its own.
struct Mounts<'e, 'p> {
    ours: FlatValue<'e>,
    room: Room,
    pod: &'e Around<'p>,
}

impl<'de> DeserializeSeed<'de> for Mounts<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Mounts<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of mounts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        for ours in self.ours.list().into_iter().flatten() {
            if list.next_element_seed(Verbatim::of(ours))? != Some(true) {
                return Ok(false);
            }
        }
        let Some(further) = list.next_element::<Value>()? else { return Ok(true) };
        let is_last = list.next_element::<IgnoredAny>()?.is_none();
        Ok(is_last && self.room.is_service_account(&further, self.pod))
    }
}

fn differs<E: Error>() -> E {
    E::custom("differs")
}
