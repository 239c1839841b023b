use admission::Operation;
use admission::registry::{Namespaces, Resource};
use engine::snapshot::Exclusion;

use super::*;

fn webhook(phase: Phase, group: &'static str) -> WebhookEntry {
    let resources = vec![Resource { group, version: "v1", resource: "things", kind: "Thing" }].leak();
    let rule = Rule::new("thing.example.com", resources, &[Operation::Create, Operation::Update]);
    let ours = Rule { failure_policy: registry::FailurePolicy::Chosen, namespaces: Namespaces::NotExcluded, ..rule };
    let rule = if group.is_empty() { ours } else { rule };
    WebhookEntry { phase, path: rule.path(phase), rule }
}

fn exclusion() -> Exclusion {
    Exclusion::new("outrider-system", ["cert-manager".to_owned()])
}

#[test]
fn core_objects_are_left_alone_where_a_cluster_lives_and_own_kinds_are_not() {
    let exclusion = exclusion();
    let settings = Settings {
        target: WebhookTarget::Service { namespace: "outrider-system".to_owned() },
        ca_bundle: None,
        exclusion: &exclusion,
        pod_failure_policy: PodFailurePolicy::Ignore,
    };
    let webhooks =
        [webhook(Phase::Mutating, ""), webhook(Phase::Mutating, "example.com"), webhook(Phase::Validating, "")];
    let configuration = json!(mutating(&webhooks, &settings));
    let webhooks = configuration["webhooks"].as_array().unwrap();
    assert_eq!(webhooks.len(), 2);
    let selector = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values":
            ["cert-manager", "kube-node-lease", "kube-public", "kube-system", "outrider-system"]},
        {"key": "outrider.dev/exclude", "operator": "DoesNotExist"},
    ]});
    assert_eq!((&webhooks[0]["namespaceSelector"], &webhooks[0]["failurePolicy"]), (&selector, &json!("Ignore")));
    assert_eq!((webhooks[1].get("namespaceSelector"), &webhooks[1]["failurePolicy"]), (None, &json!("Fail")));
    assert_eq!(
        webhooks[1]["clientConfig"],
        json!({"service": {"name": "outrider-webhook", "namespace": "outrider-system", "port": 443,
            "path": "/mutate-example-com-v1-thing"}})
    );
    assert_eq!(
        webhooks[1]["rules"],
        json!([{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
            "resources": ["things"], "scope": "Namespaced"}])
    );
}

#[test]
fn there_is_nothing_to_ask_about_without_the_definition_of_the_kind_and_for_pods_that_of_the_sets() {
    let all = WebhookEntry::all(&crate::registry::registry(&crate::kinds::Kinds::default()));
    let of_pods = all.iter().find(|webhook| webhook.rule.name == "pod.outrider.dev").unwrap();
    assert_eq!(of_pods.definitions(), ["sidecarsets.apps.outrider.dev"]);
    let ours = webhook(Phase::Mutating, "example.com");
    assert_eq!(ours.definitions(), ["things.example.com"]);
    let missing = BTreeSet::from(["sidecarsets.apps.outrider.dev".to_owned()]);
    assert_eq!((of_pods.is_wanted(&missing), ours.is_wanted(&missing)), (false, true));
    // Kubernetes' own resources have no definition.
    assert!(webhook(Phase::Mutating, "").is_wanted(&missing));
}

#[test]
fn an_entry_says_all_that_its_rule_says() {
    const SEVERAL: &[Resource] = &[
        Resource { group: "", version: "v1", resource: "services", kind: "Service" },
        Resource { group: "events.k8s.io", version: "v1", resource: "events", kind: "Event" },
        Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" },
    ];
    let rule = Rule {
        scope: Scope::Any,
        match_policy: MatchPolicy::Exact,
        failure_policy: registry::FailurePolicy::Ignore,
        timeout_seconds: 3,
        match_conditions: &[registry::MatchCondition { name: "a", expression: "true" }],
        ..Rule::new("several.example.com", SEVERAL, &[Operation::Update, Operation::Delete])
    };
    let webhook = WebhookEntry { phase: Phase::Validating, path: rule.path(Phase::Validating), rule };
    let exclusion = exclusion();
    let settings = Settings {
        target: WebhookTarget::Url { base: String::new() },
        ca_bundle: None,
        exclusion: &exclusion,
        pod_failure_policy: PodFailurePolicy::Fail,
    };
    let entry = json!(validating(&[webhook], &settings))["webhooks"][0].clone();
    let operations = json!(["UPDATE", "DELETE"]);
    assert_eq!(
        entry["rules"],
        json!([
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "scope": "*",
                "resources": ["services", "pods/ephemeralcontainers"]},
            {"apiGroups": ["events.k8s.io"], "apiVersions": ["v1"], "operations": operations, "scope": "*",
                "resources": ["events"]},
        ])
    );
    assert_eq!(
        json!([entry["failurePolicy"], entry["timeoutSeconds"], entry["matchConditions"], entry["matchPolicy"]]),
        json!(["Ignore", 3, [{"name": "a", "expression": "true"}], "Exact"])
    );
    assert_eq!(
        (&entry["clientConfig"]["url"], entry.get("namespaceSelector")),
        (&json!("/validate--v1-service"), None)
    );
}

#[test]
fn a_process_outside_the_cluster_is_reached_by_its_url_and_its_bundle() {
    let exclusion = exclusion();
    let settings = Settings {
        target: WebhookTarget::Url { base: "https://127.0.0.1:9443".to_owned() },
        ca_bundle: Some("pem"),
        exclusion: &exclusion,
        pod_failure_policy: PodFailurePolicy::Fail,
    };
    let configuration = json!(validating(&[webhook(Phase::Validating, "")], &settings));
    assert_eq!(
        configuration["webhooks"][0]["clientConfig"],
        json!({"url": "https://127.0.0.1:9443/validate--v1-thing", "caBundle": "cGVt"})
    );
}
