//! `outrider render`: every workload kind, every format, and what stays as it is.

use admission::patch::apply;
use engine::yaml;
use outrider::cli::streams::CommandOutcome;
use outrider::input;
use serde_json::Value;

use crate::golden;
use crate::run::{Ran, outrider};

const WORKLOADS: &str = "tests/offline/input/workloads.yaml";
const ADDITIONS: &str = "tests/offline/input/additions/sets.yaml";
const SPREAD: &str = "tests/offline/input/spread.yaml";
const ONE: &str = "tests/offline/input/deployment.yaml";

fn render(more: &[&str], stdin: &str) -> Ran {
    outrider(&[&["render", "--manifests", "tests/fixtures/manifests"], more].concat(), stdin)
}

#[test]
fn output_is_as_recorded_in_every_format() {
    let table: [(&str, &[&str]); 20] = [
        ("workloads-yaml.txt", &["-f", WORKLOADS]),
        ("workloads-diff.txt", &["-f", WORKLOADS, "-o", "diff"]),
        ("workloads-patch.txt", &["-f", WORKLOADS, "-o", "patch"]),
        ("one-json.txt", &["-f", ONE, "-o", "json"]),
        ("two-json.txt", &["-f", ONE, "tests/offline/input/configmap.yaml", "-o", "json"]),
        ("namespace.txt", &["-f", "tests/offline/input/audited.yaml", "-n", "shop"]),
        ("namespace-unknown.txt", &["-f", "tests/offline/input/audited.yaml", "-n", "elsewhere", "-o", "diff"]),
        ("unchanged-diff.txt", &["-f", "tests/offline/input/unchanged.yaml", "-n", "bare", "-o", "diff"]),
        ("unchanged-patch.txt", &["-f", "tests/offline/input/unchanged.yaml", "-n", "bare", "-o", "patch"]),
        ("unchanged-yaml.txt", &["-f", "tests/offline/input/unchanged.yaml", "-n", "bare"]),
        ("no-pods.txt", &["-f", "tests/offline/input/configmap.yaml", "-o", "diff"]),
        ("refused.txt", &["-f", ONE, "tests/offline/input/refused.yaml"]),
        ("no-template.txt", &["-f", "tests/offline/input/no-template.yaml"]),
        ("openkruise.txt", &["--manifests", "tests/offline/input/openkruise", "-f", "tests/offline/input/nginx.yaml"]),
        ("additions.txt", &["--manifests", ADDITIONS, "-f", "tests/offline/input/additions/workloads.yaml"]),
        (
            "old-kubernetes.txt",
            &["--manifests", ADDITIONS, "-f", "tests/offline/input/additions/workloads.yaml", "--kube-version", "1.28"],
        ),
        ("bad-templates.txt", &["-f", ONE, "tests/offline/input/bad-templates.yaml"]),
        ("create-namespaces.txt", &["-f", SPREAD, "-n", "given", "--create-namespaces"]),
        ("create-namespaces-json.txt", &["-f", ONE, "-n", "given", "--create-namespaces", "-o", "json"]),
        ("create-namespaces-diff.txt", &["-f", ONE, "--create-namespaces", "-o", "diff"]),
    ];
    for (recording, arguments) in table {
        golden::assert(&format!("render/{recording}"), &render(arguments, "").transcript());
    }
}

const RANGE: &str = "config/samples/policy_v1alpha1_clusterlimitrange.yaml";

#[test]
fn a_range_fills_in_rendered_pods_of_its_namespaces_and_judges_reviewed_claims() {
    let ran = |namespace: &str, more: &[&str], stdin: &str| {
        outrider(&[&["render", "--manifests", RANGE, "-n", namespace], more].concat(), stdin)
    };
    let filled = ran("team-a", &["-f", ONE], "");
    assert_eq!(filled.outcome, CommandOutcome::Fine, "{}", filled.stderr);
    let resources = values(&filled.stdout)[0].pointer("/spec/template/spec/containers/0/resources").cloned().unwrap();
    let expected = serde_json::json!({
        "limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"},
    });
    assert_eq!(resources, expected);
    assert!(filled.stderr.contains("admission plugins: team-defaults=PluginChanged"), "{}", filled.stderr);
    let other = ran("other", &["-f", ONE], "");
    assert!(!other.stdout.contains("resources") && !other.stderr.contains("warning"), "{}", other.stderr);
    let claim = |storage: &str| {
        let review = serde_json::json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "name": "c", "namespace": "team-a", "operation": "CREATE",
            "kind": {"group": "", "version": "v1", "kind": "PersistentVolumeClaim"},
            "resource": {"group": "", "version": "v1", "resource": "persistentvolumeclaims"},
            "object": {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": storage}}}},
        }});
        let path = "/validate--v1-persistentvolumeclaim-limitranger";
        outrider(&["review", "--manifests", RANGE, "--path", path, "-"], &review.to_string())
    };
    assert_eq!(claim("100Gi").outcome, CommandOutcome::Fine);
    let refused = claim("200Gi");
    assert_eq!(refused.outcome, CommandOutcome::Refused);
    let why = "maximum storage usage per PersistentVolumeClaim is 100Gi, but request is 200Gi";
    assert!(refused.stdout.contains(why), "{}", refused.stdout);
}

#[test]
fn a_profile_fills_in_rendered_pods_if_the_rights_to_it_are_given() {
    const PROFILE: &str = "config/samples/policy_v1alpha1_podsecurityprofile.yaml";
    let ran = |namespace: &str, more: &[&str]| {
        outrider(&[&["render", "--manifests", PROFILE, "-n", namespace, "-f", ONE], more].concat(), "")
    };
    let filled = ran("team-a", &["--allow-all-questions"]);
    assert_eq!(filled.outcome, CommandOutcome::Fine, "{}", filled.stderr);
    let spec = values(&filled.stdout)[0].pointer("/spec/template/spec").cloned().unwrap();
    let expected = serde_json::json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
    });
    assert_eq!(spec["containers"][0]["securityContext"], expected);
    let expected =
        serde_json::json!({"fsGroup": 1, "supplementalGroups": [1], "seccompProfile": {"type": "RuntimeDefault"}});
    assert_eq!(spec["securityContext"], expected);
    assert!(filled.stderr.contains("admission plugins: restricted=PluginChanged\n"), "{}", filled.stderr);
    let unknown = ran("team-a", &[]);
    assert_eq!(unknown.outcome, CommandOutcome::BadInput, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("may use podsecurityprofiles in team-a"), "{}", unknown.stderr);
    let other = ran("other", &[]);
    assert_eq!(
        (other.outcome, other.stdout.contains("securityContext")),
        (CommandOutcome::Fine, false),
        "{}",
        other.stderr
    );
}

/// Plugins decide on the objects of a file as they would in a cluster: also those whose entries are on demand, and on objects without pods.
#[test]
fn plugins_with_entries_of_their_own_decide_on_rendered_pods_services_and_claims() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = |name: &str, spec: serde_json::Value| {
        let object = serde_json::json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin",
            "metadata": {"name": name}, "spec": spec});
        std::fs::write(folder.path().join(format!("{name}.json")), object.to_string()).unwrap();
    };
    let limited = serde_json::json!([{"resource": "pods", "matchContains": ["pods"]}, {"resource": "services", "matchContains": ["loadbalancers"]}]);
    plugin("quota", serde_json::json!({"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": limited}}));
    plugin("external", serde_json::json!({"plugin": "DenyServiceExternalIPs"}));
    plugin(
        "storage",
        serde_json::json!({"plugin": "DefaultStorageClass", "defaultStorageClass": {"storageClassName": "fast"}}),
    );
    let ran = |object: serde_json::Value| {
        let manifests = folder.path().to_str().unwrap();
        outrider(&["render", "--manifests", manifests, "-n", "shop", "-o", "json", "-f", "-"], &object.to_string())
    };
    let object = |kind: &str, spec: serde_json::Value| serde_json::json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec});
    let service = |spec: serde_json::Value| object("Service", spec);
    for (what, object, part) in [
        (
            "a pod",
            object("Pod", serde_json::json!({"containers": [{"name": "a", "image": "a"}]})),
            "insufficient quota to consume",
        ),
        (
            "a balancer",
            service(serde_json::json!({"type": "LoadBalancer", "ports": [{"port": 80}]})),
            "services.loadbalancers",
        ),
        (
            "an address",
            service(serde_json::json!({"externalIPs": ["192.0.2.1"], "ports": [{"port": 80}]})),
            "Use of external IPs is denied",
        ),
    ] {
        let refused = ran(object);
        assert_eq!(refused.outcome, CommandOutcome::Refused, "{what}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{what}: {}", refused.stderr);
    }
    let plain = ran(service(serde_json::json!({"ports": [{"port": 80}]})));
    assert_eq!(plain.outcome, CommandOutcome::Fine, "{}", plain.stderr);
    let claim = ran(object(
        "PersistentVolumeClaim",
        serde_json::json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
    ));
    let found: Value = serde_json::from_str(&claim.stdout).unwrap();
    assert_eq!(found["spec"]["storageClassName"], "fast", "{}", claim.stderr);
    assert!(claim.stderr.contains("admission plugins: storage=PluginChanged"), "{}", claim.stderr);
}

/// What is printed is all there, so that nothing is missing the second time; and a namespace is decided on as any other.
#[test]
fn namespaces_that_are_created_are_there_for_what_decides_and_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, object: &serde_json::Value| {
        std::fs::write(folder.path().join(format!("{name}.json")), object.to_string()).unwrap();
    };
    let plugin = |name: &str, spec: serde_json::Value| serde_json::json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin", "metadata": {"name": name}, "spec": spec});
    let defaults = serde_json::json!({"defaults": {"enforce": "baseline"}});
    put("labels", &plugin("labels", serde_json::json!({"plugin": "PodSecurity", "podSecurity": defaults})));
    let scope = serde_json::json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "fresh"}}});
    put("pull", &plugin("pull", serde_json::json!({"plugin": "AlwaysPullImages", "match": scope})));
    let manifests = folder.path().to_str().unwrap();
    let ran = |text: &str| {
        outrider(&["render", "--manifests", manifests, "-n", "fresh", "--create-namespaces", "-f", "-"], text)
    };
    let deployment = std::fs::read_to_string(ONE).unwrap();
    let first = ran(&deployment);
    assert_eq!(first.outcome, CommandOutcome::Fine, "{}", first.stderr);
    let printed = values(&first.stdout);
    assert_eq!(printed.len(), 2, "{}", first.stdout);
    assert_eq!(printed[0]["metadata"]["name"], "fresh");
    assert_eq!(printed[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "baseline");
    let policy = printed[1].pointer("/spec/template/spec/containers/0/imagePullPolicy");
    assert_eq!(policy, Some(&serde_json::json!("Always")), "{}", first.stdout);
    assert!(!first.stderr.contains("NamespaceUnknown"), "{}", first.stderr);
    let second = ran(&first.stdout);
    assert_eq!(second.stdout, first.stdout);
    assert!(!second.stderr.contains("is printed in front"), "{}", second.stderr);
}

#[test]
fn a_range_with_a_mistyped_field_is_found() {
    let range = std::fs::read_to_string(RANGE).unwrap().replace("defaultRequest:", "defaultRequests:");
    let linted = outrider(&["lint", "-"], &range);
    assert_eq!(linted.outcome, CommandOutcome::Refused, "{}", linted.stderr);
    let found = linted.stdout + &linted.stderr;
    let expected = "unknown field \"spec.limits[0].defaultRequests\" (did you mean \"defaultRequest\"?)";
    assert!(found.contains(expected), "{found}");
}

#[test]
fn sets_that_no_api_server_would_take_are_not_rendered_by() {
    let table: [(&str, &[&str]); 4] = [
        ("misspelt-sets.txt", &["--manifests", "tests/offline/input/misspelt"]),
        ("misspelt-sets-warn.txt", &["--manifests", "tests/offline/input/misspelt", "--validate=warn"]),
        ("no-set.txt", &["--manifests", "tests/offline/input/configmap.yaml"]),
        (
            "warnings-as-errors.txt",
            &[
                "--manifests",
                "tests/fixtures/manifests",
                "--warnings-as-errors",
                "-f",
                "tests/offline/input/audited.yaml",
                "-n",
                "elsewhere",
            ],
        ),
    ];
    for (recording, arguments) in table {
        let ran = outrider(&[&["render", "-f", ONE], arguments].concat(), "");
        assert_eq!(ran.stdout, "");
        golden::assert(&format!("render/{recording}"), &ran.transcript());
    }
}

#[test]
fn without_an_object_there_is_nothing_to_render() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    for (arguments, stdin, named) in [(&["-f", path][..], "", path), (&["-f", "-"], "# nothing\n---\n", "stdin")] {
        let told =
            format!("exit 2\n---- stdout\n---- stderr\nerror: no object in {named}: there is nothing to render\n");
        assert_eq!(render(arguments, stdin).transcript(), told);
    }
}

#[test]
fn rendering_the_output_again_changes_nothing() {
    let first = render(&["-f", WORKLOADS], "");
    let second = render(&["-f", "-"], &first.stdout);
    assert_eq!(second.stdout, first.stdout);
    assert_eq!(render(&["-f", "-", "-o", "diff"], &first.stdout).stdout, "");
    assert_eq!(render(&["-f", "-", "-o", "patch"], &first.stdout).stdout, "patches: []\n");
}

#[test]
fn an_older_form_is_replaced_as_far_as_its_record_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("set.yaml");
    let set = |container: &str, opt_out: &str| {
        format!(
            "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {{name: log}}\nspec:\n  optOut: {opt_out}\n  \
             selector: {{matchLabels: {{app: web}}}}\n  containers: [{container}]\n  volumes:\n  \
             - {{name: logs, emptyDir: {{}}}}\n  - {{name: old, emptyDir: {{}}}}\n"
        )
    };
    let first = "{name: log, image: 'log:1', volumeMounts: [{name: logs, mountPath: /l}, {name: old, mountPath: /o}]}";
    let renamed = "{name: logger, image: 'log:2', volumeMounts: [{name: logs, mountPath: /l}]}";
    let changed = first.replace("log:1", "log:2");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec:\n  containers:\n  \
               - {name: app, image: 'app:1', volumeMounts: [{name: logs, mountPath: /logs}]}\n  \
               volumes: [{name: logs, emptyDir: {}}]\n";
    let by = |set: &str, stdin: &str, more: &[&str]| {
        std::fs::write(&file, set).unwrap();
        outrider(&[&["render", "--manifests", file.to_str().unwrap(), "-f", "-"], more].concat(), stdin)
    };
    for opt_out in ["Allowed", "Denied"] {
        let old = by(&set(first, opt_out), pod, &[]).stdout;
        for container in [changed.as_str(), renamed] {
            let set = set(container, opt_out);
            let again = by(&set, &old, &[]);
            assert_eq!(again.stdout, by(&set, pod, &[]).stdout, "as if there had never been another form");
            let differs = if container == renamed {
                "the set has no container of that name any more"
            } else {
                "it differs in image"
            };
            let note = format!(
                "note: Pod default/web: Outdated: container \"log\", which its record says is of SidecarSet \"log\" in another form \
                 than the current one, is replaced: {differs}"
            );
            assert!(again.transcript().contains(&note), "{}", again.transcript());
            assert!(again.stderr.ends_with("1 replaced\n"), "{}", again.stderr);
            let patches = values(&by(&set, &old, &["-o", "patch"]).stdout).remove(0);
            let operations = values(patches["patches"][0]["patch"].as_str().unwrap()).remove(0);
            let mut result = values(&old).swap_remove(0);
            apply(&mut result, operations.to_string().as_bytes()).unwrap();
            assert_eq!(result, values(&again.stdout)[0]);
            assert_eq!(by(&set, &again.stdout, &["-o", "diff"]).stdout, "");
        }
    }
}

#[test]
fn a_record_written_by_hand_does_not_take_out_the_pods_own_container() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("set.yaml");
    let set = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: log}\nspec:\n  \
               selector: {matchLabels: {app: web}}\n  containers: [{name: log, image: 'log:1'}]\n";
    std::fs::write(&file, set).unwrap();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  labels: {app: web}\n  annotations:\n    \
               outrider.dev/injected: '{\"log\":{\"hash\":\"v1:0\",\"containers\":[\"app\"]}}'\nspec:\n  containers:\n  \
               - {name: app, image: 'app:1', volumeMounts: [{name: data, mountPath: /d}]}\n  \
               volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n";
    let rendered = outrider(&["render", "--manifests", file.to_str().unwrap(), "-f", "-"], pod);
    let spec = &values(&rendered.stdout)[0]["spec"];
    assert_eq!((&spec["containers"][0]["name"], &spec["volumes"][0]["name"]), (&"app".into(), &"data".into()));
    let warning = "container \"app\" is left, though its record says that it is of SidecarSet \"log\"";
    assert!(rendered.stderr.contains(warning), "{}", rendered.transcript());
    assert!(rendered.stderr.ends_with("\n1 outdated\n"), "no injection is counted: {}", rendered.stderr);
}

#[test]
fn patches_lead_from_the_input_to_the_output() {
    let mut objects: Vec<Value> = values(&std::fs::read_to_string(WORKLOADS).unwrap());
    let injected = values(&render(&["-f", WORKLOADS], "").stdout);
    let patches = values(&render(&["-f", WORKLOADS, "-o", "patch"], "").stdout).remove(0);
    let patches = patches["patches"].as_array().unwrap();
    assert!(patches.len() > 10, "{}", patches.len());
    for patch in patches {
        let target = &patch["target"];
        let object = objects.iter_mut().find(|object| {
            object["kind"] == target["kind"]
                && object["metadata"]["name"] == target["name"]
                && object["apiVersion"].as_str().unwrap().starts_with(target["group"].as_str().unwrap_or_default())
        });
        // As kustomize takes it: a text.
        let operations = values(patch["patch"].as_str().unwrap()).remove(0);
        apply(object.unwrap(), operations.to_string().as_bytes()).unwrap();
    }
    assert_eq!(objects, injected);
}

fn values(text: &str) -> Vec<Value> {
    yaml::read(text).unwrap().into_iter().map(|document| document.value).collect()
}

#[test]
fn objects_without_pods_keep_their_value() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {mode: '0644', yes: 'no', n: '1e3'}\n\
                ---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\nspec: {f: 1.5, big: 9007199254740993, n: null}\n";
    assert_eq!(values(&render(&["-f", "-"], text).stdout), values(text));
}

#[test]
fn a_template_without_metadata_gets_some() {
    let folder = tempfile::tempdir().unwrap();
    let sets = folder.path().join("sets.yaml");
    let set = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: everywhere}\nspec:\n  \
               selector: {}\n  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}\n  \
               containers: [{name: side, image: side}]\n";
    std::fs::write(&sets, set).unwrap();
    let job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    metadata: null\n    spec: {containers: [{name: c, image: i}]}\n";
    let arguments = ["render", "--manifests", sets.to_str().unwrap(), "-f", "-"];
    let ran = outrider(&arguments, job);
    assert_eq!(ran.outcome, CommandOutcome::Fine, "{}", ran.stderr);
    let rendered = values(&ran.stdout).remove(0);
    let metadata = &rendered["spec"]["template"]["metadata"];
    assert!(metadata["annotations"]["outrider.dev/injected"].is_string(), "{rendered}");
    // What the pod gets from its controller does not belong in the template.
    assert_eq!(metadata.as_object().unwrap().len(), 1, "{metadata}");
    assert_eq!(outrider(&arguments, &ran.stdout).stdout, ran.stdout);
}

#[test]
fn every_document_of_a_list_comes_out() {
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": values(&std::fs::read_to_string(WORKLOADS).unwrap())});
    assert_eq!(render(&["-f", "-"], &list.to_string()).stdout, render(&["-f", WORKLOADS], "").stdout);
}

#[test]
fn every_kind_with_a_pod_template_is_in_the_sample() {
    let kinds: Vec<String> = input::load(&[WORKLOADS.into()])
        .unwrap()
        .iter()
        .map(|manifest| manifest.value["kind"].as_str().unwrap().to_owned())
        .collect();
    for kind in [
        "Pod",
        "PodTemplate",
        "ReplicationController",
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "CronJob",
        "CloneSet",
        "Rollout",
    ] {
        assert!(kinds.iter().any(|found| found == kind), "{kind}");
    }
}

#[test]
fn a_file_without_a_flag_is_answered_with_the_flags_that_it_may_need() {
    for arguments in [
        &["app.yaml"][..],
        &["--manifests", "sets", "app.yaml"],
        &["-f", "web.yaml", "--manifests", "sets", "app.yaml"],
    ] {
        let line = [&["outrider", "render"], arguments].concat();
        let error = <outrider::cli::Cli as clap::Parser>::try_parse_from(line).unwrap_err();
        let expected = "app.yaml' for '[FILE]...': a file needs a flag: -f app.yaml if it has pods and what makes pods, --manifests \
                        app.yaml if it has sets and namespaces\n";
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
}

/// The line of the container that clashes, of whichever object in its file.
#[test]
fn a_refusal_has_the_line_of_the_field_in_the_template_that_it_is_about() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let set = write(
        "set.yaml",
        "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {name: log}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
         containers: [{name: log, image: 'log:1'}]\n",
    );
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\nspec:\n  containers:\n  - {name: app, image: a}\n  \
               - {name: log, image: other}\n";
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    metadata:\n      labels: \
                      {app: web}\n    spec:\n      containers:\n      - {name: log, image: other}\n";
    let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}", pod.trim_end().replace('\n', "\n  "));
    for (text, lines) in [(pod.to_owned(), vec![7]), (format!("{pod}---\n{deployment}"), vec![7, 18]), (list, vec![10])]
    {
        let file = write("app.yaml", &text);
        for (source, stdin, name) in [(file.as_str(), "", file.as_str()), ("-", text.as_str(), "stdin")] {
            let rendered = outrider(&["render", "--manifests", &set, "-f", source], stdin);
            let refused = rendered.stderr.lines().filter(|line| line.contains(": refused: "));
            let starts: Vec<String> = refused.map(|line| line.split(": ").next().unwrap().to_owned()).collect();
            let expected: Vec<String> = lines.iter().map(|line| format!("{name}:{line}")).collect();
            assert_eq!(starts, expected, "{}", rendered.stderr);
        }
    }
}
