//! Manifests as the read model.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::offline::manifest::Manifest;
use engine::snapshot::Exclusion;
use outrider::kinds::Kinds;
use outrider::registry::registry;
use outrider::standalone::{Loaded, Standalone, Validate, load, load_or_stdin};
use serde_json::json;

fn set(name: &str, label: &str) -> String {
    format!(
        "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {{name: {name}}}\nspec:\n  \
         selector: {{matchLabels: {{app: {label}}}}}\n  containers: [{{name: {name}, image: i}}]\n"
    )
}

fn load_text(text: &str) -> Result<Loaded, Vec<String>> {
    load_text_as(Validate::Strict, text)
}

/// Warnings, then errors, without the folder; the errors are marked.
fn load_text_as(validate: Validate, text: &str) -> Result<Loaded, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    fs::write(&file, text).unwrap();
    let place = format!("{}/", folder.path().display());
    let relative = |lines: Vec<String>| -> Vec<String> { lines.iter().map(|line| line.replace(&place, "")).collect() };
    match load(&[file], &Arc::default(), &registry(&Kinds::default()), validate, None) {
        Ok(Loaded { snapshot, warnings, no_set }) => {
            let no_set = no_set.map(|text| text.replace(&place, ""));
            Ok(Loaded { snapshot, warnings: relative(warnings), no_set })
        }
        Err(unusable) => {
            let warnings = unusable.warnings.iter().map(|warning| format!("warning: {warning}"));
            let errors = unusable.errors.iter().map(|error| format!("error: {error}"));
            Err(relative(warnings.chain(errors).collect()))
        }
    }
}

#[test]
fn sets_and_namespaces_are_read_and_the_rest_is_left_out() {
    let loaded = load_text(&format!(
        "{}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, labels: {{team: a}}}}\n\
         ---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n",
        set("a", "web")
    ))
    .unwrap();
    assert_eq!(loaded.snapshot.sets.len(), 1);
    let labels = loaded.snapshot.namespaces.labels("shop").unwrap();
    assert_eq!((labels["team"].as_str(), labels["kubernetes.io/metadata.name"].as_str()), ("a", "shop"));
    assert!(!loaded.snapshot.namespaces_may_appear);
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn a_set_of_a_cluster_that_is_larger_than_may_be_written_is_read_with_a_warning() {
    let containers: Vec<String> = (0..101).map(|at| format!("{{name: c{at}, image: i}}")).collect();
    let large = |metadata: &str| {
        let containers = containers.join(", ");
        let spec = format!("selector: {{matchLabels: {{app: a}}}}, containers: [{containers}]");
        let head = "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\n";
        format!("{head}metadata: {{name: large{metadata}}}\nspec: {{{spec}}}\n---\n{}", set("b", "web"))
    };
    for metadata in ["", ", uid: 0a1b"] {
        assert!(
            load_text(&large(metadata)).is_err(),
            "one in a file is yet to be written, whatever it says: {metadata}"
        );
    }
    let containers: Vec<_> = (0..101).map(|at| json!({"name": format!("c{at}"), "image": "i"})).collect();
    let value = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": "large", "uid": "0a1b"},
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "containers": containers},
    });
    let of_cluster = vec![Manifest { source: "cluster".to_owned(), value, is_stored: true }];
    let (stdin, registry) = (&mut std::io::empty(), registry(&Kinds::default()));
    let loaded = load_or_stdin(&[], stdin, of_cluster, &Arc::default(), &registry, Validate::Strict, None);
    let Ok(loaded) = loaded else { panic!("refused") };
    assert_eq!(loaded.snapshot.sets.len(), 1);
    let [warning] = loaded.warnings.as_slice() else { panic!("{:?}", loaded.warnings) };
    let said = "cluster: SidecarSet \"large\": spec.containers has 101 elements, and at most 100 may be written";
    assert!(warning.contains(said), "{warning}");
}

#[test]
fn errors_name_file_and_line_and_all_faults() {
    let twice = format!("{}---\n{}", set("a", "x"), set("a", "y"));
    let table = [
        (
            twice.as_str(),
            "error: m.yaml:8: SidecarSet \"a\" is defined twice, first at m.yaml:1: remove one, or give it another name",
        ),
        (
            "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {}\n",
            "error: m.yaml:1: SidecarSet has no name: write metadata.name",
        ),
        (
            "\napiVersion: apps.outrider.dev/v1\nkind: SidecarSet\nmetadata: {name: a}\n",
            "error: m.yaml:2: apps.outrider.dev/v1 SidecarSet is not served: write apiVersion: apps.outrider.dev/v1alpha1",
        ),
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: [x]}\n",
            "error: m.yaml:1: Namespace \"a\": metadata.labels: Invalid value: [\"x\"]: must be a map",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(load_text(text).unwrap_err(), [expected]);
    }
    let faults = load_text(&set("a", "x").replace("image: i", "image: ''").replace("app: x", "app: '?'")).unwrap_err();
    let lines: Vec<&str> = faults[0].lines().collect();
    assert_eq!(faults.len(), 1);
    assert!(lines[0].starts_with("error: m.yaml:1: SidecarSet.apps.outrider.dev \"a\" is invalid:"), "{faults:?}");
    assert!(lines.len() > 2 && lines[1..].iter().all(|line| line.starts_with("  spec.")), "{faults:?}");
}

#[test]
fn sets_that_clash_with_each_other_are_told_of_both() {
    let clash = format!("{}---\n{}", set("a", "x"), set("b", "x").replace("[{name: b", "[{name: a"));
    let errors = load_text(&clash).unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("error: m.yaml:1: ") && errors[1].starts_with("error: m.yaml:8: "), "{errors:?}");
}

#[test]
fn what_a_newcomer_may_trip_over_is_a_warning() {
    let kruise = set("a", "x").replace("apps.outrider.dev", "apps.kruise.io");
    let warnings = load_text(&format!("{kruise}---\n{}", set("b", "x"))).unwrap().warnings;
    assert_eq!(
        warnings,
        ["m.yaml:1: apps.kruise.io/v1alpha1 SidecarSet \"a\" is left out: outrider migrate prints it as \
          apps.outrider.dev/v1alpha1"]
    );
}

#[test]
fn that_there_is_no_set_is_for_the_command_to_judge() {
    let loaded = load_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n").unwrap();
    assert_eq!(
        loaded.no_set.as_deref(),
        Some(
            "no SidecarSet (apps.outrider.dev/v1alpha1), AdmissionPlugin, ClusterLimitRange or PodSecurityProfile in m.yaml"
        )
    );
    assert_eq!(loaded.warnings, Vec::<String>::new());
    assert_eq!(load_text(&set("a", "x")).unwrap().no_set, None);
}

#[test]
fn what_kubectl_would_not_apply_is_not_passed_over() {
    let kind = |api_version: &str, kind: &str| {
        format!("{}---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n", set("b", "x"))
    };
    let table = [
        (
            kind("apps.outrider.dev/v1alpha1", "SidecarSets"),
            "there is no SidecarSets in apps.outrider.dev/v1alpha1 (did you mean \"apps.outrider.dev/v1alpha1 SidecarSet\"?)",
        ),
        (
            kind("batch.outrider.dev/v3", "CronJob"),
            "there is no CronJob in batch.outrider.dev/v3 (did you mean \"batch.outrider.dev/v1 CronJob\"?)",
        ),
        (kind("outrider.dev/v1", "Nothing"), "there is no Nothing in outrider.dev/v1"),
        (
            kind("apps.outrider.de/v1alpha1", "SidecarSet"),
            "apps.outrider.de/v1alpha1 SidecarSet is not served: write apiVersion: apps.outrider.dev/v1alpha1",
        ),
        (
            kind("apps.outrider.dev/v1alpha1", "SidecarSet").replace("{name: a}", "{name: 1}"),
            "metadata.name must be a string, found a number: put it in quotes",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(load_text(&text).unwrap_err(), [format!("error: m.yaml:8: {expected}")], "{text}");
    }
    for (api_version, known) in [("batch.outrider.dev/v2", "CronJob"), ("example.com/v1", "Outrider"), ("v1", "Secret")]
    {
        assert_eq!(load_text(&kind(api_version, known)).unwrap().warnings, Vec::<String>::new());
    }
}

const NAMESPACE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {a: b}}\n";

#[test]
fn an_unknown_field_is_an_error_without_what_follows_from_it() {
    let good = set("a", "x");
    // What is replaced, by what, and what is said of it.
    let table = [
        ("matchLabels", "matchLabel", r#""spec.selector.matchLabel" (did you mean "matchLabels"?)"#),
        ("containers:", "containrs:", r#""spec.containrs" (did you mean "containers"?)"#),
        ("image:", "imgae:", r#""spec.containers[0].imgae" (did you mean "image"?)"#),
        ("image: i", "image: i, tyy: true", r#""spec.containers[0].tyy" (did you mean "tty"?)"#),
        ("image: i", "image: i, zzzzzz: true", r#""spec.containers[0].zzzzzz""#),
        ("spec:", "spce:", r#""spce" (did you mean "spec"?)"#),
        ("{name: a}", "{name: a, lables: {}}", r#""metadata.lables" (did you mean "labels"?)"#),
    ];
    for (known, unknown, said) in table {
        let text = good.replacen(known, unknown, 1);
        let said = format!("error: m.yaml:1: SidecarSet \"a\": unknown field {said}");
        assert_eq!(load_text(&text).unwrap_err(), [said], "{text}");
    }
    let told = load_text(&good.replacen("metadata:", "metdata:", 1)).unwrap_err();
    assert_eq!(told, [r#"error: m.yaml:1: SidecarSet "": unknown field "metdata" (did you mean "metadata"?)"#]);
    let other = set("b", "x").replacen("image: i", "image: ''", 1);
    let told = load_text(&format!("{}---\n{other}", good.replacen("spec:", "spce:", 1))).unwrap_err();
    assert!(told.len() == 2 && told[1].contains("\"b\" is invalid"), "another set is judged all the same: {told:?}");
    let told = load_text(&NAMESPACE.replace("labels", "label")).unwrap_err();
    assert_eq!(told, [r#"error: m.yaml:1: Namespace "shop": unknown field "metadata.label" (did you mean "labels"?)"#]);
    assert_eq!(load_text(&format!("{good}---\n{NAMESPACE}")).unwrap().warnings, Vec::<String>::new());
}

#[test]
fn unknown_fields_can_be_let_through_with_a_warning_each() {
    let text = format!(
        "{}---\n{}",
        set("a", "x").replace("image: i", "image: i, tyy: true").replace("spec:", "spec:\n  ordre: 1"),
        NAMESPACE.replace("labels", "label")
    );
    let loaded = load_text_as(Validate::Warn, &text).unwrap();
    let kept = "it is kept, but an API server that does not know it drops it from the pods";
    let warnings = [
        format!(r#"m.yaml:1: SidecarSet "a": unknown field "spec.containers[0].tyy" (did you mean "tty"?); {kept}"#),
        r#"m.yaml:1: SidecarSet "a": unknown field "spec.ordre" (did you mean "order"?); an API server drops it"#
            .to_owned(),
        r#"m.yaml:9: Namespace "shop": unknown field "metadata.label" (did you mean "labels"?); an API server drops it"#
            .to_owned(),
    ];
    assert_eq!(loaded.warnings, warnings);
    let told = load_text_as(Validate::Warn, &set("a", "x").replace("matchLabels", "matchLabel")).unwrap_err();
    assert_eq!(
        told[0],
        r#"warning: m.yaml:1: SidecarSet "a": unknown field "spec.selector.matchLabel" (did you mean "matchLabels"?); an API server drops it"#
    );
    assert!(told.len() == 2 && told[1].starts_with("error: m.yaml:1: "), "{told:?}");
}

struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn follow(&self) -> Standalone {
        Standalone::new(
            vec![Path::new(self.folder.path()).to_owned()],
            Exclusion::default(),
            registry(&Kinds::default()),
            Validate::Strict,
        )
    }
}

#[test]
fn files_are_read_again_only_when_they_change() {
    let files = Files { folder: tempfile::tempdir().unwrap() };
    files.write("a.yaml", &set("a", "x"));
    let mut standalone = files.follow();
    assert_eq!(standalone.reload().unwrap().unwrap().snapshot.generation, 1);
    assert!(standalone.reload().is_none());

    let second = files.write("b.yaml", &set("b", "x"));
    let loaded = standalone.reload().unwrap().unwrap();
    assert_eq!((loaded.snapshot.generation, loaded.snapshot.sets.len()), (2, 2));

    fs::write(&second, "broken: [").unwrap();
    assert_eq!(standalone.reload().unwrap().unwrap_err().errors.len(), 1);
    assert!(standalone.reload().is_none(), "a broken state is told once");

    fs::remove_file(&second).unwrap();
    let loaded = standalone.reload().unwrap().unwrap();
    assert_eq!((loaded.snapshot.generation, loaded.snapshot.sets.len()), (3, 1));
}
