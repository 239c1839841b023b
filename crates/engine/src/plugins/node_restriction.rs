//! `NodeRestriction`: a kubelet changes its own node and its own pods alone (k8s.io/kubernetes/plugin/pkg/admission/noderestriction). Of what
//! the original does this is the part that needs no other object, and no request by which a node says that it lives.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use admission::raw::{each_element, elements, members, string};
use admission::review::{UserInfo, null_as_default};
use admission::{Operation, Text};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::references::{NamedKind, ReferringSpec, given, names_mirror, text};
use super::{said_name, shortened};
use crate::pod::view::MIRROR_ANNOTATION;

const USERS: &str = "system:node:";
const GROUP: &str = "system:nodes";

/// The node that a user is, if it is one; its name may be empty (`NodeIdentity` of k8s.io/kubernetes/pkg/auth/nodeidentifier).
pub fn node_of<'u>(user: &'u UserInfo<'_>) -> Option<&'u str> {
    user.username.strip_prefix(USERS).filter(|_| user.groups.contains(GROUP))
}

/// What is read of a node, and of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct RestrictedFacts<'a> {
    #[serde(borrow, deserialize_with = "null_as_default")]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
struct Metadata<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    generate_name: Text<'a>,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
    #[serde(borrow)]
    owner_references: Option<&'a RawValue>,
}

admission::only_objects!(RestrictedFacts<'a>, Metadata<'a>);

impl<'a> RestrictedFacts<'a> {
    /// The name in messages, which a request for many objects does not have.
    pub fn said_name<'n>(&'n self, of_request: &'n str) -> &'n str {
        said_name([of_request, &self.metadata.name, &self.metadata.generate_name])
    }

    fn of_spec(&self, field: &str) -> Option<&'a RawValue> {
        given(self.spec?, field)
    }

    fn node_name(&self) -> Cow<'a, str> {
        self.spec.map(|spec| text(spec, "nodeName")).unwrap_or_default()
    }
}

/// Whether a kubelet may do this with a node.
///
/// # Errors
/// Why not.
pub fn check_node(
    node: &str,
    (name, operation): (&str, Operation),
    new: Option<&RestrictedFacts<'_>>,
    old: Option<&RestrictedFacts<'_>>,
) -> Result<(), String> {
    let by = shortened(node);
    if name != node {
        return Err(format!("node {by:?} is not allowed to modify node {:?}", shortened(name)));
    }
    match (operation, new, old) {
        (Operation::Create, Some(new), _) => {
            if new.of_spec("configSource").is_some() {
                return Err(format!("node {by:?} is not allowed to create pods with a non-nil configSource"));
            }
            forbidden(new, None)
                .map_or(Ok(()), |keys| Err(format!("node {by:?} is not allowed to set the following labels: {keys}")))
        }
        (Operation::Update, Some(new), Some(old)) => {
            if new.of_spec("configSource").is_some() && !same(new.of_spec("configSource"), old.of_spec("configSource"))
            {
                return Err(format!("node {by:?} is not allowed to update configSource to a new non-nil configSource"));
            }
            if !same(new.of_spec("taints"), old.of_spec("taints")) {
                return Err(format!("node {by:?} is not allowed to modify taints"));
            }
            if !same(new.metadata.owner_references, old.metadata.owner_references) {
                return Err(format!("node {by:?} is not allowed to modify ownerReferences"));
            }
            forbidden(new, Some(old)).map_or(Ok(()), |keys| Err(format!("is not allowed to modify labels: {keys}")))
        }
        _ => Ok(()),
    }
}

/// Whether two fields say the same, spelled as the API server spells both. An empty list is none.
fn same(one: Option<&RawValue>, other: Option<&RawValue>) -> bool {
    fn spelled(raw: Option<&RawValue>) -> &str {
        raw.map(RawValue::get).filter(|text| *text != "null").unwrap_or("[]")
    }
    spelled(one) == spelled(other)
}

/// Whether a kubelet may do this with a pod.
///
/// # Errors
/// Why not.
pub fn check_pod(
    node: &str,
    operation: Operation,
    new: Option<&RestrictedFacts<'_>>,
    old: Option<&RestrictedFacts<'_>>,
) -> Result<(), String> {
    let by = shortened(node);
    match (operation, new, old) {
        (Operation::Create, Some(new), _) => check_new_pod(node, new),
        (Operation::Delete, _, Some(old)) if old.node_name() != node => {
            Err(format!("node {by:?} can only delete pods with spec.nodeName set to itself"))
        }
        (Operation::Update, ..) => {
            Err(format!("unexpected operation \"UPDATE\", node {by:?} can only create and delete mirror pods"))
        }
        _ => Ok(()),
    }
}

fn check_new_pod(node: &str, pod: &RestrictedFacts<'_>) -> Result<(), String> {
    let by = shortened(node);
    let only = |what: &str| Err(format!("node {by:?} can only create pods with {what}"));
    if !names_mirror(pod.metadata.annotations) {
        return Err(format!(
            "pod does not have {MIRROR_ANNOTATION:?} annotation, node {by:?} can only create mirror pods"
        ));
    }
    if pod.node_name() != node {
        return only("spec.nodeName set to itself");
    }
    let (mut first, mut count) = (None, 0_usize);
    each_element_of(pod.metadata.owner_references, |owner| {
        count += 1;
        first.get_or_insert(owner);
    });
    let Some(owner) = first else { return only("an owner reference set to itself") };
    if count > 1 {
        return only("a single owner reference set to itself");
    }
    let is = |field: &str, expected: &str| text(owner, field) == expected;
    let is_true = |field: &str| given(owner, field).is_some_and(|value| value.get() == "true");
    if !is("apiVersion", "v1") || !is("kind", "Node") || !is("name", node) {
        return only("an owner reference set to itself");
    }
    if !is_true("controller") {
        return only("a controller owner reference set to itself");
    }
    if is_true("blockOwnerDeletion") {
        return Err(format!("node {by:?} must not set blockOwnerDeletion on an owner reference"));
    }
    match referred(pod) {
        Some(what) => Err(format!("node {by:?} can not create pods that reference {what}")),
        None => Ok(()),
    }
}

fn each_element_of<'a>(list: Option<&'a RawValue>, each: impl FnMut(&'a RawValue)) {
    if let Some(list) = list {
        each_element(list, each);
    }
}

/// What a pod refers to that no mirror pod may refer to (`HasAPIObjectReference` of k8s.io/kubernetes/pkg/api/pod).
fn referred(pod: &RestrictedFacts<'_>) -> Option<&'static str> {
    let spec = pod.spec?;
    // It was read once already: what cannot be decoded here the API server does not send.
    let Ok(named) = serde_json::from_str::<ReferringSpec<'_>>(spec.get()) else { return Some("what cannot be read") };
    let mut claims = 0_usize;
    each_element_of(given(spec, "resourceClaims"), |_| claims += 1);
    let found = [
        ("serviceaccounts", !named.service_account_name.is_empty()),
        ("secrets", named.names(NamedKind::Secret)),
        ("configmaps", named.names(NamedKind::ConfigMap)),
        ("resourceclaims", claims > 0),
    ];
    let found = found.into_iter().find_map(|(what, is_there)| is_there.then_some(what));
    // An error ends the walk at what is searched.
    found.or_else(|| named.each_volume(|volume| referred_by(volume).map_or(Ok(()), Err)).err())
}

/// Volumes that refer to objects, and in whose words.
const REFERRING_VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];
/// The same of sources of projected volumes.
const REFERRING_SOURCES: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

fn referred_by(volume: &RawValue) -> Option<&'static str> {
    let among = |object: &RawValue, all: &[(&str, &'static str)]| {
        all.iter().find_map(|(field, what)| given(object, field).map(|_| *what))
    };
    among(volume, &REFERRING_VOLUMES).or_else(|| {
        let sources = given(volume, "projected").and_then(|projected| given(projected, "sources"))?;
        elements(sources, |source| among(source, &REFERRING_SOURCES).map_or(Ok(()), Err)).err()
    })
}

/// Labels that a message names.
const NAMED: usize = 64;

/// The labels that differ and that no kubelet may set, in words; none where there are none.
fn forbidden(new: &RestrictedFacts<'_>, old: Option<&RestrictedFacts<'_>>) -> Option<String> {
    let (now, before) = (protected(new), old.map(protected).unwrap_or_default());
    let differing = |one: &Labels<'_>, other: &Labels<'_>| {
        let keys = one.iter().filter(|(key, value)| other.get(*key) != Some(*value));
        keys.map(|(key, _)| shortened(key).to_owned()).collect::<BTreeSet<String>>()
    };
    let mut keys = differing(&now, &before);
    keys.extend(differing(&before, &now));
    let more = keys.len().saturating_sub(NAMED);
    let mut said: Vec<String> = keys.into_iter().take(NAMED).collect();
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    (!said.is_empty()).then(|| said.join(", "))
}

/// Labels with their values; none where that is no text.
type Labels<'a> = HashMap<Cow<'a, str>, Option<Cow<'a, str>>>;

/// The labels that no kubelet may set.
fn protected<'a>(node: &RestrictedFacts<'a>) -> Labels<'a> {
    let mut found = Labels::new();
    if let Some(labels) = node.metadata.labels {
        members(labels, |key, value| {
            if is_protected(key.name()) {
                found.insert(key.into_name(), string(value));
            }
        });
    }
    found
}

/// Labels of Kubernetes that a kubelet may set (k8s.io/kubelet/pkg/apis).
const OF_KUBELETS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// Whether a prefix is this domain, or one below it.
fn is_below(prefix: &str, domain: &str) -> bool {
    prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_protected(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_kubernetes = || ["kubernetes.io", "k8s.io"].iter().any(|domain| is_below(prefix, domain));
    let is_of_kubelets = || {
        OF_KUBELETS.contains(&key)
            || ["kubelet.kubernetes.io", "node.kubernetes.io"].iter().any(|domain| is_below(prefix, domain))
    };
    is_below(prefix, "node-restriction.kubernetes.io") || (is_kubernetes() && !is_of_kubelets())
}

#[cfg(test)]
mod tests {
    use super::is_protected;

    #[test]
    fn labels_of_kubernetes_are_protected_but_for_those_of_kubelets() {
        for (key, expected) in [
            ("node-restriction.kubernetes.io/pool", true),
            ("a.node-restriction.kubernetes.io/pool", true),
            ("xnode-restriction.kubernetes.io/pool", true),
            ("node-restriction.kubernetes.io.example/pool", false),
            ("node-restriction.kubernetes.io", false),
            ("kubernetes.io/hostname", false),
            ("kubernetes.io/other", true),
            ("a.k8s.io/b", true),
            ("k8s.io/b", true),
            ("xk8s.io/b", false),
            ("kubelet.kubernetes.io/a", false),
            ("a.node.kubernetes.io/b", false),
            ("node-role.kubernetes.io/control-plane", true),
            ("topology.kubernetes.io/zone", false),
            ("topology.kubernetes.io/rack", true),
            ("example.com/a", false),
            ("pool", false),
        ] {
            assert_eq!(is_protected(key), expected, "{key}");
        }
    }
}
