//! Which requests ranges are about (4.8).

use admission::registry::Phase;
use admission::{Decision, Operation, Unserved};
use serde_json::{Value, json};

use super::{pod, range, said};
use crate::limitrange::endpoints::demands;
use crate::testing::{Cluster, review};

fn selecting(namespaces: Value) -> Value {
    let mut range = range("r", json!([{"type": "Pod", "max": {"cpu": "1"}}]));
    range["spec"]["namespaceSelector"] = namespaces;
    range
}

fn open() -> Value {
    pod(json!({"containers": [{"name": "c"}]}))
}

#[test]
fn a_new_pod_is_judged_and_a_changed_one_is_not() {
    let cluster = Cluster::from_objects(&[selecting(Value::Null)]);
    assert_eq!(said(&cluster.validate(&open())), "maximum cpu usage per Pod is 1.  No limit is specified");
    let entries: Vec<(Phase, String, Vec<Operation>)> = demands(&cluster.snapshot)
        .iter()
        .map(|demand| {
            let rule = demand.rule;
            let resources: Vec<&str> = rule.resources.iter().map(|resource| resource.resource).collect();
            (demand.phase, resources.join(","), rule.operations.to_vec())
        })
        .collect();
    assert_eq!(entries, [(Phase::Validating, "pods/resize".to_owned(), vec![Operation::Update])]);
}

#[test]
fn entries_exist_for_what_a_range_is_about() {
    let entries = |limits: Value| {
        let cluster = Cluster::from_objects(&[range("r", limits)]);
        let found = demands(&cluster.snapshot);
        found.iter().map(|demand| (demand.phase, demand.rule.resources[0].resource)).collect::<Vec<_>>()
    };
    let (fill, judge) = ((Phase::Mutating, "pods/resize"), (Phase::Validating, "pods/resize"));
    let claims = (Phase::Validating, "persistentvolumeclaims");
    assert_eq!(entries(json!([{"type": "Container", "default": {"cpu": "1"}}])), [fill]);
    assert_eq!(entries(json!([{"type": "Container", "max": {"cpu": "1"}}])), [fill, judge]);
    assert_eq!(entries(json!([{"type": "PersistentVolumeClaim", "max": {"storage": "1"}}])), [claims]);
    assert_eq!(entries(json!([])), []);
    assert!(demands(&Cluster::from_objects(&[]).snapshot).is_empty());
}

#[test]
fn entries_select_the_namespaces_of_all_ranges_only_where_they_are_the_same() {
    let of = |name: &str, selector: Value| {
        let mut range = selecting(selector);
        range["metadata"]["name"] = name.into();
        range
    };
    let (team, other) = (json!({"matchLabels": {"team": "a"}}), json!({"matchLabels": {"team": "b"}}));
    let is_narrow = |ranges: &[Value]| demands(&Cluster::from_objects(ranges).snapshot)[0].namespaces.is_some();
    assert!(is_narrow(&[of("a", team.clone()), of("b", team.clone())]));
    assert!(!is_narrow(&[of("a", team), of("b", other)]));
    assert!(!is_narrow(&[of("a", json!({}))]));
}

#[test]
fn ranges_are_for_the_namespaces_that_they_select() {
    let namespace = |labels: Value| json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": labels}});
    let team = json!({"matchLabels": {"team": "a"}});
    for (selector, labels, is_refused) in [
        (Value::Null, json!({}), true),
        (json!({}), json!({}), true),
        (team.clone(), json!({"team": "a"}), true),
        (team.clone(), json!({"team": "b"}), false),
        (json!({"matchLabels": {"kubernetes.io/metadata.name": "shop"}}), json!({}), true),
        (json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}), json!({"team": "b"}), false),
    ] {
        let cluster = Cluster::from_objects(&[selecting(selector.clone()), namespace(labels.clone())]);
        assert_eq!(cluster.validate(&open()).decision == Decision::Denied, is_refused, "{selector} {labels}");
    }
    // Excluded namespaces are left alone.
    let cluster = Cluster::from_objects(&[selecting(Value::Null)]);
    for excluded in ["kube-system", "outrider-system", "cert-manager"] {
        let reply = cluster.ask("/validate--v1-pod", &review(excluded, &open())).unwrap();
        assert_eq!(reply.decision, Decision::Allowed, "{excluded}");
    }
    // A namespace that is not known yet may turn out to be selected.
    let live = Cluster::from_objects(&[selecting(team.clone())]).live();
    let unknown = live.ask("/validate--v1-pod", &review("new", &open()));
    assert!(matches!(unknown, Err(Unserved::NamespaceUnknown(name)) if name == "new"));
    let by_name = json!({"matchLabels": {"kubernetes.io/metadata.name": "new"}});
    let live = Cluster::from_objects(&[selecting(by_name)]).live();
    assert_eq!(live.ask("/validate--v1-pod", &review("new", &open())).unwrap().decision, Decision::Denied);
    // Offline it cannot become known.
    let reply = Cluster::from_objects(&[selecting(team)]).validate(&open());
    assert_eq!(reply.decision, Decision::Allowed);
    let [warning] = reply.warnings.as_slice() else { panic!("{:?}", reply.warnings) };
    assert!(warning.contains("ClusterLimitRange \"r\" reads labels of namespaces"), "{warning}");
}

#[test]
fn plugins_see_what_a_range_filled_in() {
    let quality = json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction": {}});
    let plugin = json!({"kind": "AdmissionPlugin", "metadata": {"name": "t"}, "spec": quality});
    let range = range("r", json!([{"type": "Container", "default": {"memory": "1Mi"}}]));
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "shop"}});
    let keys =
        |objects: &[Value]| Cluster::from_objects(objects).mutate(&open()).pod["spec"]["tolerations"][0]["key"].clone();
    // Only of a pod that asks for nothing the plugin would not tolerate memory pressure.
    assert_eq!(keys(&[plugin.clone(), namespace.clone()]), Value::Null);
    assert_eq!(keys(&[plugin, namespace, range]), "node.kubernetes.io/memory-pressure");
}
