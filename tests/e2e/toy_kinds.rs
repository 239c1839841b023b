//! What is added to Outrider in one row works on a real API server: a kind without namespaces, its printed definition, roles
//! and webhooks, its controller.

use std::path::Path;
use std::sync::OnceLock;
use std::thread;

use clap::{CommandFactory as _, FromArgMatches as _};
use cluster::{Cluster, Options};
use outrider::cli::fail_open::FailOpenArgs;
use outrider::cli::kinds::KindArgs;
use outrider::cli::manifests::{self, ManifestGroup, ManifestsArgs};
use outrider::cli::streams::Streams;
use outrider::cli::{Cli, Command, serve};
use outrider::kinds::Kinds;

use crate::process::{eventually, free_address, is_ready};
use crate::room::may_register;
use crate::toy_kind::MOTTO;
use crate::toy_stages::TOYS;

/// What `outrider manifests` prints of these kinds.
fn printed(kinds: &Kinds, what: ManifestGroup) -> String {
    let args = ManifestsArgs {
        what: Some(what),
        namespace: "outrider-system".to_owned(),
        excluded_namespaces: Vec::new(),
        kinds: KindArgs { enable_kinds: kinds.clone() },
        fail_open: FailOpenArgs { fail_open_when_scaled_to_zero: false, deployment_name: "outrider".to_owned() },
        output_dir: None,
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut streams = Streams { stdin: &mut std::io::empty(), stdout: &mut stdout, stderr: &mut stderr };
    manifests::run(&args, &mut streams).unwrap();
    String::from_utf8(stdout).unwrap()
}

/// A cluster with the printed definitions and roles of these kinds, served by `outrider serve` in a thread that stays for as long as
/// the tests run: signals alone end it.
fn set_up() -> Cluster {
    let kinds = Kinds::default().with(&MOTTO).with(&TOYS);
    let cluster = Cluster::start_with(&Options::default()).unwrap();
    let apply = |text: &str| cluster.kubectl_ok(&["apply", "--server-side", "-f", "-"], Some(text)).unwrap();
    apply(&printed(&kinds, ManifestGroup::Crds));
    cluster.wait_for_definitions().unwrap();
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    apply(&printed(&kinds, ManifestGroup::Rbac));
    apply(&printed(&kinds, ManifestGroup::Policies));
    may_register(&cluster);
    let groups = ["system:serviceaccounts", "system:serviceaccounts:outrider-system", "system:authenticated"];
    let account = cluster.kubeconfig_for("system:serviceaccount:outrider-system:outrider", &groups).unwrap();
    let health = serve_in_a_thread(&account, kinds);
    eventually("the process is ready", || is_ready(health));
    // It logs panics; those of tests are for who reads the tests.
    drop(std::panic::take_hook());
    let dry = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let probe = |spec: &str| cluster.kubectl(&dry, Some(&motto("probe", spec))).unwrap();
    eventually("a Motto is defaulted", || probe("{}").stdout.contains("Carpe diem"));
    eventually("a Motto is validated", || !probe(r#"{text: "a\nb"}"#).success());
    cluster
}

fn motto(name: &str, spec: &str) -> String {
    format!("apiVersion: toy.example.com/v1\nkind: Motto\nmetadata: {{name: {name}}}\nspec: {spec}\n")
}

/// The one cluster of these tests: a process serves once.
pub fn served() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(set_up)
}

fn serve_in_a_thread(kubeconfig: &Path, kinds: Kinds) -> std::net::SocketAddr {
    let (webhooks, health) = (free_address(), free_address());
    let flags = [
        "outrider".to_owned(),
        "serve".to_owned(),
        "--certificates=self".to_owned(),
        "--register-webhooks".to_owned(),
        format!("--webhook-url=https://{webhooks}"),
        format!("--webhook-bind-address={webhooks}"),
        format!("--health-probe-bind-address={health}"),
        "--metrics-bind-address=0".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
    ];
    thread::spawn(move || {
        let matches = Cli::command().get_matches_from(flags);
        let Command::Serve(mut args) = Cli::from_arg_matches(&matches).unwrap().command else { unreachable!() };
        args.kinds.enable_kinds = kinds;
        serve::execute(*args, matches.subcommand_matches("serve").unwrap());
    });
    health
}

/// The row goes through the manifests, and to the same places as every other kind.
#[test]
fn a_kind_in_one_row_is_in_every_manifest() {
    let kinds = Kinds::default().with(&MOTTO);
    let (with, without) = (|what| printed(&kinds, what), |what| printed(&Kinds::default(), what));
    for (what, texts) in [
        (ManifestGroup::Crds, &["name: mottos.toy.example.com", "scope: Cluster"][..]),
        (ManifestGroup::Rbac, &["mottos/status", "outrider-motto-editor", "outrider-motto-viewer"]),
        (ManifestGroup::Webhooks, &["/mutate-toy-example-com-v1-motto", "/validate-toy-example-com-v1-motto"]),
    ] {
        for text in texts {
            assert!(with(what).contains(text), "{text}");
            assert!(!without(what).contains("motto"), "a kind that is off leaves nothing");
        }
    }
    assert!(outrider::registry::registry(&kinds).find("/mutate-toy-example-com-v1-motto").is_some());
}

#[test]
#[ignore = "needs a real API server: make test-cluster"]
fn a_cluster_scoped_kind_in_one_row_is_defaulted_validated_and_reconciled() {
    let cluster = served();
    let created = cluster.kubectl(&["create", "-f", "-"], Some(&motto("bad", r#"{text: "a\nb"}"#))).unwrap();
    assert!(created.stderr.contains("spec.text: Invalid value") && created.stderr.contains("must be one line"));
    cluster.kubectl_ok(&["create", "-f", "-"], Some(&motto("good", "{}"))).unwrap();
    let get = |object: &str, path: &str| {
        cluster.kubectl_ok(&["get", object, "-o", &format!("jsonpath={path}")], None).unwrap()
    };
    assert_eq!(get("motto/good", "{.spec.text}"), "Carpe diem");
    eventually("the status is written", || get("motto/good", "{.status.said}") == "Carpe diem");
    assert_eq!(get("configmap/good", "{.data.text}"), "Carpe diem");
    assert_eq!(get("configmap/good", "{.metadata.ownerReferences[0].kind}"), "Motto");
    // An event of what it keeps, which lies in a namespace, is an event of the object, which does not.
    cluster.kubectl_ok(&["delete", "configmap/good"], None).unwrap();
    eventually("it is made again", || cluster.kubectl(&["get", "configmap/good"], None).unwrap().success());
}
