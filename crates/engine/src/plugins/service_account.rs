//! `ServiceAccount`: the secrets that pods may use are those that their account names, and pods without pull secrets get some
//! (k8s.io/kubernetes/plugin/pkg/admission/serviceaccount). Accounts and tokens themselves are the API server's own matter.

use std::collections::HashSet;
use std::fmt;

use admission::review::null_as_default;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::change::{List, PodChange};
use super::references::{NamedKind, ReferringSpec, given, text};
use super::shortened;

/// The account of a pod that names none.
pub const DEFAULT_ACCOUNT: &str = "default";
/// Annotation of an account whose pods may use only the secrets that it names.
pub const ENFORCING: &str = "kubernetes.io/enforce-mountable-secrets";

/// The configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceAccountSettings {
    /// Whether every account counts as one with the annotation.
    pub limits_all: bool,
    /// Pull secrets of pods that have none, and whose account names none.
    pub pull_secrets: Vec<String>,
}

/// Names of secrets, one on a line. A user may write a megabyte of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(Box<str>);

impl Names {
    fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split('\n').filter(|name| !name.is_empty())
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Reference {
            name: Option<String>,
        }
        struct NamesVisitor;
        impl<'de> Visitor<'de> for NamesVisitor {
            type Value = String;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of references")
            }
            fn visit_unit<E>(self) -> Result<String, E> {
                Ok(String::new())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<String, A::Error> {
                let mut names = String::new();
                while let Some(Reference { name }) = list.next_element()? {
                    // No secret has a name of several lines.
                    let name = name.unwrap_or_default();
                    if !name.is_empty() && !name.contains('\n') {
                        names.push_str(&name);
                        names.push('\n');
                    }
                }
                Ok(names)
            }
        }
        Ok(Self(deserializer.deserialize_any(NamesVisitor)?.into_boxed_str()))
    }
}

/// An account, as far as it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// Whether its pods may use only the secrets that it names.
    pub is_enforcing: bool,
    /// Secrets that it names.
    pub secrets: Names,
    /// Pull secrets that it names.
    pub pull_secrets: Names,
}

impl Account {
    /// The account that an object is.
    pub fn read(object: &Value) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Object {
            #[serde(deserialize_with = "null_as_default")]
            secrets: Names,
            #[serde(deserialize_with = "null_as_default")]
            image_pull_secrets: Names,
        }
        let annotation = object.pointer("/metadata/annotations").and_then(|all| all.get(ENFORCING)?.as_str());
        let Object { secrets, image_pull_secrets } = Object::deserialize(object).unwrap_or_default();
        Self { is_enforcing: annotation.is_some_and(is_true), secrets, pull_secrets: image_pull_secrets }
    }
}

/// As `strconv.ParseBool` of Go reads it.
pub fn is_true(text: &str) -> bool {
    ["1", "t", "T", "TRUE", "true", "True"].contains(&text)
}

impl ServiceAccountSettings {
    /// What a new pod without pull secrets gets.
    pub fn change(&self, account: &Account) -> PodChange<'static> {
        let own: Vec<String> = account.pull_secrets.iter().map(str::to_owned).collect();
        // Of an account with the annotation, the API server allows no others.
        let pull_secrets = if own.is_empty() && !account.is_enforcing { self.pull_secrets.clone() } else { own };
        PodChange { pull_secrets, ..PodChange::default() }
    }

    /// Whether the pod may use the secrets that it names, in these lists of containers alone where it gets ephemeral ones.
    ///
    /// # Errors
    /// The first that it may not.
    pub fn check(&self, spec: &ReferringSpec<'_>, account: &Account, of: &str, ephemeral: bool) -> Result<(), String> {
        if !self.limits_all && !account.is_enforcing {
            return Ok(());
        }
        let allowed: HashSet<&str> = account.secrets.iter().collect();
        let by = shortened(of);
        let lacks = |name: &str| {
            let name = shortened(name);
            format!(
                "secret.secretName=\"{name}\" is not allowed because service account {by} does not reference that secret"
            )
        };
        let in_containers = |list: List, what: &str| {
            spec.each_variable(list, NamedKind::Secret, |found| {
                if allowed.contains(&*found.object) {
                    return Ok(());
                }
                let container = shortened(found.container);
                let how = found
                    .variable
                    .map_or_else(|| "envFrom".to_owned(), |variable| format!("envVar {}", shortened(&variable)));
                Err(format!("{what} {container} with {how} referencing {}", lacks(&found.object)))
            })
        };
        if ephemeral {
            return in_containers(List::Ephemeral, "ephemeral container");
        }
        spec.each_volume(|volume| {
            let Some(secret) = given(volume, "secret") else { return Ok(()) };
            let name = text(secret, "secretName");
            if allowed.contains(&*name) { Ok(()) } else { Err(format!("volume with {}", lacks(&name))) }
        })?;
        in_containers(List::Init, "init container")?;
        in_containers(List::Containers, "container")?;
        self.check_pull_secrets(spec, account, by)
    }

    fn check_pull_secrets(&self, spec: &ReferringSpec<'_>, account: &Account, by: &str) -> Result<(), String> {
        // What the plugin itself gives is allowed, where the API server allows it.
        let given = self.pull_secrets.iter().filter(|_| !account.is_enforcing).map(String::as_str);
        let allowed: HashSet<&str> = account.pull_secrets.iter().chain(given).collect();
        let mut at = 0_usize;
        spec.each_pull_secret(|name| {
            if allowed.contains(&*name) {
                at += 1;
                return Ok(());
            }
            let name = shortened(&name);
            Err(format!(
                "imagePullSecrets[{at}].name=\"{name}\" is not allowed because service account {by} does not reference that imagePullSecret"
            ))
        })
    }
}

/// Whether a pod that a kubelet creates for a static pod names what it may not.
///
/// # Errors
/// What that is.
pub fn check_mirror(spec: &ReferringSpec<'_>) -> Result<(), String> {
    if !spec.service_account_name.is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    if spec.names(NamedKind::Secret) {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    spec.each_projection(|source| match given(source, "serviceAccountToken") {
        Some(_) => Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned()),
        None => Ok(()),
    })
}
