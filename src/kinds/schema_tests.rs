//! The schema of every kind has the fields that its type reads, and no others, and the type refuses what the schema refuses.
//!
//! A full object is made from the schema, and decoded through a deserializer that records which fields each type asks for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use engine::limitrange::api::ClusterLimitRange;
use engine::plugins::api::AdmissionPlugin;
use engine::podsecurityprofile::api::PodSecurityProfile;
use engine::sidecarset::api::SidecarSet;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Error, Value, json};

use super::KINDS;
use crate::config::ProjectConfig;
use crate::watch::{
    AdmissionPluginResource, ClusterLimitRangeResource, PodSecurityProfileResource, SidecarSetResource,
};
use crate::workshop::collector::api::Collector;
use crate::workshop::cronjob::api::CronJob;
use crate::workshop::simpledeployment::api::SimpleDeployment;
use crate::workshop::welcome::api::Welcome;

type Decode = fn(Recorder<'_>) -> Result<(), Error>;

fn decode<'de, T: Deserialize<'de>>(recorder: Recorder<'de>) -> Result<(), Error> {
    T::deserialize(recorder).map(drop)
}

/// The types of each version of each kind.
const TYPES: &[(&str, &str, &[Decode])] = &[
    ("sidecarset", "v1alpha1", &[|it| decode::<SidecarSet>(it), |it| decode::<SidecarSetResource>(it)]),
    ("admissionplugin", "v1alpha1", &[|it| decode::<AdmissionPlugin>(it), |it| decode::<AdmissionPluginResource>(it)]),
    (
        "clusterlimitrange",
        "v1alpha1",
        &[|it| decode::<ClusterLimitRange>(it), |it| decode::<ClusterLimitRangeResource>(it)],
    ),
    (
        "podsecurityprofile",
        "v1alpha1",
        &[|it| decode::<PodSecurityProfile>(it), |it| decode::<PodSecurityProfileResource>(it)],
    ),
    ("collector", "v1", &[|it| decode::<Collector>(it)]),
    ("cronjob", "v1", &[|it| decode::<CronJob>(it)]),
    // Conversion reads this version as JSON; its own test compares its schema with that of v1.
    ("cronjob", "v2", &[]),
    ("projectconfig", "v2", &[|it| decode::<ProjectConfig>(it)]),
    ("simpledeployment", "v1", &[|it| decode::<SimpleDeployment>(it)]),
    ("welcome", "v1", &[|it| decode::<Welcome>(it)]),
];

/// Differences that are meant, with their reasons.
const MEANT: &[(&str, &str)] = &[
    ("sidecarset.spec.updateStrategy.priorityStrategy: the type reads any fields", "validation checks it as JSON"),
    (
        "collector.spec.selector: the type reads any fields",
        "its length is checked before it is decoded as a LabelSelector",
    ),
    ("collector.status.ips: the type reads any fields", "it stays text until a status is written"),
    ("cronjob.spec.jobTemplate: the type takes true", "validation refuses it in the API server's words"),
    (
        "projectconfig.status: the type does not read it",
        "it has no fields; the schema allows it for clients that write one",
    ),
];

/// How a type reads the value at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Read {
    /// As a struct with these fields.
    Fields(BTreeSet<&'static str>),
    /// As a map with any keys, or as JSON.
    Open,
    /// Not at all.
    Ignored,
    /// As a list or a scalar.
    Value,
}

/// Hands out a value, and records how it is read.
#[derive(Clone)]
struct Recorder<'a> {
    value: &'a Value,
    path: String,
    reads: &'a RefCell<BTreeMap<String, Read>>,
}

impl Recorder<'_> {
    fn note(&self, read: Read) {
        self.reads.borrow_mut().insert(self.path.clone(), read);
    }

    fn below(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.path)
    }
}

macro_rules! scalars {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.note(Read::Value);
            self.value.$method(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for Recorder<'de> {
    type Error = Error;

    scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_str deserialize_string deserialize_identifier
        deserialize_char deserialize_bytes deserialize_byte_buf deserialize_unit
    }

    forward_to_deserialize_any! { i128 u128 }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note(if self.value.is_object() { Read::Open } else { Read::Value });
        self.value.deserialize_any(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        if name.contains("RawValue") {
            self.note(Read::Open);
            return self.value.deserialize_newtype_struct(name, visitor);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note(Read::Value);
        match self.value {
            Value::Array(items) => visitor.visit_seq(Items { list: self.clone(), items: items.iter() }),
            other => other.deserialize_seq(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note(Read::Open);
        self.value.deserialize_map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.note(Read::Fields(fields.iter().copied().collect()));
        match self.value {
            Value::Object(map) => {
                let fields = Fields { object: self.clone(), pairs: map.iter(), value: None };
                visitor.visit_map(fields)
            }
            other => other.deserialize_struct(name, fields, visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note(Read::Ignored);
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        self.value.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Error> {
        self.value.deserialize_tuple(len, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.value.deserialize_tuple_struct(name, len, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.note(Read::Value);
        self.value.deserialize_enum(name, variants, visitor)
    }
}

struct Items<'a> {
    list: Recorder<'a>,
    items: std::slice::Iter<'a, Value>,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        let Some(value) = self.items.next() else { return Ok(None) };
        seed.deserialize(Recorder { value, path: self.list.below("[]"), ..self.list.clone() }).map(Some)
    }
}

struct Fields<'a> {
    object: Recorder<'a>,
    pairs: serde_json::map::Iter<'a>,
    value: Option<Recorder<'a>>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.pairs.next() else { return Ok(None) };
        self.value = Some(Recorder { value, path: self.object.below(&format!(".{name}")), ..self.object.clone() });
        seed.deserialize(serde::de::value::StrDeserializer::<Error>::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.value.take().unwrap())
    }
}

/// An object with every field of the schema.
fn full(schema: &Value) -> Value {
    if let Some(word) = schema.pointer("/enum/0") {
        return word.clone();
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            let fields = fields.map(|(name, schema)| (name.clone(), full(schema)));
            let pair = schema.get("additionalProperties").map(|schema| ("a".to_owned(), full(schema)));
            fields.chain(pair).collect()
        }
        Some("array") => json!([full(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("integer") => json!(1),
        // A duration is a string too.
        Some("string") => json!(if schema["format"] == "date-time" { "2026-01-02T03:04:05Z" } else { "1s" }),
        _ => json!("50%"),
    }
}

/// Calls `visit` with each schema below this one that is read, its path, and the pointer to its value in the full object.
fn walk(schema: &Value, path: &str, pointer: &str, visit: &mut impl FnMut(&Value, &str, &str)) {
    visit(schema, path, pointer);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        walk(field, &format!("{path}.{name}"), &format!("{pointer}/{name}"), visit);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{path}[]"), &format!("{pointer}/0"), visit);
    }
}

fn fields(schema: &Value) -> BTreeSet<&str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

/// Where the schema and the type differ.
fn differences(kind: &str, schema: &Value, decode: Decode) -> Vec<String> {
    let object = full(schema);
    let reads = RefCell::default();
    let read = |object: &Value| decode(Recorder { value: object, path: String::new(), reads: &reads });
    let mut differences: Vec<String> = Vec::new();
    if let Err(error) = read(&object) {
        return vec![format!("{kind}: {object} is refused: {error}")];
    }
    let known = reads.take();
    walk(schema, "", "", &mut |schema, path, pointer| {
        // The API server has the schema of this, and every type reads another part of it.
        if path.starts_with(".metadata") || [".apiVersion", ".kind"].contains(&path) {
            return;
        }
        let is_open =
            schema.get("additionalProperties").is_some() || schema["x-kubernetes-preserve-unknown-fields"] == true;
        match known.get(path) {
            Some(Read::Fields(read)) if path.is_empty() => {
                // A kind without a status has the sub-resource all the same.
                let common = ["apiVersion", "kind", "metadata", "status"];
                let read: BTreeSet<&str> = read.iter().copied().chain(common).collect();
                if read != fields(schema) {
                    differences.push(format!("{kind}: the type reads {read:?}, the schema has {:?}", fields(schema)));
                }
            }
            Some(Read::Fields(read)) if *read != fields(schema) => {
                differences.push(format!("{kind}{path}: the type reads {read:?}, the schema has {:?}", fields(schema)));
            }
            Some(Read::Open) if !is_open => differences.push(format!("{kind}{path}: the type reads any fields")),
            Some(Read::Ignored) => differences.push(format!("{kind}{path}: the type does not read it")),
            Some(_) => {
                let mut wrong = object.clone();
                *wrong.pointer_mut(pointer).unwrap() =
                    if schema["type"] == "boolean" { json!("x") } else { json!(true) };
                if read(&wrong).is_ok() {
                    differences.push(format!("{kind}{path}: the type takes {}", wrong.pointer(pointer).unwrap()));
                }
            }
            // Below what is read as JSON.
            None => {}
        }
    });
    differences
}

#[test]
fn schemas_and_types_agree_for_every_kind() {
    let (mut listed, mut found) = (Vec::new(), Vec::new());
    for kind in KINDS {
        for version in kind.definition().spec.versions {
            let types = TYPES.iter().find(|(name, of, _)| *name == kind.name && *of == version.name);
            let Some((_, _, types)) = types else { panic!("{} {} has no row", kind.name, version.name) };
            let schema = json!(version.schema.unwrap().open_api_v3_schema);
            found.extend(types.iter().flat_map(|decode| differences(kind.name, &schema, *decode)));
            listed.push((kind.name, version.name));
        }
    }
    assert_eq!(listed.len(), TYPES.len(), "a row is about no kind");
    let unexpected: Vec<&String> = found.iter().filter(|found| MEANT.iter().all(|(meant, _)| found != meant)).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
    for (meant, reason) in MEANT {
        assert!(found.iter().any(|found| found == meant), "{meant} ({reason}): there is no such difference any more");
    }
}

#[test]
#[expect(clippy::redundant_closure, reason = "the function is of one lifetime, the closure of all")]
fn a_field_that_only_one_of_them_has_is_found() {
    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Thing {
        spec: Spec,
        status: Option<String>,
    }

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Spec {
        both: i32,
        type_alone: i32,
        loose: Value,
    }

    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {
        "apiVersion": text, "kind": text, "metadata": {"type": "object"}, "status": text,
        "spec": {"type": "object", "properties": {
            "both": {"type": "integer"}, "schemaAlone": {"type": "integer"}, "loose": text,
        }},
    }});
    assert_eq!(
        differences("Thing", &schema, |it| decode::<Thing>(it)),
        [
            "Thing.spec: the type reads {\"both\", \"loose\", \"type_alone\"}, the schema has {\"both\", \"loose\", \"schemaAlone\"}",
            "Thing.spec.loose: the type takes true",
            "Thing.spec.schemaAlone: the type does not read it",
        ]
    );
}
