//! What the process may do, beside what it needs.

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use k8s_openapi::api::rbac::v1::PolicyRule;
use serde::Deserialize;

use crate::doctor::replica::{ReplicaContainer, ReplicaPod, flag};
use crate::doctor::report::{Check, Finding, Severity};
use crate::kinds::{self, Kinds};
use crate::manager::lease;
use crate::manifests::rbac::Rbac;
use crate::names::IMAGE_POLICY_SECRET;

/// Something to do with a resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct Right {
    /// The account, as the API server names it; empty for the user of the command.
    pub who: String,
    /// The verb, such as `get`.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Resource, with its subresource.
    pub resource: String,
    /// Name, where only one object is meant.
    pub name: String,
    /// Namespace; empty for the whole cluster.
    pub namespace: String,
    /// Whether it is allowed.
    pub allowed: bool,
}

impl Right {
    /// For an access review.
    pub fn attributes(&self) -> ResourceAttributes {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (self.resource.as_str(), None),
        };
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        ResourceAttributes {
            verb: given(&self.verb),
            group: Some(self.group.clone()),
            resource: given(resource),
            subresource,
            name: given(&self.name),
            namespace: given(&self.namespace),
            ..ResourceAttributes::default()
        }
    }

    fn words(&self) -> String {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        let (resource, sub) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let sub = if sub.is_empty() { String::new() } else { format!("/{sub}") };
        let name = if self.name.is_empty() { String::new() } else { format!(" {}", self.name) };
        format!("{} {resource}{group}{sub}{name}", self.verb)
    }
}

/// What `outrider serve` in this namespace needs, as `outrider manifests rbac` grants it: all of it, or as much as these pods use by
/// their arguments. The chart grants no more than that.
pub fn needed(namespace: &str, pods: &[ReplicaPod]) -> Vec<Right> {
    let rbac = Rbac::of(namespace, &Kinds::default(), None);
    let cluster = rbac.cluster_role.rules.iter().flatten().flat_map(|rule| expand(rule, ""));
    let own = rbac.role.rules.iter().flatten().flat_map(|rule| expand(rule, namespace));
    // Without the right to evict, which the chart gives or not, a set that needs it says so in its condition.
    let mut rights: Vec<Right> = cluster.chain(own).filter(|right| right.resource != "pods/eviction").collect();
    let commands = commands(pods);
    if commands.is_empty() {
        return rights;
    }
    let given = |name: &str| commands.iter().find_map(|args| flag(args, name));
    let signs = commands.iter().any(|args| flag(args, "--certificates") == Some("self"));
    let lease = given("--leader-elect-resource-name").unwrap_or(lease::NAME);
    let optional: Vec<String> =
        kinds::product().filter(|kind| kind.is_optional).map(|kind| kind.definition().spec.group).collect();
    let plugins = commands.iter().any(|args| flag(args, "--enable-plugins") != Some("false"));
    rights.retain(|right| match (right.resource.as_str(), right.name.as_str()) {
        ("secrets", IMAGE_POLICY_SECRET) => plugins,
        ("secrets", _) => signs,
        _ => plugins || !optional.contains(&right.group),
    });
    for right in rights.iter_mut().filter(|right| right.name == lease::NAME) {
        lease.clone_into(&mut right.name);
    }
    rights
}

/// Arguments of each container that runs `outrider serve`.
fn commands(pods: &[ReplicaPod]) -> Vec<&[String]> {
    let containers = pods.iter().filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| &spec.containers);
    containers.filter_map(ReplicaContainer::serve_args).collect()
}

fn expand(rule: &PolicyRule, namespace: &str) -> Vec<Right> {
    let or_empty = |list: Option<&Vec<String>>| {
        list.filter(|list| !list.is_empty()).cloned().unwrap_or_else(|| vec![String::new()])
    };
    let mut rights = Vec::new();
    for group in or_empty(rule.api_groups.as_ref()) {
        for resource in rule.resources.iter().flatten() {
            for name in or_empty(rule.resource_names.as_ref()) {
                for verb in &rule.verbs {
                    rights.push(Right {
                        verb: verb.clone(),
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        namespace: namespace.to_owned(),
                        ..Right::default()
                    });
                }
            }
        }
    }
    rights
}

/// One finding for all that is missing in one namespace, or in the cluster.
pub fn examine(rights: &[Right]) -> Vec<Finding> {
    let missing: Vec<&Right> = rights.iter().filter(|right| !right.allowed).collect();
    let mut places: Vec<&str> = missing.iter().map(|right| right.namespace.as_str()).collect();
    places.sort_unstable();
    places.dedup();
    let finding = |place: &str| {
        let here: Vec<&&Right> = missing.iter().filter(|right| right.namespace == place).collect();
        let words: Vec<String> = here.iter().map(|right| right.words()).collect();
        let who = here.first().map(|right| right.who.as_str()).unwrap_or_default();
        let (who, remedy) = match who.strip_prefix("system:serviceaccount:") {
            Some(_) => (
                who,
                "have the chart make the roles (rbac.create=true), or apply them: outrider manifests rbac | kubectl apply --server-side -f -",
            ),
            None => ("your account", "these are your own rights; name Outrider's account with --service-account"),
        };
        let place = if place.is_empty() { "in the cluster".to_owned() } else { format!("in namespace {place}") };
        Finding {
            severity: Severity::Warning,
            check: Check::MissingRight,
            object: who.to_owned(),
            webhook: None,
            found: format!("the account lacks rights that `outrider serve` needs {place}: {}", words.join(", ")),
            remedy: remedy.to_owned(),
        }
    };
    places.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn everything_that_the_roles_grant_is_asked_for_once() {
        let needed = needed("outrider-system", &[]);
        let has = |verb: &str, resource: &str, name: &str, namespace: &str| {
            let fits = |right: &&Right| {
                (right.verb.as_str(), right.resource.as_str(), right.name.as_str(), right.namespace.as_str())
                    == (verb, resource, name, namespace)
            };
            needed.iter().filter(fits).count()
        };
        assert_eq!(has("watch", "pods", "", ""), 1);
        assert_eq!(has("patch", "sidecarsets/status", "", ""), 1);
        assert_eq!(has("patch", "mutatingwebhookconfigurations", "outrider-mutating", ""), 1);
        assert_eq!(has("update", "secrets", "outrider-ca", "outrider-system"), 1);
        assert_eq!(has("create", "leases", "", "outrider-system"), 1);
    }

    fn names_with(args: &[&str]) -> Vec<String> {
        let pod = serde_json::json!({"spec": {"containers": [
            {"name": "outrider", "args": args}, {"name": "proxy", "args": ["--certificates=self"]},
        ]}});
        let needed = needed("outrider-system", &[serde_json::from_value(pod).unwrap()]);
        let here = needed.into_iter().filter(|right| right.namespace == "outrider-system");
        // Every replica watches the configuration.
        let is_named = |name: &String| !name.is_empty() && name != "outrider-configuration";
        let mut names: Vec<String> = here.map(|right| right.name).filter(is_named).collect();
        names.dedup();
        names
    }

    #[test]
    fn no_more_is_asked_for_than_running_pods_use() {
        let (lease, secret) = ("outrider.outrider.dev".to_owned(), "outrider-ca".to_owned());
        let images = IMAGE_POLICY_SECRET.to_owned();
        assert_eq!(names_with(&["serve", "--certificates=files"]), [lease.clone(), images.clone()]);
        assert_eq!(names_with(&["serve", "--certificates=self"]), [lease.clone(), secret.clone(), images.clone()]);
        assert_eq!(names_with(&["serve", "--certificates", "self"]), [lease, secret, images.clone()]);
        assert_eq!(names_with(&["serve", "--leader-elect-resource-name=mine"]), ["mine".to_owned(), images]);
    }

    #[test]
    fn with_plugins_off_nothing_is_asked_for_that_only_plugins_need() {
        let needed = |args: &[&str]| {
            let pod = serde_json::json!({"spec": {"containers": [{"name": "outrider", "args": args}]}});
            needed("outrider-system", &[serde_json::from_value(pod).unwrap()])
        };
        let of_plugins = |right: &&Right| right.group == "policy.outrider.dev" || right.name == IMAGE_POLICY_SECRET;
        let (on, off) = (needed(&["serve"]), needed(&["serve", "--enable-plugins=false"]));
        assert_eq!(off.iter().filter(of_plugins).count(), 0, "{off:?}");
        assert_eq!(on.len() - off.len(), on.iter().filter(of_plugins).count());
        assert!(on.len() > off.len());
    }

    #[test]
    fn a_subresource_is_asked_for_apart() {
        let right = Right { verb: "patch".to_owned(), resource: "sidecarsets/status".to_owned(), ..Right::default() };
        let attributes = right.attributes();
        assert_eq!(
            (attributes.resource.as_deref(), attributes.subresource.as_deref()),
            (Some("sidecarsets"), Some("status"))
        );
        assert_eq!(attributes.namespace, None);
    }
}
