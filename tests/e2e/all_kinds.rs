//! Every kind at once, as `make run` serves them: installed by make, with the samples, with the printed roles and no others.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::{Cluster, Namespace, Options, Output};
use engine::yaml;
use serde_json::{Value, json};

use crate::process::{Outrider, at_rest, eventually, outrider, outrider_on, service_account_of};
use crate::replicas::CONFIGURATIONS;
use crate::room::{USER, may_register};
use crate::toy_webhook::ToyWebhook;

const KINDS: &str = "--enable-kinds=*";

/// Every object is reconciled again ten times in ten seconds.
const CONFIG: &str = "\
apiVersion: config.outrider.dev/v2
kind: ProjectConfig
metadata: {name: outrider}
syncPeriod: 1s
";

const CRONJOBS: &str = "cronjobs.v1.batch.outrider.dev";

struct Stage {
    // First to go: its log is with those of the cluster.
    outrider: Outrider,
    cluster: Cluster,
}

/// As cargo would build it once more for make.
const OUTRIDER: &str = concat!("OUTRIDER=", env!("CARGO_BIN_EXE_outrider"));

/// Runs a target of the Makefile against the cluster.
pub fn make(cluster: &Cluster, arguments: &[&str]) -> Output {
    let kubectl = format!("KUBECTL={}", cluster.tools().program("kubectl").display());
    let mut command = cluster.command("make");
    command.args(["--no-print-directory", &kubectl]).args(arguments);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    let output = command.output().unwrap();
    Output {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Stage {
    /// Outrider is there before the kinds are.
    fn set_up() -> Self {
        let cluster = Cluster::start_with(&Options { audit: true, ..Options::default() }).unwrap();
        let account = service_account_of(&cluster, &[KINDS]);
        may_register(&cluster);
        let file = cluster.dir().join("outrider.yaml");
        fs::write(&file, CONFIG).unwrap();
        let config = format!("--config={}", file.display());
        let outrider = Outrider::registered_as(&cluster, &account, &[KINDS, &config]);
        Self { outrider, cluster }
    }

    fn kubectl(&self, args: &[&str]) -> String {
        self.cluster.kubectl_ok(args, None).unwrap()
    }

    /// What Outrider wrote so far.
    fn writes(&self) -> Vec<String> {
        let events = self.cluster.audit_events().unwrap();
        let written = events.iter().filter(|event| {
            event["user"]["username"] == USER
                && ["create", "update", "patch", "delete"].iter().any(|verb| event["verb"] == *verb)
        });
        written
            .map(|event| format!("{} {} {}", event["verb"], event["objectRef"]["resource"], event["objectRef"]["name"]))
            .collect()
    }
}

/// Acceptance check 35: alive but not ready before the read model is complete.
fn it_is_not_ready_before_it_knows_the_cluster(stage: &Stage) {
    eventually("the probes are served", || std::net::TcpStream::connect(stage.outrider.health()).is_ok());
    let reply = stage.outrider.readyz();
    assert!(reply.contains(" 503 ") && reply.contains("sync:sidecarsets"), "{reply}");
}

/// Acceptance check 1.
fn make_install_defines_every_kind(stage: &Stage) {
    let installed = make(&stage.cluster, &["install"]);
    assert!(installed.success(), "{}", installed.stderr);
    stage.cluster.wait_for_definitions().unwrap();
    let printed = yaml::read(&outrider(&["manifests", "crds", KINDS])).unwrap();
    let table = || stage.kubectl(&["api-resources", "--no-headers"]);
    let count = |table: &str| table.lines().filter(|line| line.contains("outrider.dev/")).count();
    // What is served is discovered a moment later.
    eventually("every kind can be discovered", || count(&table()) == printed.len());
    let table = table();
    let ours: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.contains("outrider.dev/"))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(ours.len(), printed.len(), "{table}");
    for definition in printed {
        let plural = definition.value["spec"]["names"]["plural"].as_str().unwrap().to_owned();
        let row = ours.iter().find(|row| row[0] == plural).unwrap_or_else(|| panic!("{plural}: {table}"));
        assert_eq!(
            row[row.len() - 2],
            if ["sidecarsets", "admissionplugins", "clusterlimitranges", "podsecurityprofiles"]
                .contains(&plural.as_str())
            {
                "false"
            } else {
                "true"
            },
            "{plural} is namespaced"
        );
    }
    stage.outrider.ready();
    let registered = ["get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name"];
    eventually("the webhooks are registered", || stage.kubectl(&registered).matches("outrider-").count() == 2);
}

/// Acceptance check 3, and the upstream tests T16: objects without any field are reconciled as well.
fn every_sample_is_accepted(stage: &Stage) {
    let folder = format!("{}/config/samples", env!("CARGO_MANIFEST_DIR"));
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let samples = files.filter(|name| name != "kustomization.yaml").count();
    // The API server learns of a configuration by a watch.
    let mut applied = String::new();
    eventually("all samples are accepted", || {
        let output = stage.cluster.kubectl(&["apply", "-k", &folder], None).unwrap();
        applied.clone_from(&output.stdout);
        assert!(!output.stderr.contains("is invalid") && !output.stderr.contains("denied"), "{}", output.stderr);
        output.success()
    });
    assert_eq!(applied.lines().count(), samples, "{applied}");
    // Nothing shall happen by the clock from here on.
    for name in ["cronjob-sample", "cronjob-sample-v2"] {
        stage.kubectl(&["patch", CRONJOBS, name, "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    }
    for (api_version, kind) in [("webapp.outrider.dev/v1", "Welcome"), ("apps.outrider.dev/v1", "SimpleDeployment")] {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": format!("test-resource-{}", kind.to_lowercase())}, "spec": {}});
        stage.cluster.kubectl_ok(&["apply", "-f", "-"], Some(&object.to_string())).unwrap();
    }
    let ready = "--for=condition=Ready";
    for objects in ["welcomes", "simpledeployments", "collectors"] {
        stage.kubectl(&["wait", ready, objects, "--all", "-n", "default", "--timeout=120s"]);
    }
    eventually("the CronJobs are seen", || {
        let reasons = "jsonpath={.items[*].status.conditions[?(@.type=='Available')].reason}";
        stage.kubectl(&["get", CRONJOBS, "-n", "default", "-o", reasons]) == "Suspended Suspended"
    });
}

/// The goal "without write amplification", for every controller: ten reconciles of what is in order write nothing.
fn ten_looks_at_every_object_write_nothing(stage: &Stage) {
    let controllers = ["collector", "cronjob", "sidecarset", "simpledeployment", "welcome"];
    let before = at_rest("nothing is written", || stage.writes());
    let wanted = controllers.map(|controller| {
        let kind = if controller == "cronjob" { CRONJOBS } else { controller };
        let objects = stage.kubectl(&["get", kind, "-A", "-o", "name"]).lines().count();
        stage.outrider.reconciles(controller) + 10 * u64::try_from(objects).unwrap()
    });
    eventually("every object is looked at ten times", || {
        controllers.iter().zip(wanted).all(|(controller, wanted)| stage.outrider.reconciles(controller) >= wanted)
    });
    // A write that must happen shows when the audit log is complete.
    let patch = r#"{"spec":{"name":"lee"}}"#;
    stage.kubectl(&["patch", "welcome", "welcome-sample", "--type=merge", "-p", patch]);
    let mut after = Vec::new();
    eventually("the write is in the audit log", || {
        after = stage.writes().split_off(before.len());
        !after.is_empty()
    });
    assert_eq!(after[0], r#""patch" "deployments" "welcome-sample""#, "{after:?}");
    for kind in ["mutating", "validating"] {
        let written = format!(r#""patch" "{kind}webhookconfigurations" "outrider-{kind}""#);
        assert_eq!(before.iter().filter(|write| **write == written).count(), 1, "{before:?}");
    }
}

/// Who applies the definitions anew, as `make install` does beside `make run`, takes away the address of the conversion.
fn a_definition_that_is_installed_again_is_put_right_at_once(stage: &Stage) {
    let url = "jsonpath={.spec.conversion.webhook.clientConfig.url}";
    let url = || stage.kubectl(&["get", "crd", "cronjobs.batch.outrider.dev", "-o", url]);
    let before = url();
    assert!(before.starts_with("https://"), "{before}");
    // The check by the clock, or one that a change before has begun, may come at the same moment; not three times.
    let is_told_of = |_| {
        let told = stage.outrider.log().len();
        let installed = make(&stage.cluster, &["install"]);
        assert!(installed.success(), "{}{}", installed.stdout, installed.stderr);
        let mut log = String::new();
        eventually("the address is put back", || {
            log = stage.outrider.log().split_off(told);
            log.contains("Wrote where objects are converted") && url() == before
        });
        let (seen, _) = log.split_once("Wrote where objects are converted").unwrap();
        seen.contains("Changed; checking it")
    };
    assert!((0..3).any(is_told_of), "it waited for its look at the clock");
}

/// Acceptance check 41, first half: who only reads, or may not write, is nothing that a webhook hears of.
fn reads_and_refusals_never_reach_the_webhooks(stage: &Stage) {
    stage.kubectl(&["wait", "--for=condition=Ready", "welcomes", "--all", "-n", "default", "--timeout=120s"]);
    let before = at_rest("no request comes", || stage.outrider.admissions());
    let kinds = ["welcomes", "simpledeployments", "collectors", CRONJOBS, "sidecarsets", "projectconfigs", "pods"];
    for kind in kinds {
        let list = stage.kubectl(&["get", kind, "-A", "-o", "name"]);
        let first = list.lines().next().unwrap();
        if kind != "sidecarsets" {
            stage.kubectl(&["get", "-n", "default", first, "-o", "name"]);
        }
    }
    std::thread::scope(|scope| {
        for kind in kinds {
            // kubectl ends a watch that it may not go on with as a failure.
            scope.spawn(|| drop(stage.cluster.kubectl(&["get", kind, "-A", "--watch", "--request-timeout=1s"], None)));
        }
    });
    let welcome = welcome("unauthorized");
    let create = ["create", "-f", "-", "--as=nobody", "--as-group=system:authenticated", "-n", "default"];
    let refused = stage.cluster.kubectl(&create, Some(&welcome)).unwrap();
    assert!(refused.stderr.contains("User \"nobody\" cannot create resource \"welcomes\""), "{}", refused.stderr);
    assert_eq!(stage.outrider.admissions(), before, "the webhooks were asked");
    let role = ["auth", "can-i", "--as=editor", "create", "welcomes.webapp.outrider.dev", "-n", "default"];
    stage.kubectl(&["create", "rolebinding", "editor", "--clusterrole=edit", "--user=editor", "-n", "default"]);
    eventually("who may edit the namespace may edit our kinds", || {
        stage.cluster.kubectl(&role, None).unwrap().success()
    });
    let sets = ["auth", "can-i", "--as=editor", "create", "sidecarsets.apps.outrider.dev"];
    assert!(!stage.cluster.kubectl(&sets, None).unwrap().success(), "and no sets");
}

fn welcome(name: &str) -> String {
    json!({"apiVersion": "webapp.outrider.dev/v1", "kind": "Welcome", "metadata": {"name": name}, "spec": {}})
        .to_string()
}

/// A webhook of another owner that has no objection.
fn agreeing(namespace: &Namespace<'_>, name: &str) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let toy = ToyWebhook::start(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
        Some(Vec::new())
    });
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "welcomes.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": toy.url, "caBundle": STANDARD.encode(toy.ca)},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name()}},
            "rules": [{"apiGroups": ["webapp.outrider.dev"], "apiVersions": ["v1"], "resources": ["welcomes"], "operations": ["CREATE"]}],
        }],
    });
    namespace.apply(&configuration.to_string()).unwrap();
    asked
}

/// Acceptance check 41, second half: of three webhooks one refuses.
fn one_of_three_webhooks_is_enough_to_refuse(stage: &Stage) {
    let namespace = stage.cluster.namespace("three").unwrap();
    let others = ["aa-three", "zz-three"].map(|name| agreeing(&namespace, name));
    let asked = || others.each_ref().map(|asked| asked.load(Ordering::Relaxed));
    let mut attempt = 0;
    eventually("the others are asked", || {
        attempt += 1;
        namespace.apply(&welcome(&format!("good-{attempt}"))).unwrap();
        asked().iter().all(|count| *count > 0)
    });
    let before = asked();
    let refused = namespace.kubectl(&["apply", "-f", "-"], Some(&welcome("a.b"))).unwrap();
    assert!(refused.stderr.contains("metadata.name: Invalid value: \"a.b\""), "{}", refused.stderr);
    assert!(asked().iter().zip(before).all(|(count, before)| *count > before), "the others were asked and agreed");
    assert!(!namespace.kubectl(&["get", "welcome", "a.b"], None).unwrap().success());
    stage.kubectl(&["delete", "mutatingwebhookconfigurations", "aa-three", "zz-three"]);
}

/// Acceptance check 42, beside a process that registers itself, as `make run` does.
fn make_uninstall_leaves_nothing(stage: &Stage) {
    let configurations = || stage.kubectl(&["get", CONFIGURATIONS, "-o", "name"]);
    let uninstalled = outrider_on(&stage.cluster.kubeconfig(), &["uninstall"]);
    let process = format!("outrider-mutating: the process at https://{} registered it", stage.outrider.webhooks);
    assert!(uninstalled.stderr.contains(&process), "{}{}", uninstalled.stdout, uninstalled.stderr);
    eventually("it registers itself again while there is something to ask about", || {
        // Two of them for plugins of the samples.
        configurations().lines().count() == 4
    });
    make(&stage.cluster, &["install"]);
    eventually("the CronJobs are held", || {
        let list: Value = serde_json::from_str(&stage.kubectl(&["get", CRONJOBS, "-A", "-o", "json"])).unwrap();
        let cronjobs = list["items"].as_array().unwrap();
        cronjobs.len() == 2 && cronjobs.iter().all(|object| object["metadata"]["finalizers"][0].is_string())
    });
    let removed = make(&stage.cluster, &["uninstall", OUTRIDER]);
    assert!(removed.success(), "{}{}", removed.stdout, removed.stderr);
    assert_eq!(stage.kubectl(&["get", "crd", "-o", "name"]), "");
    eventually("nobody is asked about what is not there", || configurations().is_empty());
    let verified = outrider_on(&stage.cluster.kubeconfig(), &["verify", "--timeout=1s"]);
    assert_eq!(verified.code, Some(1), "{}", verified.stdout);
    assert!(verified.stderr.contains("the API server does not know the kind SidecarSet"), "{}", verified.stderr);
    let again = make(&stage.cluster, &["uninstall", OUTRIDER]);
    assert!(again.success(), "{}{}", again.stdout, again.stderr);
    let strict = make(&stage.cluster, &["uninstall", OUTRIDER, "ignore-not-found=false"]);
    assert!(!strict.success(), "{}{}", strict.stdout, strict.stderr);
}

/// The watches go on, and fail: each is reported once a minute.
fn the_process_ends_without_a_complaint_about_what_was_removed(mut stage: Stage, removed: Instant) {
    let unknown = |log: &str| log.matches("The API server does not know this kind").count();
    eventually("it is reported", || unknown(&stage.outrider.log()) > 0);
    std::thread::sleep(std::time::Duration::from_secs(3));
    stage.outrider.signal("TERM");
    stage.outrider.ended();
    let log = stage.outrider.log();
    let minutes = usize::try_from(1 + removed.elapsed().as_secs() / 60).unwrap();
    assert!(unknown(&log) <= 10 * minutes, "in {minutes} minutes: {log}");
    assert!(!log.contains("configurations stay") && !log.contains("not in order"), "{log}");
}

/// In what it wrote until now, whatever that is.
fn every_write_names_the_program_and_the_controller(stage: &Stage) {
    let kinds = stage.kubectl(&["api-resources", "--verbs=list", "--output=name"]);
    let kinds = kinds.lines().collect::<Vec<_>>().join(",");
    let managers = || {
        let all = stage.kubectl(&["get", &kinds, "--all-namespaces", "--show-managed-fields", "--output=json"]);
        let all: Value = serde_json::from_str(&all).unwrap();
        let mut managers = std::collections::BTreeSet::new();
        for object in all["items"].as_array().unwrap() {
            for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
                let manager = entry["manager"].as_str().unwrap();
                assert_ne!(manager, "unknown", "{} {}", object["kind"], object["metadata"]["name"]);
                managers.insert(manager.to_owned());
            }
        }
        managers
    };
    let expected = ["outrider-sidecarset", "outrider-cronjob", "outrider-welcome", "outrider-certificates"];
    eventually(&format!("each of these has written: {expected:?}"), || {
        let managers = managers();
        expected.iter().all(|name| managers.contains(*name))
    });
}

#[test]
#[ignore = "needs a control plane: make test"]
fn all_kinds_are_installed_served_and_removed_again() {
    let stage = Stage::set_up();
    it_is_not_ready_before_it_knows_the_cluster(&stage);
    make_install_defines_every_kind(&stage);
    every_sample_is_accepted(&stage);
    every_write_names_the_program_and_the_controller(&stage);
    ten_looks_at_every_object_write_nothing(&stage);
    a_definition_that_is_installed_again_is_put_right_at_once(&stage);
    reads_and_refusals_never_reach_the_webhooks(&stage);
    one_of_three_webhooks_is_enough_to_refuse(&stage);
    let removed = Instant::now();
    make_uninstall_leaves_nothing(&stage);
    // Acceptance check 39: the printed roles are enough for all of this.
    assert_eq!(stage.outrider.forbidden(), [""; 0]);
    the_process_ends_without_a_complaint_about_what_was_removed(stage, removed);
}
