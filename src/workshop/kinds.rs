//! Which kinds of the workshop are on.

use std::str::FromStr;

use crate::choice::{Unknown, choose};
use crate::workshop::{KINDS, Kind};

/// Kinds that are on; none by default.
#[derive(Debug, Clone, Default)]
pub struct Kinds(Vec<&'static Kind>);

impl Kinds {
    /// Every kind of the workshop.
    pub fn all() -> Self {
        Self(KINDS.iter().collect())
    }

    /// This kind alone.
    pub fn only(kind: &'static Kind) -> Self {
        Self(vec![kind])
    }

    /// Every other kind.
    #[must_use]
    pub fn off(&self) -> Self {
        Self(KINDS.iter().filter(|kind| self.iter().all(|on| on.name != kind.name)).collect())
    }

    /// Names of the definitions with several versions, which the API server has this process convert.
    pub fn converted(&self) -> Vec<String> {
        let definitions = self.iter().map(Kind::definition);
        definitions.filter(|crd| crd.spec.conversion.is_some()).filter_map(|crd| crd.metadata.name).collect()
    }

    /// The kinds that are on.
    pub fn iter(&self) -> impl Iterator<Item = &'static Kind> {
        self.0.iter().copied()
    }
}

/// A comma list as `--enable-kinds` takes it.
impl FromStr for Kinds {
    type Err = Unknown;

    fn from_str(list: &str) -> Result<Self, Unknown> {
        let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let chosen = choose("kind", &list.split(',').collect::<Vec<_>>(), &known)?;
        Ok(Self(KINDS.iter().filter(|kind| chosen.contains(&kind.name)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn kinds_are_off_unless_named() {
        assert_eq!("".parse::<Kinds>().unwrap().iter().count(), 0);
        assert_eq!("*".parse::<Kinds>().unwrap().iter().count(), KINDS.len());
        let welcome = "welcome".parse::<Kinds>().unwrap();
        assert_eq!(welcome.iter().map(|kind| kind.name).collect::<Vec<_>>(), ["welcome"]);
        assert!("welcomes".parse::<Kinds>().unwrap_err().to_string().starts_with("there is no kind \"welcomes\"; "));
    }

    #[test]
    fn names_definitions_and_rules_of_all_kinds_fit_together() {
        let mut names = HashSet::new();
        for kind in Kinds::all().iter() {
            assert!(names.insert(kind.name), "{} is there twice", kind.name);
            let crd = kind.definition();
            assert_eq!(Some(kind.name), crd.spec.names.singular.as_deref());
            assert_eq!(crd.metadata.name.unwrap(), format!("{}.{}", crd.spec.names.plural, crd.spec.group));
            assert_eq!(crd.spec.versions.iter().filter(|version| version.storage).count(), 1);
            if kind.controller.is_some() {
                let rules = (kind.rules)();
                let own = |rule: &&_| {
                    let rule: &k8s_openapi::api::rbac::v1::PolicyRule = rule;
                    rule.api_groups.iter().flatten().any(|group| *group == crd.spec.group)
                        && rule.resources.iter().flatten().any(|resource| *resource == crd.spec.names.plural)
                };
                let rule = rules.iter().find(own).expect("a controller reads its own kind");
                assert!(["get", "list", "watch"].iter().all(|verb| rule.verbs.iter().any(|given| given == verb)));
            }
        }
    }
}
