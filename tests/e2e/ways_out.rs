//! What an administrator does while no replica answers: the doctor, break-glass, uninstalling.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, Output};
use outrider::certs::Authority;
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, outrider, outrider_on};
use crate::replicas::{CONFIGURATIONS, bundles_in_force, get, small_cluster, webhooks_at};
use crate::room::{POD, SET, may_register};

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: outrider-webhook, namespace: outrider-system}
spec: {ports: [{port: 443, targetPort: 9443}]}
";

const NOT_READY: &str = "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: outrider-webhook-1, namespace: outrider-system, labels: {kubernetes.io/service-name: outrider-webhook}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1], conditions: {ready: false}}]
ports: [{port: 9443, protocol: TCP}]
";

fn doctor(cluster: &Cluster) -> Output {
    outrider_on(&cluster.kubeconfig(), &["doctor", "--service-account=outrider"])
}

/// A configuration of another owner at this address, that trusts another authority.
fn another(address: std::net::SocketAddr) -> String {
    let week = std::time::Duration::from_secs(7 * 24 * 60 * 60);
    let authority = Authority::create("another", week * 8, jiff::Timestamp::now()).unwrap();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "another"},
        "webhooks": [{
            "name": "another.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 20,
            "objectSelector": {"matchLabels": {"opted": "in"}},
            "clientConfig": {"url": format!("https://{address}/"), "caBundle": STANDARD.encode(authority.certificate_pem())},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    })
    .to_string()
}

pub fn policies(cluster: &Cluster) -> Vec<Value> {
    let list = get(cluster, &[CONFIGURATIONS]);
    let webhooks =
        list["items"].as_array().unwrap().iter().flat_map(|item| item["webhooks"].as_array().into_iter().flatten());
    webhooks.map(|webhook| webhook["failurePolicy"].clone()).collect()
}

fn found(output: &Output, code: i32, texts: &[&str]) {
    assert_eq!(output.code, Some(code), "{}{}", output.stdout, output.stderr);
    for text in texts {
        assert!(output.stdout.contains(text), "{text:?} in\n{}", output.stdout);
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_doctor_names_what_locks_a_cluster_and_break_glass_opens_it() {
    let (cluster, account) = small_cluster();
    found(&outrider_on(&account, &["doctor"]), 2, &["not checked  mutatingwebhookconfigurations", "is forbidden"]);
    let process = Outrider::start(&cluster, &account, &["--certificates=self"]);
    process.ready();
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks_at(process.webhooks))).unwrap();
    bundles_in_force(&cluster);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&SET.replace("ROOM", "replicated"))).unwrap();
    found(
        &doctor(&cluster),
        0,
        &["certificate  served for", "Nothing found; checked 7 webhooks in 4 webhook configurations."],
    );

    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&another(process.webhooks))).unwrap();
    let untrusted = "is not trusted by caBundle: no certificate in caBundle signed it";
    found(&doctor(&cluster), 3, &["CRITICAL  validatingwebhookconfiguration/another", untrusted, "waits up to 20 s"]);
    cluster.kubectl_ok(&["delete", "validatingwebhookconfiguration/another"], None).unwrap();

    process.end();
    found(
        &doctor(&cluster),
        3,
        &["no answer from https://127.0.0.1:", "Connection refused", "until then: outrider break-glass"],
    );
    let by_service = outrider(&["manifests", "webhooks"]);
    let as_printed = || cluster.kubectl_ok(&["replace", "-f", "-"], Some(&by_service)).unwrap();
    as_printed();
    found(&doctor(&cluster), 3, &["there is no Service outrider-system/outrider-webhook", "caBundle is empty"]);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(SERVICE)).unwrap();
    found(&doctor(&cluster), 3, &["has no endpoints; failurePolicy is Fail: the API server refuses new pods"]);
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(NOT_READY)).unwrap();
    found(&doctor(&cluster), 3, &["has no ready endpoint, 1 not ready", "until then: outrider break-glass"]);
    mounted_certificate(&cluster);
    cluster.kubectl_ok(&["delete", "clusterrolebinding", "outrider"], None).unwrap();
    let needs = "needs in the cluster: get sidecarsets.apps.outrider.dev, ";
    // Rights are followed by a watch.
    eventually("the rights are gone", || doctor(&cluster).stdout.contains(needs));
    found(&doctor(&cluster), 3, &[needs]);

    break_glass(&cluster);
    uninstall(&cluster);
}

/// A pod that mounts a certificate for the Service of another namespace.
fn mounted_certificate(cluster: &Cluster) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "replica", "namespace": "outrider-system", "labels": {"app.kubernetes.io/name": "outrider"}},
        "spec": {
            "serviceAccountName": "outrider",
            "containers": [{"name": "outrider", "image": "outrider", "args": ["serve", "--cert-dir=/certs"], "volumeMounts": [{"name": "certificate", "mountPath": "/certs"}]}],
            "volumes": [{"name": "certificate", "secret": {"secretName": "mine"}}],
        },
    });
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&pod.to_string())).unwrap();
    found(&doctor(cluster), 3, &["CRITICAL  secret/mine", "it does not exist, and pods that mount it do not start"]);
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let authority = Authority::create("mine", day, jiff::Timestamp::now()).unwrap();
    let (certificate, key) =
        authority.sign_pem(vec!["outrider-webhook.default.svc".to_owned()], day, jiff::Timestamp::now()).unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": "mine", "namespace": "outrider-system"},
        "stringData": {"tls.crt": certificate, "tls.key": key},
    });
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&secret.to_string())).unwrap();
    let told =
        "tls.crt is for outrider-webhook.default.svc, and the API server asks for outrider-webhook.outrider-system.svc";
    found(&doctor(cluster), 3, &[told]);
    cluster.kubectl_ok(&["delete", "pod/replica", "secret/mine", "-n=outrider-system", "--force"], None).unwrap();
}

/// What the alerts on the API server's own metrics are about.
fn counted_by_the_api_server(cluster: &Cluster, series: &str) {
    let metrics = cluster.kubectl_ok(&["get", "--raw", "/metrics"], None).unwrap();
    let ours: Vec<&str> = metrics.lines().filter(|line| line.contains("name=\"pod.outrider.dev\"")).collect();
    let prefix = format!("apiserver_admission_webhook_{series} ");
    assert!(ours.iter().any(|line| line.starts_with(&prefix)), "{prefix}: {ours:#?}");
}

/// On a cluster that refuses pods.
fn break_glass(cluster: &Cluster) {
    let pod = POD.replace("ROOM", "replicated").replace("name: web", "generateName: web-");
    let create = || cluster.kubectl(&["create", "-f", "-"], Some(&pod)).unwrap();
    let run = |args: &[&str]| outrider_on(&cluster.kubeconfig(), args);
    let before = policies(cluster);
    assert!(!create().success());
    counted_by_the_api_server(
        cluster,
        "rejection_count{error_type=\"calling_webhook_error\",name=\"pod.outrider.dev\",operation=\"CREATE\",rejection_code=\"503\",type=\"admit\"}",
    );
    let verified = run(&["verify", "--timeout=1s"]);
    assert_eq!(verified.code, Some(1), "{}", verified.stderr);
    assert!(verified.stderr.contains("failed calling webhook"), "{}", verified.stderr);
    assert!(
        verified.stderr.contains("`outrider doctor`") && verified.stderr.contains("`outrider break-glass`"),
        "{}",
        verified.stderr
    );

    found(&run(&["break-glass", "--dry-run"]), 0, &["outrider-mutating: pod.outrider.dev: Fail -> Ignore (dry run)\n"]);
    assert_eq!(policies(cluster), before);
    found(&run(&["break-glass"]), 0, &["outrider-validating: sidecarset.apps.outrider.dev: Fail -> Ignore\n"]);
    assert!(policies(cluster).iter().all(|policy| policy == "Ignore"));
    let record = get(cluster, &["mutatingwebhookconfiguration", "outrider-mutating"])["metadata"]["annotations"]
        ["outrider.dev/break-glass"]
        .clone();
    let record: Value = serde_json::from_str(record.as_str().unwrap()).unwrap();
    assert_eq!(record["was"], json!({"pod.outrider.dev": "Fail", "sidecarset.apps.outrider.dev": "Fail"}));
    assert!(record["by"].is_string() && record["at"].is_string());
    eventually("pods are created", || create().success());
    counted_by_the_api_server(cluster, "fail_open_count{name=\"pod.outrider.dev\",type=\"admit\"}");
    found(&run(&["break-glass"]), 0, &["outrider-mutating: already in force since"]);
    let judged = doctor(cluster);
    found(&judged, 1, &["break-glass is in force since", "requests pass without it"]);
    assert_eq!(judged.stdout.matches("break-glass is in force since").count(), 1, "{}", judged.stdout);
    assert!(!judged.stdout.contains("until then: outrider break-glass"), "{}", judged.stdout);

    found(&run(&["break-glass", "--undo"]), 0, &["outrider-mutating: pod.outrider.dev: Ignore -> Fail\n"]);
    assert_eq!(policies(cluster), before);
    let annotations =
        get(cluster, &["mutatingwebhookconfiguration", "outrider-mutating"])["metadata"]["annotations"].clone();
    assert!(annotations.get("outrider.dev/break-glass").is_none());
    found(&run(&["break-glass", "--undo"]), 0, &["outrider-mutating: break-glass is not in force, nothing to do\n"]);
    eventually("pods are refused", || !create().success());
}

/// What the chart's pre-delete hook may do.
const UNINSTALLING: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: uninstalling}
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames:
  - outrider-mutating
  - outrider-validating
  - outrider-on-demand-mutating
  - outrider-on-demand-validating
  verbs: [get, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: uninstalling}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: uninstalling}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: uninstaller}]
";

/// In words, not in the structures of the program.
fn assert_told(stderr: &str, lacking: &str) {
    assert!(stderr.contains(&format!("you may not {lacking}")), "{lacking:?} in\n{stderr}");
    assert!(!stderr.contains("ApiError") && !stderr.contains("Status {"), "{stderr}");
}

fn uninstall(cluster: &Cluster) {
    let uninstaller = cluster.kubeconfig_for("uninstaller", &["system:authenticated"]).unwrap();
    let run = |args: &[&str]| outrider_on(&uninstaller, &[&["uninstall"], args].concat());
    let refused = run(&[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{}", refused.stderr);
    assert_told(&refused.stderr, "get mutatingwebhookconfigurations/outrider-mutating; uninstall needs get and delete");
    let refused = outrider_on(&uninstaller, &["break-glass"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{}", refused.stderr);
    assert_told(
        &refused.stderr,
        "get validatingwebhookconfigurations/outrider-validating; break-glass needs get and patch",
    );
    let refused = outrider_on(&uninstaller, &["verify", "--timeout=1s"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{}", refused.stderr);
    assert_told(&refused.stderr, "create sidecarsets; verify needs create and delete on SidecarSets");
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(UNINSTALLING)).unwrap();
    // Rights are followed by a watch.
    eventually("the rights are there", || run(&["--dry-run"]).code == Some(0));

    let count = || get(cluster, &[CONFIGURATIONS])["items"].as_array().unwrap().len();
    found(&run(&["--dry-run"]), 0, &["outrider-mutating: would be removed (dry run)\n"]);
    assert_eq!(count(), 4);
    found(&run(&[]), 0, &["outrider-mutating: removed\noutrider-validating: removed\n"]);
    assert_eq!(count(), 0);
    let left = doctor(cluster);
    assert!(left.stdout.ends_with("Outrider is uninstalled; its definitions and sets remain.\n"), "{}", left.stdout);
    found(&run(&[]), 0, &["outrider-mutating: not found, nothing to do\n"]);
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_process_that_registers_itself_leaves_a_broken_glass_alone() {
    let (cluster, account) = small_cluster();
    may_register(&cluster);
    let urls = || get(&cluster, &[CONFIGURATIONS]).to_string();
    let start = || {
        let process = Outrider::registered_as(&cluster, &account, &[]);
        let url = format!("https://{}/validate--v1-pod", process.webhooks);
        let mutating = format!("https://{}/mutate--v1-pod", process.webhooks);
        eventually("the webhooks are registered", || urls().contains(&url) && urls().contains(&mutating));
        process
    };
    let first = start();
    found(&outrider_on(&cluster.kubeconfig(), &["break-glass"]), 0, &["Fail -> Ignore"]);
    // Without the time to remove the configurations; the next one applies them with an address of its own.
    first.kill();
    let second = start();
    assert!(policies(&cluster).iter().all(|policy| policy == "Ignore"));
    found(&outrider_on(&cluster.kubeconfig(), &["break-glass", "--undo"]), 0, &["Ignore -> Fail"]);
    assert!(policies(&cluster).iter().all(|policy| policy == "Fail"));
    second.end();
}
