//! Welcome and `SimpleDeployment`, with the printed roles and no others.

use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, Namespace, Options};
use serde_json::{Value, json};

use crate::process::{Outrider, at_rest, eventually, install_of, service_account_of};
use crate::room::{USER, may_register};
use crate::toy_webhook::{Begun, ToyWebhook};

const KINDS: &str = "--enable-kinds=simpledeployment,welcome";

/// A cluster and an Outrider with the printed roles that serves some kinds.
pub struct Stage {
    // First to go: its log is with those of the cluster.
    pub outrider: Outrider,
    pub cluster: Cluster,
}

impl Stage {
    /// With this flag that enables kinds.
    pub fn set_up(kinds: &str) -> Self {
        let cluster = Cluster::start_with(&Options { audit: true, ..Options::default() }).unwrap();
        install_of(&cluster, &[kinds]);
        let account = service_account_of(&cluster, &[kinds]);
        may_register(&cluster);
        let outrider = Outrider::registered_as(&cluster, &account, &[kinds, "--leader-elect"]);
        outrider.ready();
        outrider.called(&cluster);
        Self { outrider, cluster }
    }

    fn writes(&self, resource: &str) -> usize {
        writes(&self.cluster, resource)
    }

    fn resync(&self, namespace: &Namespace<'_>, object: &str, times: usize) {
        resync(&self.outrider, namespace, object, times);
    }
}

/// How often Outrider wrote to resources of this name.
pub fn writes(cluster: &Cluster, resource: &str) -> usize {
    let is_write = |event: &&Value| {
        let verbs = ["create", "update", "patch", "delete"].map(|verb| json!(verb));
        event["user"]["username"] == USER
            && event["objectRef"]["resource"] == resource
            && verbs.contains(&event["verb"])
    };
    cluster.audit_events().unwrap().iter().filter(is_write).count()
}

/// The same of these resources, once nothing is written any more: the audit log is behind.
pub fn writes_at_rest<const N: usize>(cluster: &Cluster, resources: [&str; N]) -> [usize; N] {
    at_rest("nothing is written", || resources.map(|resource| writes(cluster, resource)))
}

/// Changes the object in a way that no controller heeds, and waits until it was reconciled for it; so many times.
pub fn resync(outrider: &Outrider, namespace: &Namespace<'_>, object: &str, times: usize) {
    let controller = object.split('/').next().unwrap();
    for time in 0..times {
        let before = outrider.reconciles(controller);
        let annotation = format!("round={time}");
        namespace.kubectl_ok(&["annotate", "--overwrite", object, &annotation], None).unwrap();
        eventually("the object is reconciled", || outrider.reconciles(controller) > before);
    }
}

/// The object, if it is there.
pub fn get(namespace: &Namespace<'_>, object: &str) -> Option<Value> {
    let output = namespace.kubectl(&["get", "--show-managed-fields", "-o", "json", object], None).unwrap();
    output.success().then(|| serde_json::from_str(&output.stdout).unwrap())
}

/// Status and reason of the condition Ready.
fn ready(namespace: &Namespace<'_>, object: &str) -> (String, String) {
    let object = get(namespace, object).unwrap();
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let condition = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default();
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

fn welcome(name: &str, spec: &Value) -> String {
    json!({"apiVersion": "webapp.outrider.dev/v1", "kind": "Welcome", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

fn simple(name: &str, spec: &Value) -> String {
    json!({"apiVersion": "apps.outrider.dev/v1", "kind": "SimpleDeployment", "metadata": {"name": name}, "spec": spec})
        .to_string()
}

fn is_owned(object: &Value, kind: &str, uid: &Value) {
    let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
    let [owner] = owners.as_slice() else { panic!("one owner, not {owners:?}") };
    let (controller, blocks) = (&owner["controller"], &owner["blockOwnerDeletion"]);
    assert_eq!((&owner["kind"], &owner["uid"], controller, blocks), (&json!(kind), uid, &json!(true), &json!(true)));
}

/// Acceptance checks 25, 39 and 41 as far as they are about Welcome.
fn a_welcome_keeps_its_deployment_and_service(stage: &Stage) {
    let namespace = stage.cluster.namespace("welcome").unwrap();
    let none = namespace.kubectl(&["get", "welcome"], None).unwrap();
    assert!(none.success() && none.stderr.starts_with("No resources found"), "{}", none.stderr);
    let refused = namespace.kubectl(&["apply", "-f", "-"], Some(&welcome("a.b", &json!({})))).unwrap();
    assert!(
        !refused.success() && refused.stderr.contains("metadata.name: Invalid value: \"a.b\""),
        "{}",
        refused.stderr
    );

    namespace.apply(&welcome("w1", &json!({}))).unwrap();
    eventually("it is ready", || ready(&namespace, "welcome/w1").0 == "True");
    let uid = get(&namespace, "welcome/w1").unwrap()["metadata"]["uid"].take();
    let deployment = get(&namespace, "deployment/w1").unwrap();
    let service = get(&namespace, "service/w1").unwrap();
    for object in [&deployment, &service] {
        is_owned(object, "Welcome", &uid);
        let managers = object["metadata"]["managedFields"].as_array().unwrap();
        let ours = |entry: &Value| entry["manager"] == "welcome_controller" && entry["operation"] == "Apply";
        assert!(managers.iter().any(ours), "{managers:?}");
        assert_eq!(object["metadata"]["labels"]["welcome"], "w1");
    }
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["env"], json!([{"name": "NAME", "value": "world"}]));
    assert_eq!(container["ports"], json!([{"name": "http", "containerPort": 8080, "protocol": "TCP"}]));
    let port = &service["spec"]["ports"][0];
    assert_eq!((&port["port"], &port["name"], &port["targetPort"]), (&json!(8080), &json!("http"), &json!("http")));
    assert_eq!(
        (&service["spec"]["type"], &service["spec"]["selector"]),
        (&json!("LoadBalancer"), &json!({"welcome": "w1"}))
    );

    let env = || {
        let deployment = get(&namespace, "deployment/w1").unwrap();
        deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"].clone()
    };
    namespace.apply(&welcome("w1", &json!({"name": "kim"}))).unwrap();
    eventually("Kim is greeted", || env() == "kim");
    assert_eq!(
        version(&get(&namespace, "service/w1").unwrap()),
        version(&service),
        "nothing was written to the Service"
    );
    let args = ["set", "env", "deployment/w1", "NAME=nobody"];
    namespace.kubectl_ok(&args, None).unwrap();
    eventually("Kim is greeted again", || env() == "kim");

    namespace.kubectl_ok(&["delete", "service/w1"], None).unwrap();
    eventually("the Service comes back", || {
        get(&namespace, "service/w1").is_some_and(|new| version(&new) != version(&service))
    });
    eventually("it is ready again", || ready(&namespace, "welcome/w1").0 == "True");

    let before = writes_at_rest(&stage.cluster, ["deployments", "services"]);
    stage.resync(&namespace, "welcome/w1", 10);
    // A write that must happen shows when the audit log is complete.
    namespace.apply(&welcome("w1", &json!({"name": "lee"}))).unwrap();
    eventually("the write is in the audit log", || stage.writes("deployments") > before[0]);
    let after = ["deployments", "services"].map(|resource| stage.writes(resource));
    assert_eq!(after, [before[0] + 1, before[1]], "ten reconciles of what is in order wrote something");
}

/// Of both kinds at the same time: that a name is free is seen after 15 seconds.
fn foreign_objects_are_left_alone(stage: &Stage) {
    let welcome = welcome("taken", &json!({}));
    let simple = simple("taken", &json!({}));
    std::thread::scope(|scope| {
        scope.spawn(|| a_foreign_object_is_left_alone(stage, "welcome", &welcome));
        a_foreign_object_is_left_alone(stage, "simpledeployment", &simple);
    });
}

/// An object that was there first stays what it is, and comes under control when it was given up.
fn a_foreign_object_is_left_alone(stage: &Stage, resource: &str, object: &str) {
    let namespace = stage.cluster.namespace("foreign").unwrap();
    let create = ["create", "deployment", "taken", "--image=other:1", "--replicas=2"];
    namespace.kubectl_ok(&create, None).unwrap();
    let spec = || get(&namespace, "deployment/taken").unwrap()["spec"].take();
    let before = spec();
    namespace.apply(object).unwrap();
    let name = format!("{resource}/taken");
    eventually("the condition says so", || ready(&namespace, &name) == ("False".to_owned(), "NotOurs".to_owned()));
    assert_eq!(spec(), before);
    assert!(get(&namespace, "deployment/taken").unwrap()["metadata"].get("ownerReferences").is_none());
    let events = namespace.kubectl_ok(&["events", &format!("--for={name}")], None).unwrap();
    assert!(events.contains("NotOurs"), "{events}");

    namespace.kubectl_ok(&["delete", "deployment/taken"], None).unwrap();
    eventually("the name is taken when it is free", || ready(&namespace, &name).0 == "True");
}

/// Acceptance check 26.
fn a_simpledeployment_keeps_its_replicas(stage: &Stage) {
    let namespace = stage.cluster.namespace("simple").unwrap();
    let replicas = || get(&namespace, "deployment/s1").map(|deployment| deployment["spec"]["replicas"].clone());
    let schema = namespace.kubectl(&["apply", "-f", "-"], Some(&simple("s1", &json!({"replicas": -1})))).unwrap();
    let said = "spec.replicas in body should be greater than or equal to 0";
    assert!(!schema.success() && schema.stderr.contains(said), "{}", schema.stderr);

    namespace.apply(&simple("s1", &json!({}))).unwrap();
    eventually("one replica is the default", || replicas() == Some(json!(1)));
    let object = get(&namespace, "simpledeployment/s1").unwrap();
    is_owned(&get(&namespace, "deployment/s1").unwrap(), "SimpleDeployment", &object["metadata"]["uid"]);
    namespace.apply(&simple("s1", &json!({"replicas": 3}))).unwrap();
    eventually("three are three", || replicas() == Some(json!(3)));
    namespace.kubectl_ok(&["scale", "deployment/s1", "--replicas=5"], None).unwrap();
    eventually("five are three again", || replicas() == Some(json!(3)));
    namespace.kubectl_ok(&["scale", "simpledeployment/s1", "--replicas=2"], None).unwrap();
    eventually("it can be scaled itself", || replicas() == Some(json!(2)));
    eventually("all are counted", || {
        let status = get(&namespace, "simpledeployment/s1").unwrap()["status"].take();
        ["replicas", "readyReplicas", "availableReplicas"].iter().all(|field| status[field] == 2)
    });
    let path = format!("/apis/apps.outrider.dev/v1/namespaces/{}/simpledeployments/s1/scale", namespace.name());
    let scale: Value = serde_json::from_str(&namespace.kubectl_ok(&["get", "--raw", &path], None).unwrap()).unwrap();
    let selector = "app.kubernetes.io/instance=s1,app.kubernetes.io/name=simpledeployment";
    assert_eq!(scale["status"], json!({"replicas": 2, "selector": selector}));

    eventually("it is ready", || ready(&namespace, "simpledeployment/s1").0 == "True");
    let [before] = writes_at_rest(&stage.cluster, ["deployments"]);
    stage.resync(&namespace, "simpledeployment/s1", 10);
    namespace.kubectl_ok(&["scale", "simpledeployment/s1", "--replicas=1"], None).unwrap();
    eventually("the write is in the audit log", || stage.writes("deployments") > before);
    assert_eq!(stage.writes("deployments"), before + 1, "ten reconciles of what is in order wrote something");
}

/// What is not asked for has no watch and no metric; that it has no definition, role and webhook is seen in what is printed.
fn kinds_that_are_off_leave_nothing(stage: &Stage) {
    let off = ["cronjobs", "jobs", "projectconfigs", "collectors"].map(|resource| json!(resource));
    let events = stage.cluster.audit_events().unwrap();
    let asked = events.iter().filter(|event| event["user"]["username"] == USER);
    let asked: Vec<&Value> =
        asked.map(|event| &event["objectRef"]).filter(|object| off.contains(&object["resource"])).collect();
    assert_eq!(asked, [&Value::Null; 0]);
    let metrics = stage.outrider.metrics();
    assert!(metrics.contains("controller=\"welcome\""), "{metrics}");
    for name in ["cronjob", "projectconfig", "collector", "/convert"] {
        assert!(!metrics.contains(name), "{name}: {metrics}");
    }
}

/// Keeps new Deployments of the namespace waiting; their names.
fn slow_deployments(namespace: &Namespace<'_>) -> Arc<Mutex<Vec<String>>> {
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let names = Arc::clone(&asked);
    let toy = ToyWebhook::start(move |deployment| {
        names.lock().unwrap().push(deployment["metadata"]["name"].as_str().unwrap().to_owned());
        sleep(Duration::from_secs(3));
        Some(Vec::new())
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "slow"},
        "webhooks": [{
            "name": "slow.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": toy.url, "caBundle": STANDARD.encode(toy.ca)},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name()}},
            "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE"]}],
        }],
    });
    namespace.apply(&configuration.to_string()).unwrap();
    asked
}

/// Acceptance check 38: what was begun before the signal is finished, a review and a reconcile, and only then is the lease given
/// back.
fn what_runs_is_finished_before_the_process_ends(mut stage: Stage) {
    let namespace = stage.cluster.namespace("ending").unwrap();
    let asked = slow_deployments(&namespace);
    let mut attempt = 0;
    // The API server learns of a configuration by a watch.
    eventually("a Deployment is being waited for", || {
        attempt += 1;
        namespace.apply(&welcome(&format!("last-{attempt}"), &json!({}))).unwrap();
        sleep(Duration::from_secs(1));
        !asked.lock().unwrap().is_empty()
    });
    let last = asked.lock().unwrap()[0].clone();
    let secret =
        stage.cluster.kubectl_ok(&["get", "secret", "-n", "outrider-system", "outrider-ca", "-o", "json"], None);
    let secret: Value = serde_json::from_str(&secret.unwrap()).unwrap();
    let ca = STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap()).unwrap();
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u-1", "operation": "CREATE", "name": "w", "namespace": "n",
        "kind": {"group": "webapp.outrider.dev", "version": "v1", "kind": "Welcome"},
        "resource": {"group": "webapp.outrider.dev", "version": "v1", "resource": "welcomes"},
        "userInfo": {"username": "somebody"}, "object": serde_json::from_str::<Value>(&welcome("w", &json!({}))).unwrap(),
    }});
    let path = "/validate-webapp-outrider-dev-v1-welcome";
    let begun = Begun::post(stage.outrider.webhooks, &ca, path, &review.to_string());

    stage.outrider.signal("TERM");
    eventually("it is not ready any more", || !stage.outrider.is_ready());
    sleep(Duration::from_secs(1));
    let (status, reply) = begun.finish();
    assert!(status.contains(" 200 "), "{status}");
    assert_eq!(serde_json::from_slice::<Value>(&reply).unwrap()["response"]["allowed"], true);
    stage.outrider.ended();

    let written = get(&namespace, &format!("welcome/{last}")).unwrap()["status"]["serviceName"].take();
    assert_eq!(written, last.as_str(), "the reconcile went on to its end");
    let log = stage.outrider.log();
    let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("{text}: {}", stage.outrider.log_tail()));
    assert!(at("All workers finished") < at("Gave the lease back"), "{}", stage.outrider.log_tail());
    assert!(
        log.contains("reconcile{controller=\"welcome\" kind=\"Welcome\" namespace=\""),
        "lines tell whose they are"
    );
}

#[test]
#[ignore = "needs a control plane: make test"]
fn welcome_and_simpledeployment_keep_what_they_own_and_nothing_else() {
    let stage = Stage::set_up(KINDS);
    a_welcome_keeps_its_deployment_and_service(&stage);
    a_simpledeployment_keeps_its_replicas(&stage);
    foreign_objects_are_left_alone(&stage);
    for sample in ["webapp_v1_welcome.yaml", "apps_v1_simpledeployment.yaml"] {
        let file = format!("{}/config/samples/{sample}", env!("CARGO_MANIFEST_DIR"));
        stage.cluster.kubectl_ok(&["apply", "-f", &file], None).unwrap();
    }
    assert_eq!(stage.outrider.forbidden(), [""; 0], "the printed roles are not enough");
    kinds_that_are_off_leave_nothing(&stage);
    what_runs_is_finished_before_the_process_ends(stage);
}
