//! The cluster does what tests rely on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use cluster::{Cluster, Error, Options, POD_CHANGES};

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example/web:1}]}
";

#[test]
fn a_deployment_with_two_replicas_becomes_available() {
    let namespace = Cluster::shared().unwrap().namespace("available").unwrap();
    namespace.apply(WEB).unwrap();
    namespace.kubectl_ok(&["wait", "--for=condition=Available", "deployment/web", "--timeout=60s"], None).unwrap();
    let nodes = namespace.kubectl_ok(&["get", "pods", "-o=jsonpath={.items[*].spec.nodeName}"], None).unwrap();
    assert_eq!(nodes.split(' ').filter(|node| node.starts_with("kwok-")).count(), 2, "{nodes}");
}

#[test]
fn the_nodes_renew_leases_so_that_their_pods_stay_ready() {
    let cluster = Cluster::shared().unwrap();
    let leases = ["get", "leases", "--namespace=kube-node-lease", "-o=jsonpath={.items[*].metadata.name}"];
    cluster.wait_for_kubectl("the leases of both nodes", &leases, "kwok-0 kwok-1").unwrap();
}

#[test]
fn a_job_completes() {
    let namespace = Cluster::shared().unwrap().namespace("job").unwrap();
    namespace.kubectl_ok(&["create", "job", "once", "--image=registry.example/once:1"], None).unwrap();
    namespace.kubectl_ok(&["wait", "--for=condition=Complete", "job/once", "--timeout=60s"], None).unwrap();
}

#[test]
fn namespaces_of_one_prefix_are_apart_and_end_with_their_test() {
    let cluster = Cluster::shared().unwrap();
    let (first, second) = (cluster.namespace("apart").unwrap(), cluster.namespace("apart").unwrap());
    assert_ne!(first.name(), second.name());
    let name = first.name().to_owned();
    drop(first);
    let wait = ["wait", "--for=delete", &format!("namespace/{name}"), "--timeout=60s"];
    cluster.kubectl_ok(&wait, None).unwrap();
    cluster.kubectl_ok(&["get", "namespace", second.name()], None).unwrap();
}

#[test]
fn a_user_without_roles_is_refused_by_rbac() {
    let cluster = Cluster::shared().unwrap();
    let kubeconfig = cluster.kubeconfig_for("system:serviceaccount:outrider-system:outrider", &["readers"]).unwrap();
    let refused = cluster.kubectl(&["--kubeconfig", kubeconfig.to_str().unwrap(), "get", "pods"], None).unwrap();
    assert!(!refused.success());
    let user = "\"system:serviceaccount:outrider-system:outrider\" cannot list resource \"pods\"";
    assert!(refused.stderr.contains(user), "{}", refused.stderr);
}

#[test]
fn a_failing_kubectl_tells_why() {
    let error = Cluster::shared().unwrap().kubectl_ok(&["get", "pod", "absent"], None).unwrap_err();
    let expected = "`kubectl get pod absent` failed: Error from server (NotFound): pods \"absent\" not found\n";
    assert_eq!(error.to_string(), expected);
    assert_eq!(format!("{error:?}"), expected);
}

#[test]
fn a_cluster_without_audit_says_so() {
    let error = Cluster::shared().unwrap().audit_events().unwrap_err().to_string();
    assert!(error.contains("audit: true"), "{error}");
}

/// An API server and etcd alone, with the API server's options.
fn api_only() -> Options {
    Options { kwok: false, controller_manager: false, ..Options::default() }
}

#[test]
fn the_audit_log_has_one_event_for_each_request() {
    let cluster = Cluster::start_with(&Options { audit: true, ..api_only() }).unwrap();
    for name in ["one", "two"] {
        cluster.kubectl_ok(&["create", "configmap", name], None).unwrap();
    }
    let events = cluster.audit_events().unwrap();
    let created = events.iter().filter(|event| {
        event["verb"] == "create"
            && event["objectRef"]["resource"] == "configmaps"
            && event["user"]["username"] == "admin"
    });
    let names: Vec<_> = created.map(|event| event["objectRef"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["one", "two"]);
}

#[test]
fn a_component_that_ends_is_named_with_the_end_of_its_log() {
    let options = Options { extra_apiserver_args: vec!["--no-such-flag".to_owned()], ..api_only() };
    let error = Cluster::start_with(&options).err().expect("the API server knows no such flag");
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("kube-apiserver ended by itself (exit status: 1)"), "{text}");
    assert!(text.contains("unknown flag: --no-such-flag"), "{text}");
}

const COMPANIONS: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: kwok-0
  containers:
  - {name: app, image: 'app:1'}
  - {name: plain, image: 'plain:1', resources: {requests: {cpu: 100m}}}
  initContainers:
  - {name: setup, image: 'setup:1'}
  - {name: native, image: 'native:1', restartPolicy: Always}
";

#[test]
fn kwok_restarts_containers_whose_image_changes_and_takes_resizes() {
    let cluster =
        Cluster::start_with(&Options { kwok_stages: vec![POD_CHANGES.into()], ..Options::default() }).unwrap();
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(COMPANIONS)).unwrap();
    let running = "{range .status.containerStatuses[*]}{.image} {.restartCount} {.ready} {.state.running.startedAt} {.containerID}{';'}{end}";
    let native = "{range .status.initContainerStatuses[*]}{.image} {.restartCount} {.ready} {.state.running.startedAt}{';'}{end}";
    let lines = |cluster: &Cluster| {
        let printed =
            cluster.kubectl_ok(&["get", "pod", "web", &format!("-o=jsonpath={running}{native}")], None).unwrap();
        printed.split_terminator(';').map(str::to_owned).collect::<Vec<_>>()
    };
    cluster.kubectl_ok(&["wait", "--for=condition=Ready", "pod/web", "--timeout=60s"], None).unwrap();
    let before = lines(&cluster);

    let images = r#"{"spec": {"containers": [{"name": "plain", "image": "plain:2"}], "initContainers": [{"name": "native", "image": "native:2"}]}}"#;
    cluster.kubectl_ok(&["patch", "pod", "web", "--patch", images], None).unwrap();
    let restarts = [
        "get",
        "pod",
        "web",
        "-o=jsonpath={.status.containerStatuses[*].restartCount} {.status.initContainerStatuses[*].restartCount} {.status.conditions[?(@.type=='Ready')].status}",
    ];
    cluster.wait_for_kubectl("both to be restarted", &restarts, "0 1 0 1 True").unwrap();
    let after = lines(&cluster);
    assert_eq!((&after[0], &after[2]), (&before[0], &before[2]), "{after:#?}");
    assert!(after[1].starts_with("plain:2 1 true 2") && after[1].contains("kwok://"), "{after:#?}");
    assert!(after[3].starts_with("native:2 1 true 2"), "{after:#?}");

    // Before, the API server has no resizes.
    if cluster.minor_version() >= 33 {
        let resources = ["get", "pod", "web", "-o=jsonpath={.status.containerStatuses[*].resources}"];
        cluster.wait_for_kubectl("its resources", &resources, r#"{} {"requests":{"cpu":"100m"}}"#).unwrap();
        let resize = r#"{"spec": {"containers": [{"name": "plain", "resources": {"requests": {"cpu": "200m"}}}]}}"#;
        cluster.kubectl_ok(&["patch", "pod", "web", "--subresource=resize", "--patch", resize], None).unwrap();
        cluster.wait_for_kubectl("the resize", &resources, r#"{} {"requests":{"cpu":"200m"}}"#).unwrap();
        assert_eq!(lines(&cluster), after, "nothing restarts");
    }
}
