//! Manifests as the read model.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrider::registry::registry;
use outrider::workshop::Kinds;
use outrider::world::snapshot::Exclusion;
use outrider::world::standalone::{Error, Loaded, Standalone, load};

fn set(name: &str, label: &str) -> String {
    format!(
        "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {{name: {name}}}\nspec:\n  \
         selector: {{matchLabels: {{app: {label}}}}}\n  containers: [{{name: {name}, image: i}}]\n"
    )
}

fn load_text(text: &str) -> Result<Loaded, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.yaml");
    fs::write(&file, text).unwrap();
    let place = format!("{}/", folder.path().display());
    load(&[file], &Arc::default(), &registry(&Kinds::default()))
        .map(|loaded| Loaded { warnings: loaded.warnings.iter().map(|w| w.replace(&place, "")).collect(), ..loaded })
        .map_err(|errors| errors.iter().map(|error: &Error| error.to_string().replace(&place, "")).collect())
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
fn errors_name_file_and_line_and_all_faults() {
    let twice = format!("{}---\n{}", set("a", "x"), set("a", "y"));
    let table = [
        (
            twice.as_str(),
            "m.yaml:8: SidecarSet \"a\" is there twice, first at m.yaml:1: remove one, or give it another name",
        ),
        (
            "apiVersion: apps.outrider.dev/v1alpha1\nkind: SidecarSet\nmetadata: {}\n",
            "m.yaml:1: SidecarSet has no name: write metadata.name",
        ),
        (
            "\napiVersion: apps.outrider.dev/v1\nkind: SidecarSet\nmetadata: {name: a}\n",
            "m.yaml:2: apps.outrider.dev/v1 SidecarSet is not served: write apiVersion: apps.outrider.dev/v1alpha1",
        ),
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: [x]}\n",
            "m.yaml:1: Namespace cannot be read: invalid type: sequence, expected a map",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(load_text(text).unwrap_err(), [expected]);
    }
    let faults = load_text(&set("a", "x").replace("image: i", "image: ''").replace("app: x", "app: '?'")).unwrap_err();
    let lines: Vec<&str> = faults[0].lines().collect();
    assert_eq!(faults.len(), 1);
    assert!(lines[0].starts_with("m.yaml:1: SidecarSet.apps.outrider.dev \"a\" is invalid:"), "{faults:?}");
    assert!(lines.len() > 2 && lines[1..].iter().all(|line| line.starts_with("  spec.")), "{faults:?}");
}

#[test]
fn sets_that_clash_with_each_other_are_told_of_both() {
    let clash = format!("{}---\n{}", set("a", "x"), set("b", "x").replace("[{name: b", "[{name: a"));
    let errors = load_text(&clash).unwrap_err();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("m.yaml:1: ") && errors[1].starts_with("m.yaml:8: "), "{errors:?}");
}

#[test]
fn what_a_newcomer_may_trip_over_is_a_warning() {
    let kruise = set("a", "x").replace("apps.outrider.dev", "apps.kruise.io");
    let warnings = load_text(&format!("{kruise}---\n{}", set("b", "x"))).unwrap().warnings;
    assert_eq!(
        warnings,
        ["m.yaml:1: apps.kruise.io/v1alpha1 SidecarSet \"a\" is left out: to have it injected by Outrider, write \
          apiVersion: apps.outrider.dev/v1alpha1"]
    );
    let warnings = load_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n").unwrap().warnings;
    assert_eq!(warnings, ["no apps.outrider.dev/v1alpha1 SidecarSet in m.yaml"]);
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
    assert_eq!(standalone.reload().unwrap().unwrap_err().len(), 1);
    assert!(standalone.reload().is_none(), "a broken state is told once");

    fs::remove_file(&second).unwrap();
    let loaded = standalone.reload().unwrap().unwrap();
    assert_eq!((loaded.snapshot.generation, loaded.snapshot.sets.len()), (3, 1));
}
