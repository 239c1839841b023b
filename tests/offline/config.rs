//! The generated files in the repository are those of this code.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Every file below the directory by its path there.
fn files(root: &Path, below: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(root, &path, found);
        } else {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// What `outrider manifests` with these arguments writes is what the folder of the repository holds.
fn held(folder: &str, args: &[&str]) -> BTreeMap<String, String> {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_outrider"));
    command.arg("manifests").args(args).arg("--output-dir").arg(dir.path());
    assert!(command.env_remove("POD_NAMESPACE").env_remove("ENABLE_KINDS").status().unwrap().success());
    let mut generated = BTreeMap::new();
    files(dir.path(), dir.path(), &mut generated);
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    for (name, text) in &generated {
        let stored = fs::read_to_string(stored.join(name)).unwrap_or_default();
        assert!(stored == *text, "{folder}/{name} lags behind the code: run `make manifests`");
    }
    generated
}

#[test]
fn the_generated_files_under_config_do_not_lag_behind_the_code() {
    let generated = held("config", &["--enable-kinds=*", "--excluded-namespaces=cert-manager"]);
    assert!(generated.keys().any(|name| name.starts_with("crd/bases/")), "{:?}", generated.keys());
}

#[test]
fn the_generated_files_of_the_chart_do_not_lag_behind_the_code() {
    let generated = held("charts/outrider", &["chart"]);
    let mut stored = BTreeMap::new();
    let kinds = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/outrider/files/kinds");
    files(&kinds, &kinds, &mut stored);
    assert_eq!(stored.len(), outrider::kinds::workshop().count(), "a kind that is gone has left its file");
    assert_eq!(stored.len() + 1, generated.len());
}

#[test]
fn every_kind_has_the_samples_that_its_row_names_and_there_are_no_others() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/samples");
    let mut stored = BTreeMap::new();
    files(&folder, &folder, &mut stored);
    for other in ["kustomization.yaml", "web-deployment.yaml"] {
        assert!(stored.remove(other).is_some(), "{other}");
    }
    for kind in outrider::kinds::KINDS {
        assert!(!kind.samples.is_empty(), "{}", kind.name);
        for sample in kind.samples {
            let text = stored.remove(*sample).unwrap_or_else(|| panic!("{sample} is not there"));
            let is_of_kind = |kind: &String| {
                let (api_version, kind) = kind.split_once(' ').unwrap();
                text.contains(&format!("apiVersion: {api_version}\nkind: {kind}\n"))
            };
            assert!(kind.types().iter().any(is_of_kind), "{sample}");
        }
    }
    assert!(stored.is_empty(), "of no kind: {:?}", stored.keys());
}

#[test]
fn no_definition_of_a_kind_that_is_gone_is_left() {
    let mut stored = BTreeMap::new();
    let bases = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd/bases");
    files(&bases, &bases, &mut stored);
    let output =
        Command::new(env!("CARGO_BIN_EXE_outrider")).args(["manifests", "crds", "--enable-kinds=*"]).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let kinds = printed.lines().filter(|line| *line == "kind: CustomResourceDefinition").count();
    assert_eq!(stored.len(), kinds, "{:?}", stored.keys());
}
