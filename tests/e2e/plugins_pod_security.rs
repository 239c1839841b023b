//! `PodSecurity` with defaults, beside the API server's own plugin with the same defaults in its configuration.

use std::fs;

use serde_json::{Value, json};

use crate::differential::{Random, seed, size};
use crate::plugins::{apply, plugin, served, small};
use crate::plugins_asking::{programmed, run};

const LEVELS: [&str; 3] = ["privileged", "baseline", "restricted"];

fn label(mode: &str) -> String {
    format!("pod-security.kubernetes.io/{mode}")
}

/// Namespaces with labels of their own, and most of them without.
fn namespaces() -> Vec<Value> {
    let named = |at: usize| {
        let mut labels = json!({});
        if at % 4 == 3 {
            labels[label("enforce")] = LEVELS[at / 4 % 3].into();
        }
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("n{at}"), "labels": labels}})
    };
    let exempt = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "exempt"}});
    (0..12).map(named).chain([exempt]).collect()
}

fn pod(random: &mut Random, at: usize, namespace: &str) -> Value {
    let restricted = json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"}});
    let mut spec = json!({"containers": [{"name": "c", "image": "i:1",
        "securityContext": random.pick(&[json!({}), restricted, json!({"privileged": true}), json!({"capabilities": {"add": ["NET_ADMIN"]}})])}]});
    for (field, chance) in [("hostNetwork", 6), ("hostPID", 6)] {
        if random.below(chance) == 0 {
            spec[field] = true.into();
        }
    }
    if random.below(5) == 0 {
        spec["volumes"] = json!([{"name": "h", "hostPath": {"path": "/var"}}]);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}"), "namespace": namespace}, "spec": spec})
}

#[test]
#[ignore = "needs a control plane: make test"]
fn pods_of_new_namespaces_are_refused_as_by_the_defaults_of_the_api_server() {
    let config = std::env::temp_dir().join(format!("outrider-pod-security-{}.json", std::process::id()));
    let defaults =
        json!({"enforce": "baseline", "enforce-version": "latest", "warn": "restricted", "warn-version": "latest"});
    let section = json!({"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        "defaults": defaults, "exemptions": {"namespaces": ["exempt"]}});
    let whole = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": [
        {"name": "PodSecurity", "configuration": section}]});
    fs::write(&config, whole.to_string()).unwrap();
    let original = small(&[format!("--admission-control-config-file={}", config.display())]);
    fs::remove_file(&config).unwrap();
    let (replaced, _outrider) = served(&[]);
    let object = json!({"plugin": "PodSecurity", "match": {"excludeNamespaces": ["exempt"]}, "podSecurity": {"defaults": defaults}});
    apply(&replaced, &[plugin("security", &object)]);
    programmed(&replaced, "security");
    for cluster in [&original, &replaced] {
        assert_eq!(run(cluster, "create", "", &namespaces()), Vec::<String>::new());
    }
    let mut random = Random(seed(20_261_131) as u64);
    let names: Vec<String> =
        namespaces().iter().map(|namespace| namespace["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    let pods: Vec<Value> = (0..size(260)).map(|at| pod(&mut random, at, &names[at % names.len()])).collect();
    let (theirs, ours) = (run(&original, "create", "", &pods), run(&replaced, "create", "", &pods));
    assert_eq!(ours, theirs);
    eprintln!("{} of {} pods were refused, alike", theirs.len(), pods.len());
    assert!(theirs.len() * 3 > pods.len() && theirs.len() < pods.len(), "the pods show little: {}", theirs.len());
    // The one difference: a namespace that its owner labels. The original lets it become weaker than the default.
    let weaker = ["label", "--overwrite", "namespace/n0", "pod-security.kubernetes.io/enforce=privileged"];
    assert!(original.kubectl(&weaker, None).unwrap().success());
    let refused = replaced.kubectl(&weaker, None).unwrap();
    assert!(refused.stderr.contains("which is weaker than \"baseline\""), "{}", refused.stderr);
}
