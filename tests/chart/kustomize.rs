//! `config/default` says what the chart says.

use std::path::Path;
use std::process::Command;

use cluster::{Tools, progress_on_stderr};
use serde_json::Value;

use crate::helm::{find, identity, objects, succeeded, template};
use crate::render::agree_on_namespaces;

fn kustomized(folder: &str) -> Vec<Value> {
    let tools = Tools::locate(&progress_on_stderr).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    objects(&succeeded(&Command::new(tools.program("kubectl")).arg("kustomize").arg(folder).output().unwrap()))
}

#[test]
#[ignore = "needs helm and kubectl: make test"]
fn chart_and_kustomize_tree_make_the_same_certificates_service_and_pods() {
    let tree = kustomized("config/default");
    agree_on_namespaces(&tree);
    let chart = objects(&succeeded(&template(&[])));
    let objects = [
        ("Issuer", "outrider-selfsigned"),
        ("Issuer", "outrider-ca"),
        ("Certificate", "outrider-ca"),
        ("Certificate", "outrider-webhook"),
    ];
    for (kind, name) in objects {
        assert_eq!(find(&tree, kind, name)["spec"], find(&chart, kind, name)["spec"], "{kind} {name}");
    }
    let service = |objects: &[Value]| find(objects, "Service", "outrider-webhook")["spec"]["ports"].clone();
    assert_eq!(service(&tree), service(&chart));
    let deployment = |objects: &[Value]| find(objects, "Deployment", "outrider")["spec"].clone();
    let (tree, chart) = (deployment(&tree), deployment(&chart));
    assert_eq!(tree["strategy"], chart["strategy"]);
    assert_eq!(tree["replicas"], chart["replicas"]);
    let (tree, chart) = (&tree["template"]["spec"], &chart["template"]["spec"]);
    for field in ["securityContext", "serviceAccountName", "terminationGracePeriodSeconds", "volumes", "nodeSelector"] {
        assert_eq!(tree[field], chart[field], "{field}");
    }
    let (tree, chart) = (&tree["containers"][0], &chart["containers"][0]);
    for (field, value) in chart.as_object().unwrap() {
        if !["args", "image", "imagePullPolicy"].contains(&field.as_str()) {
            assert_eq!(tree[field], *value, "{field}");
        }
    }
}

/// `outrider render -k` has kubectl build the kustomization.
#[test]
#[ignore = "needs kubectl: make test"]
fn a_kustomization_is_built_and_injected() {
    let tools = Tools::locate(&progress_on_stderr).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("kustomization.yaml", "resources: [pod.yaml]\nnamePrefix: prod-\nnamespace: shop\n");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec: {containers: [{name: web, image: 'web:1'}]}\n";
    write("pod.yaml", pod);
    let set = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: proxy}\n\
               spec: {selector: {matchLabels: {app: web}}, containers: [{name: proxy, image: 'proxy:1'}]}\n";
    let sets = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
    std::fs::write(sets.path(), set).unwrap();
    let mut render = Command::new(env!("CARGO_BIN_EXE_outrider"));
    render.args(["render", "--manifests"]).arg(sets.path()).arg("-k").arg(folder.path());
    let rendered = render.env("PATH", tools.program("kubectl").parent().unwrap()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&rendered.stderr), "1 injected\n");
    let pod = objects(&succeeded(&rendered)).remove(0);
    assert_eq!((&pod["metadata"]["name"], &pod["metadata"]["namespace"]), (&"prod-web".into(), &"shop".into()));
    let names: Vec<&Value> = pod["spec"]["containers"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["proxy", "web"]);
}

/// What `outrider render -o patch` prints is added to a kustomization as docs/render.md shows, and kubectl builds the same objects that
/// `outrider render` prints.
#[test]
#[ignore = "needs kubectl: make test"]
fn a_kustomization_with_the_rendered_patches_builds_the_rendered_objects() {
    let tools = Tools::locate(&progress_on_stderr).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    std::fs::create_dir(&base).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("base/kustomization.yaml", "resources: [app.yaml]\n");
    let job_pod =
        "{metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: web, image: 'web:1'}]}}";
    let daemon = job_pod
        .replace("restartPolicy: Never, ", "")
        .replace("image: 'web:1'", "image: 'web:1', env: [{name: A, value: b}]");
    let app = [
        format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, namespace: shop}}\nspec: {{selector: {{matchLabels: {{app: web}}}}, template: {daemon}}}\n"),
        format!("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: web, namespace: shop, annotations: {{a/b: c}}}}\nspec: {{selector: {{matchLabels: {{app: web}}}}, template: {daemon}}}\n"),
        format!("apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: web.nightly, namespace: bank}}\nspec: {{schedule: '0 0 * * *', jobTemplate: {{spec: {{template: {job_pod}}}}}}}\n"),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, labels: {app: web}}\nspec: {containers: [{name: web, image: 'web:1'}]}\n".to_owned(),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: webber, namespace: shop}\nspec: {containers: [{name: web, image: 'web:1'}]}\n".to_owned(),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {a: b}\n".to_owned(),
    ];
    write("base/app.yaml", &app.join("---\n"));
    let set = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: proxy}\n\
               spec: {selector: {matchLabels: {app: web}}, containers: [{name: proxy, image: 'proxy:1', podInjectPolicy: AfterAppContainer, \
               shareVolumePolicy: {type: enabled}}], initContainers: [{name: agent, image: 'agent:1', restartPolicy: Always}], \
               volumes: [{name: logs, emptyDir: {}}]}\n";
    write("set.yaml", set);
    let render = |format: &str| {
        let mut render = Command::new(env!("CARGO_BIN_EXE_outrider"));
        render
            .args(["render", "--manifests", "set.yaml", "-f", "base/app.yaml", "-o", format])
            .current_dir(folder.path());
        succeeded(&render.output().unwrap())
    };
    std::fs::create_dir(folder.path().join("overlay")).unwrap();
    write("overlay/kustomization.yaml", &format!("resources: [../base]\n{}", render("patch")));
    let built = objects(&succeeded(
        &Command::new(tools.program("kubectl")).arg("kustomize").arg(folder.path().join("overlay")).output().unwrap(),
    ));
    let rendered = objects(&render("yaml"));
    assert_eq!(built.len(), rendered.len());
    for object in &rendered {
        let (kind, name) = identity(object);
        assert_eq!(find(&built, &kind, &name), object, "{kind} {name}");
    }
    let changed = rendered.iter().filter(|object| object.to_string().contains("proxy:1")).count();
    assert_eq!(changed, 4, "those that the set selects");
}

#[test]
#[ignore = "needs kubectl: make test"]
fn samples_make_the_set_first_and_the_pods_that_it_selects_last() {
    let kinds: Vec<Value> = kustomized("config/samples").iter().map(|object| object["kind"].clone()).collect();
    assert_eq!((kinds.first(), kinds.last()), (Some(&"SidecarSet".into()), Some(&"Deployment".into())), "{kinds:?}");
}

#[test]
#[ignore = "needs kubectl: make test"]
fn cert_manager_is_told_of_everything_that_has_a_ca_bundle() {
    let tree = kustomized("config/default");
    let annotation = |object: &Value| object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"].clone();
    for object in &tree {
        let kind = object["kind"].as_str().unwrap();
        let called = kind.ends_with("WebhookConfiguration") || object["spec"]["conversion"]["webhook"].is_object();
        let wanted = if called { Value::from("outrider-system/outrider-webhook") } else { Value::Null };
        assert_eq!(annotation(object), wanted, "{kind} {}", object["metadata"]["name"]);
    }
    assert!(tree.iter().any(|object| object["spec"]["conversion"]["webhook"].is_object()));
}
