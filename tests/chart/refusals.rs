//! Values that cannot work are refused before anything is installed, by name.

use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::helm::{failed, find, identity, objects, succeeded, template};
use crate::render::agree_on_namespaces;
use crate::values;

#[test]
#[ignore = "needs helm: make test"]
fn a_typo_and_a_value_of_another_type_are_refused_by_name() {
    let table = [
        ("replica=3", "additional properties 'replica' not allowed"),
        ("webhook.failurepolicy=Ignore", "additional properties 'failurepolicy' not allowed"),
        ("kinds.cronjobs.enabled=true", "additional properties 'cronjobs' not allowed"),
        ("webhook.failurePolicy=Maybe", "value must be one of 'Fail', 'Ignore'"),
        ("webhook.timeoutSeconds=31", "maximum: got 31, want 30"),
        ("drainDelay=10", "got number, want string"),
        ("certManager.createSelfSignedIssuer=false", "name an issuer of yours"),
        ("serviceMonitor.enabled=true,metrics.enabled=false", "serviceMonitor.enabled needs metrics.enabled"),
    ];
    for (set, said) in table {
        let stderr = failed(&template(&["--set", set]));
        assert!(stderr.contains(said), "{set}: {stderr}");
    }
}

/// `helm template` with these values and flags.
fn template_of(values: &Value, flags: &[&str]) -> Output {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), values.to_string()).unwrap();
    template(&[&[format!("--values={}", file.path().display()).as_str()], flags].concat())
}

/// Where there is a null.
fn null_at(path: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Null => vec![path.to_owned()],
        Value::Array(items) => items.iter().flat_map(|item| null_at(&format!("{path}[]"), item)).collect(),
        Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| null_at(&format!("{path}.{key}"), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// Helm removes the default of a value where the user writes null, or nothing behind its colon.
#[test]
#[ignore = "needs helm: make test"]
fn a_null_leaves_the_value_out_of_every_object() {
    let features = ["autoscaling", "serviceMonitor", "prometheusRule", "grafanaDashboard", "networkPolicy"];
    let mut flags = features.map(|feature| format!("--set={feature}.enabled=true")).to_vec();
    flags.push("--set=podDisruptionBudget.maxUnavailable=1".to_owned());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    for whole_maps in [false, true] {
        let rendered = objects(&succeeded(&template_of(&values::nulls(false, whole_maps), &flags)));
        agree_on_namespaces(&rendered);
        let account = find(&rendered, "ServiceAccount", "outrider");
        assert!(account.get("automountServiceAccountToken").is_none(), "{account}");
        for object in &rendered {
            let (kind, name) = identity(object);
            assert_eq!(null_at("", object), Vec::<String>::new(), "{kind} {name}");
        }
        let pod = &find(&rendered, "Deployment", "outrider")["spec"]["template"]["spec"];
        let args = pod["containers"][0]["args"].as_array().unwrap();
        assert!(args.iter().all(|arg| !arg.as_str().unwrap().ends_with('=')), "{args:?}");
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn what_a_replica_or_cert_manager_would_refuse_later_is_refused_with_a_sentence() {
    let rsa = "certManager.algorithm=RSA";
    let table = [
        ("log.level=verbose", "log.level is \"verbose\": there is no level \"verbose\"; write error, warn"),
        (r"log.level=info\,kube", "there is no level \"kube\""),
        ("drainDelay=30s", "drainDelay is 30s and terminationGracePeriodSeconds is 30: a replica would be killed"),
        ("drainDelay=1m30s", "set terminationGracePeriodSeconds to 105 or more"),
        ("terminationGracePeriodSeconds=0", "drainDelay is 10s and terminationGracePeriodSeconds is 0"),
        ("leaderElection.leaseDuration=11m", "leaseDuration is 11m and must be at most 10m"),
        (
            "leaderElection.leaseDuration=10s",
            "leaseDuration is 10s and must be longer than renewDeadline, which is 10s",
        ),
        ("leaderElection.retryPeriod=8400ms", "renewDeadline is 10s and must be longer than 1.2 times retryPeriod"),
        ("leaderElection.retryPeriod=0s", "they must be 1s at least, and more than nothing"),
        ("controllers=cronjob", "there is no controller \"cronjob\"; there are sidecarset, * for all"),
        (
            r"controllers=*\,-sidecarsets,kinds.welcome.enabled=true",
            "\"sidecarsets\"; there are sidecarset, welcome, *",
        ),
        ("image.registry=https://r.example.com", "the image would be https://r.example.com/outrider:"),
        ("global.imageRegistry=r.example.com/", "is a host, with a port or a path if need be, without a scheme"),
        (
            "autoscaling.enabled=true,autoscaling.minReplicas=6",
            "minReplicas is 6 and must not be more than maxReplicas, which is 5",
        ),
        ("ports.health=9443", "are both 9443: a pod listens once on a port"),
        (
            &format!("{rsa},certManager.size=256"),
            "size is 256, and a key of the algorithm RSA has one of 2048, 3072, 4096, 8192",
        ),
        ("certManager.size=2048", "size is 2048, and a key of the algorithm ECDSA has one of 256, 384, 521 bits"),
        ("certManager.renewBefore=2160h", "renewBefore is 2160h and must be shorter than duration, which is 2160h"),
    ];
    for (set, said) in table {
        let stderr = failed(&template(&["--set", set]));
        assert!(stderr.contains(said), "{set}: {stderr}");
    }
    for set in [
        r"log.level=WARN\, kube=off",
        "drainDelay=0s,terminationGracePeriodSeconds=0",
        "leaderElection.enabled=false,leaderElection.leaseDuration=1s",
        r"controllers=-welcome\,*,kinds.welcome.enabled=true",
        "controllers=",
        "image.registry=r.example.com:5000/mirror",
        "autoscaling.minReplicas=6",
        "metrics.enabled=false,ports.metrics=8081",
        "certManager.enabled=false,certManager.renewBefore=3000h,certManager.size=2048",
    ] {
        succeeded(&template(&["--set", set]));
    }
    for (algorithm, size) in [("RSA", json!(2048)), ("ECDSA", json!(256)), ("Ed25519", Value::Null)] {
        let rendered = objects(&succeeded(&template(&["--set", &format!("certManager.algorithm={algorithm}")])));
        let key = &find(&rendered, "Certificate", "outrider-webhook")["spec"]["privateKey"];
        assert_eq!((&key["algorithm"], &key["size"]), (&json!(algorithm), &size));
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn a_null_in_place_of_a_value_that_is_needed_is_refused_by_name() {
    fn each_is_named(path: &str, nulls: &Value, said: &str) {
        for (key, value) in nulls.as_object().unwrap() {
            if value.is_null() {
                let line = said.lines().find(|line| line.contains(&format!("- at '{path}': missing propert")));
                assert!(line.is_some_and(|line| line.contains(&format!("'{key}'"))), "{path}/{key}: {said}");
            }
            if value.is_object() {
                each_is_named(&format!("{path}/{key}"), value, said);
            }
        }
    }
    for whole_maps in [false, true] {
        let nulls = values::nulls(true, whole_maps);
        each_is_named("", &nulls, &failed(&template_of(&nulls, &[])));
    }
    let neither = failed(&template(&["--set=podDisruptionBudget.maxUnavailable=null"]));
    assert!(neither.contains("podDisruptionBudget needs minAvailable or maxUnavailable"), "{neither}");
}
