//! What the policies let the service account write. The account is bound to `cluster-admin` here, so that nothing else refuses.

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, Options};
use jiff::Timestamp;
use outrider::certs::Authority;
use serde_json::{Value, json};

use crate::process::{eventually, install_of, outrider, outrider_on, service_account_of};
use crate::room::USER;

const KINDS: &str = "--enable-kinds=*";
const MUTATING: &str = "mutatingwebhookconfiguration/outrider-mutating";
const VALIDATING: &str = "validatingwebhookconfiguration/outrider-validating";
const ON_DEMAND: &str = "mutatingwebhookconfiguration/outrider-on-demand-mutating";
const DEFINITION: &str = "customresourcedefinition/cronjobs.batch.outrider.dev";

/// A change, and whether it is allowed or what the refusal says.
type Row = (&'static str, Value, Result<(), &'static str>);

const ONLY: &str = "only caBundle, failurePolicy and the match condition outrider.dev/narrow may change";
const METADATA: &str = "of its metadata only annotations may change";
const ANNOTATIONS: &str =
    "of the annotations only outrider.dev/break-glass, outrider.dev/ca-retiring, outrider.dev/fail-open";
const NOT_OURS: &str = "a new or changed on-demand entry calls the Service outrider-webhook";

fn add(path: &str, value: impl Into<Value>) -> Value {
    let value = value.into();
    json!([{"op": "add", "path": path, "value": value}])
}

fn remove(path: &str) -> Value {
    json!([{"op": "remove", "path": path}])
}

fn narrow() -> Value {
    json!({"name": "outrider.dev/narrow", "expression": "object.metadata.name != 'a'"})
}

/// Entry that calls a Service, for these rules.
fn entry(name: &str, client: impl Into<Value>, groups: &[&str], resources: &[&str]) -> Value {
    let client = client.into();
    json!({
        "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": client,
        "rules": [{"apiGroups": groups, "apiVersions": ["*"], "operations": ["*"], "resources": resources}],
    })
}

fn our_service() -> Value {
    json!({"service": {"name": "outrider-webhook", "namespace": "outrider-system", "path": "/mutate--v1-pod"}})
}

fn of_configurations() -> Vec<Row> {
    let foreign = entry("thief.example.com", json!({"url": "https://thief.example.com"}), &["*"], &["*/*"]);
    let own = entry("more.outrider.dev", our_service(), &[""], &["secrets"]);
    vec![
        ("caBundle is added", add("/webhooks/0/clientConfig/caBundle", json!("Cg==")), Ok(())),
        ("failurePolicy is turned", add("/webhooks/0/failurePolicy", json!("Ignore")), Ok(())),
        ("the condition is added", add("/webhooks/0/matchConditions/-", narrow()), Ok(())),
        ("the condition of a person goes", remove("/webhooks/0/matchConditions/0"), Err(ONLY)),
        (
            "the condition of a person changes",
            add("/webhooks/0/matchConditions/0/expression", json!("false")),
            Err(ONLY),
        ),
        (
            "another condition is added",
            add("/webhooks/0/matchConditions/-", json!({"name": "mine", "expression": "false"})),
            Err(ONLY),
        ),
        ("break-glass is noted", add("/metadata/annotations/outrider.dev~1break-glass", json!("{}")), Ok(())),
        ("fail-open is noted", add("/metadata/annotations/outrider.dev~1fail-open", json!("{}")), Ok(())),
        (
            "authorities that retire are noted",
            add("/metadata/annotations/outrider.dev~1ca-retiring", json!("{}")),
            Ok(()),
        ),
        ("another annotation is added", add("/metadata/annotations/example.com~1a", json!("b")), Err(ANNOTATIONS)),
        ("an annotation goes", remove("/metadata/annotations/example.com~1kept"), Err(ANNOTATIONS)),
        ("all annotations go", remove("/metadata/annotations"), Err(ANNOTATIONS)),
        (
            "the injector is asked for another CA",
            add("/metadata/annotations/cert-manager.io~1inject-ca-from", json!("default/mine")),
            Err(ANNOTATIONS),
        ),
        ("a label is added", add("/metadata/labels/a", json!("b")), Err(METADATA)),
        ("the labels go", remove("/metadata/labels"), Err(METADATA)),
        ("a finalizer is added", add("/metadata/finalizers", json!(["example.com/held"])), Err(METADATA)),
        (
            "an owner is added",
            add("/metadata/ownerReferences", json!([{"apiVersion": "v1", "kind": "Node", "name": "a", "uid": "b"}])),
            Err(METADATA),
        ),
        ("an entry with a foreign URL is added", add("/webhooks/-", foreign), Err(ONLY)),
        ("an entry of ours is added", add("/webhooks/-", own), Err(ONLY)),
        ("an entry goes", remove("/webhooks/1"), Err(ONLY)),
        ("all entries go", remove("/webhooks"), Err(ONLY)),
        ("two entries change places", json!([{"op": "move", "from": "/webhooks/0", "path": "/webhooks/1"}]), Err(ONLY)),
        ("an entry is renamed", add("/webhooks/0/name", json!("a.outrider.dev")), Err(ONLY)),
        (
            "an entry calls a URL",
            add("/webhooks/0/clientConfig", json!({"url": "https://thief.example.com"})),
            Err(ONLY),
        ),
        ("an entry calls another Service", add("/webhooks/0/clientConfig/service/name", json!("thief")), Err(ONLY)),
        (
            "an entry calls another namespace",
            add("/webhooks/0/clientConfig/service/namespace", json!("thief")),
            Err(ONLY),
        ),
        ("an entry calls another port", add("/webhooks/0/clientConfig/service/port", json!(444)), Err(ONLY)),
        ("an entry calls another path", add("/webhooks/0/clientConfig/service/path", json!("/a")), Err(ONLY)),
        ("resources are widened", add("/webhooks/0/rules/0/resources/-", json!("secrets")), Err(ONLY)),
        ("groups are widened", add("/webhooks/0/rules/0/apiGroups", json!(["*"])), Err(ONLY)),
        ("operations are widened", add("/webhooks/0/rules/0/operations", json!(["*"])), Err(ONLY)),
        ("the scope is widened", add("/webhooks/0/rules/0/scope", json!("*")), Err(ONLY)),
        (
            "a rule is added",
            add(
                "/webhooks/0/rules/-",
                json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}),
            ),
            Err(ONLY),
        ),
        ("the rules go", remove("/webhooks/0/rules"), Err(ONLY)),
        ("the excluded namespaces go", remove("/webhooks/0/namespaceSelector"), Err(ONLY)),
        ("labels are selected", add("/webhooks/0/objectSelector", json!({"matchLabels": {"a": "b"}})), Err(ONLY)),
        ("the time-out is raised", add("/webhooks/0/timeoutSeconds", json!(30)), Err(ONLY)),
        ("other versions match", add("/webhooks/0/matchPolicy", json!("Exact")), Err(ONLY)),
        ("side effects are declared", add("/webhooks/0/sideEffects", json!("NoneOnDryRun")), Err(ONLY)),
        ("other reviews are taken", add("/webhooks/0/admissionReviewVersions", json!(["v1", "v1beta1"])), Err(ONLY)),
    ]
}

fn of_on_demand() -> Vec<Row> {
    let with = |client: Value, groups: &[&str], resources: &[&str]| {
        add("/webhooks", json!([entry("a.policy.outrider.dev", client, groups, resources)]))
    };
    let beside_url = json!({"url": "https://thief.example.com", "caBundle": "Cg=="});
    let of = |name: &str, namespace: &str| json!({"service": {"name": name, "namespace": namespace}});
    vec![
        ("pods", with(our_service(), &[""], &["pods", "pods/resize", "pods/ephemeralcontainers"]), Ok(())),
        ("events of both groups", with(our_service(), &["", "events.k8s.io"], &["events"]), Ok(())),
        ("an entry goes", remove("/webhooks/0"), Ok(())),
        ("a URL", with(beside_url, &[""], &["pods"]), Err(NOT_OURS)),
        ("another Service", with(of("thief", "outrider-system"), &[""], &["pods"]), Err(NOT_OURS)),
        ("another namespace", with(of("outrider-webhook", "default"), &[""], &["pods"]), Err(NOT_OURS)),
        ("Secrets", with(our_service(), &[""], &["pods", "secrets"]), Err(NOT_OURS)),
        ("everything", with(our_service(), &["*"], &["*/*"]), Err(NOT_OURS)),
        ("every subresource of pods", with(our_service(), &[""], &["pods/*"]), Err(NOT_OURS)),
        ("pods of every group", with(our_service(), &["*"], &["pods"]), Err(NOT_OURS)),
        ("a label", add("/metadata/labels", json!({"a": "b"})), Err(METADATA)),
        ("an annotation", add("/metadata/annotations", json!({"a": "b"})), Err(ANNOTATIONS)),
    ]
}

fn of_definitions() -> Vec<Row> {
    const SPEC: &str = "only spec.conversion may change";
    const CONVERSION: &str = "conversion calls the Service outrider-webhook";
    let authority = Authority::create("a", Duration::from_secs(3600), Timestamp::now()).unwrap();
    let bundle = STANDARD.encode(authority.certificate_pem());
    let client = "/spec/conversion/webhook/clientConfig";
    let at = |field: &str| format!("{client}/{field}");
    vec![
        ("caBundle is added", add(&at("caBundle"), json!(bundle)), Ok(())),
        (
            "authorities that retire are noted",
            add("/metadata/annotations", json!({"outrider.dev/ca-retiring": "{}"})),
            Ok(()),
        ),
        ("another Service converts", add(&at("service/name"), json!("thief")), Err(CONVERSION)),
        ("another namespace converts", add(&at("service/namespace"), json!("default")), Err(CONVERSION)),
        ("another path converts", add(&at("service/path"), json!("/mutate--v1-pod")), Err(CONVERSION)),
        ("a URL converts", add(client, json!({"url": "https://thief.example.com"})), Err(CONVERSION)),
        ("nothing converts", add("/spec/conversion", json!({"strategy": "None"})), Err(CONVERSION)),
        ("a schema changes", add("/spec/versions/0/schema/openAPIV3Schema/description", json!("a")), Err(SPEC)),
        ("a version is not served", add("/spec/versions/1/served", json!(false)), Err(SPEC)),
        ("a short name is added", add("/spec/names/shortNames", json!(["po"])), Err(SPEC)),
        ("a label is added", add("/metadata/labels", json!({"a": "b"})), Err(METADATA)),
        ("a finalizer is added", add("/metadata/finalizers", json!(["example.com/held"])), Err(METADATA)),
        (
            "an annotation is added",
            add("/metadata/annotations", json!({"a": "b"})),
            Err("outrider.dev/ca-retiring may change"),
        ),
    ]
}

const POD: &str = "pod/web";
const POD_METADATA: &str = "of a pod's metadata only annotations may change";
const POD_SPEC: &str = "of a pod's spec only images may change, and by a resize requests and limits, of containers that the record of its sets names";
const NO_RECORD: &str = "the record of a pod's sets names no container that it did not name before";
const RECORD: &str = r#"{"a":{"hash":"v1:0","containers":["proxy"],"initContainers":["native"]}}"#;
const RECORD_OF_ALL: &str = r#"{"a":{"hash":"v1:0","containers":["app","proxy"],"initContainers":["native"]}}"#;
const POD_STATUS: &str = "of a pod's status only the condition outrider.dev/SidecarSetUpgradable may change";

/// What the API server itself lets anybody change in a running pod.
fn of_pods() -> Vec<Row> {
    let toleration = json!([{"key": "a", "operator": "Exists"}]);
    vec![
        ("an image of a container changes", add("/spec/containers/1/image", "proxy:2"), Ok(())),
        ("an image of an init container changes", add("/spec/initContainers/0/image", "native:2"), Ok(())),
        ("an image of the application changes", add("/spec/containers/0/image", "app:2"), Err(POD_SPEC)),
        ("the record is written", add("/metadata/annotations/outrider.dev~1injected", "{}"), Ok(())),
        (
            "the record names the application",
            add("/metadata/annotations/outrider.dev~1injected", RECORD_OF_ALL),
            Err(NO_RECORD),
        ),
        ("an annotation of a set changes", add("/metadata/annotations/example.com~1kept", "no"), Ok(())),
        ("an annotation goes", remove("/metadata/annotations/example.com~1kept"), Err(POD_METADATA)),
        ("a label is added", add("/metadata/labels/a", "b"), Err(POD_METADATA)),
        ("the labels go", remove("/metadata/labels"), Err(POD_METADATA)),
        ("a finalizer is added", add("/metadata/finalizers", json!(["example.com/held"])), Err(POD_METADATA)),
        ("the deadline changes", add("/spec/activeDeadlineSeconds", json!(5)), Err(POD_SPEC)),
        ("a toleration is added", add("/spec/tolerations", toleration), Err(POD_SPEC)),
    ]
}

fn of_pod_status() -> Vec<Row> {
    let condition = |kind: &str| json!([{"type": kind, "status": "False", "reason": "NewPodOnly", "message": "{}"}]);
    vec![
        ("our condition is written", add("/status/conditions", condition("outrider.dev/SidecarSetUpgradable")), Ok(())),
        ("another condition is written", add("/status/conditions", condition("Ready")), Err(POD_STATUS)),
        ("the phase changes", add("/status/phase", "Failed"), Err(POD_STATUS)),
        ("an address is added", add("/status/podIP", "10.0.0.1"), Err(POD_STATUS)),
        ("a label is added", add("/metadata/labels/a", "b"), Err(POD_METADATA)),
    ]
}

fn of_pod_resize() -> Vec<Row> {
    let cpu = |list: &str, position: u8| add(&format!("/spec/{list}/{position}/resources/requests/cpu"), "20m");
    vec![
        ("requests of a container change", cpu("containers", 1), Ok(())),
        ("requests of an init container change", cpu("initContainers", 0), Ok(())),
        ("requests of the application change", cpu("containers", 0), Err(POD_SPEC)),
    ]
}

fn web(namespace: &str) -> String {
    let resources = json!({"requests": {"cpu": "10m"}});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "web", "namespace": namespace, "labels": {"app": "web"}, "annotations": {"example.com/kept": "yes", "outrider.dev/injected": RECORD},
        },
        "spec": {
            "initContainers": [{"name": "native", "image": "native:1", "restartPolicy": "Always", "resources": resources}],
            "containers": [
                {"name": "app", "image": "app:1", "resources": resources},
                {"name": "proxy", "image": "proxy:1", "resources": resources},
            ],
        },
    })
    .to_string()
}

const EVERYWHERE: [&str; 4] = ["served", "excluded", "kube-system", "outrider-system"];

/// Pods in namespaces of all sorts, without a controller that makes accounts.
fn make_pods(cluster: &Cluster) {
    let apply = |text: &str| cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(text)).unwrap();
    for (name, labels) in [("excluded", json!({"outrider.dev/exclude": ""})), ("served", json!({}))] {
        let metadata = json!({"name": name, "labels": labels});
        apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}).to_string());
    }
    for namespace in EVERYWHERE {
        let metadata = json!({"name": "default", "namespace": namespace});
        apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}).to_string());
        apply(&web(namespace));
    }
}

/// Rollouts change a few fields of pods, in namespaces that are not left alone.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_account_changes_pods_as_rollouts_do_and_not_otherwise() {
    let cluster = &guarded();
    make_pods(cluster);
    let mut found = wrong_in(cluster, &["-n", "served"], POD, of_pods());
    found += &wrong_in(cluster, &["-n", "served", "--subresource=status"], POD, of_pod_status());
    found += &wrong_in(cluster, &["-n", "served", "--subresource=resize"], POD, of_pod_resize());
    let bare = web("served")
        .replace("\"name\":\"web\"", "\"name\":\"bare\"")
        .replace("outrider.dev/injected", "example.com/other");
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&bare)).unwrap();
    let of_bare = vec![
        ("a record is made up", add("/metadata/annotations/outrider.dev~1injected", RECORD), Err(NO_RECORD)),
        ("an image changes without a record", add("/spec/containers/1/image", "proxy:2"), Err(POD_SPEC)),
    ];
    found += &wrong_in(cluster, &["-n", "served"], "pod/bare", of_bare);
    for namespace in &EVERYWHERE[1..] {
        const LEFT_ALONE: &str = "pods of excluded namespaces and of its own stay as they are";
        let rows = vec![("an image changes", add("/spec/containers/1/image", "proxy:2"), Err(LEFT_ALONE))];
        found += &wrong_in(cluster, &["-n", namespace], POD, rows);
    }
    assert!(found.is_empty(), "{found}");
    let made = web("served").replace("\"name\":\"web\"", "\"name\":\"mine\"");
    let shell = json!({"spec": {"ephemeralContainers": [{"name": "a", "image": "a"}]}}).to_string();
    for (what, refused) in [
        ("delete", tried(cluster, &["delete", POD, "-n", "served"], None)),
        ("create", tried(cluster, &["create", "-f", "-"], Some(&made))),
        (
            "an ephemeral container",
            tried(cluster, &["patch", POD, "-n", "served", "--subresource=ephemeralcontainers", "-p", &shell], None),
        ),
    ] {
        let said = refused.unwrap_err();
        assert!(said.contains("a pod resized and evicted, and pods neither created nor deleted"), "{what}: {said}");
    }
    cluster.kubectl_ok(&["label", POD, "-n", "served", "by=a-person"], None).unwrap();
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_account_evicts_a_pod_that_it_has_read_and_gives_it_its_time() {
    const ONE_POD: &str = "an eviction names uid and resourceVersion of its pod, and has no other options";
    let cluster = &guarded();
    make_pods(cluster);
    let field = |field: &str| {
        let path = format!("jsonpath={{.metadata.{field}}}");
        cluster.kubectl_ok(&["get", POD, "-n", "served", "-o", &path], None).unwrap()
    };
    let (uid, version) = (field("uid"), field("resourceVersion"));
    let read = json!({"uid": uid, "resourceVersion": version});
    for (what, namespace, options, expected) in [
        ("as it was read", "served", json!({"preconditions": read}), None),
        ("no options", "served", Value::Null, Some(ONE_POD)),
        ("no uid", "served", json!({"preconditions": {"resourceVersion": version}}), Some(ONE_POD)),
        ("no version", "served", json!({"preconditions": {"uid": uid}}), Some(ONE_POD)),
        ("at once", "served", json!({"preconditions": read, "gracePeriodSeconds": 0}), Some(ONE_POD)),
        ("another policy", "served", json!({"preconditions": read, "propagationPolicy": "Orphan"}), Some(ONE_POD)),
        ("an excluded namespace", EVERYWHERE[1], json!({"preconditions": read}), Some("stay as they are")),
    ] {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": namespace},
            "deleteOptions": options,
        });
        let url = format!("/api/v1/namespaces/{namespace}/pods/web/eviction?dryRun=All");
        let account = format!("--as={USER}");
        let found =
            cluster.kubectl(&["create", "--raw", &url, "-f", "-", &account], Some(&eviction.to_string())).unwrap();
        match expected {
            None => assert!(found.success(), "{what}: {}", found.stderr),
            Some(expected) => assert!(!found.success() && found.stderr.contains(expected), "{what}: {}", found.stderr),
        }
    }
}

/// The answer to the account; nothing is stored.
fn tried(cluster: &Cluster, args: &[&str], input: Option<&str>) -> Result<(), String> {
    let account = format!("--as={USER}");
    let output = cluster.kubectl(&[args, &["--dry-run=server", &account]].concat(), input).unwrap();
    if output.success() { Ok(()) } else { Err(output.stderr) }
}

/// And for no other reason.
fn is_refused_by_policy(outcome: Result<(), String>) -> bool {
    outcome.is_err_and(|said| said.contains("may not do this"))
}

/// Where the outcome is another than in the table.
fn wrong(cluster: &Cluster, object: &str, rows: Vec<Row>) -> String {
    wrong_in(cluster, &[], object, rows)
}

/// The same, with further arguments to kubectl.
fn wrong_in(cluster: &Cluster, more: &[&str], object: &str, rows: Vec<Row>) -> String {
    let mut wrong = String::new();
    for (what, patch, expected) in rows {
        let patch = patch.to_string();
        let found = tried(cluster, &[&["patch", object, "--type=json", "-p", &patch], more].concat(), None);
        let is_right = match (&found, expected) {
            (Ok(()), Ok(())) => true,
            (Err(found), Err(expected)) => found.contains("may not do this") && found.contains(expected),
            _ => false,
        };
        if !is_right {
            writeln!(wrong, "{object}: {what}: expected {expected:?}, found {found:?}").unwrap();
        }
    }
    wrong
}

/// A cluster in which nothing but the policies limits the account.
fn guarded() -> Cluster {
    let options = Options { kwok: false, controller_manager: false, ..Options::default() };
    let cluster = Cluster::start_with(&options).unwrap();
    install_of(&cluster, &[KINDS]);
    service_account_of(&cluster, &[KINDS]);
    let admin = ["create", "clusterrolebinding", "too-much", "--clusterrole=cluster-admin"];
    let account = "--serviceaccount=outrider-system:outrider";
    cluster.kubectl_ok(&[&admin[..], &[account]].concat(), None).unwrap();
    let may = ["auth", "can-i", "*", "*", "-A", &format!("--as={USER}")];
    eventually("the account may do everything", || cluster.kubectl(&may, None).unwrap().success());
    cluster.kubectl_ok(&["create", "serviceaccount", "default", "-n", "default"], None).unwrap();
    let pod = web("default").replace("\"name\":\"web\"", "\"name\":\"probe\"");
    let made = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "probe"},
    });
    eventually("the policies are in force", || {
        let refused = [
            tried(&cluster, &["delete", DEFINITION], None),
            tried(&cluster, &["create", "-f", "-"], Some(&made.to_string())),
            tried(&cluster, &["create", "-f", "-"], Some(&pod)),
        ];
        refused.into_iter().all(is_refused_by_policy)
    });
    cluster
}

fn prepared() -> Cluster {
    let cluster = guarded();
    let apply = |text: &str| cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(text)).unwrap();
    apply(&outrider(&["manifests", "webhooks", KINDS]));
    let by_person = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {"example.com/kept": "yes"}},
        {"op": "add", "path": "/webhooks/0/matchConditions", "value": [{"name": "theirs", "expression": "true"}]},
    ])
    .to_string();
    for object in [MUTATING, VALIDATING] {
        cluster.kubectl_ok(&["patch", object, "--type=json", "-p", &by_person], None).unwrap();
    }
    apply(
        &json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "outrider-on-demand-mutating"},
            "webhooks": [entry("b.policy.outrider.dev", our_service(), &[""], &["pods"])],
        })
        .to_string(),
    );
    eventually("the policies are in force", || {
        [MUTATING, DEFINITION].iter().all(|object| is_refused_by_policy(tried(&cluster, &["delete", object], None)))
    });
    cluster
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_account_changes_what_it_keeps_and_nothing_else() {
    let cluster = prepared();
    let mut found = String::new();
    for object in [MUTATING, VALIDATING] {
        found += &wrong(&cluster, object, of_configurations());
    }
    let never = vec![("is never asked again", add("/webhooks/0/reinvocationPolicy", json!("Never")), Err(ONLY))];
    found += &wrong(&cluster, MUTATING, never);
    found += &wrong(&cluster, ON_DEMAND, of_on_demand());
    found += &wrong(&cluster, DEFINITION, of_definitions());
    // RBAC names the definitions as well.
    let notes = add("/metadata/annotations", json!({"outrider.dev/ca-retiring": "{}"}));
    let foreign = vec![("it is another", notes, Err("it is none of the definitions that Outrider converts"))];
    found += &wrong(&cluster, "customresourcedefinition/sidecarsets.apps.outrider.dev", foreign);
    assert!(found.is_empty(), "{found}");
    only_updates(&cluster);
    everybody_else_is_free(&cluster);
    a_large_configuration_is_within_the_budget(&cluster);
    entries_for_all_resources_validate(&cluster);
    the_doctor_reads_them(&cluster);
}

/// As the chart's value `guard.allResources` makes the policy.
fn entries_for_all_resources_validate(cluster: &Cluster) {
    const POLICY: &str = "validatingadmissionpolicy/outrider-guard-webhooks";
    let names = cluster.kubectl_ok(&["get", POLICY, "-o", "jsonpath={.spec.variables[*].name}"], None).unwrap();
    let place = names.split(' ').position(|name| name == "allResources").unwrap();
    let patch = json!([{"op": "replace", "path": format!("/spec/variables/{place}/expression"), "value": "true"}]);
    cluster.kubectl_ok(&["patch", POLICY, "--type=json", "-p", &patch.to_string()], None).unwrap();
    let made = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "outrider-on-demand-validating"}, "webhooks": [],
    });
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&made.to_string())).unwrap();
    let of =
        |client: Value| add("/webhooks", json!([entry("a.policy.outrider.dev", client, &["*"], &["*/*"])])).to_string();
    let tried = |object: &str, patch: &str| tried(cluster, &["patch", object, "--type=json", "-p", patch], None);
    let validating = "validatingwebhookconfiguration/outrider-on-demand-validating";
    eventually("the policy is in force", || tried(validating, &of(our_service())).is_ok());
    assert!(tried(ON_DEMAND, &of(our_service())).unwrap_err().contains(NOT_OURS));
    let thief = json!({"service": {"name": "thief", "namespace": "outrider-system"}});
    assert!(tried(validating, &of(thief)).unwrap_err().contains(NOT_OURS));
    assert!(tried(VALIDATING, &of(our_service())).unwrap_err().contains(ONLY));
}

/// The API server gives an expression so much to compute, and no more.
fn a_large_configuration_is_within_the_budget(cluster: &Cluster) {
    let names: Vec<String> = (0..400).map(|number| format!("a-namespace-with-a-long-name-{number}")).collect();
    let selector =
        json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names}]});
    let large = |number: usize| {
        let mut large = entry(&format!("e{number}.outrider.dev"), our_service(), &[""], &["pods"]);
        large["namespaceSelector"] = selector.clone();
        large
    };
    let webhooks: Vec<Value> = (0..40).map(large).collect();
    let patch = add("/webhooks", json!(webhooks)).to_string();
    let file = cluster.dir().join("large.json");
    std::fs::write(&file, patch).unwrap();
    let by_person = ["patch", MUTATING, "--type=json", "--patch-file", file.to_str().unwrap()];
    cluster.kubectl_ok(&by_person, None).unwrap();
    let rows = vec![
        ("caBundle of a large one is added", add("/webhooks/39/clientConfig/caBundle", json!("Cg==")), Ok(())),
        ("the rules of a large one change", add("/webhooks/39/rules/0/resources", json!(["secrets"])), Err(ONLY)),
    ];
    assert_eq!(wrong(cluster, MUTATING, rows), "");
}

/// As the API server stores them, with what it fills in.
fn the_doctor_reads_them(cluster: &Cluster) {
    let count = || {
        let doctor = outrider_on(&cluster.kubeconfig(), &["doctor", "--service-account=outrider", "--output=json"]);
        doctor.stdout.matches("account-not-limited").count()
    };
    assert_eq!(count(), 0);
    let binding = ["delete", "validatingadmissionpolicybinding", "outrider-guard-definitions"];
    cluster.kubectl_ok(&binding, None).unwrap();
    assert_eq!(count(), 1);
}

fn only_updates(cluster: &Cluster) {
    let made = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "mine"},
    });
    let status = json!({"status": {"storedVersions": ["v1"]}}).to_string();
    let refused = [
        tried(cluster, &["delete", MUTATING], None),
        tried(cluster, &["delete", VALIDATING], None),
        tried(cluster, &["delete", ON_DEMAND], None),
        tried(cluster, &["delete", DEFINITION], None),
        tried(cluster, &["create", "-f", "-"], Some(&made.to_string())),
        tried(cluster, &["apply", "--server-side", "-f", "-"], Some(&made.to_string())),
        tried(cluster, &["patch", DEFINITION, "--subresource=status", "--type=merge", "-p", &status], None),
    ];
    for outcome in refused {
        let said = outcome.unwrap_err();
        assert!(said.contains("it may be updated, and neither created nor deleted"), "{said}");
    }
}

fn everybody_else_is_free(cluster: &Cluster) {
    let patch = add("/webhooks/0/timeoutSeconds", json!(30)).to_string();
    for object in [MUTATING, VALIDATING] {
        cluster.kubectl_ok(&["patch", object, "--type=json", "-p", &patch, "--dry-run=server"], None).unwrap();
        cluster.kubectl_ok(&["delete", object, "--dry-run=server"], None).unwrap();
    }
    cluster.kubectl_ok(&["delete", DEFINITION, "--dry-run=server"], None).unwrap();
}
