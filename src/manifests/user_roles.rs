//! What people may do with objects of our kinds: a role to look, a role to edit, for each kind.

use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::kind::{Editors, Kind};
use crate::kinds::Kinds;
use crate::manifests::metadata;
use crate::names::APP;
use crate::permissions::rule;

const LOOK: &[&str] = &["get", "list", "watch"];
const EDIT: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

/// Adds a role to the `view` that every cluster has; `edit` and `admin` have all of `view`.
const TO_VIEW: &str = "rbac.authorization.k8s.io/aggregate-to-view";
/// Adds a role to `edit`, and so to `admin`.
const TO_EDIT: &str = "rbac.authorization.k8s.io/aggregate-to-edit";

/// Two roles for each of these kinds. All viewers are part of `view`; editors are part of `edit` where the kind's row says so.
pub fn user_roles(kinds: &Kinds) -> Vec<ClusterRole> {
    kinds.iter().flat_map(of_kind).collect()
}

fn of_kind(kind: &Kind) -> [ClusterRole; 2] {
    let crd = kind.definition();
    let aggregated = (kind.editors == Editors::OfNamespaces).then_some(TO_EDIT);
    [viewer(&crd), editor(&crd, aggregated)]
}

fn viewer(crd: &CustomResourceDefinition) -> ClusterRole {
    role(crd, "viewer", Some(TO_VIEW), LOOK, &["get"])
}

fn editor(crd: &CustomResourceDefinition, aggregated: Option<&str>) -> ClusterRole {
    role(crd, "editor", aggregated, EDIT, &["get", "patch", "update"])
}

fn role(
    crd: &CustomResourceDefinition,
    name: &str,
    aggregated: Option<&str>,
    verbs: &[&str],
    scale_verbs: &[&str],
) -> ClusterRole {
    let (group, names) = (&crd.spec.group, &crd.spec.names);
    let mut metadata = metadata(&format!("{APP}-{}-{name}", names.singular.as_deref().unwrap_or(&names.plural)));
    metadata.labels.get_or_insert_default().extend(aggregated.map(|label| (label.to_owned(), "true".to_owned())));
    let part = |of: &str| format!("{}/{of}", names.plural);
    let mut rules: Vec<PolicyRule> =
        vec![rule(group, &[&names.plural], &[], verbs), rule(group, &[&part("status")], &[], &["get"])];
    let subresources = crd.spec.versions.iter().filter_map(|version| version.subresources.as_ref());
    if subresources.into_iter().any(|subresources| subresources.scale.is_some()) {
        rules.push(rule(group, &[&part("scale")], &[], scale_verbs));
    }
    ClusterRole { metadata, rules: Some(rules), ..ClusterRole::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> ClusterRole {
        let mut roles = user_roles(&Kinds::all()).into_iter();
        roles.find(|role| role.metadata.name.as_deref() == Some(name)).unwrap()
    }

    fn labels(role: &ClusterRole) -> Vec<&str> {
        let labels = role.metadata.labels.iter().flatten();
        labels.map(|(label, _)| label.as_str()).filter(|label| label.contains("aggregate")).collect()
    }

    #[test]
    fn every_role_but_those_of_editors_of_the_product_is_aggregated() {
        let roles = user_roles(&Kinds::all());
        assert_eq!(roles.len(), 2 * Kinds::all().iter().count());
        for role in &roles {
            let name = role.metadata.name.clone().unwrap();
            let expected: &[&str] = match name.as_str() {
                "outrider-sidecarset-editor"
                | "outrider-admissionplugin-editor"
                | "outrider-clusterlimitrange-editor"
                | "outrider-podsecurityprofile-editor" => &[],
                _ if name.ends_with("-viewer") => &[TO_VIEW],
                _ => &[TO_EDIT],
            };
            assert_eq!(labels(role), expected, "{name}");
        }
        assert_eq!(user_roles(&Kinds::default()).len(), 8, "a kind that is off has no roles");
    }

    #[test]
    fn who_looks_changes_nothing_and_who_edits_writes_no_status() {
        for role in user_roles(&Kinds::all()) {
            let name = role.metadata.name.unwrap();
            for rule in role.rules.unwrap() {
                let resource = rule.resources.unwrap().remove(0);
                let reads = rule.verbs.iter().all(|verb| LOOK.contains(&verb.as_str()));
                assert_eq!(reads, name.ends_with("viewer") || resource.ends_with("/status"), "{name}: {resource}");
            }
        }
    }

    #[test]
    fn what_can_be_scaled_can_be_scaled_by_its_editors() {
        let resources = |name: &str| -> Vec<String> {
            named(name).rules.unwrap().into_iter().flat_map(|rule| rule.resources.unwrap()).collect()
        };
        assert!(resources("outrider-simpledeployment-editor").contains(&"simpledeployments/scale".to_owned()));
        assert_eq!(resources("outrider-welcome-editor"), ["welcomes", "welcomes/status"]);
    }
}
