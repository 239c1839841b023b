//! Objects of manifests by what they are.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::Value;

use super::Validate;
use super::error::Error;
use crate::API_DOMAIN;
use crate::limitrange::api as ranges;
use crate::limitrange::validation::unknown_fields as range_fields;
use crate::offline::manifest::{self, Identity, Manifest, identity};
use crate::openkruise;
use crate::plugins::api as plugins;
use crate::plugins::service_account::Account;
use crate::plugins::storage_classes::{StorageClass, StorageClasses};
use crate::plugins::validation::unknown_fields as plugin_fields;
use crate::podsecurityprofile::api as profiles;
use crate::podsecurityprofile::validation::unknown_fields as profile_fields;
use crate::schema::{SchemaType, UnknownField};
use crate::sidecarset::api::{API_VERSION, GROUP, KIND};
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;
use crate::sidecarset::validation;
use crate::snapshot::configuration::{ALLOW_LIST_KEY, CONFIG_MAP, ConfigurationMap};
use crate::snapshot::nodes::Nodes;
use crate::snapshot::quotas::{QuotaKey, Quotas, read};
use crate::snapshot::revisions::{CUSTOM_VERSION_LABEL, Revision, SET_LABEL};
use crate::snapshot::service_accounts::{AccountKey, ServiceAccounts};
use crate::snapshot::while_read::WhileRead as _;
use crate::suggest::suggest;

/// What decides, by name, and what is wrong with it.
pub struct Sorted<'m> {
    pub namespaces: BTreeMap<String, FoundNamespace>,
    pub sets: BTreeMap<String, &'m Manifest>,
    pub plugins: BTreeMap<String, &'m Manifest>,
    pub ranges: BTreeMap<String, &'m Manifest>,
    pub profiles: BTreeMap<String, &'m Manifest>,
    /// Quotas, of manifests with a namespace.
    pub quotas: Quotas,
    /// Storage classes.
    pub classes: StorageClasses,
    /// Labels of nodes.
    pub nodes: Nodes,
    /// Accounts, of manifests with a namespace.
    pub accounts: ServiceAccounts,
    /// Revisions of sets.
    pub revisions: Vec<(&'m str, Arc<Revision>)>,
    /// With the place that it came from.
    pub configuration: Option<(String, ConfigurationMap)>,
    pub warnings: Vec<String>,
    pub errors: Vec<Error>,
    other_types: &'m [String],
    validate: Validate,
}

const NAMESPACE: &str = "Namespace";
/// That of objects without one.
const DEFAULT_NAMESPACE: &str = "default";

const CONFIG_MAP_KIND: &str = "ConfigMap";

const QUOTA: &str = "ResourceQuota";
const STORAGE_CLASS: &str = "StorageClass";
const NODE: &str = "Node";
const ACCOUNT: &str = "ServiceAccount";

const REVISION: &str = "ControllerRevision";

static NAMESPACE_SHAPE: LazyLock<SchemaType> = LazyLock::new(|| SchemaType::of_kind(NAMESPACE));

fn is_our_group(group: &str) -> bool {
    group.strip_suffix(API_DOMAIN).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[derive(Deserialize)]
struct LabelledObject {
    metadata: Labelled,
}

#[derive(Deserialize)]
struct Labelled {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// A namespace of manifests.
#[derive(Debug)]
pub struct FoundNamespace {
    /// The place that it came from.
    pub origin: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl<'m> Sorted<'m> {
    /// Takes all objects; kinds that nothing is decided by are left out.
    pub fn of(manifests: &'m [Manifest], other_types: &'m [String], validate: Validate) -> Self {
        let mut sorted = Self {
            namespaces: BTreeMap::new(),
            sets: BTreeMap::new(),
            plugins: BTreeMap::new(),
            ranges: BTreeMap::new(),
            profiles: BTreeMap::new(),
            quotas: Quotas::default(),
            classes: StorageClasses::default(),
            nodes: Nodes::default(),
            accounts: ServiceAccounts::default(),
            revisions: Vec::new(),
            configuration: None,
            warnings: Vec::new(),
            errors: Vec::new(),
            other_types,
            validate,
        };
        for manifest in manifests {
            sorted.sort(manifest);
        }
        sorted
    }

    fn sort(&mut self, manifest: &'m Manifest) {
        let origin = &manifest.source;
        let identity = match identity(&manifest.value) {
            Ok(identity) => identity,
            Err(error) => {
                let error = manifest::Error::Unidentified { origin: origin.clone(), error };
                return self.errors.push(error.into());
            }
        };
        match (identity.group(), identity.kind.as_str()) {
            ("", NAMESPACE) => self.namespace(manifest, identity),
            ("", QUOTA) => self.quota(manifest, identity),
            ("storage.k8s.io", STORAGE_CLASS) => self.class(manifest, identity),
            ("", NODE) => self.node(manifest, identity),
            ("", ACCOUNT) => self.account(manifest, identity),
            ("", CONFIG_MAP_KIND) if identity.name == CONFIG_MAP => self.configuration(manifest),
            ("apps", REVISION) => self.revision(manifest, &identity.name),
            (GROUP, KIND) if identity.api_version == API_VERSION => self.set(manifest, identity),
            (plugins::GROUP, plugins::KIND) if identity.api_version == plugins::API_VERSION => {
                self.plugin(manifest, identity);
            }
            (ranges::GROUP, ranges::KIND) if identity.api_version == ranges::API_VERSION => {
                self.range(manifest, identity);
            }
            (profiles::GROUP, profiles::KIND) if identity.api_version == profiles::API_VERSION => {
                self.profile(manifest, identity);
            }
            (openkruise::GROUP, KIND) => self.warnings.push(format!(
                "{origin}: {} SidecarSet {:?} is left out: outrider migrate prints it as {API_VERSION}",
                identity.api_version, identity.name
            )),
            (_, KIND) => {
                self.errors.push(Error::Version { origin: origin.clone(), api_version: identity.api_version });
            }
            (group, _) if is_our_group(group) => self.of_ours(origin, identity),
            _ if let Some(near) = misspelt_set(&identity) => self.no_such_kind(origin, identity, Some(near)),
            _ => {
                tracing::debug!(
                    origin,
                    kind = identity.kind,
                    name = identity.name,
                    "Left out: not a kind that is read"
                );
            }
        }
    }

    /// One that no set controls is of something else, unless it is labelled as one of a set.
    fn revision(&mut self, manifest: &'m Manifest, name: &str) {
        let origin = manifest.source.as_str();
        if let Some(revision) = Revision::of(&manifest.value) {
            self.revisions.push((origin, Arc::new(revision)));
        } else if is_meant_for_a_set(&manifest.value) {
            self.warnings.push(format!(
                "{origin}: ControllerRevision {name:?}: metadata.ownerReferences: none is {API_VERSION} {KIND} with controller: true, so \
                 the revision belongs to no set and is left out"
            ));
        }
    }

    /// A kind of ours that decides nothing here; but one that is mistyped would be missed.
    fn of_ours(&mut self, origin: &str, identity: Identity) {
        let written = format!("{} {}", identity.api_version, identity.kind);
        if self.other_types.contains(&written) {
            return;
        }
        let own = [
            (API_VERSION, KIND),
            (plugins::API_VERSION, plugins::KIND),
            (ranges::API_VERSION, ranges::KIND),
            (profiles::API_VERSION, profiles::KIND),
        ];
        let own = own.map(|(api_version, kind)| format!("{api_version} {kind}"));
        let types = own.iter().chain(self.other_types).map(String::as_str);
        let of_kind = |written: &&str| written.ends_with(&format!(" {}", identity.kind));
        let near = suggest(&written, types.clone()).or_else(|| types.clone().find(of_kind)).map(str::to_owned);
        self.no_such_kind(origin, identity, near);
    }

    fn no_such_kind(&mut self, origin: &str, Identity { api_version, kind, .. }: Identity, near: Option<String>) {
        self.errors.push(Error::NoSuchKind { origin: origin.to_owned(), api_version, kind, near });
    }

    /// Records fields that the API server would refuse, or drop. Returns whether the object is to be checked further: what
    /// else is wrong with one that is refused may only follow from it, and kubectl says no more either.
    fn passes(&mut self, origin: &str, kind: &'static str, name: &str, unknown: Vec<String>) -> bool {
        match self.validate {
            Validate::Strict => {
                let passes = unknown.is_empty();
                self.errors.extend(unknown.into_iter().map(|field| Error::UnknownField {
                    origin: origin.to_owned(),
                    kind,
                    name: name.to_owned(),
                    field,
                }));
                passes
            }
            Validate::Warn => {
                self.warnings.extend(unknown.into_iter().map(|field| format!("{origin}: {kind} {name:?}: {field}")));
                true
            }
        }
    }

    /// How an unknown field is reported.
    fn word(&self) -> fn(&UnknownField<'static>) -> String {
        match self.validate {
            Validate::Strict => ToString::to_string,
            Validate::Warn => UnknownField::warning,
        }
    }

    fn set(&mut self, manifest: &'m Manifest, identity: Identity) {
        let unknown = validation::unknown_fields(&manifest.value, self.word());
        self.deciding(manifest, identity, KIND, unknown, |sorted| &mut sorted.sets);
    }

    fn plugin(&mut self, manifest: &'m Manifest, identity: Identity) {
        let unknown = plugin_fields(&manifest.value, self.word());
        self.deciding(manifest, identity, plugins::KIND, unknown, |sorted| &mut sorted.plugins);
    }

    fn range(&mut self, manifest: &'m Manifest, identity: Identity) {
        let unknown = range_fields(&manifest.value, self.word());
        self.deciding(manifest, identity, ranges::KIND, unknown, |sorted| &mut sorted.ranges);
    }

    fn profile(&mut self, manifest: &'m Manifest, identity: Identity) {
        let unknown = profile_fields(&manifest.value, self.word());
        self.deciding(manifest, identity, profiles::KIND, unknown, |sorted| &mut sorted.profiles);
    }

    /// An object that decides, of which there is one of each name.
    fn deciding(
        &mut self,
        manifest: &'m Manifest,
        identity: Identity,
        kind: &'static str,
        unknown: Vec<String>,
        all: fn(&mut Self) -> &mut BTreeMap<String, &'m Manifest>,
    ) {
        let (origin, name) = (manifest.source.clone(), identity.name);
        if !self.passes(&origin, kind, &name, unknown) {
            return;
        }
        if let Some(namespace) = identity.namespace {
            let instead = if kind == KIND { "; spec.namespace limits the set to pods of one namespace" } else { "" };
            self.warnings.push(format!(
                "{origin}: {kind} {name:?}: metadata.namespace: {namespace:?} is dropped, as the kind is cluster-scoped{instead}"
            ));
        }
        if name.is_empty() {
            return self.errors.push(Error::Nameless { origin, kind });
        }
        if let Some(first) = all(self).get(&name) {
            let first = first.source.clone();
            return self.errors.push(Error::Twice { origin, kind, name, first });
        }
        all(self).insert(name, manifest);
    }

    /// A quota covers what its manifest says: offline its status is not written.
    fn quota(&mut self, manifest: &Manifest, identity: Identity) {
        let namespace = manifest.value.pointer("/metadata/namespace").and_then(Value::as_str);
        let namespace = namespace.unwrap_or(DEFAULT_NAMESPACE);
        let part = |field: &str| manifest.value.get(field).cloned().unwrap_or_default();
        let spec = serde_json::from_value(part("spec"));
        let limits = part("spec").get("hard").map(|hard| serde_json::json!({ "hard": hard }));
        let status = serde_json::from_value(limits.unwrap_or_default());
        match (spec, status) {
            (Ok(spec), Ok(status)) => {
                let key = QuotaKey { namespace: namespace.to_owned(), name: identity.name };
                self.quotas.insert(key, Arc::new(read(spec, status)));
            }
            (Err(error), _) | (_, Err(error)) => {
                let (origin, name) = (&manifest.source, &identity.name);
                self.warnings.push(format!("{origin}: ResourceQuota {name:?} is left out: it cannot be read: {error}"));
            }
        }
    }

    fn node(&mut self, manifest: &Manifest, identity: Identity) {
        let labels = manifest.value.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        self.nodes.insert(identity.name, Arc::new(labels.collect()));
    }

    fn account(&mut self, manifest: &Manifest, identity: Identity) {
        let namespace = identity.namespace.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        let key = AccountKey { namespace, name: identity.name };
        self.accounts.insert(key, Arc::new(Account::read(&manifest.value)));
    }

    fn class(&mut self, manifest: &Manifest, identity: Identity) {
        let text = |field: &str| manifest.value.pointer(field).and_then(Value::as_str);
        let annotations = manifest.value.pointer("/metadata/annotations");
        let class = StorageClass::of(
            |key| annotations?.get(key)?.as_str(),
            text("/metadata/creationTimestamp").unwrap_or_default(),
            manifest.value.get("allowVolumeExpansion").is_some_and(|it| *it == true),
        );
        self.classes.insert(identity.name, class);
    }

    /// Our configuration, whatever namespace it is for: that may be decided elsewhere.
    fn configuration(&mut self, manifest: &Manifest) {
        let origin = manifest.source.clone();
        if let Some((first, _)) = &self.configuration {
            let (first, name) = (first.clone(), CONFIG_MAP.to_owned());
            return self.errors.push(Error::Twice { origin, kind: CONFIG_MAP_KIND, name, first });
        }
        let text = manifest.value.get("data").and_then(|data| data.get(ALLOW_LIST_KEY)).and_then(Value::as_str);
        self.configuration = Some((origin, ConfigurationMap { allow_list: text.map(str::to_owned) }));
    }

    fn namespace(&mut self, manifest: &Manifest, identity: Identity) {
        let (origin, name) = (manifest.source.clone(), identity.name);
        let unknown = NAMESPACE_SHAPE.unknown_fields(&manifest.value);
        if !self.passes(&origin, NAMESPACE, &name, unknown.iter().map(self.word()).collect()) {
            return;
        }
        if name.is_empty() {
            return self.errors.push(Error::Nameless { origin, kind: NAMESPACE });
        }
        if let Some(first) = self.namespaces.get(&name) {
            let first = first.origin.clone();
            return self.errors.push(Error::Twice { origin, kind: NAMESPACE, name, first });
        }
        // The decoder names no path.
        let faults = NAMESPACE_SHAPE.compared(&manifest.value).0;
        if !faults.is_empty() {
            let faults = faults.to_string();
            return self.errors.push(Error::WrongShape { origin, kind: NAMESPACE, name, faults });
        }
        match LabelledObject::deserialize(&manifest.value) {
            Ok(object) => {
                let mut labels = object.metadata.labels.unwrap_or_default();
                labels.insert(NAMESPACE_NAME_LABEL.to_owned(), name.clone());
                let annotations = object.metadata.annotations.unwrap_or_default();
                self.namespaces.insert(name, FoundNamespace { origin, labels, annotations });
            }
            Err(error) => self.errors.push(Error::Undecodable { origin, kind: NAMESPACE, error }),
        }
    }
}

/// The type that was meant by an object of another group whose kind is that of a set but for a slip: of OpenKruise's group, or in other
/// letters in any.
pub fn misspelt_set(identity: &Identity) -> Option<String> {
    let (group, kind) = (identity.group(), identity.kind.as_str());
    if group == openkruise::GROUP {
        return suggest(kind, [KIND])
            .filter(|meant| *meant != kind)
            .map(|kind| format!("{} {kind}", identity.api_version));
    }
    (kind != KIND && kind.eq_ignore_ascii_case(KIND)).then(|| format!("{API_VERSION} {KIND}"))
}

/// Whether a `ControllerRevision` has an owner or a label of sets.
fn is_meant_for_a_set(revision: &Value) -> bool {
    let owners = revision.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let text = |owner: &Value, field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_set = |owner: &Value| text(owner, "kind") == KIND && text(owner, "apiVersion").starts_with(GROUP);
    let labels = revision.pointer("/metadata/labels");
    let has_label = |label: &&str| labels.is_some_and(|labels| labels.get(label).is_some());
    owners.into_iter().any(is_set) || [SET_LABEL, CUSTOM_VERSION_LABEL].iter().any(has_label)
}
