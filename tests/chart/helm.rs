//! Running helm.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use cluster::{Tools, progress_on_stderr};
use engine::yaml;
use serde_json::Value;

/// The chart, from the root of the repository.
pub const CHART: &str = "charts/outrider";

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| Tools::locate(&progress_on_stderr).unwrap().program("helm").to_owned())
}

/// Runs helm; `kubeconfig` is empty for what needs no cluster.
pub fn helm(kubeconfig: &Path, args: &[&str]) -> Output {
    static HOME: OnceLock<tempfile::TempDir> = OnceLock::new();
    let home = HOME.get_or_init(|| tempfile::tempdir().unwrap()).path();
    let mut command = Command::new(program());
    command.args(args).env("KUBECONFIG", kubeconfig).current_dir(env!("CARGO_MANIFEST_DIR"));
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "KUBECACHEDIR"] {
        command.env(variable, home);
    }
    command.output().unwrap_or_else(|error| panic!("{}: {error}", program().display()))
}

/// Standard output of a helm that succeeded.
pub fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Standard error of a helm that failed.
pub fn failed(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// `helm template` of a release `outrider` in `outrider-system`.
pub fn template(args: &[&str]) -> Output {
    helm(Path::new(""), &[&["template", "outrider", CHART, "--namespace=outrider-system"], args].concat())
}

/// The objects of a YAML text.
pub fn objects(text: &str) -> Vec<Value> {
    let documents = yaml::read(text).unwrap().into_iter().map(|document| document.value);
    documents.filter(|value| !value.is_null()).collect()
}

/// Kind and name.
pub fn identity(object: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// The object of this kind and name.
pub fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let wanted = (kind.to_owned(), name.to_owned());
    objects.iter().find(|object| identity(object) == wanted).unwrap_or_else(|| panic!("there is no {kind} {name}"))
}
