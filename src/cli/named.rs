//! A pod of a cluster that a command names, in the forms that kubectl takes.

use std::path::Path;

use super::stray::{is_file, needs_flag};

/// Kinds that make pods, each with the short name that kubectl has for it.
const WORKLOADS: [(&str, &str); 7] = [
    ("deployment", "deploy"),
    ("replicaset", "rs"),
    ("statefulset", "sts"),
    ("daemonset", "ds"),
    ("replicationcontroller", "rc"),
    ("job", "job"),
    ("cronjob", "cj"),
];

/// The name of the pod that these words name; `None` where there are none.
///
/// # Errors
/// What to write instead.
pub fn pod_name<'w>(words: &[&'w str], namespace: &str) -> Result<Option<&'w str>, String> {
    // A kind and a name may be one word; but a folder of that name is a folder.
    let parts = match words {
        [] => return Ok(None),
        [word] if !Path::new(word).exists() => match word.split_once('/') {
            Some((kind, name)) if !is_file(name) => Some((kind, name)),
            Some(_) => None,
            None => Some((*word, "")),
        },
        [kind, name] => Some((*kind, *name)),
        _ => None,
    };
    match parts {
        Some((kind, "")) if is_pod(kind) => Err("the name of the pod is missing: outrider explain pod NAME".to_owned()),
        Some((kind, name)) if is_pod(kind) => Ok(Some(name)),
        Some((kind, name)) if let Some(workload) = workload(kind) => Err(of_workload(workload, name, namespace)),
        _ => {
            let unknown = || {
                let first = words.first().copied().unwrap_or_default();
                format!("{first:?} cannot be read from a cluster: write pod and its name, or use -f")
            };
            let file = words.iter().find(|word| is_file(word));
            Err(file.map_or_else(unknown, |file| needs_flag(file)))
        }
    }
}

fn is_pod(kind: &str) -> bool {
    is_named(kind, "pod", "po")
}

/// Whether this is the kind, in the singular or the plural, or its short name.
fn is_named(word: &str, kind: &str, short: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word == short || word.strip_suffix('s').unwrap_or(&word) == kind
}

/// The kind that makes pods of which this is a name, with or without its group.
fn workload(kind: &str) -> Option<&'static str> {
    if is_file(kind) {
        return None;
    }
    let word = kind.split_once('.').map_or(kind, |(kind, _)| kind);
    WORKLOADS.iter().find(|(kind, short)| is_named(word, kind, short)).map(|(kind, _)| *kind)
}

/// How to explain the pods of a workload.
fn of_workload(workload: &str, name: &str, namespace: &str) -> String {
    let is_name =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
    let name = if is_name { name } else { "NAME" };
    format!(
        "explain reads only pods from a cluster: name a pod of the {workload} (outrider explain pod NAME -n {namespace}), or give its manifest: \
         kubectl get {workload} {name} -n {namespace} -o yaml | outrider explain --from-cluster -n {namespace} -f -"
    )
}
