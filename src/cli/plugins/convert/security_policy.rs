//! PodSecurityPolicies as `PodSecurityProfile`s: the same fields, and fields for what policies said in annotations.

use std::io;

use engine::podsecurityprofile::api::{API_VERSION, KIND};
use engine::podsecurityprofile::validation::{compile, unknown_fields};
use engine::yaml;
use serde_json::{Map, Value, json};

use super::super::super::streams::{CommandOutcome, Streams};

const POLICY: &str = "PodSecurityPolicy";
const VERSIONS: [&str; 2] = ["policy/v1beta1", "extensions/v1beta1"];

/// What a policy says in annotations: the key, the field, and whether that is a list.
const ANNOTATIONS: [(&str, &str, bool); 4] = [
    ("seccomp.security.alpha.kubernetes.io/allowedProfileNames", "allowedSeccompProfiles", true),
    ("seccomp.security.alpha.kubernetes.io/defaultProfileName", "defaultSeccompProfile", false),
    ("apparmor.security.beta.kubernetes.io/allowedProfileNames", "allowedAppArmorProfiles", true),
    ("apparmor.security.beta.kubernetes.io/defaultProfileName", "defaultAppArmorProfile", false),
];
/// What kubectl has written down of the policy.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

const NOTE: &str = "rights to use podsecuritypolicies in the API group policy do not count; give the same users and service accounts \
                    the verb use on podsecurityprofiles in policy.outrider.dev. A profile counts in all namespaces that Outrider does \
                    not exclude: a namespaceSelector gives it to some at first";

/// The policies of a file, if it holds any: its documents, and the items of its lists.
pub fn policies(documents: Vec<Value>) -> Option<Vec<Value>> {
    let all: Vec<Value> = documents.into_iter().flat_map(items).collect();
    all.iter().any(|object| text(object, "kind") == POLICY).then_some(all)
}

fn items(mut document: Value) -> Vec<Value> {
    if !text(&document, "kind").ends_with("List") {
        return vec![document];
    }
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn text<'v>(object: &'v Value, field: &str) -> &'v str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Prints the profiles.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(policies: &[Value], streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let (mut profiles, mut errors) = (Vec::new(), Vec::new());
    for policy in policies {
        let name = policy.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        match converted(policy) {
            Ok(profile) => profiles.push(profile),
            Err(why) => errors.push(format!("{} {name:?}: {why}", text(policy, "kind"))),
        }
    }
    for error in &errors {
        writeln!(streams.stderr, "error: {error}")?;
    }
    if !errors.is_empty() {
        return Ok(CommandOutcome::Refused);
    }
    writeln!(streams.stderr, "note: {NOTE}")?;
    for (index, profile) in profiles.iter().enumerate() {
        let separator = if index > 0 { "---\n" } else { "" };
        write!(streams.stdout, "{separator}{}", yaml::write(profile))?;
    }
    Ok(CommandOutcome::Fine)
}

/// A policy as a profile that an API server would accept.
fn converted(policy: &Value) -> Result<Value, String> {
    let (kind, version) = (text(policy, "kind"), text(policy, "apiVersion"));
    if kind != POLICY || !VERSIONS.contains(&version) {
        return Err(format!("expected a {POLICY} of {}, found {version} {kind}", VERSIONS.join(" or ")));
    }
    let fields = policy.as_object().into_iter().flatten().map(|(field, _)| field.as_str());
    for field in fields {
        if !["apiVersion", "kind", "metadata", "spec"].contains(&field) {
            return Err(format!("field {field:?} cannot be carried over"));
        }
    }
    let mut spec = match policy.get("spec") {
        Some(Value::Object(spec)) => spec.clone(),
        _ => return Err("it has no spec".to_owned()),
    };
    let metadata = policy.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut annotations = metadata.get("annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    for (key, field, is_list) in ANNOTATIONS {
        let Some(written) = annotations.remove(key) else { continue };
        let Some(written) = written.as_str().filter(|written| !written.is_empty()) else {
            return Err(format!("annotation {key} cannot be carried over: it is empty"));
        };
        let value = if is_list { json!(written.split(',').collect::<Vec<_>>()) } else { written.into() };
        spec.insert(field.to_owned(), value);
    }
    let mut kept = Map::new();
    kept.extend(metadata.get("name").map(|name| ("name".to_owned(), name.clone())));
    kept.extend(metadata.get("labels").map(|labels| ("labels".to_owned(), labels.clone())));
    if !annotations.is_empty() {
        kept.insert("annotations".to_owned(), annotations.into());
    }
    let profile = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": kept, "spec": spec});
    if let Some(unknown) = unknown_fields(&profile, ToString::to_string).first() {
        return Err(format!("{unknown} cannot be carried over"));
    }
    compile(&profile).map(|_| profile).map_err(|faults| faults.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(documents: Vec<Value>) -> (CommandOutcome, Vec<Value>, String) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut streams = Streams { stdin: &mut io::empty(), stdout: &mut stdout, stderr: &mut stderr };
        let outcome = run(&policies(documents).unwrap(), &mut streams).unwrap();
        let printed = yaml::read(&String::from_utf8(stdout).unwrap()).unwrap();
        (outcome, printed.into_iter().map(|document| document.value).collect(), String::from_utf8(stderr).unwrap())
    }

    fn policy(name: &str, more: &Value) -> Value {
        let any = json!({"rule": "RunAsAny"});
        let mut policy = json!({"apiVersion": "policy/v1beta1", "kind": POLICY, "metadata": {"name": name},
            "spec": {"seLinux": any, "runAsUser": any, "supplementalGroups": any, "fsGroup": any}});
        json_patch::merge(&mut policy, more);
        policy
    }

    #[test]
    fn a_policy_becomes_a_profile_with_its_fields_and_its_annotations_as_fields() {
        let first = policy(
            "restricted",
            &json!({
                "metadata": {"uid": "u", "resourceVersion": "1", "labels": {"a": "b"}, "annotations": {
                    "seccomp.security.alpha.kubernetes.io/allowedProfileNames": "docker/default,runtime/default",
                    "seccomp.security.alpha.kubernetes.io/defaultProfileName": "runtime/default",
                    "apparmor.security.beta.kubernetes.io/allowedProfileNames": "runtime/default",
                    "apparmor.security.beta.kubernetes.io/defaultProfileName": "runtime/default",
                    LAST_APPLIED: "{}", "team": "x"}},
                "spec": {"privileged": false, "hostPID": true, "allowedCSIDrivers": [{"name": "d"}],
                    "volumes": ["configMap", "secret"], "hostPorts": [{"min": 1, "max": 2}]},
            }),
        );
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [policy("open", &json!({"spec": {"privileged": true}}))]});
        let (outcome, profiles, stderr) = ran(vec![first, list]);
        assert_eq!(outcome, CommandOutcome::Fine, "{stderr}");
        assert_eq!(profiles.len(), 2);
        let any = json!({"rule": "RunAsAny"});
        assert_eq!(
            profiles[0],
            json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "PodSecurityProfile",
                "metadata": {"name": "restricted", "labels": {"a": "b"}, "annotations": {"team": "x"}},
                "spec": {"seLinux": any, "runAsUser": any, "supplementalGroups": any, "fsGroup": any,
                    "privileged": false, "hostPID": true, "allowedCSIDrivers": [{"name": "d"}],
                    "volumes": ["configMap", "secret"], "hostPorts": [{"min": 1, "max": 2}],
                    "allowedSeccompProfiles": ["docker/default", "runtime/default"], "defaultSeccompProfile": "runtime/default",
                    "allowedAppArmorProfiles": ["runtime/default"], "defaultAppArmorProfile": "runtime/default"}})
        );
        assert_eq!(profiles[1]["spec"]["privileged"], true);
        assert!(stderr.contains("note: rights to use podsecuritypolicies"), "{stderr}");
    }

    #[test]
    fn what_cannot_be_carried_over_is_named_and_nothing_is_printed() {
        let annotated = |key: &str, value: &str| policy("p", &json!({"metadata": {"annotations": {key: value}}}));
        for (wrong, expected) in [
            (
                policy("p", &json!({"spec": {"more": 1}})),
                "PodSecurityPolicy \"p\": unknown field \"spec.more\" cannot be carried over",
            ),
            (policy("p", &json!({"status": {}})), "field \"status\" cannot be carried over"),
            (policy("p", &json!({"spec": null})), "it has no spec"),
            (
                policy("p", &json!({"apiVersion": "policy/v1"})),
                "expected a PodSecurityPolicy of policy/v1beta1 or extensions/v1beta1, found policy/v1 PodSecurityPolicy",
            ),
            (policy("p", &json!({"spec": {"volumes": ["x"]}})), "spec.volumes: Unsupported value: \"x\""),
            (
                policy("p", &json!({"spec": {"runAsUser": {"rule": "MustRunAs"}}})),
                "spec.runAsUser.ranges: Required value",
            ),
            (
                annotated("seccomp.security.alpha.kubernetes.io/defaultProfileName", "x"),
                "spec.defaultSeccompProfile: Invalid value: \"x\"",
            ),
            (
                annotated("apparmor.security.beta.kubernetes.io/allowedProfileNames", ""),
                "allowedProfileNames cannot be carried over: it is empty",
            ),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}}),
                "Pod \"q\": expected a PodSecurityPolicy",
            ),
        ] {
            let (outcome, printed, stderr) = ran(vec![policy("fine", &json!({})), wrong]);
            assert_eq!((outcome, printed.len()), (CommandOutcome::Refused, 0), "{stderr}");
            assert!(stderr.contains(expected), "{stderr}");
        }
        assert!(policies(vec![json!({"kind": "AdmissionConfiguration"})]).is_none());
    }
}
