//! Which kinds are on.

use std::str::FromStr;

use crate::kind::Kind;
use crate::kinds::{KINDS, product, workshop};
use crate::selection::{Unknown, choose};
use engine::demand::Demand;
use engine::pod::stages::Stages;
use engine::snapshot::Snapshot;

/// Kinds that are on: those of the product, and of the workshop none by default.
#[derive(Debug, Clone)]
pub struct Kinds(Vec<&'static Kind>);

impl Default for Kinds {
    fn default() -> Self {
        Self(product().collect())
    }
}

impl Kinds {
    /// Every kind.
    pub fn all() -> Self {
        Self(KINDS.iter().collect())
    }

    /// These kinds and another one, which need not be in the table.
    #[must_use]
    pub fn with(mut self, kind: &'static Kind) -> Self {
        self.0.push(kind);
        self
    }

    /// Every other kind of the table.
    #[must_use]
    pub fn off(&self) -> Self {
        Self(KINDS.iter().filter(|kind| self.iter().all(|on| on.name != kind.name)).collect())
    }

    /// Names of the definitions with several versions, which the API server has this process convert.
    pub fn converted(&self) -> Vec<String> {
        let definitions = self.iter().map(Kind::definition);
        definitions.filter(|crd| crd.spec.conversion.is_some()).filter_map(|crd| crd.metadata.name).collect()
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(|kind| kind.name).collect()
    }

    /// Their deciders on new pods, in order.
    pub fn stages(&self) -> Stages {
        self.iter().flat_map(|kind| kind.stages).copied().collect()
    }

    /// The on-demand entries that the accepted objects of these kinds need.
    pub fn demands(&self, snapshot: &Snapshot) -> Vec<Demand> {
        self.iter().flat_map(|kind| (kind.demands)(snapshot)).collect()
    }

    /// The kinds that are on, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = &'static Kind> {
        self.0.iter().copied()
    }
}

/// A comma list as `--enable-kinds` takes it.
impl FromStr for Kinds {
    type Err = Unknown;

    fn from_str(list: &str) -> Result<Self, Unknown> {
        let known: Vec<&str> = workshop().map(|kind| kind.name).collect();
        let chosen = choose("kind", &list.split(',').collect::<Vec<_>>(), &known)?;
        Ok(workshop().filter(|kind| chosen.contains(&kind.name)).fold(Self::default(), Self::with))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::kind::Editors;

    #[test]
    fn kinds_of_the_workshop_are_off_unless_named_and_those_of_the_product_cannot_be() {
        let on = |list: &str| list.parse::<Kinds>().unwrap().iter().map(|kind| kind.name).collect::<Vec<_>>();
        assert_eq!(on(""), ["sidecarset", "admissionplugin", "clusterlimitrange", "podsecurityprofile"]);
        assert_eq!(on("*").len(), KINDS.len());
        assert_eq!(
            on("welcome"),
            ["sidecarset", "admissionplugin", "clusterlimitrange", "podsecurityprofile", "welcome"]
        );
        for unknown in ["welcomes", "sidecarset", "-sidecarset"] {
            let error = unknown.parse::<Kinds>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("there is no kind {unknown:?}; ")), "{error}");
        }
    }

    /// Whether some rule allows all of this.
    fn allows(kind: &Kind, group: &str, plural: &str, verbs: &[&str]) -> bool {
        let has = |list: &Option<Vec<String>>, text: &str| list.iter().flatten().any(|found| found == text);
        kind.cluster_rules().iter().any(|rule| {
            has(&rule.api_groups, group)
                && has(&rule.resources, plural)
                && verbs.iter().all(|verb| rule.verbs.iter().any(|given| given == verb))
        })
    }

    #[test]
    fn names_definitions_and_rules_of_all_kinds_fit_together() {
        let mut names = HashSet::new();
        for kind in KINDS {
            assert!(names.insert(kind.name), "{} is there twice", kind.name);
            let crd = kind.definition();
            let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
            assert_eq!(Some(kind.name), crd.spec.names.singular.as_deref());
            assert_eq!(crd.metadata.name.unwrap(), format!("{plural}.{group}"));
            assert_eq!(crd.spec.versions.iter().filter(|version| version.storage).count(), 1);
            assert!(kind.is_namespaced() || kind.editors == Editors::Named, "{}: edit is of namespaces", kind.name);
            for (group, plural) in kind.watches {
                assert!(allows(kind, group, plural, &["list", "watch"]), "{} may not watch {plural}", kind.name);
            }
            if kind.controller.is_some() {
                assert!(allows(kind, group, &format!("{plural}/status"), &["patch"]), "{} writes status", kind.name);
            }
        }
    }
}
