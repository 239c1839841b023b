//! A pod as profiles read it.

use std::collections::BTreeSet;

use admission::field::Path;
use serde_json::Value;

use super::context::{Context, elements, member, text};
use crate::plugins::said_name;
use crate::sidecarset::injection::INJECTED_ANNOTATION;

/// Lists of containers, in the order in which they are judged.
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A whole pod, as profiles read it.
#[derive(Debug, Clone)]
pub struct Pod<'v> {
    metadata: Option<&'v Value>,
    /// `None` where the pod has none.
    pub spec: Option<&'v Value>,
    /// Containers that sets have put into it, by their record: these are judged, and nothing is filled in.
    of_sets: BTreeSet<String>,
}

/// A container of any list, and where in the pod it is.
#[derive(Debug, Clone, Copy)]
pub struct Container<'v> {
    /// As it is written.
    pub value: &'v Value,
    /// Whether the pod's record says that a set put it there.
    pub is_of_set: bool,
    list: &'static str,
    index: usize,
}

impl<'v> Pod<'v> {
    /// A pod of a review.
    pub fn of(pod: &'v Value) -> Self {
        let metadata = member(Some(pod), "metadata");
        let record = text(member(metadata, "annotations"), INJECTED_ANNOTATION);
        let record: Value = record.and_then(|record| serde_json::from_str(record).ok()).unwrap_or_default();
        let names = record.as_object().into_iter().flatten().flat_map(|(_, set)| {
            let lists = ["containers", "initContainers"].into_iter().flat_map(|list| elements(Some(set), list));
            lists.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        });
        Self { metadata, spec: member(Some(pod), "spec"), of_sets: names.collect() }
    }

    /// The value of an annotation that is a text.
    pub fn annotation(&self, key: &str) -> Option<&'v str> {
        text(member(self.metadata, "annotations"), key)
    }

    /// Whether it is being deleted.
    pub fn is_leaving(&self) -> bool {
        member(self.metadata, "deletionTimestamp").is_some()
    }

    /// Its name in messages.
    pub fn said_name<'n>(&'n self, requested: &'n str) -> &'n str {
        let own = |key: &str| text(self.metadata, key).unwrap_or_default();
        said_name([requested, own("name"), own("generateName")])
    }

    /// Its security context.
    pub fn context(&self) -> Context<'v> {
        Context::of(member(self.spec, "securityContext"))
    }

    /// A field of its spec that is a flag.
    pub fn has(&self, key: &str) -> bool {
        member(self.spec, key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A field of its spec that is a text.
    pub fn text(&self, key: &str) -> Option<&'v str> {
        text(self.spec, key)
    }

    /// Its volumes, each as it is written.
    pub fn volumes(&self) -> &'v [Value] {
        elements(self.spec, "volumes")
    }

    /// Containers of all lists, in the order in which they are judged.
    pub fn containers(&self) -> impl Iterator<Item = Container<'v>> {
        LISTS.into_iter().flat_map(move |list| {
            elements(self.spec, list).iter().enumerate().map(move |(index, value)| {
                let is_of_set = text(Some(value), "name").is_some_and(|name| self.of_sets.contains(name));
                Container { value, is_of_set, list, index }
            })
        })
    }
}

impl<'v> Container<'v> {
    /// Empty where it has none.
    pub fn name(&self) -> &'v str {
        text(Some(self.value), "name").unwrap_or_default()
    }

    /// Its security context.
    pub fn context(&self) -> Context<'v> {
        Context::of(member(Some(self.value), "securityContext"))
    }

    /// Host ports that it asks for.
    pub fn host_ports(&self) -> impl Iterator<Item = i64> + use<'v> {
        let ports = elements(Some(self.value), "ports").iter();
        ports.filter_map(|port| member(Some(port), "hostPort")?.as_i64()).filter(|port| *port > 0)
    }

    /// Where in the pod it is, for messages.
    pub fn path(&self) -> Path {
        Path::new("spec").child(self.list).index(self.index)
    }

    /// JSON pointer of its security context.
    pub fn pointer(&self) -> String {
        format!("/spec/{}/{}/securityContext", self.list, self.index)
    }
}
