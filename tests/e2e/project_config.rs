//! `ProjectConfig`: the same text as the process's file and as an object in the cluster.

use std::fs;

use cluster::{Cluster, Options};
use serde_json::{Value, json};

use crate::process::{Outrider, eventually, install_of};

const KINDS: &str = "--enable-kinds=projectconfig,welcome";

const CONFIG: &str = "\
apiVersion: config.outrider.dev/v2
kind: ProjectConfig
metadata: {name: outrider, namespace: default}
clusterName: example-test
syncPeriod: 1s
cacheNamespace: shop
gracefulShutDown: 20s
controller:
  groupKindConcurrency: {Welcome.webapp.outrider.dev: 1, Unwelcome.webapp.outrider.dev: 2}
  cacheSyncTimeout: 60000000000
leaderElection: {leaderElect: true, resourceName: dc61ccc6.outrider.dev, resourceNamespace: locks}
";

fn start() -> (Cluster, Outrider) {
    let options = Options { kwok: false, audit: true, ..Options::default() };
    let cluster = Cluster::start_with(&options).unwrap();
    install_of(&cluster, &[KINDS]);
    for namespace in ["shop", "elsewhere", "locks"] {
        cluster.kubectl_ok(&["create", "namespace", namespace], None).unwrap();
    }
    let file = cluster.dir().join("outrider.yaml");
    fs::write(&file, CONFIG).unwrap();
    let config = format!("--config={}", file.display());
    let outrider = Outrider::registered_as(&cluster, &cluster.kubeconfig(), &[KINDS, &config]);
    outrider.ready();
    (cluster, outrider)
}

/// Acceptance check 27, as far as it needs an API server.
fn the_object_is_judged_as_the_file_is(cluster: &Cluster) {
    let wrong = CONFIG.replace("1s", "often");
    let dry = ["create", "--dry-run=server", "-f", "-"];
    eventually("the API server calls the process", || !cluster.kubectl(&dry, Some(&wrong)).unwrap().success());
    let sample = format!("{}/config/samples/config_v2_projectconfig.yaml", env!("CARGO_MANIFEST_DIR"));
    cluster.kubectl_ok(&["create", "-n", "shop", "-f", &sample], None).unwrap();
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(CONFIG)).unwrap();
    let stored: Value =
        serde_json::from_str(&cluster.kubectl_ok(&["get", "projectconfig/outrider", "-o", "json"], None).unwrap())
            .unwrap();
    assert_eq!(stored["controller"]["groupKindConcurrency"]["Welcome.webapp.outrider.dev"], 1);
    assert_eq!(stored["gracefulShutDown"], "20s");
    for (change, to, said) in [
        (
            "1s",
            "often",
            "The ProjectConfig \"outrider\" is invalid: syncPeriod: Invalid value: \"often\": write a duration such as 10s, 1m30s \
             or 500ms\n",
        ),
        (
            "clusterName: example-test",
            "webhook: {port: 0}",
            "The ProjectConfig \"outrider\" is invalid: webhook.port: Invalid value: 0: webhook.port in body should be greater \
             than or equal to 1\n",
        ),
    ] {
        let refused = cluster.kubectl(&["apply", "-f", "-"], Some(&CONFIG.replace(change, to))).unwrap();
        assert_eq!((refused.success(), refused.stderr.as_str()), (false, said));
    }
    cluster.kubectl_ok(&["delete", "projectconfig/outrider"], None).unwrap();
}

fn writes(cluster: &Cluster, resource: &str) -> usize {
    let is_write = |event: &&Value| {
        let verbs = ["create", "update", "patch", "delete"].map(|verb| json!(verb));
        event["objectRef"]["resource"] == resource && verbs.contains(&event["verb"])
    };
    cluster.audit_events().unwrap().iter().filter(is_write).count()
}

fn controllers_look_at_one_namespace_again_and_again_and_write_nothing(cluster: &Cluster, outrider: &Outrider) {
    for namespace in ["elsewhere", "shop"] {
        let welcome = json!({"apiVersion": "webapp.outrider.dev/v1", "kind": "Welcome",
            "metadata": {"name": "w1", "namespace": namespace}, "spec": {}});
        cluster.kubectl_ok(&["apply", "-f", "-"], Some(&welcome.to_string())).unwrap();
    }
    let deployments = || cluster.kubectl_ok(&["get", "deployments", "-A", "-o", "name"], None).unwrap();
    eventually("the Welcome of the namespace has its Deployment", || !deployments().is_empty());
    let status = ["get", "-n", "shop", "welcome/w1", "-o", "jsonpath={.status.serviceName}"];
    eventually("its status is written", || cluster.kubectl_ok(&status, None).unwrap() == "w1");
    // Its condition follows the Deployment for a while. What writes each time never rests.
    eventually("it is looked at again, and nothing is written", || {
        let writes = || ["services", "welcomes"].map(|resource| writes(cluster, resource));
        let (runs, before) = (outrider.reconciles("welcome"), writes());
        eventually("it is looked at again", || outrider.reconciles("welcome") >= runs + 3);
        writes() == before
    });
    assert_eq!(deployments(), "deployment.apps/w1\n", "only one namespace is seen");
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_projectconfig_configures_the_process_and_is_an_object_too() {
    let (cluster, outrider) = start();
    eventually("it leads", || outrider.leads());
    let holder = ["get", "lease", "-n", "locks", "dc61ccc6.outrider.dev", "-o", "jsonpath={.spec.holderIdentity}"];
    assert_ne!(cluster.kubectl_ok(&holder, None).unwrap(), "");
    the_object_is_judged_as_the_file_is(&cluster);
    controllers_look_at_one_namespace_again_and_again_and_write_nothing(&cluster, &outrider);
    let log = outrider.log();
    for said in ["cluster_name=\"example-test\"", "no controller of this kind runs here kind=\"Unwelcome.webapp"] {
        assert!(log.contains(said), "{said}: {}", outrider.log_tail());
    }
    assert_eq!(log.matches("groupKindConcurrency has no effect").count(), 1);
    outrider.end();
    assert_eq!(cluster.kubectl_ok(&holder, None).unwrap(), "", "the lease was given back");
}
