//! The kubeconfig of a backend. It comes from a Secret, so it may not name files or programs: those would be of this process.

use admission::bounded::beginning;
use kube::config::{AuthInfo, Cluster, Kubeconfig, KubeconfigError};

/// Reads a kubeconfig that says everything itself.
///
/// # Errors
/// What cannot be used, with its field and what to do.
pub fn read(text: &str) -> Result<Kubeconfig, String> {
    let config =
        Kubeconfig::from_yaml(text).map_err(|error| format!("the kubeconfig cannot be read: {}", described(&error)))?;
    let Some(current) = config.current_context.as_deref().filter(|name| !name.is_empty()) else {
        return Err("current-context is missing: name the context of the backend".to_owned());
    };
    let named = config.contexts.iter().find(|one| one.name == current).and_then(|one| one.context.as_ref());
    let Some(context) = named else {
        return Err(format!("contexts has no {}, which current-context names", named_in_secret(current)));
    };
    let cluster = config.clusters.iter().find(|one| one.name == context.cluster).and_then(|one| one.cluster.as_ref());
    let Some(cluster) = cluster else {
        return Err(format!("clusters has no {}, which the context names", named_in_secret(&context.cluster)));
    };
    of_cluster(cluster)?;
    if let Some(user) = context.user.as_deref() {
        // The library looks for an empty name as for any other.
        match config.auth_infos.iter().find(|one| one.name == user) {
            Some(found) => found.auth_info.as_ref().map_or(Ok(()), of_user)?,
            None if user.is_empty() => {}
            None => return Err(format!("users has no {}, which the context names", named_in_secret(user))),
        }
    }
    Ok(config)
}

/// A name, as far as it fits into a message.
fn named_in_secret(name: &str) -> String {
    format!("{:?}", beginning(name, NAME))
}

/// Bytes of a name that messages have.
const NAME: usize = 64;

/// The library quotes the lines around a fault, which may hold credentials, and who creates a pod would read them.
fn described(error: &KubeconfigError) -> String {
    let KubeconfigError::Parse(error) = error else { return error.to_string() };
    let place = error.location().filter(|place| place.line() > 0);
    let place = place.map(|place| format!(" at line {}, column {}", place.line(), place.column()));
    format!("it is no YAML of a kubeconfig{}", place.unwrap_or_default())
}

fn of_cluster(cluster: &Cluster) -> Result<(), String> {
    if !cluster.server.as_deref().is_some_and(|server| server.starts_with("https://")) {
        return Err("cluster.server must be an https URL".to_owned());
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err("cluster.insecure-skip-tls-verify is not supported: any server could answer; give \
         certificate-authority-data"
            .to_owned());
    }
    let fields = [
        ("cluster.certificate-authority", cluster.certificate_authority.is_some(), DATA),
        ("cluster.proxy-url", cluster.proxy_url.is_some(), "name a server that can be reached without a proxy"),
    ];
    refuse(fields)
}

const DATA: &str = "it names a file; put what is in it, in base64, into the field with -data at its end";

fn of_user(user: &AuthInfo) -> Result<(), String> {
    let refused = "give client-certificate-data and client-key-data, or a token";
    refuse([
        ("user.client-certificate", user.client_certificate.is_some(), DATA),
        ("user.client-key", user.client_key.is_some(), DATA),
        ("user.tokenFile", user.token_file.is_some(), "it names a file; put what is in it into token"),
        ("user.exec", user.exec.is_some(), refused),
        ("user.auth-provider", user.auth_provider.is_some(), refused),
        ("user.as", user.impersonate.is_some() || user.impersonate_groups.is_some(), refused),
    ])
}

fn refuse<const N: usize>(fields: [(&str, bool, &str); N]) -> Result<(), String> {
    match fields.into_iter().find(|(_, is_set, _)| *is_set) {
        Some((field, _, what)) => Err(format!("{field} cannot be used: {what}")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn with(cluster: &Value, user: &Value, current: Option<&str>) -> Result<Kubeconfig, String> {
        read(
            &json!({
                "apiVersion": "v1", "kind": "Config", "current-context": current,
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "us"}}],
                "clusters": [{"name": "it", "cluster": cluster}], "users": [{"name": "us", "user": user}],
            })
            .to_string(),
        )
    }

    #[test]
    fn what_is_in_a_kubeconfig_that_cannot_be_read_is_not_repeated() {
        for text in [
            "users:\n- name: us\n  user:\n    token: hunter2\n    exec: [",
            "users:\n- name: us\n  user: hunter2\n",
            "users: hunter2",
            "users:\n- {name: us, user: {token: hunter2}}\n- hunter2\n",
            "hunter2",
        ] {
            let fault = read(text).unwrap_err();
            assert!(!fault.contains("hunter2") && fault.contains("it is no YAML of a kubeconfig"), "{fault}");
        }
    }

    #[test]
    fn a_user_without_a_name_is_a_user() {
        let of = |users: &Value| {
            let config = json!({
                "apiVersion": "v1", "kind": "Config", "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": ""}}],
                "clusters": [{"name": "it", "cluster": {"server": "https://images.example"}}], "users": users,
            });
            read(&config.to_string())
        };
        assert!(of(&json!([])).is_ok());
        let program = of(&json!([{"name": "", "user": {"exec": {"command": "sh"}}}])).unwrap_err();
        assert!(program.contains("user.exec cannot be used"), "{program}");
        let file = of(&json!([{"name": "", "user": {"tokenFile": "/token"}}])).unwrap_err();
        assert!(file.contains("user.tokenFile cannot be used"), "{file}");
    }

    #[test]
    fn a_kubeconfig_says_everything_itself_and_names_no_files_or_programs() {
        let server = json!({"server": "https://images.example"});
        assert!(with(&server, &json!({"token": "t"}), Some("it")).is_ok());
        for (cluster, user, current, expected) in [
            (server.clone(), json!({}), None, "current-context is missing"),
            (server.clone(), json!({}), Some("other"), "contexts has no \"other\""),
            (json!({"server": "http://images.example"}), json!({}), Some("it"), "must be an https URL"),
            (
                json!({"server": "https://x", "certificate-authority": "/etc/passwd"}),
                json!({}),
                Some("it"),
                "cluster.certificate-authority cannot be used: it names a file",
            ),
            (json!({"server": "https://x", "insecure-skip-tls-verify": true}), json!({}), Some("it"), "insecure-skip"),
            (json!({"server": "https://x", "proxy-url": "http://p"}), json!({}), Some("it"), "cluster.proxy-url"),
            (server.clone(), json!({"client-key": "k"}), Some("it"), "user.client-key cannot be used"),
            (server.clone(), json!({"tokenFile": "t"}), Some("it"), "user.tokenFile cannot be used"),
            (server.clone(), json!({"exec": {"command": "sh"}}), Some("it"), "user.exec cannot be used"),
        ] {
            let fault = with(&cluster, &user, current).unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
