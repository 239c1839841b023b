//! `--narrow-webhooks`: the API server asks only about pods that a set can match.

use cluster::{Cluster, Options};
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::narrowing::{MAX_CHARACTERS, NarrowingRule};
use serde_json::{Value, json};

use crate::process::{Outrider, eventually};
use crate::replicas::{CONFIGURATIONS, bundles_in_force, get, list, small_cluster, webhooks_at};
use crate::room::containers;

/// The condition in each entry for pods; null where there is none.
fn expressions(cluster: &Cluster) -> Vec<Value> {
    let list = get(cluster, &[CONFIGURATIONS]);
    let webhooks =
        list["items"].as_array().unwrap().iter().flat_map(|item| item["webhooks"].as_array().into_iter().flatten());
    let of_pods = webhooks.filter(|webhook| webhook["name"] == "pod.outrider.dev");
    of_pods
        .map(|webhook| {
            let conditions = webhook["matchConditions"].as_array().cloned().unwrap_or_default();
            assert!(
                conditions.len() < 2 && conditions.iter().all(|condition| condition["name"] == "outrider.dev/narrow")
            );
            conditions.first().map_or(Value::Null, |condition| condition["expression"].clone())
        })
        .collect()
}

fn set(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] = json!([{"name": name, "image": "proxy:1"}]);
    json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": name}, "spec": spec})
}

/// The sets, and a table of pods: namespace, labels, containers afterwards.
fn sets() -> Vec<Value> {
    let app = |value: &str| json!({"matchLabels": {"app": value}});
    let expression =
        |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
    let by_name =
        |operator: &str| json!({"matchExpressions": [expression("kubernetes.io/metadata.name", operator, &["shop"])]});
    vec![
        set("by-label", json!({"selector": app("web")})),
        set("must", json!({"selector": app("must"), "optOut": "Denied"})),
        set("by-namespace", json!({"selector": app("db"), "namespace": "shop"})),
        set("by-name", json!({"selector": {}, "namespaceSelector": by_name("In")})),
        set(
            "by-terms",
            json!({"selector": {"matchExpressions": [
            expression("tier", "In", &["a", "b"]), expression("old", "DoesNotExist", &[]), expression("app", "NotIn", &["x"])]}}),
        ),
        set(
            "by-namespace-label",
            json!({"selector": app("wide"), "namespaceSelector": {"matchLabels": {"env": "prod"}}}),
        ),
        set(
            "elsewhere",
            json!({"selector": {"matchExpressions": [expression("free", "Exists", &[])]}, "namespaceSelector": by_name("NotIn")}),
        ),
    ]
}

const PODS: &[(&str, &str, &[&str])] = &[
    ("default", r#"{"app":"web"}"#, &["by-label", "app"]),
    ("default", r#"{"app":"must"}"#, &["must", "app"]),
    ("default", r#"{"app":"db"}"#, &["app"]),
    ("default", "null", &["app"]),
    ("default", r#"{"tier":"b"}"#, &["by-terms", "app"]),
    ("default", r#"{"tier":"b","app":"x"}"#, &["app"]),
    ("default", r#"{"tier":"b","old":""}"#, &["app"]),
    ("default", r#"{"app":"wide"}"#, &["app"]),
    ("default", r#"{"free":""}"#, &["elsewhere", "app"]),
    ("shop", r#"{"app":"db"}"#, &["by-name", "by-namespace", "app"]),
    ("shop", "null", &["by-name", "app"]),
    ("shop", r#"{"app":"wide","free":""}"#, &["by-name", "by-namespace-label", "app"]),
];

fn create(cluster: &Cluster, namespace: &str, labels: &str) -> cluster::Output {
    let labels: Value = serde_json::from_str(labels).unwrap();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    cluster.kubectl(&["create", "-o", "json", "-f", "-"], Some(&pod.to_string())).unwrap()
}

fn programmed(cluster: &Cluster, name: &str) -> bool {
    let set = get(cluster, &["sidecarset", name]);
    let conditions = set["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| {
        condition["type"] == "Programmed"
            && condition["status"] == "True"
            && condition["observedGeneration"] == set["metadata"]["generation"]
    })
}

#[test]
#[ignore = "needs a control plane: make test"]
fn only_pods_that_a_set_can_match_are_asked_about() {
    let (cluster, account) = small_cluster();
    cluster.kubectl_ok(&["create", "namespace", "shop"], None).unwrap();
    cluster.kubectl_ok(&["label", "namespace", "shop", "env=prod"], None).unwrap();
    cluster.kubectl_ok(&["create", "serviceaccount", "default", "--namespace=shop"], None).unwrap();
    let flags = ["--certificates=self", "--narrow-webhooks"];
    let outrider = Outrider::start(&cluster, &account, &flags);
    outrider.ready();
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at(outrider.webhooks))).unwrap();
    bundles_in_force(&cluster);
    eventually("without sets nothing is asked", || expressions(&cluster) == ["false", "false"]);

    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&list(&sets()))).unwrap();
    let wait = ["wait", "--for=condition=Programmed", "sidecarset", "--all", "--timeout=120s"];
    cluster.kubectl_ok(&wait, None).unwrap();
    for (namespace, labels, expected) in PODS {
        let mut found = Vec::new();
        // The API server that stored the configuration goes by it a moment later.
        eventually("the pod is as expected", || {
            let output = create(&cluster, namespace, labels);
            assert!(output.success(), "{}", output.stderr);
            let pod: Value = serde_json::from_str(&output.stdout).unwrap();
            found = containers(&pod).into_iter().map(str::to_owned).collect();
            found == *expected
        });
    }

    // The validating entry is called for pods of the mandatory set alone, once nothing has changed for a while.
    eventually("only pods of a mandatory set are validated", || {
        let validating = expressions(&cluster)[1].as_str().unwrap_or_default().to_owned();
        validating.lines().count() == 1 && validating.contains("'must'")
    });

    // Another selector: widened at once, narrowed later.
    cluster.kubectl_ok(&["delete", "sidecarset", "by-terms", "elsewhere", "by-namespace-label"], None).unwrap();
    let changed = set("by-label", json!({"selector": {"matchLabels": {"app": "new"}}}));
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&changed.to_string())).unwrap();
    eventually("the changed set is programmed", || programmed(&cluster, "by-label"));
    let text =
        |expressions: &[Value]| expressions.iter().map(|text| text.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let [mutating, validating] = &text(&expressions(&cluster))[..] else { panic!("two entries for pods") };
    assert!(mutating.contains("'new'") && !validating.contains("'new'"), "{mutating} {validating}");
    eventually("what is gone is no longer asked about", || {
        let found = text(&expressions(&cluster));
        found[0].lines().count() == 3 && found[1].lines().count() == 1 && !found[0].contains("'web'")
    });

    no_replica_answers(&cluster, outrider);
    // Without the flag the condition is lifted, and sets lose theirs.
    let outrider = Outrider::start(&cluster, &account, &["--certificates=self"]);
    eventually("everything is asked about", || expressions(&cluster) == [Value::Null, Value::Null]);
    eventually("there is no condition", || !programmed(&cluster, "by-label"));
    outrider.end();
}

fn no_replica_answers(cluster: &Cluster, outrider: Outrider) {
    outrider.end();
    let refused = create(cluster, "default", r#"{"app":"new"}"#);
    assert!(refused.stderr.contains("failed calling webhook \"pod.outrider.dev\""), "{}", refused.stderr);
    for labels in [r#"{"app":"other"}"#, "null"] {
        let output = create(cluster, "default", labels);
        assert!(output.success(), "{}", output.stderr);
    }
}

/// Replaced by the number of a set.
const NUMBER: &str = "0123456789";

/// The condition of as many sets as fit into it, and how many these are.
fn longest(mut set: Value) -> (usize, String) {
    set["containers"] = json!([{"name": "c", "image": "i"}]);
    let set = serde_json::from_value(json!({"metadata": {"name": "s"}, "spec": set})).unwrap();
    let one = NarrowingRule::of([&CompiledSet::compile(&set).unwrap()]).expression().unwrap();
    let clauses: Vec<String> = (0..MAX_CHARACTERS / 4).map(|number| one.replace(NUMBER, &number.to_string())).collect();
    let rule = |count| NarrowingRule::of_clauses(clauses[..count].iter().map(String::as_str)).expression();
    let (mut fits, mut exceeds) = (1, clauses.len());
    while fits + 1 < exceeds {
        let middle = usize::midpoint(fits, exceeds);
        *(if rule(middle).is_some() { &mut fits } else { &mut exceeds }) = middle;
    }
    (fits, rule(fits).unwrap())
}

fn called_when(expression: &str) -> String {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "longest"},
        "webhooks": [{
            "name": "longest.outrider.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            // No replica answers: a pod that the condition is true for is refused.
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "matchConditions": [{"name": "outrider.dev/narrow", "expression": expression}],
        }],
    })
    .to_string()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_longest_conditions_are_evaluated_and_no_longer_one_is_taken() {
    let cluster =
        Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap();
    cluster.kubectl_ok(&["create", "serviceaccount", "default", "--namespace=default"], None).unwrap();
    let expression =
        |key: &str, operator: &str, values: &[String]| json!({"key": key, "operator": operator, "values": values});
    let left_out: Vec<String> = (0..300).map(|number| format!("x-{number}")).collect();
    // What many sets select by, and the labels of a pod that one of them selects.
    let cases = [
        ("values", json!({"matchLabels": {"app": NUMBER}}), json!({"app": NUMBER})),
        (
            "pairs of values",
            json!({"matchLabels": {"app": NUMBER, "tier": NUMBER}}),
            json!({"app": NUMBER, "tier": NUMBER}),
        ),
        ("keys", json!({"matchExpressions": [expression(NUMBER, "Exists", &[])]}), json!({NUMBER: ""})),
        (
            "lists that leave out",
            json!({"matchExpressions": [expression(NUMBER, "Exists", &[]), expression("app", "NotIn", &left_out)]}),
            json!({NUMBER: ""}),
        ),
    ];
    for (what, selector, labels) in cases {
        let (count, expression) = longest(json!({"selector": selector}));
        println!("{what}: {count} sets, {} characters", expression.len());
        cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&called_when(&expression))).unwrap();
        let labels = labels.to_string().replace(NUMBER, &(count - 1).to_string());
        eventually("a pod that the last set selects is asked about", || {
            create(&cluster, "default", &labels).stderr.contains("failed calling webhook")
        });
        for labels in [r#"{"app":"x-299","tier":"x"}"#, "null"] {
            let output = create(&cluster, "default", labels);
            assert!(output.success(), "{what}: {}", output.stderr);
        }
        cluster.kubectl_ok(&["delete", "validatingwebhookconfiguration", "longest"], None).unwrap();
        eventually("nothing is asked about", || create(&cluster, "default", &labels).success());
    }
    let of_length = |length| called_when(&format!("'{}' == ''", "x".repeat(length - "'' == ''".len())));
    let apply =
        |configuration: &str| cluster.kubectl(&["apply", "--server-side", "-f", "-"], Some(configuration)).unwrap();
    let output = apply(&of_length(MAX_CHARACTERS));
    assert!(output.success(), "{}", output.stderr);
    let output = apply(&of_length(MAX_CHARACTERS + 1));
    assert!(output.stderr.contains("expression code point size exceeds limit"), "{}", output.stderr);
}
