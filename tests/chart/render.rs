//! What the templates make of values.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use clap::Parser as _;
use cluster::{Cluster, Options};
use engine::snapshot::Exclusion;
use engine::yaml;
use outrider::cli::diff::unified;
use outrider::cli::{Cli, Command as Subcommand};
use outrider::kinds::workshop;
use serde_json::{Value, json};

use crate::cluster_objects::{install_cert_manager, install_prometheus_operator};
use crate::helm::{CHART, find, helm, identity, objects, succeeded, template};

const CONFIGURATIONS: [(&str, &str); 2] =
    [("MutatingWebhookConfiguration", "outrider-mutating"), ("ValidatingWebhookConfiguration", "outrider-validating")];

const OWN: &str = "--set=certManager.enabled=false";

fn every_kind() -> String {
    let on: Vec<String> = workshop().map(|kind| format!("kinds.{}.enabled=true", kind.name)).collect();
    format!("--set={}", on.join(","))
}

/// Every preset, and what no preset sets.
fn value_sets() -> Vec<Vec<String>> {
    let mut sets: Vec<Vec<String>> = [
        &[][..],
        &[OWN],
        &["--set=existingSecret=mine"],
        &[&every_kind()],
        &["--values=tests/chart/values/everything.yaml"],
        &["--values=tests/chart/values/collisions.yaml"],
        &["--set=rbac.create=false,rbac.aggregate=false,serviceAccount.create=false,crds.install=false"],
        &["--set=plugins.enabled=false"],
        &["--set=rollouts.evict=false"],
        &["--set=metrics.enabled=false,podDisruptionBudget.enabled=false,uninstallHook.enabled=false,guard.enabled=false"],
    ]
    .iter()
    .map(|set| set.iter().map(|&arg| arg.to_owned()).collect())
    .collect();
    let presets = Path::new(env!("CARGO_MANIFEST_DIR")).join(CHART).join("presets");
    for preset in fs::read_dir(presets).unwrap() {
        sets.push(vec![format!("--values={}", preset.unwrap().path().display())]);
    }
    sets
}

/// Two values that write the same key at one place, and a value that writes a key which the chart writes too.
fn pairs() -> Vec<Vec<String>> {
    const NAME: &str = r"app\.kubernetes\.io/name=other";
    let pairs = [
        ("", format!("podLabels.{NAME}")),
        ("commonLabels.team=a", "podLabels.team=b".to_owned()),
        ("commonLabels.team=a", "serviceMonitor.enabled=true,serviceMonitor.labels.team=b".to_owned()),
        ("commonLabels.team=a", "prometheusRule.enabled=true,prometheusRule.labels.team=b".to_owned()),
        ("commonLabels.team=a", "grafanaDashboard.enabled=true,grafanaDashboard.labels.team=b".to_owned()),
        ("commonLabels.team=a", "webhook.labels.team=b".to_owned()),
        ("", format!("commonLabels.{NAME}")),
        ("", format!("serviceMonitor.enabled=true,serviceMonitor.labels.{NAME}")),
        ("", format!("prometheusRule.enabled=true,prometheusRule.labels.{NAME}")),
        ("", format!("grafanaDashboard.enabled=true,grafanaDashboard.labels.{NAME}")),
        ("", format!("webhook.labels.{NAME}")),
        ("", r"webhook.annotations.cert-manager\.io/inject-ca-from=other".to_owned()),
        ("", r"crds.annotations.helm\.sh/resource-policy=other".to_owned()),
        ("kinds.cronjob.enabled=true", r"crds.annotations.cert-manager\.io/inject-ca-from=other".to_owned()),
        ("", r"podAnnotations.kubectl\.kubernetes\.io/default-container=other".to_owned()),
        ("", "startupProbe.httpGet.port=1,readinessProbe.httpGet.port=1,livenessProbe.httpGet.port=1".to_owned()),
    ];
    let set = |values: &str| format!("--set={values}");
    pairs
        .iter()
        .map(|(one, other)| [*one, other].iter().filter(|it| !it.is_empty()).map(|it| set(it)).collect())
        .collect()
}

/// Rules of a role have no order.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(rules) = object.get_mut("rules").and_then(Value::as_array_mut) {
        rules.sort_by_key(ToString::to_string);
    }
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.remove("labels");
    metadata.remove("annotations");
    object
}

/// Kinds that are always on: SidecarSet, AdmissionPlugin, ClusterLimitRange and PodSecurityProfile.
const PRODUCT: usize = 4;

#[test]
#[ignore = "needs helm: make test"]
fn every_value_set_is_clean_and_the_same_twice_and_holds_no_key_and_no_ca_bundle() {
    assert!(yaml::read("a: 1\nb: {c: 1, c: 2}\n").is_err(), "a key that is twice in a map is refused");
    for set in value_sets().into_iter().chain(pairs()) {
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        succeeded(&helm(Path::new(""), &[&["lint", "--strict", CHART], &set[..]].concat()));
        let text = succeeded(&template(&set));
        assert!(text == succeeded(&template(&set)), "{set:?} renders differently");
        // The parser reads every document, and refuses a key that is twice in a map.
        assert!(objects(&text).len() > 5, "{set:?}");
        for secret in ["caBundle:", "PRIVATE KEY", "kind: Secret"] {
            assert!(!text.contains(secret), "{set:?}: {secret}");
        }
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn the_chart_renders_what_the_code_says() {
    for kinds in ["", "*"] {
        let every = every_kind();
        let set = if kinds.is_empty() { vec![OWN] } else { vec![OWN, &every] };
        let rendered = objects(&succeeded(&template(&set)));
        let mut manifests = Command::new(env!("CARGO_BIN_EXE_outrider"));
        manifests.args([
            "manifests",
            "--namespace=outrider-system",
            "--excluded-namespaces=cert-manager",
            "--enable-kinds",
        ]);
        for object in objects(&succeeded(&manifests.arg(kinds).output().unwrap())) {
            let (kind, name) = identity(&object);
            let found = comparable(find(&rendered, &kind, &name));
            assert_eq!(found, comparable(&object), "{kind} {name}");
        }
        let of_kind = |kind| rendered.iter().filter(|object| object["kind"] == kind).count();
        assert_eq!(
            of_kind("CustomResourceDefinition"),
            if kinds.is_empty() { PRODUCT } else { PRODUCT + workshop().count() }
        );
    }
}

/// Containers of ours and the arguments that they start with.
fn commands(rendered: &[Value]) -> Vec<Subcommand> {
    let pods = rendered.iter().filter_map(|object| match object["kind"].as_str()? {
        "Pod" => Some(&object["spec"]),
        "Job" | "Deployment" => Some(&object["spec"]["template"]["spec"]),
        _ => None,
    });
    let containers = pods.flat_map(|spec| spec["containers"].as_array().unwrap());
    let ours = containers.filter(|it| ["outrider", "uninstall", "verify"].iter().any(|&name| it["name"] == name));
    ours.map(|container| {
        let args = container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
        Cli::try_parse_from(["outrider"].into_iter().chain(args)).unwrap().command
    })
    .collect()
}

/// Checks that the API server and the process leave the same namespaces alone.
pub fn agree_on_namespaces(rendered: &[Value]) {
    let commands = commands(rendered);
    let serve = commands.iter().find_map(|command| match command {
        Subcommand::Serve(serve) => Some(serve),
        _ => None,
    });
    let told = &serve.unwrap().excluded_namespaces;
    let of_process = Exclusion::new("outrider-system", told.iter().cloned()).namespaces;
    for (kind, name) in CONFIGURATIONS {
        let webhook = &find(rendered, kind, name)["webhooks"][0];
        let excluded = webhook["namespaceSelector"]["matchExpressions"][0]["values"].as_array().unwrap();
        let excluded: Vec<&str> = excluded.iter().map(|name| name.as_str().unwrap()).collect();
        assert_eq!(excluded, Vec::from_iter(&of_process), "{name}");
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn the_binary_takes_the_arguments_and_excludes_the_namespaces_of_the_rules() {
    for set in value_sets() {
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        agree_on_namespaces(&objects(&succeeded(&template(&set))));
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn names_are_made_of_the_release_and_the_override() {
    for (set, name) in [
        ("nameOverride=sidecars", "outrider-sidecars"),
        ("nameOverride=out", "outrider"),
        ("nameOverride=sidecars,fullnameOverride=mine", "mine"),
    ] {
        let rendered = objects(&succeeded(&template(&["--set", set])));
        let deployment = find(&rendered, "Deployment", name);
        assert_eq!(deployment["spec"]["template"]["spec"]["serviceAccountName"], name);
        // `outrider doctor` finds the pods by it.
        assert_eq!(deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"], "outrider");
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn another_chart_may_depend_on_this_one_under_a_condition() {
    let parent = tempfile::tempdir().unwrap();
    let dependency = json!({"name": "outrider", "version": "*", "condition": "outrider.enabled"});
    let chart = json!({"apiVersion": "v2", "name": "platform", "version": "1.0.0", "dependencies": [dependency]});
    fs::write(parent.path().join("Chart.yaml"), chart.to_string()).unwrap();
    fs::create_dir(parent.path().join("charts")).unwrap();
    symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join(CHART), parent.path().join("charts/outrider")).unwrap();
    let deployments = |enabled: &str| {
        let values = ["--set=global.imageRegistry=mirror.example.com", "--set", &format!("outrider.enabled={enabled}")];
        let args = [&["template", "platform", parent.path().to_str().unwrap()], &values[..]].concat();
        let rendered = objects(&succeeded(&helm(Path::new(""), &args)));
        rendered.into_iter().filter(|object| object["kind"] == "Deployment").collect::<Vec<_>>()
    };
    assert_eq!(deployments("false"), [Value::Null; 0]);
    let [deployment] = deployments("true").try_into().unwrap();
    assert_eq!(deployment["metadata"]["name"], "platform-outrider");
    let image = deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap();
    assert!(image.starts_with("mirror.example.com/"), "{image}");
}

#[test]
#[ignore = "needs helm: make test"]
fn plugins_that_are_off_leave_nothing_of_their_kind_and_are_not_served() {
    for (set, is_on) in [("plugins.enabled=true", true), ("plugins.enabled=false", false)] {
        let rendered = succeeded(&template(&[&format!("--set={set}")]));
        assert_eq!(rendered.contains("policy.outrider.dev"), is_on, "{set}");
        assert_eq!(rendered.contains("resourceNames: [outrider-image-policy]"), is_on, "{set}");
        assert_eq!(rendered.contains("--enable-plugins=false"), !is_on, "{set}");
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn the_right_to_evict_pods_is_given_unless_it_is_turned_off() {
    for (set, is_given) in [("rollouts.evict=true", true), ("rollouts.evict=false", false), ("rollouts=null", true)] {
        let rendered = objects(&succeeded(&template(&[&format!("--set={set}")])));
        let role = find(&rendered, "ClusterRole", "outrider");
        let evicts =
            |rule: &&Value| rule["resources"] == json!(["pods/eviction"]) && rule["verbs"] == json!(["create"]);
        assert_eq!(role["rules"].as_array().unwrap().iter().filter(evicts).count(), usize::from(is_given), "{set}");
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn values_reach_their_place() {
    let rendered = objects(&succeeded(&template(&["--values=tests/chart/values/everything.yaml"])));
    let mutating = find(&rendered, "MutatingWebhookConfiguration", "outrider-mutating");
    assert_eq!(mutating["metadata"]["annotations"]["admissions.enforcer/disabled"], "true");
    // Two may not write caBundle.
    assert!(mutating["metadata"]["annotations"]["cert-manager.io/inject-ca-from"].is_null());
    for webhook in mutating["webhooks"].as_array().unwrap() {
        // What people say about pods is not said about our own kinds.
        let pods = webhook["name"] == "pod.outrider.dev";
        // What a release says, its next upgrade would put back while Outrider is scaled to zero: it says nothing where that is Fail.
        assert_eq!(webhook["failurePolicy"], if pods { json!("Ignore") } else { Value::Null });
        assert_eq!(webhook["objectSelector"].is_object(), pods);
        assert_eq!(webhook["matchConditions"].is_array(), pods);
        assert_eq!(webhook["timeoutSeconds"], 5);
        assert_eq!(webhook["reinvocationPolicy"], "Never");
    }
    let selector = &mutating["webhooks"][0]["namespaceSelector"];
    assert_eq!(selector["matchLabels"]["team"], "shop");
    assert_eq!(selector["matchExpressions"].as_array().unwrap().len(), 3);
    let role = find(&rendered, "Role", "outrider");
    assert!(role["rules"].as_array().unwrap().iter().any(|rule| rule["resourceNames"][0] == "another"));
    assert!(role["rules"].as_array().unwrap().iter().any(|rule| rule["resources"][0] == "deployments"));
    let pod = &find(&rendered, "Deployment", "outrider")["spec"]["template"]["spec"];
    assert_eq!(pod["dnsPolicy"], "ClusterFirstWithHostNet");
    assert_eq!(pod["serviceAccountName"], "injector");
    let image = pod["containers"][0]["image"].as_str().unwrap();
    assert!(image.starts_with("mirror.example.com/platform/outrider@sha256:0123"), "{image}");
    for object in
        rendered.iter().filter(|object| ["Deployment", "Job", "Pod"].iter().any(|kind| object["kind"] == *kind))
    {
        let spec = object.pointer("/spec/template/spec").unwrap_or_else(|| &object["spec"]);
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "shared"}, {"name": "pull"}, {"name": "by-name"}]));
    }
    assert_eq!(find(&rendered, "ServiceAccount", "injector")["automountServiceAccountToken"], false);
    assert_eq!(pod["automountServiceAccountToken"], true);
    assert_eq!(pod["containers"][0]["ports"][0]["containerPort"], 10250);
    for argument in ["--write-ca-bundle", "--fail-open-when-scaled-to-zero", "--deployment-name=outrider"] {
        assert!(pod["containers"][0]["args"].as_array().unwrap().contains(&argument.into()), "{argument}");
    }
    let certificate = find(&rendered, "Certificate", "outrider-webhook");
    assert_eq!(certificate["spec"]["issuerRef"]["name"], "corporate");
    assert!(!rendered.iter().any(|object| object["kind"] == "Issuer"));
}

/// Who edits a set runs code in every pod that it selects, and a plugin refuses pods of every namespace.
#[test]
#[ignore = "needs helm: make test"]
fn editing_is_part_of_the_edit_role_only_for_objects_of_a_namespace() {
    let rendered = objects(&succeeded(&template(&[&every_kind()])));
    let mut roles = 0;
    for role in rendered.iter().filter(|object| object["kind"] == "ClusterRole") {
        let labels = role["metadata"]["labels"].as_object().unwrap();
        let aggregated = |to: &str| labels.contains_key(&format!("rbac.authorization.k8s.io/aggregate-to-{to}"));
        let name = role["metadata"]["name"].as_str().unwrap();
        let is_product = ["sidecarset", "admissionplugin", "clusterlimitrange", "podsecurityprofile"]
            .iter()
            .any(|kind| name.contains(kind));
        assert_eq!(aggregated("view"), name.ends_with("-viewer"), "{name}");
        assert_eq!(aggregated("edit"), name.ends_with("-editor") && !is_product, "{name}");
        roles += usize::from(aggregated("view"));
    }
    assert_eq!(roles, PRODUCT + workshop().count());
}

#[test]
#[ignore = "needs helm: make test"]
fn the_default_release_is_as_recorded() {
    let found = succeeded(&template(&["--set=crds.install=false"]));
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chart/golden/default.yaml");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&recording, &found).unwrap();
    }
    let expected = fs::read_to_string(&recording).unwrap_or_default();
    assert!(expected == found, "{}", unified(&expected, &found, "recorded", "found"));
}

#[test]
#[ignore = "needs a control plane: make test"]
fn the_api_server_takes_every_value_set_and_the_kustomize_tree() {
    let options = Options { kwok: false, controller_manager: false, ..Options::default() };
    let cluster = Cluster::start_with(&options).unwrap();
    install_cert_manager(&cluster);
    install_prometheus_operator(&cluster);
    cluster.kubectl_ok(&["create", "namespace", "outrider-system"], None).unwrap();
    // From then on pods that the restricted level would refuse are warned of.
    let restricted = ["label", "namespace", "outrider-system", "pod-security.kubernetes.io/warn=restricted"];
    cluster.kubectl_ok(&restricted, None).unwrap();
    let taken = |what: &str, text: &str| {
        // A pod needs its service account, which a dry run does not leave.
        let mut objects = objects(text);
        objects.retain(|object| object["kind"] != "Pod");
        let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
        let apply = ["apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-"];
        let output = cluster.kubectl(&apply, Some(&list)).unwrap();
        assert!(output.success(), "{what}: {}", output.stderr);
        // The network of the node is what no namespace of that level allows.
        let warned = output.stderr.contains("Warning");
        assert_eq!(warned, text.contains("hostNetwork: true"), "{what}: {}", output.stderr);
    };
    for set in value_sets() {
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        taken(&format!("{set:?}"), &succeeded(&template(&set)));
    }
    for folder in ["config/default", "config/prometheus", "config/network-policy"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let text = cluster.kubectl_ok(&["kustomize", folder.to_str().unwrap()], None).unwrap();
        taken(&folder.display().to_string(), &text);
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn the_alert_on_replicas_is_about_the_deployment_of_the_release() {
    let args =
        ["template", "edge", CHART, "--namespace=sidecars", "--set=prometheusRule.enabled=true,fullnameOverride=gate"];
    let rendered = objects(&succeeded(&helm(Path::new(""), &args)));
    let rule = find(&rendered, "PrometheusRule", "gate");
    let groups = rule["spec"]["groups"].to_string();
    assert!(
        groups.contains(r#"kube_deployment_spec_replicas{namespace=\"sidecars\",deployment=\"gate\"}"#),
        "{groups}"
    );
    assert!(!groups.contains("outrider-system"), "{groups}");
}
