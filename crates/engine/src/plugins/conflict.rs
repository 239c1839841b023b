//! Two objects of one plugin that say different things for one namespace.

use super::compiled::{CompiledPlugin, Mode, Settings};

/// In what two objects contradict each other, if there can be a namespace that both select.
pub fn between(one: &CompiledPlugin, other: &CompiledPlugin) -> Option<String> {
    let both_decide = one.plugin == other.plugin && one.mode != Mode::Off && other.mode != Mode::Off;
    if one.name == other.name || !both_decide || !overlap(one, other) {
        return None;
    }
    match (&one.settings, &other.settings) {
        (Settings::PodNodeSelector(a), Settings::PodNodeSelector(b)) => {
            let differs =
                a.cluster_default.iter().find(|(key, value)| b.cluster_default.get(*key).is_some_and(|v| v != *value));
            differs.map(|(key, _)| {
                format!(
                    "spec.podNodeSelector.clusterDefaultNodeSelector: AdmissionPlugin {:?} has another value of {key}; pods in \
                     namespaces without the annotation are refused",
                    other.name
                )
            })
        }
        (Settings::DefaultTolerationSeconds(a), Settings::DefaultTolerationSeconds(b)) if a != b => Some(format!(
            "spec.defaultTolerationSeconds: AdmissionPlugin {:?} has other seconds; the first by name that differs from 300 counts",
            other.name
        )),
        (Settings::PodSecurity(a), Settings::PodSecurity(b)) => {
            let differs = |(key, value): &&(&'static str, String)| b.labels.iter().any(|(k, v)| k == key && v != value);
            a.labels.iter().find(differs).map(|(key, _)| {
                let name = &other.name;
                format!("spec.podSecurity.defaults: AdmissionPlugin {name:?} has another value of {key}; the first by name counts")
            })
        }
        _ => None,
    }
}

fn overlap(one: &CompiledPlugin, other: &CompiledPlugin) -> bool {
    match (&one.namespaces, &other.namespaces) {
        (Some(one), Some(other)) => one.overlaps(other),
        _ => true,
    }
}
