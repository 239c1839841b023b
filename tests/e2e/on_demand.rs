//! Entries that exist only while an object needs them, and what must sets use them for.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::process::{Outrider, eventually};
use crate::replicas::{Endpoints, get, service, small_cluster, webhooks_at};
use crate::room::{POD, Room};

const ON_DEMAND: &str = "validatingwebhookconfiguration/outrider-on-demand-validating";

/// A container of a set.
const PROXY: &str = "{name: proxy, image: 'proxy:1', resources: {requests: {cpu: 100m}}}";
/// The same as a pair for hot upgrades.
const PAIR: &str =
    "{name: mesh, image: 'mesh:1', upgradeStrategy: {upgradeType: HotUpgrade, hotUpgradeEmptyImage: 'empty:1'}}";

/// A set that no pod goes without, with this container.
fn must(container: &str) -> String {
    format!(
        "
apiVersion: apps.outrider.dev/v1alpha1
kind: SidecarSet
metadata: {{name: ROOM}}
spec:
  selector: {{matchLabels: {{app: ROOM}}}}
  optOut: Denied
  containers: [{container}]
"
    )
}

const PLAIN: &str = "
apiVersion: v1
kind: Pod
metadata: {name: plain, labels: {app: other}}
spec: {containers: [{name: app, image: 'app:1'}]}
";

fn entries(list: &Value) -> Vec<String> {
    let webhooks = list["webhooks"].as_array().into_iter().flatten();
    webhooks.map(|webhook| webhook["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_pod_keeps_its_must_after_it_was_created() {
    let room = Room::new("after");
    room.apply(PLAIN);
    room.apply_set(&must(PROXY));
    room.apply(POD);
    let refused = |what: &str, args: &[&str]| {
        let output = room.kubectl(args, None);
        assert!(!output.success() && output.stderr.contains("SidecarSet"), "{what}: {}", output.stderr);
    };
    let denied = ["set", "image", "pod/web", "proxy=evil:1", "--dry-run=server"];
    eventually("the entry is there", || !room.kubectl(&denied, None).success());
    refused("another image of the set's container", &denied);
    room.kubectl_ok(&["set", "image", "pod/web", "app=app:2"], None);
    room.kubectl_ok(&["label", "pod/web", "more=1"], None);
    room.kubectl_ok(&["annotate", "pod/web", "more=1"], None);
    // The node of kwok does not say that it resizes, without which the API server refuses first.
    eventually("the node says that it resizes", || {
        let status = room.get(&["pod", "web"])["status"].clone();
        let mut containers = status["containerStatuses"].as_array().cloned().unwrap_or_default();
        if status["phase"] == "Running" && containers.iter().all(|it| it["resources"].is_object()) {
            return true;
        }
        for container in &mut containers {
            container["resources"] = json!({});
        }
        let patch = json!({"status": {"containerStatuses": containers}}).to_string();
        room.kubectl_ok(&["patch", "pod/web", "--subresource=status", "-p", &patch], None);
        false
    });
    let resize = |container: &str, cpu: &str| {
        let resources = json!({"requests": {"cpu": cpu}});
        let patch = json!({"spec": {"containers": [{"name": container, "resources": resources}]}}).to_string();
        room.kubectl(&["patch", "pod/web", "--subresource=resize", "-p", &patch], None)
    };
    let proxy = resize("proxy", "1m");
    assert!(!proxy.success() && proxy.stderr.contains("may not become another"), "a resize: {}", proxy.stderr);
    let app = resize("app", "50m");
    assert!(app.success(), "a resize of the app's container: {}", app.stderr);
    refused("the label goes", &["label", "pod/web", "app-"]);
    let gain = format!("app={}", room.name());
    refused("the label is gained", &["label", "--overwrite", "pod/plain", &gain]);
    let debug = |target: &str| {
        let container = json!({"name": "debug", "image": "sh", "targetContainerName": target});
        let patch = json!({"spec": {"ephemeralContainers": [container]}}).to_string();
        room.kubectl(&["patch", "pod/web", "--subresource=ephemeralcontainers", "-p", &patch], None)
    };
    let proxy = debug("proxy");
    assert!(!proxy.success() && proxy.stderr.contains("may not target"), "{}", proxy.stderr);
    let app = debug("app");
    assert!(app.success(), "{}", app.stderr);
    room.kubectl_ok(&["delete", "pod/web", "--wait=false"], None);
}

/// The pod that injection made, under another name and label: the set does not select it.
fn unselected(carrying: &Value, name: &str) -> Value {
    let annotations = &carrying["metadata"]["annotations"];
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": carrying["spec"],
        "metadata": {"name": name, "labels": {"app": "other"}, "annotations": annotations},
    })
}

/// The container of that name of a pod.
fn container<'p>(pod: &'p mut Value, name: &str) -> &'p mut Value {
    let containers = pod["spec"]["containers"].as_array_mut().unwrap();
    containers.iter_mut().find(|container| container["name"] == name).unwrap()
}

#[test]
#[ignore = "needs a control plane: make test"]
fn neither_container_of_a_must_pair_becomes_another_and_no_pod_gains_a_changed_pair() {
    let room = Room::new("pairs");
    room.apply_set(&must(PAIR));
    let carrying = room.pod(POD);
    let update =
        |patch: &str| room.kubectl(&["patch", "pod/web", "--type=strategic", "--dry-run=server", "-p", patch], None);
    let image = |name: &str, image: &str| json!({"spec": {"containers": [{"name": name, "image": image}]}}).to_string();
    eventually("the entry is there", || !update(&image("mesh-1", "evil:1")).success());
    // The last one leaves the pair without a container that works, whichever the annotation names.
    let working = r#"{"mesh":"mesh-2"}"#;
    let waits = json!({
        "metadata": {"annotations": {"outrider.dev/sidecarset-working-hotupgrade-container": working}},
        "spec": {"containers": [{"name": "mesh-1", "image": "empty:1"}]},
    });
    for patch in [image("mesh-1", "evil:1"), image("mesh-2", "evil:1"), waits.to_string()] {
        let output = update(&patch);
        assert!(
            !output.success() && output.stderr.contains("SidecarSet"),
            "{patch}: {} {}",
            output.stdout,
            output.stderr
        );
    }
    assert!(update(&image("app", "app:2")).success());

    let gain = format!("app={}", room.name());
    for (name, changed, image, is_gained) in [
        ("faithful", "app", "app:2", true),
        ("first", "mesh-1", "evil:1", false),
        ("second", "mesh-2", "evil:1", false),
        ("none", "mesh-1", "empty:1", false),
    ] {
        let mut pod = unselected(&carrying, name);
        container(&mut pod, changed)["image"] = image.into();
        room.apply(&pod.to_string());
        let output = room.kubectl(&["label", "--overwrite", "--dry-run=server", &format!("pod/{name}"), &gain], None);
        assert_eq!(output.success(), is_gained, "{name}: {} {}", output.stdout, output.stderr);
        assert!(is_gained || output.stderr.contains("SidecarSet"), "{name}: {}", output.stderr);
    }
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_leader_writes_entries_with_a_ca_bundle_and_withdraws_them() {
    let (cluster, account) = small_cluster();
    let flags = ["--certificates=self", "--leader-elect"];
    let outrider = Outrider::start(&cluster, &account, &flags);
    let endpoints = Arc::new(Endpoints::default());
    endpoints.add(&outrider);
    let apply = |text: &str| cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(text)).unwrap();
    apply(&webhooks_at(service(endpoints)));
    outrider.ready();
    let stored = || get(&cluster, &[ON_DEMAND]);
    assert_eq!(entries(&stored()), Vec::<String>::new());

    let must = must(PROXY).replace("ROOM", "must");
    eventually("the API server trusts the replica", || {
        cluster.kubectl(&["apply", "--server-side", "-f", "-"], Some(&must)).unwrap().success()
    });
    eventually("the entry is there", || entries(&stored()) == ["pod-update.outrider.dev"]);
    let entry = stored()["webhooks"][0].clone();
    assert!(entry["clientConfig"]["caBundle"].is_string(), "{entry}");
    assert_eq!(
        (&entry["clientConfig"]["service"]["path"], &entry["failurePolicy"]),
        (&json!("/validate--v1-pod-update"), &json!("Fail"))
    );
    assert_eq!(entry["rules"][0]["resources"], json!(["pods", "pods/resize", "pods/ephemeralcontainers"]));

    // What a person changes is put back, and an upgrade of the chart takes nothing away.
    let patch = r#"[{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 3}]"#;
    cluster.kubectl_ok(&["patch", ON_DEMAND, "--type=json", "-p", patch], None).unwrap();
    eventually("it is put back", || stored()["webhooks"][0]["timeoutSeconds"] == 10);
    // An entry that is called for less than it should be is not in order, though it says all that it should.
    let narrow =
        r#"[{"op": "replace", "path": "/webhooks/0/objectSelector", "value": {"matchLabels": {"never": "here"}}}]"#;
    cluster.kubectl_ok(&["patch", ON_DEMAND, "--type=json", "-p", narrow], None).unwrap();
    eventually("it is made whole", || stored()["webhooks"][0]["objectSelector"] == json!({}));
    let printed = crate::process::outrider(&["manifests", "webhooks"]);
    let on_demand: Vec<&str> = printed.split("---\n").filter(|text| text.contains("on-demand")).collect();
    apply(&on_demand.join("---\n"));
    assert_eq!(entries(&stored()), ["pod-update.outrider.dev"]);

    // A replace, as `helm upgrade --force` does it, takes the entries away, and the leader writes them again.
    let validating = on_demand.into_iter().find(|text| text.contains("kind: ValidatingWebhookConfiguration")).unwrap();
    let replaced = cluster.kubectl_ok(&["replace", "-o", "json", "-f", "-"], Some(validating)).unwrap();
    assert_eq!(entries(&serde_json::from_str(&replaced).unwrap()), Vec::<String>::new());
    eventually("the entry is there again", || entries(&stored()) == ["pod-update.outrider.dev"]);
    assert_eq!(stored()["webhooks"][0], entry, "with its caBundle");

    cluster.kubectl_ok(&["delete", "sidecarset/must"], None).unwrap();
    eventually("the entry is withdrawn", || entries(&stored()).is_empty());
}
