//! The configuration of `ImagePolicyWebhook`, and the kubeconfig that it names.

use std::io;
use std::path::Path;

use engine::plugins::Plugin;
use serde_json::{Map, Value, json};

use super::read;
use super::spec::{map, only};
use crate::image_policy::kubeconfig;
use crate::names::IMAGE_POLICY_SECRET;

/// What to do with the Secret.
pub const NOTE: &str = "ImagePolicyWebhook: the Secret outrider-image-policy has the credentials of the kubeconfig; it belongs into the \
                        namespace of Outrider: change its metadata.namespace if that is not outrider-system";

/// The Secret with the kubeconfig.
///
/// # Errors
/// Why the kubeconfig cannot be used.
pub fn secret(configuration: &Value, file: &Path) -> Result<Value, String> {
    let named = configuration.pointer("/imagePolicy/kubeConfigFile").and_then(Value::as_str);
    let Some(path) = named.filter(|path| !path.is_empty()) else {
        return Err("imagePolicy.kubeConfigFile is missing: name the kubeconfig of the backend".to_owned());
    };
    let path = file.parent().unwrap_or_else(|| Path::new("")).join(path);
    let text = read(&path, &mut io::empty())?;
    let refused = |error: String| {
        let shown = path.display();
        format!(
            "{shown}: {error}. To have the files that it names put in: kubectl config view --raw --flatten --kubeconfig {shown}"
        )
    };
    kubeconfig::read(&text).map_err(refused)?;
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": IMAGE_POLICY_SECRET, "namespace": "outrider-system"},
        "type": "Opaque", "stringData": {"kubeconfig": text},
    }))
}

/// The spec of the object: what is beside the kubeconfig, in the same units.
///
/// # Errors
/// What cannot be carried over.
pub fn spec(fields: &Map<String, Value>) -> Result<Value, String> {
    only(fields, &["apiVersion", "kind", "imagePolicy"])?;
    let mut section = Map::new();
    for (field, value) in map(fields, "imagePolicy")? {
        match field.as_str() {
            "kubeConfigFile" => {}
            "allowTTL" | "denyTTL" | "retryBackoff" | "defaultAllow" => {
                section.insert(field.clone(), value.clone());
            }
            other => return Err(format!("field {other:?} cannot be carried over")),
        }
    }
    Ok(json!({"plugin": Plugin::ImagePolicyWebhook.name(), "imagePolicyWebhook": section}))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use engine::yaml;

    use super::super::super::super::streams::{CommandOutcome, Streams};
    use super::super::{ConvertArgs, run};
    use super::*;

    fn kubeconfig(cluster: &Value) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "images",
            "contexts": [{"name": "images", "context": {"cluster": "images", "user": "api-server"}}],
            "clusters": [{"name": "images", "cluster": cluster}],
            "users": [{"name": "api-server", "user": {"token": "secret"}}],
        })
        .to_string()
    }

    /// What becomes of the section beside this kubeconfig.
    fn converted(section: &Value, kubeconfig: &str) -> (CommandOutcome, String, String) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("images.kubeconfig"), kubeconfig).unwrap();
        let configuration = json!({"imagePolicy": section});
        fs::write(folder.path().join("images.json"), configuration.to_string()).unwrap();
        let plugins = json!([{"name": "ImagePolicyWebhook", "path": "images.json"}]);
        let whole =
            json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
        let file: PathBuf = folder.path().join("admission.json");
        fs::write(&file, whole.to_string()).unwrap();
        let (mut stdout, mut stderr, mut stdin) = (Vec::new(), Vec::new(), &b""[..]);
        let mut streams = Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr };
        let args = ConvertArgs { file, enable_admission_plugins: vec!["ImagePolicyWebhook".to_owned()] };
        let outcome = run(&args, &mut streams).unwrap();
        (outcome, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    #[test]
    fn the_object_has_what_is_beside_the_kubeconfig_and_the_secret_has_that() {
        let text = kubeconfig(&json!({"server": "https://images.example/review"}));
        let section = json!({"kubeConfigFile": "images.kubeconfig", "allowTTL": 50, "denyTTL": 60, "retryBackoff": 500,
            "defaultAllow": true});
        let (outcome, stdout, stderr) = converted(&section, &text);
        assert_eq!(outcome, CommandOutcome::Fine, "{stderr}");
        let mut found = yaml::read(&stdout).unwrap().into_iter().map(|document| document.value);
        let (object, secret) = (found.next().unwrap(), found.next().unwrap());
        let expected = json!({"allowTTL": 50, "denyTTL": 60, "retryBackoff": 500, "defaultAllow": true});
        assert_eq!(object["spec"], json!({"plugin": "ImagePolicyWebhook", "imagePolicyWebhook": expected}));
        assert_eq!(secret["metadata"], json!({"name": "outrider-image-policy", "namespace": "outrider-system"}));
        assert_eq!(secret["stringData"], json!({"kubeconfig": text}));
        assert!(stderr.contains("belongs into the namespace of Outrider"), "{stderr}");
    }

    #[test]
    fn a_kubeconfig_that_is_missing_or_names_files_is_an_error_that_says_what_to_do() {
        let with_files = json!({"server": "https://x", "certificate-authority": "/etc/kubernetes/images.crt"});
        for (section, cluster, expected) in [
            (json!({}), json!({}), "imagePolicy.kubeConfigFile is missing"),
            (json!({"kubeConfigFile": "other"}), json!({}), "other: No such file"),
            (json!({"kubeConfigFile": "images.kubeconfig"}), with_files, "kubectl config view --raw --flatten"),
            (
                json!({"kubeConfigFile": "images.kubeconfig", "caFile": "x"}),
                json!({"server": "https://x"}),
                "\"caFile\"",
            ),
        ] {
            let (outcome, stdout, stderr) = converted(&section, &kubeconfig(&cluster));
            assert_eq!((outcome, stdout.as_str()), (CommandOutcome::Refused, ""), "{stderr}");
            assert!(stderr.contains(expected), "{stderr}");
        }
    }
}
