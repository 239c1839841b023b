//! What a pod refers to by name: its account, secrets and other objects. They are walked where they are in the body, so that nothing of a pod
//! is too long to be read.

use std::borrow::Cow;

use admission::Text;
use admission::raw::{elements, member, string};
use admission::review::null_as_default;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::change::List;
use super::said_name;
use crate::pod::view::MIRROR_ANNOTATION;

/// What is read of a pod for the objects that it refers to, borrowed from the body.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct ReferringPod<'a> {
    /// By which messages name the pod, and by which a mirror pod is known.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub metadata: Metadata<'a>,
    /// The spec.
    #[serde(borrow, deserialize_with = "null_as_default")]
    pub spec: ReferringSpec<'a>,
}

/// Metadata of a pod.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Metadata<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    generate_name: Text<'a>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

/// What is read of the spec.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct ReferringSpec<'a> {
    /// The account; empty where the pod names none.
    #[serde(borrow)]
    pub service_account_name: Text<'a>,
    #[serde(borrow)]
    image_pull_secrets: Option<&'a RawValue>,
    #[serde(borrow)]
    volumes: Option<&'a RawValue>,
    #[serde(borrow)]
    init_containers: Option<&'a RawValue>,
    #[serde(borrow)]
    containers: Option<&'a RawValue>,
    #[serde(borrow)]
    ephemeral_containers: Option<&'a RawValue>,
}

admission::only_objects!(ReferringPod<'a>, Metadata<'a>, ReferringSpec<'a>);

impl Metadata<'_> {
    /// The name in messages.
    pub fn said_name<'n>(&'n self, of_request: &'n str) -> &'n str {
        said_name([of_request, &self.name, &self.generate_name])
    }

    /// Whether it is that of what a kubelet creates for a static pod.
    pub fn is_mirror(&self) -> bool {
        names_mirror(self.annotations)
    }
}

/// Of which kind objects are that are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedKind {
    /// Secrets.
    Secret,
    /// `ConfigMap`s.
    ConfigMap,
}

impl NamedKind {
    /// The fields of a variable, and of a source of variables.
    const fn of_variables(self) -> (&'static str, &'static str) {
        match self {
            Self::Secret => ("secretKeyRef", "secretRef"),
            Self::ConfigMap => ("configMapKeyRef", "configMapRef"),
        }
    }
}

/// A container that takes variables from an object.
pub struct Variables<'a> {
    /// Name of the container.
    pub container: &'a str,
    /// Name of the variable; none where it takes all.
    pub variable: Option<Cow<'a, str>>,
    /// Name of the object.
    pub object: Cow<'a, str>,
}

/// Whether annotations name the pod as what a kubelet creates for a static pod. Anybody may write them.
pub fn names_mirror(annotations: Option<&RawValue>) -> bool {
    annotations.is_some_and(|annotations| member(annotations, MIRROR_ANNOTATION).is_some())
}

/// A field that is there, and not `null`.
pub fn given<'a>(object: &'a RawValue, field: &str) -> Option<&'a RawValue> {
    member(object, field).filter(|value| value.get() != "null")
}

/// A text in a field; empty where there is none.
pub fn text<'a>(object: &'a RawValue, field: &str) -> Cow<'a, str> {
    member(object, field).and_then(string).unwrap_or_default()
}

impl<'a> ReferringSpec<'a> {
    /// Whether it has containers: the API server refuses a pod without.
    pub const fn has_containers(&self) -> bool {
        self.containers.is_some()
    }

    /// Whether it has pull secrets.
    pub fn has_pull_secrets(&self) -> bool {
        self.each_pull_secret(|_| Err(())).is_err()
    }

    /// Calls `each` with the name of every pull secret, until one is refused.
    ///
    /// # Errors
    /// What refused it.
    pub fn each_pull_secret<E>(&self, mut each: impl FnMut(Cow<'a, str>) -> Result<(), E>) -> Result<(), E> {
        self.image_pull_secrets.map_or(Ok(()), |all| elements(all, |one| each(text(one, "name"))))
    }

    /// Calls `each` with every volume, until one is refused.
    ///
    /// # Errors
    /// What refused it.
    pub fn each_volume<E>(&self, each: impl FnMut(&'a RawValue) -> Result<(), E>) -> Result<(), E> {
        self.volumes.map_or(Ok(()), |all| elements(all, each))
    }

    /// Calls `each` with every source of a projected volume, until one is refused.
    ///
    /// # Errors
    /// What refused it.
    pub fn each_projection<E>(&self, mut each: impl FnMut(&'a RawValue) -> Result<(), E>) -> Result<(), E> {
        self.each_volume(|volume| {
            let sources = given(volume, "projected").and_then(|projected| given(projected, "sources"));
            sources.map_or(Ok(()), |sources| elements(sources, &mut each))
        })
    }

    /// Calls `each` with whatever containers of a list take variables from, first the variables of each, until one is refused.
    ///
    /// # Errors
    /// What refused it.
    pub fn each_variable<E>(
        &self,
        list: List,
        kind: NamedKind,
        mut each: impl FnMut(Variables<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let containers = match list {
            List::Init => self.init_containers,
            List::Containers => self.containers,
            List::Ephemeral => self.ephemeral_containers,
        };
        let (of_one, of_all) = kind.of_variables();
        containers.map_or(Ok(()), |containers| {
            elements(containers, |container| {
                // A container may take very many: its name is read once.
                let name = text(container, "name");
                let mut found = |variable: Option<Cow<'a, str>>, source: &'a RawValue| {
                    each(Variables { container: &name, variable, object: text(source, "name") })
                };
                if let Some(env) = given(container, "env") {
                    elements(env, |one| {
                        let source = given(one, "valueFrom").and_then(|from| given(from, of_one));
                        source.map_or(Ok(()), |source| found(Some(text(one, "name")), source))
                    })?;
                }
                given(container, "envFrom").map_or(Ok(()), |all| {
                    elements(all, |one| given(one, of_all).map_or(Ok(()), |source| found(None, source)))
                })
            })
        })
    }

    /// Whether it names any object of the kind, wherever that is (`VisitPodSecretNames` and `VisitPodConfigmapNames` of
    /// k8s.io/kubernetes/pkg/api/pod).
    pub fn names(&self, kind: NamedKind) -> bool {
        let is_name = |name: &str| if name.is_empty() { Ok(()) } else { Err(()) };
        let in_containers =
            || List::ALL.iter().any(|list| self.each_variable(*list, kind, |found| is_name(&found.object)).is_err());
        let in_volumes = || {
            self.each_volume(|volume| match kind {
                NamedKind::Secret => is_name(&secret_of_volume(volume)),
                NamedKind::ConfigMap => {
                    is_name(&given(volume, "configMap").map(|source| text(source, "name")).unwrap_or_default())
                }
            })
        };
        let field = if kind == NamedKind::Secret { "secret" } else { "configMap" };
        let in_projections = || {
            self.each_projection(|source| {
                is_name(&given(source, field).map(|source| text(source, "name")).unwrap_or_default())
            })
        };
        (kind == NamedKind::Secret && self.each_pull_secret(|name| is_name(&name)).is_err())
            || in_containers()
            || in_volumes().is_err()
            || in_projections().is_err()
    }
}

/// Kinds of volumes with the field in which they name a secret, or an object that does.
const SECRETS_OF_VOLUMES: [(&str, &str); 10] = [
    ("azureFile", "secretName"),
    ("cephfs", "secretRef"),
    ("cinder", "secretRef"),
    ("flexVolume", "secretRef"),
    ("rbd", "secretRef"),
    ("secret", "secretName"),
    ("scaleIO", "secretRef"),
    ("iscsi", "secretRef"),
    ("storageos", "secretRef"),
    ("csi", "nodePublishSecretRef"),
];

/// The secret that a volume names; empty where it names none. The sources of projected ones are left out.
fn secret_of_volume(volume: &RawValue) -> Cow<'_, str> {
    let named = |(of, field): &(&str, &str)| {
        let source = given(volume, of)?;
        let name = match given(source, field) {
            Some(object) if !object.get().starts_with('"') => text(object, "name"),
            _ => text(source, field),
        };
        Some(name).filter(|name| !name.is_empty())
    };
    SECRETS_OF_VOLUMES.iter().find_map(named).unwrap_or_default()
}
