//! Names that YAML takes for something else, and keys that two values share.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::helm::{CHART, find, helm, objects, succeeded, template};

/// A number in four notations, a truth value in two, and nothing.
const NAMES: [&str; 6] = ["1234", "true", "0x10", "1e3", "null", "on"];

/// Texts that are given apart, because other objects are rendered with them, and texts of which the chart knows every word.
const APART: [&str; 4] = ["existingSecret", "certManager.issuerRef.name", "controllers", "log.level"];

/// Every value that is a text, or a list or a map of such, with this text; `None` where the schema allows none.
fn texts(path: &str, schema: &Value, text: &str) -> Option<Value> {
    let is_text = |schema: &Value| {
        // A duration and a digest are never such a word.
        let has_form = schema["pattern"].as_str().is_some_and(|form| form.contains("[0-9]+") || form.contains("{32,}"));
        schema["type"] == "string" && !has_form
    };
    let of_any = |schema: &Value| schema["anyOf"].as_array().is_some_and(|any| any.iter().any(is_text));
    if let Some(fields) = schema["properties"].as_object() {
        let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let fields = fields.iter().filter_map(|(name, field)| Some((name.clone(), texts(&inner(name), field, text)?)));
        return Some(fields.collect::<serde_json::Map<_, _>>().into());
    }
    match schema["type"].as_str() {
        _ if APART.contains(&path) => None,
        Some("object") if is_text(&schema["additionalProperties"]) => Some(json!({"a": text})),
        Some("array") if is_text(&schema["items"]) || of_any(&schema["items"]) => Some(json!([text])),
        _ if is_text(schema) => Some(text.into()),
        _ => None,
    }
}

/// How many texts are in a value.
fn count(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Array(items) => items.iter().map(count).sum(),
        Value::String(_) => 1,
        _ => 0,
    }
}

/// The values in which every text is this one.
fn values(text: &str) -> Value {
    let schema =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(CHART).join("values.schema.json")).unwrap();
    let mut values = texts("", &serde_json::from_str(&schema).unwrap(), text).unwrap();
    // Lists of objects that are templates of their own.
    values["extraEnv"] = json!([{"name": text, "value": text}]);
    values["tolerations"] = json!([{"key": text, "value": text, "operator": "Equal"}]);
    for object in ["serviceMonitor", "prometheusRule", "grafanaDashboard", "networkPolicy"] {
        values[object]["enabled"] = true.into();
    }
    values
}

/// The release, its namespace and every text of the values are called so.
fn rendered_as(name: &str, more: &[&str]) -> Vec<Value> {
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    fs::write(file.path(), values(name).to_string()).unwrap();
    let of_file = format!("--values={}", file.path().display());
    objects(&succeeded(&helm(
        Path::new(""),
        &[&["template", name, CHART, "--namespace", name, &of_file], more].concat(),
    )))
}

/// Where two values are of different types, or one has what the other lacks.
fn differences(path: &str, expected: &Value, found: &Value) -> Vec<String> {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) if expected.len() == found.len() => expected
            .iter()
            .flat_map(|(key, value)| {
                differences(&format!("{path}.{key}"), value, found.get(key).unwrap_or(&Value::Null))
            })
            .collect(),
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            expected.iter().zip(found).flat_map(|(expected, found)| differences(path, expected, found)).collect()
        }
        (Value::String(_), Value::String(_)) => Vec::new(),
        _ if expected == found => Vec::new(),
        _ => vec![format!("{path}: {found} in place of {expected}")],
    }
}

#[test]
#[ignore = "needs helm: make test"]
fn a_name_that_looks_like_a_number_or_a_truth_value_stays_a_name() {
    let own = ["--set=certManager.enabled=false"];
    let secret = ["--set-string=existingSecret=on"];
    let issuer = ["--set-string=certManager.issuerRef.name=on"];
    // The name of the release shows where nothing replaces it, and a tag and a registry where nothing else wins.
    let release = ["--set=fullnameOverride=,serviceAccount.name=,global.imageRegistry="];
    let all = ["--values=tests/chart/values/everything.yaml", "--set-string=certManager.issuerRef.name=on"];
    assert!(count(&values("word")) > 35, "{}", values("word"));
    for values in [&[][..], &own, &secret, &issuer, &release, &all] {
        let expected = rendered_as("word", values);
        for name in NAMES {
            let found = rendered_as(name, values);
            assert_eq!(expected.len(), found.len(), "{name}");
            for (expected, found) in expected.iter().zip(&found) {
                let kind = expected["kind"].as_str().unwrap();
                let wrong = differences(kind, expected, found);
                assert!(wrong.is_empty(), "{name}: {wrong:?}");
            }
        }
    }
}

/// The parser refuses a key that is twice in a map.
#[test]
#[ignore = "needs helm: make test"]
fn a_key_of_two_values_is_written_once_and_the_charts_own_wins() {
    let rendered = objects(&succeeded(&template(&["--values=tests/chart/values/collisions.yaml"])));
    let labels = |kind: &str, name: &str| find(&rendered, kind, name)["metadata"]["labels"].clone();
    for (kind, name, team) in [
        ("Service", "outrider-webhook", "platform"),
        ("MutatingWebhookConfiguration", "outrider-mutating", "webhooks"),
        ("ServiceMonitor", "outrider", "monitoring"),
        ("PrometheusRule", "outrider", "monitoring"),
        ("ConfigMap", "outrider-dashboard", "dashboards"),
    ] {
        let found = labels(kind, name);
        assert_eq!((&found["team"], &found["app.kubernetes.io/name"]), (&json!(team), &json!("outrider")), "{kind}");
        assert_eq!(found["app.kubernetes.io/managed-by"], "Helm", "{kind}");
        assert_eq!(found["app.kubernetes.io/version"], "0.1.0", "{kind}");
        assert_eq!(found["helm.sh/chart"], "outrider-0.1.0", "{kind}");
    }
    assert_eq!(labels("Service", "outrider-metrics")["app.kubernetes.io/component"], "metrics");
    assert_eq!(labels("Job", "outrider-uninstall")["app.kubernetes.io/component"], "uninstall");
    let template = &find(&rendered, "Deployment", "outrider")["spec"]["template"];
    let pod = &template["metadata"]["labels"];
    assert_eq!(pod["app.kubernetes.io/component"], "webhook");
    assert_eq!(pod["app.kubernetes.io/instance"], "outrider");
    assert_eq!((&pod["team"], &pod["tier"]), (&json!("pods"), &json!("of-pods")));
    assert_eq!(template["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"], "outrider");
    let probe = &template["spec"]["containers"][0]["startupProbe"];
    assert_eq!(
        *probe,
        json!({"httpGet": {"path": "/livez", "port": "health"}, "periodSeconds": 3, "failureThreshold": 30})
    );
}

#[test]
#[ignore = "needs helm: make test"]
fn pods_of_hooks_are_reached_by_nobody_and_reach_what_the_others_reach() {
    let policies = |values: &[&str]| {
        let rendered = objects(&succeeded(&template(&[&["--set=networkPolicy.enabled=true"], values].concat())));
        ["outrider", "outrider-hooks"].map(|name| find(&rendered, "NetworkPolicy", name)["spec"].clone())
    };
    for policy in policies(&[]) {
        assert_eq!((&policy["policyTypes"], &policy["egress"]), (&json!(["Ingress"]), &Value::Null));
    }
    let [_, hooks] = policies(&[]);
    assert_eq!(hooks["ingress"], json!([]));
    assert_eq!(hooks["podSelector"]["matchExpressions"][0]["values"], json!(["uninstall", "verify"]));
    let ports = |list: &[(u16, &str)]| -> Value {
        let ports: Vec<Value> =
            list.iter().map(|(port, protocol)| json!({"port": port, "protocol": protocol})).collect();
        json!({"ports": ports})
    };
    let [pods, hooks] = policies(&["--values=tests/chart/values/collisions.yaml"]);
    assert_eq!(pods["policyTypes"], json!(["Ingress", "Egress"]));
    let labels = &pods["podSelector"]["matchLabels"];
    let mut replicas = ports(&[(8081, "TCP")]);
    replicas["to"] = json!([{"podSelector": {"matchLabels": labels}}]);
    assert_eq!(
        pods["egress"],
        json!([ports(&[(53, "UDP"), (53, "TCP")]), ports(&[(8443, "TCP")]), replicas, ports(&[(9000, "TCP")])])
    );
    assert_eq!(pods["egress"], hooks["egress"]);
}

#[test]
#[ignore = "needs helm: make test"]
fn every_pod_of_a_release_requests_ephemeral_storage_and_has_a_limit() {
    let rendered = objects(&succeeded(&template(&[])));
    let templates = ["/spec/template/spec/containers", "/spec/containers"];
    let containers = |object: &Value| -> Vec<Value> {
        templates.iter().filter_map(|path| object.pointer(path)?.as_array().cloned()).flatten().collect()
    };
    let mut kinds: Vec<&str> = Vec::new();
    for object in &rendered {
        for container in containers(object) {
            kinds.push(object["kind"].as_str().unwrap());
            let of = |list: &str| container["resources"][list]["ephemeral-storage"].clone();
            assert_eq!((of("requests"), of("limits")), (json!("64Mi"), json!("1Gi")), "{container}");
        }
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["Deployment", "Job", "Pod"]);
}

#[test]
#[ignore = "needs helm: make test"]
fn the_policies_are_about_the_account_and_the_namespace_of_the_release() {
    let rendered = |values: &[&str]| {
        let args = [&["template", "mine", CHART, "--namespace=hooks", "--set=serviceAccount.name=injector"], values];
        objects(&succeeded(&helm(Path::new(""), &args.concat())))
    };
    let found = rendered(&[]);
    let suffixes = ["webhooks", "definitions", "pods"];
    for name in suffixes.map(|suffix| format!("mine-outrider-guard-{suffix}")) {
        let spec = &find(&found, "ValidatingAdmissionPolicy", &name)["spec"];
        let only = "request.userInfo.username == 'system:serviceaccount:hooks:injector'";
        assert_eq!(spec["matchConditions"], json!([{"name": "only-the-account", "expression": only}]));
        assert_eq!(spec["variables"][0], json!({"name": "ownNamespace", "expression": "'hooks'"}));
        assert!(!spec.to_string().contains("outrider-system"), "{spec}");
        let binding = &find(&found, "ValidatingAdmissionPolicyBinding", &name)["spec"];
        assert_eq!(*binding, json!({"policyName": name, "validationActions": ["Deny"]}));
    }
    let variable = |rendered: &[Value], policy: &str, name: &str| {
        let policy = find(rendered, "ValidatingAdmissionPolicy", &format!("mine-outrider-guard-{policy}"));
        let variables = policy["spec"]["variables"].as_array().unwrap().clone();
        variables.into_iter().find(|it| it["name"] == name).unwrap()["expression"].clone()
    };
    assert_eq!(variable(&found, "webhooks", "allResources"), "false");
    assert_eq!(variable(&rendered(&["--set=guard.allResources=true"]), "webhooks", "allResources"), "true");
    let excluded = |rendered: &[Value]| variable(rendered, "pods", "excludedNamespaces");
    let chosen = rendered(&["--set=excludedNamespaces={shop,kube-system}"]);
    assert_eq!(excluded(&chosen), "['kube-node-lease', 'kube-public', 'kube-system', 'shop']");
    let without = rendered(&["--set=guard.enabled=false"]);
    assert!(without.iter().all(|object| !object["kind"].as_str().unwrap().contains("AdmissionPolicy")));
    let refused = rendered_for(&["--api-versions=v1/Pod", "--api-versions=cert-manager.io/v1/Certificate"]);
    assert!(refused.contains("Set guard.enabled to false, and read docs/security.md"), "{refused}");
}

/// What helm says where the API server serves these kinds and no others.
fn rendered_for(kinds: &[&str]) -> String {
    String::from_utf8(template(kinds).stderr).unwrap()
}

/// Security contexts of all pods of a manifest.
fn security_contexts(objects: &[Value]) -> Vec<&Value> {
    let pods = objects.iter().filter_map(|object| object.pointer("/spec/template/spec").or_else(|| object.get("spec")));
    let pods = pods.filter(|spec| spec["containers"].is_array());
    pods.flat_map(|spec| {
        let of_containers =
            spec["containers"].as_array().unwrap().iter().map(|container| &container["securityContext"]);
        std::iter::once(&spec["securityContext"]).chain(of_containers).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
#[ignore = "needs helm: make test"]
fn on_openshift_no_pod_names_a_user_or_a_group() {
    let fixed = |preset: &[&str]| {
        let objects = objects(&succeeded(&template(preset)));
        let contexts = security_contexts(&objects);
        assert!(contexts.len() > 2, "{contexts:?}");
        let names = ["runAsUser", "runAsGroup", "fsGroup", "supplementalGroups"];
        contexts.iter().filter(|context| names.iter().any(|name| context.get(name).is_some())).count()
    };
    assert!(fixed(&[]) > 0);
    assert_eq!(fixed(&["--values=charts/outrider/presets/openshift.yaml"]), 0);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// The notes of a release with these values. helm prints notes where it installs; as a template of a copy of the chart they are rendered
/// without a cluster.
fn notes(values: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join(CHART), folder.path());
    let text = fs::read_to_string(folder.path().join("templates/NOTES.txt")).unwrap();
    let template = format!(
        "{{{{ define \"test.notes\" }}}}{text}{{{{ end }}}}notes: {{{{ include \"test.notes\" . | toJson }}}}\n"
    );
    fs::write(folder.path().join("templates/notes.yaml"), template).unwrap();
    let (chart, values) = (folder.path().to_str().unwrap(), format!("--set={values}"));
    let args = ["template", "outrider", chart, "--namespace=x", "--show-only=templates/notes.yaml", &values];
    succeeded(&helm(Path::new(""), &args))
}

#[test]
#[ignore = "needs helm: make test"]
fn the_notes_name_every_ca_bundle_of_a_certificate_of_ones_own() {
    let of_kind = |cronjob: bool| notes(&format!("existingSecret=mine,kinds.cronjob.enabled={cronjob}"));
    let definition = "caBundle of the CustomResourceDefinition cronjobs.batch.outrider.dev";
    let (on, off) = (of_kind(true), of_kind(false));
    assert!(on.contains("caBundle of every webhook") && on.contains(definition));
    assert!(off.contains("caBundle of every webhook") && !off.contains(definition));
}

#[test]
#[ignore = "needs helm: make test"]
fn the_notes_say_what_authors_of_cronjobs_may_do_where_the_kind_is_on() {
    let said = |values: &str| {
        let notes = notes(values);
        notes.contains("can run pods there under any service account") && notes.contains("docs/cronjob.md")
    };
    assert!(said("kinds.cronjob.enabled=true") && !said("kinds.cronjob.enabled=false"));
}

#[test]
#[ignore = "needs helm: make test"]
fn groups_that_may_read_sets_are_bound_to_the_viewers_alone() {
    let bindings = |values: &[&str]| {
        let objects = objects(&succeeded(&template(values)));
        let to_groups = objects.into_iter().filter(|object| object["subjects"][0]["kind"] == "Group");
        to_groups.map(|object| object["roleRef"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(bindings(&[]).is_empty());
    let found = bindings(&["--set=rbac.viewers={system:authenticated,team:dev}"]);
    assert_eq!(
        found,
        [
            "outrider-sidecarset-viewer",
            "outrider-admissionplugin-viewer",
            "outrider-clusterlimitrange-viewer",
            "outrider-podsecurityprofile-viewer"
        ]
    );
}
