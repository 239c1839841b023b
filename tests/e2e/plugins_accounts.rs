//! `ServiceAccount` beside the API server's own plugin.

use std::collections::BTreeMap;

use cluster::{Cluster, Options};
use serde_json::{Value, json};

use crate::differential::{Random, seed, size};
use crate::plugins::{apply, plugin, serve, served, webhooks};
use crate::plugins_asking::{programmed, run, said};
use crate::process::eventually;

/// An API server that runs the plugin, without the controllers that make accounts.
fn with_accounts() -> Cluster {
    Cluster::start_with(&Options { kwok: false, controller_manager: false, ..Options::default() }).unwrap()
}

fn accounts() -> Vec<Value> {
    let account = |name: &str, annotation: Value, names: Value| {
        let annotations = json!({"kubernetes.io/enforce-mountable-secrets": annotation});
        let metadata = json!({"name": name, "namespace": "default", "annotations": annotations});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "secrets": names, "imagePullSecrets": names})
    };
    let named = || json!([{"name": "own"}, {"name": "more"}]);
    vec![
        account("default", json!("false"), json!([])),
        account("strict", json!("true"), named()),
        account("strict-bare", json!("1"), json!([])),
        account("free", json!("yes"), named()),
    ]
}

/// A container that takes variables from a secret, one or all; or from none.
fn container(random: &mut Random, name: &str, secrets: &[Value]) -> Value {
    let secret = random.pick(secrets);
    let mut container = json!({"name": name, "image": "a"});
    match random.below(4) {
        0 => container["env"] = json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}]),
        1 => container["envFrom"] = json!([{"configMapRef": {"name": "c"}}, {"secretRef": {"name": secret}}]),
        _ => {}
    }
    container
}

fn pods(prefix: &str) -> Vec<Value> {
    let mut random = Random(seed(20_261_135) as u64);
    let secrets = [json!("own"), json!("more"), json!("own"), json!("other")];
    let mut one = |at: usize| {
        let account = random.pick(&[
            Value::Null,
            json!("strict"),
            json!("strict"),
            json!("strict-bare"),
            json!("free"),
            json!("gone"),
        ]);
        let mut spec = json!({"serviceAccountName": account, "automountServiceAccountToken": false,
            "containers": [container(&mut random, "a", &secrets), container(&mut random, "b", &secrets)],
            "initContainers": [container(&mut random, "i", &secrets)]});
        if random.below(3) == 0 {
            spec["volumes"] = json!([{"name": "v", "secret": {"secretName": random.pick(&secrets)}}]);
        }
        if random.below(3) == 0 {
            spec["imagePullSecrets"] = json!([{"name": random.pick(&secrets)}]);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{prefix}-{at}"), "namespace": "default"}, "spec": spec})
    };
    (0..size(150)).map(&mut one).collect()
}

fn pull_secrets(cluster: &Cluster) -> BTreeMap<String, Value> {
    let list = cluster.kubectl_ok(&["get", "pods", "-o", "json"], None).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let of = |it: &Value| (it["metadata"]["name"].to_string(), it["spec"]["imagePullSecrets"].clone());
    list["items"].as_array().unwrap().iter().map(of).collect()
}

/// What is said to ephemeral containers of every pod, with a secret that the accounts name, or not.
fn debug(cluster: &Cluster, names: &[String]) -> Vec<String> {
    let mut said_of_all = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let secret = if at.is_multiple_of(2) { "own" } else { "other" };
        let variable = json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}});
        let added = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "sh", "env": [variable]}]}});
        let path = format!("pod/{}", name.trim_matches('"'));
        let debugged =
            cluster.kubectl(&["patch", &path, "--subresource=ephemeralcontainers", "-p", &added.to_string()], None);
        // The original's refusal is a plain error, in the same words.
        let words =
            |line: String| line.find("ephemeral container").map_or_else(|| line.clone(), |at| line[at..].to_owned());
        said_of_all.extend(said(&debugged.unwrap()).into_iter().map(words));
    }
    said_of_all
}

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_use_secrets_as_the_plugin_of_the_api_server_lets_them() {
    let original = with_accounts();
    let (replaced, _outrider) = served(&[]);
    let both = with_accounts();
    let outrider = serve(&both, &[]);
    for cluster in [&original, &replaced, &both] {
        apply(cluster, &accounts());
    }
    for cluster in [&replaced, &both] {
        apply(cluster, &[plugin("accounts", &json!({"plugin": "ServiceAccount"}))]);
        programmed(cluster, "accounts");
    }
    let pods = pods("p");
    let theirs = run(&original, "create", "", &pods);
    assert!(theirs.len() * 5 > pods.len() && theirs.len() < pods.len(), "the pods show little: {theirs:?}");
    for part in ["volume with", "envVar", "envFrom", "init container", "imagePullSecrets[0]", "error looking up"] {
        assert!(theirs.iter().any(|line| line.contains(part)), "none is refused for {part}");
    }
    for cluster in [&replaced, &both] {
        assert_eq!(run(cluster, "create", "", &pods), theirs);
        assert_eq!(pull_secrets(cluster), pull_secrets(&original));
    }
    let names: Vec<String> = pull_secrets(&original).into_keys().collect();
    let of_ephemeral = debug(&original, &names);
    assert!(of_ephemeral.iter().any(|line| line.contains("ephemeral container d with envVar A")), "{of_ephemeral:?}");
    for cluster in [&replaced, &both] {
        assert_eq!(debug(cluster, &names), of_ephemeral);
    }
    let decisions = outrider.plugin_decisions();
    assert_eq!(decisions, Vec::<String>::new(), "where the original is on as well, ours changes and refuses nothing");

    // Beyond the original: all accounts of a namespace, and pull secrets for those that name none.
    let section = json!({"limitSecretReferences": true, "imagePullSecrets": [{"name": "registry"}]});
    apply(&both, &[plugin("accounts", &json!({"plugin": "ServiceAccount", "serviceAccount": section}))]);
    let pod = |name: &str, spec: Value| {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [{"name": "a", "image": "a"}]}});
        pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        pod
    };
    let mut round = 0;
    eventually("pods get pull secrets", || {
        round += 1;
        let name = format!("given-{round}");
        assert_eq!(run(&both, "create", "", &[pod(&name, json!({}))]), Vec::<String>::new());
        pull_secrets(&both)[&format!("\"{name}\"")] == json!([{"name": "registry"}])
    });
    let volume = json!({"volumes": [{"name": "v", "secret": {"secretName": "other"}}]});
    let refused = run(&both, "create", "", &[pod("other", volume)]);
    let why = "volume with secret.secretName=\"other\" is not allowed because service account default does not reference that secret";
    assert!(refused[0].contains(why), "{refused:?}");
    // An account, and a pod of it, in one go.
    let late = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "late", "namespace": "default"},
        "secrets": [{"name": "other"}]});
    let volume = json!({"serviceAccountName": "late", "volumes": [{"name": "v", "secret": {"secretName": "other"}}]});
    assert_eq!(run(&both, "create", "", &[late, pod("late", volume)]), Vec::<String>::new());
    both.kubectl_ok(&["delete", "admissionplugin/accounts"], None).unwrap();
    eventually("the entries are withdrawn", || webhooks(&both).is_empty());
}
