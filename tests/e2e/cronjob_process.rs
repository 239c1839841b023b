//! What a process with `CronJob`s leaves behind, finds again and costs, on a cluster of its own.

use cluster::Cluster;
use serde_json::{Value, json};

use crate::all_kinds::make;
use crate::cronjob::{KINDS, bare_cluster, cronjob, registered};
use crate::process::{Outrider, eventually, eventually_counts, install_of, outrider, outrider_on, service_account_of};
use crate::replicas::{CONFIGURATIONS, get, list};

const DEFINITION: &str = "cronjobs.batch.outrider.dev";
const ODD: [&str; 10] = [
    "@hourly",
    "@every 5m",
    "0  0 1 1 *",
    "0 0 30 2 *",
    ", * * * *",
    "0 0 ? * MON-fri",
    "* * * * *",
    "nonsense",
    " ",
    "\t1 1\t1 1 *",
];

/// The upstream test T22: what a webhook would refuse can be stored, read, labelled and deleted while there is none.
fn a_set_that_says_nothing_is_stored(cluster: &Cluster) {
    let set = json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "foo"}, "spec": {}});
    cluster.kubectl_ok(&["create", "-f", "-"], Some(&set.to_string())).unwrap();
    cluster.kubectl_ok(&["label", "sidecarset", "foo", "hello=world"], None).unwrap();
    let stored = get(cluster, &["sidecarset", "foo"]);
    assert_eq!((&stored["metadata"]["labels"], &stored["spec"]), (&json!({"hello": "world"}), &json!({})));
    cluster.kubectl_ok(&["delete", "sidecarset", "foo", "--timeout=30s"], None).unwrap();
}

/// Acceptance check 12 with 1,000 objects, stored without validation.
#[test]
#[ignore = "needs a control plane: make test"]
fn a_thousand_odd_schedules_are_listed_in_both_versions_and_then_all_is_quiet() {
    let cluster = bare_cluster();
    a_set_that_says_nothing_is_stored(&cluster);
    let namespace = cluster.namespace("odd").unwrap();
    let objects: Vec<Value> = (0..1000)
        .map(|number| {
            let schedule = ODD[number % ODD.len()];
            // Suspended: nothing would end 1,000 Jobs.
            cronjob(&format!("odd-{number}"), &json!({"schedule": schedule, "suspend": true}))
        })
        .collect();
    namespace.kubectl_ok(&["create", "-f", "-"], Some(&list(&objects))).unwrap();
    let outrider = Outrider::registered_as(&cluster, &cluster.kubeconfig(), &[KINDS]);
    registered(&cluster, &outrider);
    for version in ["v1", "v2"] {
        let listed = get(&cluster, &["-A", &format!("cronjobs.{version}.batch.outrider.dev")]);
        assert_eq!(listed["items"].as_array().unwrap().len(), 1000, "{version}");
    }
    let listed = get(&cluster, &["-A", "cronjobs.v1.batch.outrider.dev"]);
    for object in listed["items"].as_array().unwrap() {
        let number: usize = object["metadata"]["name"].as_str().unwrap().trim_start_matches("odd-").parse().unwrap();
        assert_eq!(object["spec"]["schedule"], ODD[number % ODD.len()], "what was written is read");
    }
    // To list them all costs more than to reconcile one: only when all have had their turn.
    eventually_counts("every object has its turn", 1000, || outrider.reconciles("cronjob"));
    eventually_counts("every object is seen, however wrong it is", 1000, || {
        let listed = get(&cluster, &["-A", "cronjobs.v1.batch.outrider.dev"]);
        let seen = |object: &&Value| object["metadata"]["finalizers"][0].is_string() && object["status"].is_object();
        listed["items"].as_array().unwrap().iter().filter(seen).count() as u64
    });
    rests(&outrider);
    outrider.end();
    is_as_printed(&get(&cluster, &["crd", DEFINITION]));
}

/// Waits until the controller rests and nothing is converted any more. What never rests is found by what it does, not by the time that
/// a busy machine takes.
fn rests(outrider: &Outrider) {
    let counts = || (outrider.reconciles("cronjob"), outrider.reviews("/convert"));
    let mut before = counts();
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3));
        let now = counts();
        if now == before {
            return;
        }
        assert!(now.0 < 20_000, "{now:?}: 1,000 objects are reconciled again and again");
        before = now;
    }
}

/// A process outside the cluster takes its address with it.
fn is_as_printed(definition: &Value) {
    let printed = outrider(&["manifests", "crds", KINDS]);
    let printed = engine::yaml::read(&printed).unwrap().into_iter().map(|document| document.value);
    let printed = printed.into_iter().find(|object| object["metadata"]["name"] == DEFINITION).unwrap();
    assert_eq!(definition["spec"]["conversion"], printed["spec"]["conversion"]);
}

/// The leader gives the conversion webhook its caBundle and touches nothing else; and acceptance check 24: a process that is
/// killed before it has written what it did starts no second Job.
#[test]
#[ignore = "needs a control plane: make test"]
fn the_definition_gets_the_ca_bundle_and_a_killed_process_starts_no_run_twice() {
    let cluster = bare_cluster();
    let account = service_account_of(&cluster, &[KINDS]);
    // Without webhooks no process has to answer at a Service that is not there.
    let flags = ["--certificates=self", KINDS];
    let webhooks = outrider(&["manifests", "webhooks"]);
    cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(&webhooks)).unwrap();
    let first = Outrider::start(&cluster, &account, &flags);
    first.ready();
    let client_config = || get(&cluster, &["crd", DEFINITION])["spec"]["conversion"]["webhook"]["clientConfig"].take();
    let secret = || get(&cluster, &["secret", "-n", "outrider-system", "outrider-ca"])["data"]["tls.crt"].take();
    eventually("the caBundle is there", || client_config()["caBundle"] == secret());
    let mut definition = get(&cluster, &["crd", DEFINITION]);
    definition["spec"]["conversion"]["webhook"]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    is_as_printed(&definition);
    install_of(&cluster, &[KINDS]);
    assert_eq!(client_config()["caBundle"], secret(), "applying the manifests again leaves the caBundle");

    let namespace = cluster.namespace("killed").unwrap();
    namespace.apply(&cronjob("once", &json!({"suspend": true})).to_string()).unwrap();
    let v1 = "cronjobs.v1.batch.outrider.dev";
    let object = || get(&cluster, &["-n", namespace.name(), v1, "once"]);
    let jobs = || namespace.kubectl_ok(&["get", "jobs", "-o", "name"], None).unwrap().lines().count();
    let patch = |args: &[&str], patch: Value| {
        let patch = patch.to_string();
        namespace
            .kubectl_ok(&[&["patch", "--type=merge", "-p", patch.as_str(), v1, "once"], args].concat(), None)
            .unwrap();
    };
    eventually("it is seen", || object()["status"]["conditions"].is_array());
    // It is due every new year.
    let long_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 400);
    patch(&["--subresource=status"], json!({"status": {"lastScheduleTime": long_ago.to_string()}}));
    patch(&[], json!({"spec": {"suspend": false}}));
    eventually("a run starts", || jobs() == 1);
    first.kill();
    // As if it had ended right after it made the Job.
    patch(&["--subresource=status"], json!({"status": null}));
    let second = Outrider::start(&cluster, &account, &flags);
    eventually("the next process sees the Job", || {
        object()["status"]["active"].as_array().is_some_and(|active| active.len() == 1)
    });
    assert_eq!(jobs(), 1);
    second.end();
    a_kind_that_is_turned_off_locks_nothing(&cluster);
    a_killed_process_leaves_nothing_that_the_next_does_not_put_right(&cluster);
    uninstall_frees_cronjobs_while_the_controller_runs(&cluster);
}

/// Its definition and its objects are there still, and hold no namespace.
fn a_kind_that_is_turned_off_locks_nothing(cluster: &Cluster) {
    let namespace = cluster.namespace("turned-off").unwrap();
    let v1 = "cronjobs.v1.batch.outrider.dev";
    let mut held = cronjob("held", &json!({"suspend": true}));
    held["metadata"]["finalizers"] = json!(["batch.outrider.dev/finalizer"]);
    namespace.apply(&held.to_string()).unwrap();
    // A process outside the cluster does not take over from replicas behind a Service.
    cluster.kubectl_ok(&["delete", CONFIGURATIONS, "--all"], None).unwrap();
    let process = Outrider::registered_as(cluster, &cluster.kubeconfig(), &["--namespace=outrider-system"]);
    process.ready();
    let url = json!(format!("https://{}/convert", process.webhooks));
    eventually("it is asked for conversions", || {
        get(cluster, &["crd", DEFINITION])["spec"]["conversion"]["webhook"]["clientConfig"]["url"] == url
    });
    eventually("the log has it", || process.log().contains("The kind is off, but its definition exists"));
    eventually("its objects are read in the other version", || {
        let list = ["get", "cronjobs.v2.batch.outrider.dev", "-o=name"];
        namespace.kubectl(&list, None).unwrap().stdout.contains("/held")
    });
    let found = outrider_on(&cluster.kubeconfig(), &["doctor"]);
    assert!(!found.stdout.contains("its conversion webhook"), "{}", found.stdout);
    namespace.kubectl_ok(&["delete", v1, "held", "--timeout=120s"], None).unwrap();

    namespace.apply(&held.to_string()).unwrap();
    let freed = outrider_on(&cluster.kubeconfig(), &["uninstall", "--kind=cronjob", "--dry-run"]);
    assert!(freed.stdout.contains(" would be freed of Outrider's finalizer (dry run)"), "{}", freed.stdout);
    assert!(!freed.stdout.contains("outrider-mutating"), "{}", freed.stdout);
    let none = outrider_on(&cluster.kubeconfig(), &["uninstall", "--kind=welcome", "--dry-run"]);
    assert_eq!(none.stdout, "welcome: objects of this kind do not need Outrider, nothing to do\n", "{}", none.stderr);
    namespace.kubectl_ok(&["delete", v1, "held", "--timeout=120s"], None).unwrap();
    process.end();
}

/// Killed where it registered itself, a process leaves the API server with an address where no process answers.
fn a_killed_process_leaves_nothing_that_the_next_does_not_put_right(cluster: &Cluster) {
    cluster.kubectl_ok(&["delete", CONFIGURATIONS, "--all"], None).unwrap();
    for _ in 0..2 {
        // Each with an address of its own.
        let killed = Outrider::registered_as(cluster, &cluster.kubeconfig(), &[KINDS]);
        let url = json!(format!("https://{}/convert", killed.webhooks));
        eventually("it is asked for conversions", || {
            get(cluster, &["crd", DEFINITION])["spec"]["conversion"]["webhook"]["clientConfig"]["url"] == url
        });
        eventually("its webhooks are registered", || {
            get(cluster, &[CONFIGURATIONS])["items"].as_array().unwrap().len() == 2
        });
        killed.kill();
    }
    // `make run` begins with it.
    let installed = make(cluster, &["install"]);
    assert!(installed.success(), "{}{}", installed.stdout, installed.stderr);
    is_as_printed(&get(cluster, &["crd", DEFINITION]));
    let killed = Outrider::registered_as(cluster, &cluster.kubeconfig(), &[KINDS]);
    eventually("it is asked for conversions again", || {
        get(cluster, &["crd", DEFINITION])["spec"]["conversion"]["webhook"]["clientConfig"]["url"].is_string()
    });
    killed.kill();
}

/// The flags of `make run ENABLE_WEBHOOKS=false`.
fn flags_of_make_run_without_webhooks() -> Vec<String> {
    let mut make = std::process::Command::new("make");
    make.args(["--dry-run", "run", "ENABLE_WEBHOOKS=false", "KUBECTL=kubectl", "CARGO=cargo"]);
    make.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let shown = String::from_utf8(make.output().unwrap().stdout).unwrap().replace("\\\n", " ");
    let line =
        shown.lines().find_map(|line| line.split_once(" serve ")).unwrap_or_else(|| panic!("{shown}")).1.to_owned();
    // The test has other ports.
    let addresses = [("webhook", 9443), ("health-probe", 8081), ("metrics", 8082)];
    let line = addresses.iter().fold(line.replace('\'', ""), |line, (front, port)| {
        line.replace(&format!("--{front}-bind-address 127.0.0.1:{port}"), "")
    });
    line.split_whitespace().map(str::to_owned).collect()
}

/// Acceptance check 34: without webhooks the controllers work, also after a process with webhooks was killed. And what
/// `outrider uninstall` promises: nothing of ours holds an object afterwards, not even one that is made later.
fn uninstall_frees_cronjobs_while_the_controller_runs(cluster: &Cluster) {
    let flags = flags_of_make_run_without_webhooks();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    assert!(flags.contains(&"--enable-webhooks=false") && !flags.contains(&"--register-webhooks"), "{flags:?}");
    let process = Outrider::start(cluster, &cluster.kubeconfig(), &flags);
    process.ready();
    assert!(process.readyz().ends_with("ok"), "{}", process.readyz());
    assert!(std::net::TcpStream::connect(process.webhooks).is_err(), "nothing listens there");
    eventually("no webhook is left of the killed process", || {
        get(cluster, &[CONFIGURATIONS])["items"].as_array().unwrap().is_empty()
    });
    eventually("nor a conversion", || {
        get(cluster, &["crd", DEFINITION])["spec"]["conversion"]["webhook"]["clientConfig"]["service"].is_object()
    });

    let namespace = cluster.namespace("unheld").unwrap();
    let v1 = "cronjobs.v1.batch.outrider.dev";
    let object = |name: &str| get(cluster, &["-n", namespace.name(), v1, name]);
    namespace.apply(&cronjob("before", &json!({"suspend": true})).to_string()).unwrap();
    eventually("it is held", || object("before")["metadata"]["finalizers"][0].is_string());
    let uninstall = |args: &[&str]| outrider_on(&cluster.kubeconfig(), &[&["uninstall"], args].concat());
    let dry = uninstall(&["--dry-run"]);
    assert!(
        dry.stdout.contains("2 objects would be freed of Outrider's finalizer (dry run)\n"),
        "{}{}",
        dry.stdout,
        dry.stderr
    );
    assert!(object("before")["metadata"]["finalizers"][0].is_string());
    let done = uninstall(&[]);
    let told =
        format!("{DEFINITION}: v2 no longer served, and nothing converted; 2 objects freed of Outrider's finalizer\n");
    assert!(done.stdout.ends_with(&told), "{}{}", done.stdout, done.stderr);
    assert_eq!(done.code, Some(0));
    assert!(done.stderr.starts_with("outrider: removing ") && done.stderr.lines().count() == 1, "{}", done.stderr);
    namespace.apply(&cronjob("after", &json!({"suspend": true})).to_string()).unwrap();
    eventually("it is seen", || object("after")["status"]["conditions"].is_array());
    for name in ["before", "after"] {
        assert!(object(name)["metadata"].get("finalizers").is_none(), "{name}");
    }
    process.end();
    let crds = outrider(&["manifests", "crds", KINDS]);
    cluster.kubectl_ok(&["apply", "--server-side", "--force-conflicts", "-f", "-"], Some(&crds)).unwrap();
    assert_eq!(uninstall(&[]).code, Some(0), "served again, and not any more");
    cluster.kubectl_ok(&["delete", "crd", DEFINITION, "--timeout=30s"], None).unwrap();
    assert!(uninstall(&[]).stdout.ends_with(&format!("{DEFINITION}: not found, nothing to do\n")));
}
