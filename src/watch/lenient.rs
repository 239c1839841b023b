//! Watched objects of which one may be unreadable without ending the watch.

use std::borrow::Cow;
use std::marker::PhantomData;

use admission::ObjectLimit;
use admission::bounded::ellipsis;
use admission::raw::{ObjectWriter, member, members};
use engine::plugins::api as plugins;
use engine::sidecarset::{api as sets, size};
use futures::{Stream, StreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::watch::follow::{EventStream, events};
use crate::watch::raw::Raw;
use crate::watch::resource_of_kind;

/// Objects in one page of a list that is there as text twice, of kinds whose objects may be as large as any.
const PAGE: u32 = 20;

/// Characters of a reason that are kept: some repeat a text of the object.
const ERROR_MAX_CHARS: usize = 500;

/// The metadata that a watch needs, and the text of the object, which is decoded when it is taken in: of a page of a list, one object
/// after the other.
///
/// kube has `DeserializeGuard` for objects that cannot be read; it goes through `serde_value`, which loses the order of fields and keeps
/// managedFields. Here the text of the object is decoded, not a tree of it, which may take a hundred times as much memory.
#[derive(Debug, Clone)]
pub struct Lenient<K> {
    object: Undecoded,
    kind: PhantomData<fn() -> K>,
}

/// The same of any kind.
#[derive(Debug, Clone)]
struct Undecoded {
    metadata: ObjectMeta,
    text: Raw,
}

resource_of_kind!(Undecoded: DynamicObject);

/// As [`events`], of a kind whose objects are decoded when they are taken in; of one namespace, if one is given.
///
/// The watch is one of objects of any kind: the code of a watch takes about 35 KB in the binary for each type that it decodes.
pub fn lenient_events<K: Resource<DynamicType = ()>>(
    client: Client,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = Result<Event<Lenient<K>>, watcher::Error>> + Send + use<K> {
    undecoded_events(api_of::<K>(client, namespace), config)
        .map(|event| converted(event?, |object| Ok(Lenient::from(object))))
}

/// As [`lenient_events`], of a kind whose objects can always be read: one that cannot is an error of the watch, which goes on.
pub fn decoded_events<K: Resource<DynamicType = ()> + DeserializeOwned>(
    client: Client,
    namespace: Option<&str>,
    config: watcher::Config,
) -> impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + use<K> {
    let decode = |object: Undecoded| {
        serde_json::from_str(object.text.get())
            .map_err(|error| watcher::Error::WatchFailed(kube::Error::SerdeError(error)))
    };
    undecoded_events(api_of::<K>(client, namespace), config.page_size(PAGE)).map(move |event| converted(event?, decode))
}

fn api_of<K: Resource<DynamicType = ()>>(client: Client, namespace: Option<&str>) -> Api<Undecoded> {
    let kind = ApiResource::erase::<K>(&());
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &kind),
        None => Api::all_with(client, &kind),
    }
}

fn converted<O>(
    event: Event<Undecoded>,
    convert: impl Fn(Undecoded) -> Result<O, watcher::Error>,
) -> Result<Event<O>, watcher::Error> {
    Ok(match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(convert(object)?),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(convert(object)?),
        Event::Delete(object) => Event::Delete(convert(object)?),
    })
}

fn undecoded_events(api: Api<Undecoded>, config: watcher::Config) -> EventStream<Undecoded> {
    events(api, config).boxed()
}

impl<K> From<Undecoded> for Lenient<K> {
    fn from(object: Undecoded) -> Self {
        Self { object, kind: PhantomData }
    }
}

/// What the watch itself needs, read leniently: metadata may be what is wrong.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identity<'t> {
    #[serde(borrow)]
    name: Option<&'t RawValue>,
    #[serde(borrow)]
    namespace: Option<&'t RawValue>,
    #[serde(borrow)]
    uid: Option<&'t RawValue>,
    #[serde(borrow)]
    resource_version: Option<&'t RawValue>,
}

/// Says why an object is not decoded.
type Check = fn(&RawValue) -> Result<(), String>;

/// How much is decoded of an object whose fields are all kept as values: as much as its webhooks let through. More may be
/// stored while none of them looks. Other kinds are kept as text, or in part.
fn limit_of(group: &str, kind: &str) -> Option<Check> {
    match group {
        sets::GROUP if kind == sets::KIND => Some(size::check),
        plugins::GROUP => Some(|object| ObjectLimit::STORABLE.check(object)),
        _ => None,
    }
}

/// The object without its managedFields, within the limit: the API server adds to those after admission.
///
/// # Errors
/// Which limit it exceeds.
fn within(check: Check, object: &RawValue) -> Result<String, String> {
    let mut text = String::with_capacity(object.get().len());
    let mut writer = ObjectWriter::begin(&mut text);
    members(object, |key, value| {
        if key.name() != "metadata" || member(value, "managedFields").is_none() {
            return writer.copy(&key, value);
        }
        let mut metadata = ObjectWriter::begin(writer.value_of("metadata"));
        members(value, |key, value| {
            if key.name() != "managedFields" {
                metadata.copy(&key, value);
            }
        });
        metadata.end();
    });
    writer.end();
    let read: &RawValue = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let refused = |error| format!("{error}; no webhook lets as much through: make it smaller, or delete it");
    check(read).map_err(refused)?;
    Ok(text)
}

impl<'de, K> Deserialize<'de> for Lenient<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Undecoded::deserialize(deserializer).map(Self::from)
    }
}

impl<'de> Deserialize<'de> for Undecoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts<'t> {
            #[serde(borrow)]
            metadata: Identity<'t>,
        }

        let text = Raw::deserialize(deserializer)?;
        let parts = serde_json::from_str::<Parts<'_>>(text.get());
        let parts = parts.map_err(|_| D::Error::custom("the object has no metadata"))?;
        let metadata = parts.metadata.into_metadata();
        Ok(Self { metadata, text })
    }
}

impl<K: DeserializeOwned + Resource<DynamicType = ()>> Lenient<K> {
    /// The object.
    ///
    /// # Errors
    /// Why it cannot be read: its text does not say one, or is more than admission lets through.
    pub fn object(self) -> Result<Box<K>, String> {
        let read = match limit_of(&K::group(&()), &K::kind(&())) {
            Some(check) => within(check, self.object.text.raw()).map(Cow::Owned),
            None => Ok(Cow::Borrowed(self.object.text.get())),
        };
        let decoded = read.and_then(|read| serde_json::from_str::<K>(&read).map_err(|error| error.to_string()));
        decoded.map_err(|error| ellipsis(&error, ERROR_MAX_CHARS)).map(|mut object| {
            object.meta_mut().managed_fields = None;
            Box::new(object)
        })
    }
}

impl Identity<'_> {
    fn into_metadata(self) -> ObjectMeta {
        let text = |value: Option<&RawValue>| value.and_then(|value| serde_json::from_str(value.get()).ok());
        ObjectMeta {
            name: text(self.name),
            namespace: text(self.namespace),
            uid: text(self.uid),
            resource_version: text(self.resource_version),
            ..ObjectMeta::default()
        }
    }
}

resource_of_kind!(Lenient<K>: Resource, this => &this.object.metadata, &mut this.object.metadata);

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::ResourceExt as _;
    use serde_json::json;

    use super::*;
    use crate::watch::revision::RevisionResource;
    use crate::watch::{AdmissionPluginResource, SidecarSetResource};

    #[test]
    fn an_unreadable_object_keeps_its_name_and_version() {
        let lenient: Lenient<Pod> = serde_json::from_value(json!({
            "metadata": {"name": "a", "resourceVersion": "7", "labels": 3}, "spec": "no"
        }))
        .unwrap();
        assert_eq!(lenient.name_any(), "a");
        assert_eq!(lenient.resource_version().as_deref(), Some("7"));
        assert!(lenient.object().is_err());
        let long = json!({"metadata": {"name": "a"}, "spec": {"containers": "x".repeat(100_000)}});
        let lenient: Lenient<Pod> = serde_json::from_value(long).unwrap();
        assert!(lenient.object().unwrap_err().len() < 1_000);
    }

    #[test]
    fn of_ours_no_more_is_decoded_than_admission_lets_through() {
        let maps = |count: usize| vec![json!({"": 0}); count];
        let read = |fields: usize, values: usize| -> Result<(), String> {
            let metadata =
                json!({"name": "a", "uid": "u", "managedFields": [{"manager": "m", "fieldsV1": {"x": maps(fields)}}]});
            let text =
                json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "x": maps(values)}]}}).to_string();
            let set: Lenient<SidecarSetResource> = serde_json::from_str(&text).unwrap();
            assert_eq!(set.name_any(), "a");
            set.object().map(|set| assert_eq!(set.metadata.uid.as_deref(), Some("u")))
        };
        // What others write behind the author does not count.
        assert_eq!(read(30_000, 9_000), Ok(()));
        assert!(read(0, 12_000).unwrap_err().starts_with("spec holds more than 20000 values"));
        let error = read(0, 150_000).unwrap_err();
        assert_eq!(
            error,
            "the object holds more than 40000 values; no webhook lets as much through: make it smaller, or delete it"
        );
        let containers = vec![json!({"name": "c"}); 101];
        let set: Lenient<SidecarSetResource> =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": {"containers": containers}})).unwrap();
        assert!(set.object().unwrap_err().starts_with("spec.containers holds more than 100 elements"));
        let plugin = json!({"metadata": {"name": "a"}, "spec": {"x": maps(30_000)}});
        let plugin: Lenient<AdmissionPluginResource> = serde_json::from_value(plugin).unwrap();
        assert!(plugin.object().is_err());
        // What is kept in part may have any size.
        let revision = json!({"metadata": {"name": "a"}, "data": {"spec": maps(30_000)}});
        let revision: Lenient<RevisionResource> = serde_json::from_value(revision).unwrap();
        assert!(revision.object().is_ok());
    }

    #[test]
    fn a_readable_object_loses_only_managed_fields() {
        let lenient: Lenient<Pod> = serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "managedFields": [{"manager": "m"}]},
            "spec": {"containers": [{"name": "c"}]}
        }))
        .unwrap();
        let pod = lenient.object().unwrap();
        assert!(pod.managed_fields().is_empty());
        assert_eq!(pod.spec.unwrap().containers.len(), 1);
    }
}
