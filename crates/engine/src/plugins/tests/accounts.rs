//! `ServiceAccount` (4.19).

use admission::question::{Known, Question};
use admission::registry::{FailurePolicy, Phase};
use admission::{Decision, Unserved};
use serde_json::{Value, json};

use super::{namespace, plugin};
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::conflict::between;
use crate::plugins::endpoints::demands;
use crate::plugins::validation::compile;
use crate::testing::{Cluster, Reply};

const GIVE: &str = "/mutate--v1-pod-serviceaccount";
const LIMIT: &str = "/validate--v1-pod-serviceaccount";

fn account(name: &str, annotation: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": "shop", "annotations": {"kubernetes.io/enforce-mountable-secrets": annotation}},
        "secrets": [{"name": "own"}, {"name": "more"}], "imagePullSecrets": [{"name": "pull"}]})
}

fn bare(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "shop"}})
}

fn on(name: &str, section: Value) -> Value {
    plugin(name, json!({"plugin": "ServiceAccount", "serviceAccount": section}))
}

fn cluster(plugins: &[Value]) -> Cluster {
    let accounts =
        [account("strict", json!("true")), account("free", json!(null)), account("default", json!("no")), bare("bare")];
    Cluster::from_objects(&[plugins, &accounts, &[namespace(json!({}))]].concat())
}

fn pod(account: &str, spec: Value) -> Value {
    let mut pod = super::pod(json!({"serviceAccountName": account}));
    json_patch::merge(&mut pod, &json!({"spec": spec}));
    pod
}

fn review(pod: &Value, sub_resource: &str) -> Value {
    let mut review = crate::testing::review("shop", pod);
    if !sub_resource.is_empty() {
        let request = json!({"operation": "UPDATE", "oldObject": pod, "subResource": sub_resource});
        json_patch::merge(&mut review, &json!({"request": request}));
    }
    review
}

fn judged(cluster: &Cluster, pod: &Value) -> Reply {
    cluster.ask(LIMIT, &review(pod, "")).unwrap()
}

fn given(cluster: &Cluster, pod: &Value) -> Reply {
    cluster.ask(GIVE, &review(pod, "")).unwrap()
}

fn variable(secret: &str) -> Value {
    json!({"name": "c", "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}]})
}

fn variables(secret: &str) -> Value {
    json!({"name": "c", "envFrom": [{"configMapRef": {"name": "x"}}, {"secretRef": {"name": secret}}]})
}

fn volume(secret: &str) -> Value {
    json!([{"name": "e", "emptyDir": {}}, {"name": "v", "secret": {"secretName": secret}}])
}

#[test]
fn pods_may_use_the_secrets_of_their_account_as_the_table_says() {
    const NOT: &str = "is not allowed because service account strict does not reference that secret";
    let cluster = cluster(&[on("s", json!({}))]);
    for (row, own, other, why) in [
        (
            "a volume",
            json!({"volumes": volume("own")}),
            json!({"volumes": volume("x")}),
            format!("volume with secret.secretName=\"x\" {NOT}"),
        ),
        (
            "a variable",
            json!({"containers": [variable("more")]}),
            json!({"containers": [variable("x")]}),
            format!("container c with envVar B referencing secret.secretName=\"x\" {NOT}"),
        ),
        (
            "variables",
            json!({"containers": [variables("own")]}),
            json!({"containers": [variables("x")]}),
            format!("container c with envFrom referencing secret.secretName=\"x\" {NOT}"),
        ),
        (
            "a variable of an init container",
            json!({"initContainers": [variable("own")]}),
            json!({"initContainers": [variable("x")]}),
            format!("init container c with envVar B referencing secret.secretName=\"x\" {NOT}"),
        ),
        (
            "variables of an init container",
            json!({"initContainers": [variables("own")]}),
            json!({"initContainers": [variables("x")]}),
            format!("init container c with envFrom referencing secret.secretName=\"x\" {NOT}"),
        ),
        (
            "a pull secret",
            json!({"imagePullSecrets": [{"name": "pull"}]}),
            json!({"imagePullSecrets": [{"name": "pull"}, {"name": "own"}]}),
            "imagePullSecrets[1].name=\"own\" is not allowed because service account strict does not reference that imagePullSecret"
                .to_owned(),
        ),
    ] {
        let allowed = judged(&cluster, &pod("strict", own));
        assert_eq!(allowed.decision, Decision::Allowed, "{row}: {}", allowed.message);
        let refused = judged(&cluster, &pod("strict", other.clone()));
        assert_eq!((refused.code, refused.message.clone()), (Some(403), format!("pods \"p\" is forbidden: {why}")), "{row}");
        for permissive in ["free", "default", ""] {
            let allowed = judged(&cluster, &pod(permissive, other.clone()));
            assert_eq!(allowed.decision, Decision::Allowed, "{row} of {permissive:?}: {}", allowed.message);
        }
        // With the switch, of every account.
        let all = self::cluster(&[on("s", json!({"limitSecretReferences": true}))]);
        let refused = judged(&all, &pod("", other));
        assert_eq!(refused.message, format!("pods \"p\" is forbidden: {}", why.replace("strict", "default")), "{row}");
    }
    let projected = json!({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "x"}}]}}]});
    assert_eq!(judged(&cluster, &pod("strict", projected)).decision, Decision::Allowed, "as with the original");
}

#[test]
fn ephemeral_containers_are_judged_alone_and_no_other_change_is() {
    let cluster = cluster(&[on("s", json!({}))]);
    let old = json!({"volumes": volume("x"), "containers": [variable("x")]});
    let with = |container: Value| {
        let mut pod = pod("strict", old.clone());
        pod["spec"]["ephemeralContainers"] = json!([container]);
        pod
    };
    let ask = |pod: &Value, sub_resource: &str| cluster.ask(LIMIT, &review(pod, sub_resource)).unwrap();
    for container in [variable("own"), variables("own")] {
        assert_eq!(ask(&with(container), "ephemeralcontainers").decision, Decision::Allowed);
    }
    for (container, how) in [(variable("x"), "envVar B"), (variables("x"), "envFrom")] {
        let refused = ask(&with(container), "ephemeralcontainers");
        let part = format!("ephemeral container c with {how} referencing secret.secretName=\"x\" is not allowed");
        assert!(refused.message.contains(&part), "{}", refused.message);
    }
    let mut update = review(&with(variable("x")), "ephemeralcontainers");
    update["request"]["subResource"] = "".into();
    assert_eq!(cluster.ask(LIMIT, &update).unwrap().decision, Decision::Allowed);
}

#[test]
fn mirror_pods_name_no_account_and_no_secret() {
    let cluster = cluster(&[on("s", json!({}))]);
    let mirror = |spec: Value| {
        let mut pod = pod("", spec);
        pod["spec"].as_object_mut().unwrap().retain(|_, value| value != "");
        pod["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "1"});
        pod
    };
    let token = json!([{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]);
    let csi = json!([{"name": "t", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "x"}}}]);
    let projected = json!([{"name": "t", "projected": {"sources": [{"secret": {"name": "x"}}]}}]);
    for (spec, why) in [
        (json!({}), ""),
        (json!({"volumes": [{"name": "e", "emptyDir": {}}]}), ""),
        (json!({"serviceAccountName": "free"}), "a mirror pod may not reference service accounts"),
        (json!({"volumes": volume("own")}), "a mirror pod may not reference secrets"),
        (json!({"volumes": csi}), "a mirror pod may not reference secrets"),
        (json!({"volumes": projected}), "a mirror pod may not reference secrets"),
        (json!({"containers": [variables("own")]}), "a mirror pod may not reference secrets"),
        (json!({"imagePullSecrets": [{"name": "pull"}]}), "a mirror pod may not reference secrets"),
        (json!({"volumes": token}), "a mirror pod may not use ServiceAccountToken volume projections"),
    ] {
        let reply = judged(&cluster, &mirror(spec.clone()));
        let expected = if why.is_empty() { String::new() } else { format!("pods \"p\" is forbidden: {why}") };
        assert_eq!(reply.message, expected, "{spec}");
    }
    assert_eq!(given(&cluster, &mirror(json!({}))).patch, None);
}

#[test]
fn a_pod_without_pull_secrets_gets_those_of_its_account_or_else_those_of_the_object() {
    let giving = || on("s", json!({"imagePullSecrets": [{"name": "registry"}, {"name": "mirror"}]}));
    let ours = || json!([{"name": "registry"}, {"name": "mirror"}]);
    for (row, plugins, account, own, expected) in [
        ("those of the account", vec![on("s", json!({}))], "free", Value::Null, json!([{"name": "pull"}])),
        ("none", vec![on("s", json!({}))], "bare", Value::Null, Value::Null),
        ("its own", vec![giving()], "free", json!([{"name": "x"}]), json!([{"name": "x"}])),
        ("the account goes first", vec![giving()], "free", Value::Null, json!([{"name": "pull"}])),
        ("those of the object", vec![giving()], "bare", Value::Null, ours()),
        ("an empty list is none", vec![giving()], "bare", json!([]), ours()),
        (
            "those of the first",
            vec![giving(), on("t", json!({"imagePullSecrets": [{"name": "late"}]}))],
            "bare",
            Value::Null,
            ours(),
        ),
    ] {
        let cluster = cluster(&plugins);
        let reply = given(&cluster, &pod(account, json!({"imagePullSecrets": own})));
        assert_eq!(reply.pod["spec"]["imagePullSecrets"], expected, "{row}");
        assert_eq!(given(&cluster, &reply.pod).patch, None, "{row}: a second call changes nothing");
        assert_eq!(judged(&cluster, &reply.pod).decision, Decision::Allowed, "{row}: what is given is allowed");
    }
    // What the object gives is allowed where it limits all; of an account with the annotation, the API server would refuse it.
    let section = json!({"limitSecretReferences": true, "imagePullSecrets": [{"name": "registry"}]});
    let mut enforcing = bare("enforcing");
    enforcing["metadata"]["annotations"] = json!({"kubernetes.io/enforce-mountable-secrets": "True"});
    let accounts = [enforcing, bare("bare"), namespace(json!({})), on("s", section)];
    let cluster = Cluster::from_objects(&accounts);
    let reply = given(&cluster, &pod("bare", json!({})));
    assert_eq!(reply.pod["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    assert_eq!(judged(&cluster, &reply.pod).decision, Decision::Allowed);
    assert_eq!(given(&cluster, &pod("enforcing", json!({}))).patch, None);
    let warned = self::cluster(&[plugin("w", json!({"plugin": "ServiceAccount", "mode": "Warn"}))]);
    let reply = given(&warned, &pod("free", json!({})));
    assert_eq!(reply.patch, None);
    assert!(reply.warnings[0].ends_with("would add the pull secrets pull"), "{:?}", reply.warnings);
}

#[test]
fn an_account_that_has_not_been_seen_is_asked_for() {
    let cluster = cluster(&[on("s", json!({}))]).live();
    let late = pod("late", json!({"volumes": volume("x")}));
    let answered = |path: &str, object: Option<Value>| {
        let answer = |question: &Question| {
            let Question::Object(asked) = question else { panic!("{question:?}") };
            assert_eq!(
                (asked.resource.as_str(), asked.namespace.as_str(), asked.name.as_str()),
                ("serviceaccounts", "shop", "late")
            );
            Known::Object(object.clone())
        };
        cluster.ask_with(path, &review(&late, ""), answer).unwrap()
    };
    let (reply, asked) = answered(LIMIT, Some(account("late", json!("true"))));
    assert_eq!(asked.len(), 1);
    assert!(reply.message.contains("because service account late does not reference that secret"), "{}", reply.message);
    assert_eq!(answered(LIMIT, Some(account("late", json!("false")))).0.decision, Decision::Allowed);
    assert_eq!(
        answered(GIVE, Some(account("late", json!(null)))).0.pod["spec"]["imagePullSecrets"],
        json!([{"name": "pull"}])
    );
    let (missing, _) = answered(LIMIT, None);
    let why = "pods \"p\" is forbidden: error looking up service account shop/late: serviceaccount \"late\" not found";
    assert_eq!((missing.code, missing.message.as_str()), (Some(403), why));
    assert_eq!(answered(GIVE, None).0.patch, None);
    let unanswered = cluster.ask(LIMIT, &review(&late, "")).unwrap_err();
    assert!(matches!(unanswered, Unserved::Unanswered(_)), "{unanswered:?}");
    // One that has been seen is not.
    let (_, asked) =
        cluster.ask_with(LIMIT, &review(&pod("strict", json!({})), ""), |question| panic!("{question:?}")).unwrap();
    assert_eq!(asked, []);
}

#[test]
fn offline_it_is_said_where_the_account_is_not_among_the_manifests() {
    let cluster = cluster(&[on("s", json!({"imagePullSecrets": [{"name": "registry"}]}))]);
    let cannot_tell = judged(&cluster, &pod("elsewhere", json!({"volumes": volume("x")})));
    assert_eq!(cannot_tell.decision, Decision::Allowed);
    let says = "cannot say whether it would refuse it: ServiceAccount shop/elsewhere is not among the manifests";
    assert!(cannot_tell.warnings[0].ends_with(says), "{:?}", cannot_tell.warnings);
    assert_eq!(judged(&cluster, &pod("elsewhere", json!({}))).warnings, Vec::<String>::new(), "it names no secret");
    let given = given(&cluster, &pod("elsewhere", json!({})));
    assert_eq!(
        given.warnings,
        ["ServiceAccount shop/elsewhere is not among the manifests, and counts as one that names no secrets"]
    );
    assert_eq!(given.pod["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
}

/// As many names as fit into an account, and as many references as fit into a pod: each is read once.
#[test]
fn many_names_and_many_references_are_compared_in_one_walk() {
    let names: Vec<Value> = (0..60_000).map(|at| json!({"name": format!("s{at}")})).collect();
    let mut rich = account("rich", json!("true"));
    rich["secrets"] = names.clone().into();
    rich["imagePullSecrets"] = names.clone().into();
    let cluster = Cluster::from_objects(&[rich, namespace(json!({})), on("s", json!({}))]);
    let env: Vec<Value> = (0..60_000)
        .map(|at| json!({"name": format!("v{at}"), "valueFrom": {"secretKeyRef": {"name": format!("s{at}"), "key": "k"}}}))
        .collect();
    let spec = json!({"containers": [{"name": "c", "env": env}], "imagePullSecrets": names});
    assert_eq!(judged(&cluster, &pod("rich", spec)).decision, Decision::Allowed);
}

#[test]
fn its_entries_are_for_new_pods_and_ephemeral_containers() {
    let entries = |spec: Value| {
        let mut object = json!({"plugin": "ServiceAccount"});
        json_patch::merge(&mut object, &spec);
        demands(&cluster(&[plugin("s", object)]).snapshot)
    };
    let found = entries(json!({}));
    let name = "serviceaccount.policy.outrider.dev";
    let names: Vec<_> = found.iter().map(|entry| (entry.phase, entry.name.as_str(), entry.failure_policy)).collect();
    assert_eq!(names, [(Phase::Mutating, name, FailurePolicy::Fail), (Phase::Validating, name, FailurePolicy::Fail)]);
    let resources = |at: usize| found[at].rule.resources.iter().map(|it| it.resource).collect::<Vec<_>>();
    assert_eq!((resources(0), resources(1)), (vec!["pods"], vec!["pods", "pods/ephemeralcontainers"]));
    let ignoring = entries(json!({"failurePolicy": "Ignore", "timeoutSeconds": 3}));
    assert!(ignoring.iter().all(|one| one.failure_policy == FailurePolicy::Ignore && one.timeout_seconds == 3));
}

#[test]
fn lists_that_differ_and_pull_secrets_that_another_refuses_are_contradictions() {
    let object = |name: &str, section: Value| compile(&on(name, section)).unwrap();
    let gives = |name: &str, secret: &str| object(name, json!({"imagePullSecrets": [{"name": secret}]}));
    let limits = object("l", json!({"limitSecretReferences": true}));
    let said = |one: &CompiledPlugin, other: &CompiledPlugin| between(one, other).unwrap_or_default();
    assert!(said(&gives("a", "x"), &gives("b", "y")).contains("AdmissionPlugin \"b\" has another list"));
    assert!(
        said(&limits, &gives("a", "x"))
            .contains("AdmissionPlugin \"a\" gives pods pull secrets that this object refuses")
    );
    assert!(
        said(&gives("a", "x"), &limits)
            .contains("spec.serviceAccount.imagePullSecrets: AdmissionPlugin \"l\" refuses some")
    );
    assert_eq!(said(&limits, &object("o", json!({}))), "");
}
