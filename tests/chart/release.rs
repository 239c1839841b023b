//! A release on a real API server, from install to uninstall.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use cluster::Cluster;
use serde_json::{Value, json};

use crate::cluster_objects::install_cert_manager;
use crate::helm::{CHART, failed, helm, objects, succeeded, template};

/// What is not written to while nothing changes.
const WATCHED: [&str; 5] = [
    "mutatingwebhookconfiguration/outrider-mutating",
    "validatingwebhookconfiguration/outrider-validating",
    "customresourcedefinition/sidecarsets.apps.outrider.dev",
    "customresourcedefinition/cronjobs.batch.outrider.dev",
    "clusterrole/outrider",
];

struct Release<'a> {
    cluster: &'a Cluster,
}

impl Release<'_> {
    fn helm(&self, args: &[&str]) -> Output {
        helm(&self.cluster.kubeconfig(), &[args, &["--namespace=outrider-system"]].concat())
    }

    fn install(&self, args: &[&str]) -> Output {
        let own = ["install", "outrider", CHART, "--create-namespace", "--set=kinds.cronjob.enabled=true"];
        self.helm(&[&own, args].concat())
    }

    fn upgrade(&self, args: &[&str]) {
        self.upgrade_to(CHART, args);
    }

    fn upgrade_to(&self, chart: &str, args: &[&str]) {
        succeeded(&self.helm(&[&["upgrade", "outrider", chart, "--set=kinds.cronjob.enabled=true"], args].concat()));
    }

    fn get(&self, object: &str) -> Value {
        let text = self.cluster.kubectl_ok(&["get", object, "-o=json"], None).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn versions(&self) -> Vec<Value> {
        WATCHED.map(|object| self.get(object)["metadata"]["resourceVersion"].clone()).to_vec()
    }

    /// As cert-manager's injector does.
    fn inject_ca(&self) {
        let bundle = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Y2E="}]).to_string();
        for object in &WATCHED[..2] {
            self.cluster.kubectl_ok(&["patch", object, "--type=json", "-p", &bundle], None).unwrap();
        }
    }

    /// Everything of the release that the API server has.
    fn left(&self) -> Vec<String> {
        let kinds = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations,\
                     validatingadmissionpolicies,validatingadmissionpolicybindings";
        let namespaced = "deployments,services,serviceaccounts,roles,rolebindings,jobs,poddisruptionbudgets,certificates.\
                          cert-manager.io,issuers.cert-manager.io,configmaps";
        let list = |args: &[&str]| {
            let own = ["get", "--selector=app.kubernetes.io/name=outrider", "--output=name"];
            self.cluster.kubectl_ok(&[&own, args].concat(), None).unwrap()
        };
        let text = list(&[kinds]) + &list(&[namespaced, "--all-namespaces"]);
        text.lines().map(str::to_owned).collect()
    }
}

#[test]
#[ignore = "needs helm and a control plane: make test"]
fn a_release_is_installed_upgraded_and_uninstalled_without_a_trace() {
    let cluster = Cluster::start().unwrap();
    let release = Release { cluster: &cluster };

    let stderr = failed(&release.install(&[]));
    assert!(stderr.contains("cert-manager is not installed"), "{stderr}");
    let namespaces = cluster.kubectl_ok(&["get", "namespaces", "--output=name"], None).unwrap();
    assert!(!namespaces.contains("outrider-system"), "{namespaces}");

    install_cert_manager(&cluster);
    let notes = succeeded(&release.install(&["--wait", "--timeout=60s"]));
    assert!(notes.contains("kubectl rollout status -n outrider-system deployment/outrider"), "{notes}");

    release.inject_ca();
    let before = release.versions();
    release.upgrade(&[]);
    assert_eq!(release.versions(), before, "an upgrade that changes nothing writes");

    release.upgrade(&["--set=webhook.timeoutSeconds=7,log.level=debug"]);
    let webhook = &release.get(WATCHED[0])["webhooks"][0];
    assert_eq!((&webhook["timeoutSeconds"], &webhook["clientConfig"]["caBundle"]), (&json!(7), &json!("Y2E=")));

    an_upgrade_leaves_failure_policy_to_outrider_where_that_may_turn_it(&release);
    definitions_follow_the_chart(&release);
    retired(&release);
    uninstalled_and_back(&release);
    pods_pass_from_the_first_moment_where_that_is_asked_for(&release);
}

fn an_upgrade_leaves_failure_policy_to_outrider_where_that_may_turn_it(release: &Release) {
    let policies =
        || WATCHED[..2].iter().map(|it| release.get(it)["webhooks"][0]["failurePolicy"].clone()).collect::<Vec<_>>();
    let flag = "--set=webhook.failOpenWhenScaledToZero=true,replicas=0";
    release.upgrade(&[flag]);
    assert_eq!(policies(), ["Fail"; 2]);
    let open = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]).to_string();
    for object in &WATCHED[..2] {
        release.cluster.kubectl_ok(&["patch", object, "--type=json", "-p", &open], None).unwrap();
    }
    release.upgrade(&[flag, "--set=log.level=debug"]);
    assert_eq!(policies(), ["Ignore"; 2]);
    release.upgrade(&[]);
    assert_eq!(policies(), ["Fail"; 2], "without the flag it is the chart's again");
}

/// Until a replica has served, which here is never.
fn pods_pass_from_the_first_moment_where_that_is_asked_for(release: &Release) {
    let flag = "--set=webhook.failOpenWhenScaledToZero=true";
    succeeded(&release.install(&[flag]));
    let state = || WATCHED[..2].iter().map(|object| State::of(&release.get(object))).collect::<Vec<_>>();
    let opened = state();
    for (object, state) in WATCHED.iter().zip(&opened) {
        assert!(state.policies.values().all(|policy| policy == "Ignore"), "{object}: {:?}", state.policies);
        let was: Vec<&str> = state.was.keys().map(String::as_str).collect();
        assert_eq!(was, state.policies.keys().collect::<Vec<_>>(), "{object}");
        assert!(state.was.values().all(|policy| policy == "Fail"), "{object}: {:?}", state.was);
    }
    let pod = ["run", "early", "--namespace=default", "--image=web", "--labels=app=web", "--dry-run=server"];
    release.cluster.kubectl_ok(&pod, None).unwrap();

    release.upgrade(&[flag, "--set=log.level=debug"]);
    assert_eq!(state(), opened, "an upgrade finds nobody there either");
    for object in &WATCHED[..2] {
        let webhooks = release.get(object)["webhooks"].as_array().unwrap().len();
        let mut closing = vec![json!({"op": "remove", "path": "/metadata/annotations/outrider.dev~1fail-open"})];
        closing.extend(
            (0..webhooks)
                .map(|at| json!({"op": "replace", "path": format!("/webhooks/{at}/failurePolicy"), "value": "Fail"})),
        );
        release.cluster.kubectl_ok(&["patch", object, "--type=json", "-p", &json!(closing).to_string()], None).unwrap();
    }
    let closed = state();
    for arguments in [&[flag][..], &[flag, "--set=log.level=info"]] {
        release.upgrade(arguments);
        assert_eq!(state(), closed, "an upgrade opens nothing");
    }
    succeeded(&release.helm(&["uninstall", "outrider", "--wait", "--timeout=60s"]));
}

/// What the API server does while no replica answers for a webhook configuration.
#[derive(Debug, PartialEq, Eq)]
struct State {
    policies: BTreeMap<String, String>,
    was: BTreeMap<String, String>,
}

impl State {
    fn of(configuration: &Value) -> Self {
        let webhooks = configuration["webhooks"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let policies = webhooks.map(|webhook| (text(&webhook["name"]), text(&webhook["failurePolicy"]))).collect();
        let record = configuration["metadata"]["annotations"]["outrider.dev/fail-open"].as_str();
        let record = record.map(|text| serde_json::from_str::<Value>(text).unwrap());
        let was = record.map(|record| serde_json::from_value(record["was"].clone()).unwrap()).unwrap_or_default();
        Self { policies, was }
    }
}

/// To a version that does not know a field, and back to the one that does.
fn definitions_follow_the_chart(release: &Release) {
    let older = tempfile::tempdir().unwrap();
    let chart = older.path().join("outrider");
    let copied = Command::new("cp").arg("-r").arg(CHART).arg(&chart).status().unwrap();
    assert!(copied.success());
    let part = chart.join("files/always.yaml");
    let known = fs::read_to_string(&part).unwrap();
    let unknown = known.replace("clashPolicy:", "formerName:");
    assert_ne!(known, unknown);
    fs::write(&part, unknown).unwrap();
    let has_field = || release.get(WATCHED[2]).to_string().contains("\"clashPolicy\"");
    release.upgrade_to(chart.to_str().unwrap(), &[]);
    assert!(!has_field());
    release.upgrade(&[]);
    assert!(has_field());
}

/// What the hook's pod does, which kwok only plays: with the rights and the arguments of the hook, and a `CronJob` whose finalizer
/// no controller is left to remove.
fn retired(release: &Release) {
    let cluster = release.cluster;
    release.upgrade(&["--set=webhook.timeoutSeconds=1"]);
    let run = |kubeconfig: &Path, args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
        succeeded(&command.args(args).arg("--kubeconfig").arg(kubeconfig).output().unwrap())
    };
    run(&cluster.kubeconfig(), &["break-glass"]);
    let object = json!({
        "apiVersion": "batch.outrider.dev/v1", "kind": "CronJob",
        "metadata": {"name": "held", "namespace": "default", "finalizers": ["batch.outrider.dev/finalizer", "example.com/theirs"]},
        "spec": {"schedule": "@hourly", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}}}},
    });
    cluster.kubectl_ok(&["create", "-f", "-"], Some(&object.to_string())).unwrap();
    // Not as `Release::upgrade` does it, which has the kind on.
    let turn_off =
        || release.helm(&["upgrade", "outrider", CHART, "--dry-run=server", "--set=kinds.cronjob.enabled=false"]);
    release.upgrade(&["--set=webhook.timeoutSeconds=1"]);
    let stderr = failed(&turn_off());
    assert!(
        stderr.contains("kinds.cronjob.enabled is false, and the kind is on and has 1 objects, such as default/held"),
        "{stderr}"
    );

    let rendered = objects(&succeeded(&template(&["--set=kinds.cronjob.enabled=true"])));
    let of_hook = |object: &&Value| object["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete";
    let (job, rights): (Vec<&Value>, Vec<&Value>) =
        rendered.iter().filter(of_hook).partition(|object| object["kind"] == "Job");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": rights}).to_string();
    cluster.kubectl_ok(&["apply", "-f", "-"], Some(&list)).unwrap();
    let account = cluster.kubeconfig_for("system:serviceaccount:outrider-system:outrider-uninstall", &[]).unwrap();
    // The name that helm gave itself when it made the release.
    let deployment = ["get", "deployment/outrider", "-n=outrider-system", "--show-managed-fields", "-o=json"];
    let deployment: Value = serde_json::from_str(&cluster.kubectl_ok(&deployment, None).unwrap()).unwrap();
    let manager = deployment["metadata"]["managedFields"][0]["manager"].as_str().unwrap();
    let by_helm = ["create", "-f=-", &format!("--field-manager={manager}")];
    cluster.kubectl_ok(&by_helm, Some(&job[0].to_string())).unwrap();
    let args = job[0]["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let args: Vec<&str> = args.iter().map(|arg| arg.as_str().unwrap()).collect();
    let first = "outrider-mutating: removed\noutrider-validating: removed\n\
                 outrider-on-demand-mutating: removed\noutrider-on-demand-validating: removed\n\
                 cronjobs.batch.outrider.dev: v2 no longer served, and nothing converted; 1 object freed of Outrider's finalizer\n";
    assert_eq!(run(&account, &args), first);
    let again = "outrider-mutating: not found, nothing to do\noutrider-validating: not found, nothing to do\n\
                 outrider-on-demand-mutating: not found, nothing to do\n\
                 outrider-on-demand-validating: not found, nothing to do\n\
                 cronjobs.batch.outrider.dev: nothing of Outrider holds it\n";
    assert_eq!(run(&account, &args), again);
    let definition = release.get(WATCHED[3]);
    succeeded(&turn_off());
    assert_eq!(definition["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(definition["spec"]["versions"][1]["served"], false);
    let held: Value = serde_json::from_str(
        &cluster.kubectl_ok(&["get", "cronjobs.v1.batch.outrider.dev", "held", "-n=default", "-o=json"], None).unwrap(),
    )
    .unwrap();
    assert_eq!(held["metadata"]["finalizers"], json!(["example.com/theirs"]));
    cluster.kubectl_ok(&["delete", "job/outrider-uninstall", "-n=outrider-system"], None).unwrap();
    let theirs = json!({"metadata": {"finalizers": null}}).to_string();
    let patch = ["patch", "cronjobs.v1.batch.outrider.dev", "held", "-n=default", "--type=merge", "-p", &theirs];
    cluster.kubectl_ok(&patch, None).unwrap();
}

fn uninstalled_and_back(release: &Release) {
    let said = succeeded(&release.helm(&["uninstall", "outrider", "--wait", "--timeout=60s"]));
    assert!(said.contains("[CustomResourceDefinition] cronjobs.batch.outrider.dev"), "{said}");
    assert!(release.left().is_empty(), "{:?}", release.left());

    // The definitions are there still, one as the hook left it.
    succeeded(&release.install(&["--set=crds.keep=false"]));
    let definition = release.get(WATCHED[3]);
    assert_eq!(definition["spec"]["conversion"]["strategy"], "Webhook");
    assert_eq!(definition["spec"]["versions"][1]["served"], true);

    succeeded(&release.helm(&["uninstall", "outrider", "--wait", "--timeout=60s"]));
    let definitions = release.cluster.kubectl_ok(&["get", "crd", "--output=name"], None).unwrap();
    assert!(!definitions.contains("outrider.dev"), "{definitions}");
}

/// As `docs/install.md` has it, and as who forgets `--no-hooks` has it: the hook of the uninstall is an ordinary Job then.
#[test]
#[ignore = "needs helm and a control plane: make test"]
fn a_chart_that_is_rendered_and_applied_uninstalls_nothing() {
    let cluster = Cluster::start().unwrap();
    install_cert_manager(&cluster);
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    let apply = |rendered: &str| cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(rendered)).unwrap();
    let jobs = || cluster.kubectl_ok(&["get", "jobs", "-n=outrider-system", "--output=name"], None).unwrap();

    let page = fs::read_to_string("docs/install.md").unwrap();
    let (_, command) = page.split_once("helm template outrider charts/outrider ").unwrap();
    let (flags, behind) = command.split_once('|').unwrap();
    assert!(behind.trim_start().starts_with("kubectl apply --server-side -f -"), "{behind}");
    let flags: Vec<&str> = flags.split_whitespace().filter(|word| *word != "\\").collect();
    apply(&succeeded(&helm(Path::new(""), &[&["template", "outrider", CHART], &flags[..]].concat())));
    assert_eq!(jobs(), "", "the page's command renders no hook");

    let rendered = succeeded(&template(&[]));
    apply(&rendered);
    assert_eq!(jobs(), "job.batch/outrider-uninstall\n");
    let account = cluster.kubeconfig_for("system:serviceaccount:outrider-system:outrider-uninstall", &[]).unwrap();
    let all = objects(&rendered);
    let job = all.iter().find(|object| object["kind"] == "Job").unwrap();
    let args = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.args(args.iter().map(|arg| arg.as_str().unwrap())).arg("--kubeconfig").arg(account);
    assert_eq!(
        succeeded(&command.output().unwrap()),
        "nothing is removed: the Job outrider-system/outrider-uninstall was made by kubectl, not by Helm as the hook of an \
         uninstall. Render the chart without hooks (`helm template --no-hooks`), and delete this Job\n"
    );
    for configuration in &WATCHED[..2] {
        cluster.kubectl_ok(&["get", configuration], None).unwrap();
    }
}
