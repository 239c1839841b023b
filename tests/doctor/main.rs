//! What `outrider doctor` says of clusters that were recorded as files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::yaml;
use jiff::{SignedDuration, Timestamp};
use outrider::certs::authority::Authority;
use outrider::doctor::examine;
use outrider::doctor::facts::{Facts, NotChecked};
use outrider::doctor::report::{ClusterHealth, Report, Severity};
use outrider::sidecarset::crd;
use serde_json::{Value, json};

const DAY: u64 = 24 * 60 * 60;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

/// A new authority of `days`, made `ago` days before now, as a caBundle holds it.
fn authority(name: &str, days: u64, ago: i64) -> String {
    let made = now() - SignedDuration::from_hours(24 * ago);
    let authority = Authority::create(name, Duration::from_secs(days * DAY), made).unwrap();
    STANDARD.encode(authority.certificate_pem())
}

/// A Secret for these names, made `ago` days before now, for a year.
fn pair(names: &[&str], ago: i64) -> [(String, String); 2] {
    let made = now() - SignedDuration::from_hours(24 * ago);
    let authority = Authority::create("authority", Duration::from_secs(3650 * DAY), made).unwrap();
    let names = names.iter().map(|&name| name.to_owned()).collect();
    let (certificate, key) = authority.sign_pem(names, Duration::from_secs(365 * DAY), made).unwrap();
    [("tls.crt".to_owned(), STANDARD.encode(certificate)), ("tls.key".to_owned(), STANDARD.encode(key))]
}

/// Reads a recorded cluster; certificates are put in for their names, and the definitions that this build ships for `SHIPPED`.
fn recorded(name: &str) -> Facts {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/doctor/input/{name}.yaml"));
    let mut text = fs::read_to_string(path).unwrap();
    for (placeholder, days, ago) in
        [("CA_VALID", 3650, 10), ("CA_OTHER", 3650, 10), ("CA_ENDING", 365, 360), ("CA_ENDED", 30, 40)]
    {
        text = text.replace(placeholder, &authority(placeholder, days, ago));
    }
    let [(_, certificate), (_, key)] = pair(&["shop.example.com", "127.0.0.1"], 10);
    text = text.replace("PAIR_CERTIFICATE", &certificate).replace("PAIR_KEY", &key);
    let mut value: Value = yaml::read(&text).unwrap().remove(0).value;
    if value["crds"] == "SHIPPED" {
        value["crds"] = json!([crd::sidecarset()]);
    }
    serde_json::from_value(value).unwrap()
}

fn examined(name: &str) -> Report {
    examine(&recorded(name), now())
}

/// Compares with the file, or writes it when `UPDATE_GOLDEN=1`.
fn hold(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&path).unwrap_or_default(), "{}", path.display());
}

#[test]
fn each_recorded_cluster_is_told_as_before_and_judged_as_it_is() {
    for (name, verdict) in [
        ("healthy", ClusterHealth::Healthy),
        ("nobody-answers", ClusterHealth::Critical),
        ("certificates", ClusterHealth::Critical),
        ("wrong-name", ClusterHealth::Critical),
        ("reach", ClusterHealth::Critical),
        ("own", ClusterHealth::Findings),
        ("without-outrider", ClusterHealth::Findings),
        ("unreadable", ClusterHealth::CannotTell),
        ("foreign", ClusterHealth::Critical),
    ] {
        let report = examined(name);
        hold(&format!("{name}.txt"), &report.text());
        assert_eq!(report.verdict(), verdict, "{name}");
    }
}

#[test]
fn a_namespace_whose_label_says_that_it_is_not_excluded_is_told() {
    let mut facts = recorded("healthy");
    let namespace = json!({"metadata": {"name": "shop", "labels": {"outrider.dev/exclude": "false"}}});
    facts.excluded_by_no = vec![serde_json::from_value(namespace).unwrap()];
    let report = examine(&facts, now());
    assert_eq!(report.verdict(), ClusterHealth::Findings);
    let text = report.text();
    assert!(text.contains("excludes a namespace whatever its value, also \"false\""), "{text}");
    assert!(text.contains("kubectl label namespace shop outrider.dev/exclude-"), "{text}");
}

/// The process answers on the port and knows nothing of the kind.
#[test]
fn a_converter_that_is_trusted_and_does_not_convert_is_critical() {
    let key = "customresourcedefinition/cronjobs.batch.outrider.dev/conversion";
    let mut facts = recorded("healthy");
    let definition = json!({"metadata": {"name": "cronjobs.batch.outrider.dev"}, "spec": {"conversion": {
        "strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://outside.example.com/convert"}},
    }}});
    facts.definitions = vec![serde_json::from_value(definition).unwrap()];
    assert_eq!(examine(&facts, now()).verdict(), ClusterHealth::Healthy);
    facts.unconverted.insert(key.to_owned(), "answers 404 Not Found to a ConversionReview".to_owned());
    let report = examine(&facts, now());
    assert_eq!(report.verdict(), ClusterHealth::Critical);
    let text = report.text();
    for said in [
        "its conversion webhook answers 404 Not Found to a ConversionReview",
        "deleting a namespace may wait for that",
        "outrider uninstall --kind cronjob",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn the_secret_that_the_pods_mount_is_judged_as_a_replica_does_it() {
    let right = "outrider-webhook.outrider-system.svc";
    let secret = |names: &[&str], ago| {
        let data: serde_json::Map<_, _> = pair(names, ago).into_iter().map(|(key, text)| (key, text.into())).collect();
        json!({"metadata": {"name": "mine"}, "data": data})
    };
    for (what, secret, expected) in [
        ("the right name", secret(&["another", right], 1), None),
        ("any name of that namespace", secret(&["*.outrider-system.svc"], 1), None),
        (
            "no name",
            secret(&[], 1),
            Some("is for no name, as it has no subjectAltName, and the API server asks for outrider-webhook"),
        ),
        ("ended", secret(&[right], 400), Some("the certificate ended at 2026-01-")),
        ("not begun", secret(&[right], -10), Some("the certificate is not valid before 2026-03-")),
        ("empty", json!({"metadata": {"name": "mine"}}), Some("no usable private key")),
        ("not there", Value::Null, Some("it does not exist, and pods that mount it do not start")),
    ] {
        let mut facts = recorded("wrong-name");
        facts.handshakes.clear();
        facts.serving_secret = serde_json::from_value(secret).unwrap();
        let found: Vec<String> = examine(&facts, now()).findings.into_iter().map(|finding| finding.found).collect();
        match expected {
            None => assert_eq!(found, Vec::<String>::new(), "{what}"),
            Some(expected) => assert!(found.len() == 1 && found[0].contains(expected), "{what}: {found:?}"),
        }
    }
    let mut facts = recorded("wrong-name");
    facts.handshakes.clear();
    facts.serving_secret = None;
    facts.not_checked.push(NotChecked { what: "secrets".to_owned(), why: "forbidden".to_owned(), essential: false });
    assert_eq!(examine(&facts, now()).findings, []);
}

#[test]
fn a_definition_whose_converter_is_gone_or_not_trusted_is_critical() {
    let report = examined("foreign");
    let of = |name: &str| {
        let object = format!("customresourcedefinition/{name}.example.com");
        let mut found = report.findings.iter().filter(|finding| finding.object == object);
        found.by_ref().map(|finding| (finding.severity, finding.found.clone())).collect::<Vec<_>>()
    };
    let gone = of("replicants.stable");
    assert_eq!(gone.len(), 2, "{gone:?}");
    assert!(gone[0].1.starts_with("there is no Service system/webhook-service"), "{gone:?}");
    assert!(gone[1].1.starts_with("caBundle cannot be read"), "{gone:?}");
    assert!(of("untrusted")[0].1.contains("is not trusted by caBundle"), "{:?}", of("untrusted"));
    assert!(of("ended")[0].1.starts_with("caBundle holds no valid certificate"), "{:?}", of("ended"));
    let all = [gone, of("untrusted"), of("ended")].concat();
    assert!(all.iter().all(|(severity, _)| *severity == Severity::Critical), "{all:?}");
    assert_eq!([of("fine"), of("none")].concat(), []);
}

/// A URL under Fail is as critical as a Service, whichever is to be there; under Ignore requests pass.
#[test]
fn an_endpoint_by_url_that_nobody_answers_at_is_critical_under_fail() {
    for (policy, severity) in [("Fail", Severity::Critical), ("Ignore", Severity::Warning)] {
        let mut facts = recorded("without-outrider");
        let mut pods = facts.validating[0].clone();
        let webhook = &mut pods.webhooks.as_mut().unwrap()[0];
        webhook.failure_policy = Some(policy.to_owned());
        let rule = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]);
        webhook.rules = serde_json::from_value(rule).unwrap();
        webhook.namespace_selector = serde_json::from_value(json!({"matchLabels": {"inject": "yes"}})).unwrap();
        facts.validating = vec![pods];
        let report = examine(&facts, now());
        let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
        assert!(finding.severity == severity && finding.found.starts_with("no answer from https://"), "{finding:?}");
        assert_eq!(finding.remedy.contains("failurePolicy"), policy == "Fail", "{}", finding.remedy);
    }
}

/// Both configurations in one block, with the second and not its parts, and without the advice to do it again.
#[test]
fn break_glass_is_told_once_and_not_advised_while_it_is_in_force() {
    let mut facts = recorded("nobody-answers");
    facts.mutating.truncate(1);
    let record = json!({"by": "jane", "at": "2026-02-28T01:02:03.456789Z", "was": {}}).to_string();
    let annotations = [("outrider.dev/break-glass".to_owned(), record)];
    facts.mutating[0].metadata.annotations = Some(annotations.clone().into());
    facts.validating[0].metadata.annotations = Some(annotations.into());
    for webhook in facts.mutating[0].webhooks.iter_mut().flatten() {
        webhook.failure_policy = Some("Ignore".to_owned());
    }
    let text = examine(&facts, now()).text();
    assert_eq!(text.matches("break-glass is in force since 2026-02-28T01:02:03Z, by jane").count(), 1, "{text}");
    assert!(!text.contains("until then: outrider break-glass"), "{text}");
    assert_eq!(text.matches("has no ready endpoint").count(), 1, "a list of webhooks, not a block for each: {text}");
}

#[test]
fn an_uninstalled_outrider_is_no_fault() {
    let mut facts = recorded("healthy");
    (facts.mutating, facts.validating, facts.pods) = (Vec::new(), Vec::new(), Vec::new());
    let report = examine(&facts, now());
    assert_eq!(report.findings, []);
    assert!(
        report.text().ends_with(" Outrider is uninstalled; its definitions and sets remain.\n"),
        "{}",
        report.text()
    );
    // Where that cannot be known, it is not said.
    facts.not_checked.push(NotChecked { what: "pods".to_owned(), why: "forbidden".to_owned(), essential: false });
    assert!(!examine(&facts, now()).text().contains("uninstalled"));
}

#[test]
fn programs_read_the_same_as_people() {
    hold("own.json", &format!("{}\n", serde_json::to_string_pretty(&examined("own")).unwrap()));
}

#[test]
fn the_worst_comes_first() {
    let severities: Vec<Severity> = examined("certificates").findings.iter().map(|finding| finding.severity).collect();
    assert!(severities.is_sorted() && severities.contains(&Severity::Warning), "{severities:?}");
}

#[test]
fn an_upgrade_that_put_fail_back_is_told_beside_the_record_of_break_glass() {
    for (policy, told) in [("Ignore", "pods are created without their sets"), ("Fail", "put back to Fail meanwhile")] {
        let mut facts = recorded("healthy");
        let record =
            json!({"by": "jane", "at": "2026-02-28T01:02:03Z", "was": {"pod.outrider.dev": "Fail"}}).to_string();
        facts.mutating[0].metadata.annotations = Some([("outrider.dev/break-glass".to_owned(), record)].into());
        for webhook in facts.mutating[0].webhooks.iter_mut().flatten() {
            webhook.failure_policy = Some(policy.to_owned());
        }
        let report = examine(&facts, now());
        let [finding] = report.findings.as_slice() else { panic!("{:?}", report.findings) };
        assert!(finding.found.contains(told), "{policy}: {}", finding.found);
    }
}

#[test]
fn the_printed_configurations_are_found_harmless_while_a_replica_is_ready() {
    let mut facts = recorded("healthy");
    let printed = outrider::manifests::webhooks::WebhookEntry::all(&outrider::registry::registry(
        &outrider::kinds::Kinds::default(),
    ));
    let exclusion = engine::snapshot::Exclusion::new("outrider-system", []);
    let settings = outrider::manifests::webhooks::Settings {
        target: outrider::manifests::webhooks::WebhookTarget::Service { namespace: "outrider-system".to_owned() },
        ca_bundle: None,
        exclusion: &exclusion,
        pod_failure_policy: outrider::manifests::webhooks::PodFailurePolicy::Fail,
    };
    let bundle = facts.mutating[0].webhooks.as_ref().unwrap()[0].client_config.ca_bundle.clone();
    facts.mutating = vec![outrider::manifests::webhooks::mutating(&printed, &settings)];
    facts.validating = vec![outrider::manifests::webhooks::validating(&printed, &settings)];
    for webhook in facts.mutating[0].webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle.clone_from(&bundle);
    }
    for webhook in facts.validating[0].webhooks.iter_mut().flatten() {
        webhook.client_config.ca_bundle.clone_from(&bundle);
    }
    let report = examine(&facts, now());
    assert_eq!(report.findings, []);
    // Without the exclusions the same rules would hold the cluster.
    facts.mutating[0].webhooks.as_mut().unwrap()[0].namespace_selector = None;
    assert_eq!(examine(&facts, now()).verdict(), ClusterHealth::Critical);
}
