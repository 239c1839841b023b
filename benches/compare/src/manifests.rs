//! The `SidecarSets` of a row, as files for `outrider serve --standalone --manifests`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::error::BenchError;
use crate::rows::{Plugins, Row};

/// Writes one file an object: the sets, and the namespace of the recorded pods.
///
/// # Errors
/// A file that cannot be written.
pub fn write(row: &Row, folder: &Path) -> Result<(), BenchError> {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"kubernetes.io/metadata.name": "shop"}},
    });
    let objects = std::iter::once(namespace).chain(sidecar_sets(row)).chain(plugins(row.plugins)?);
    for (number, object) in objects.enumerate() {
        let path = folder.join(format!("{number:04}.json"));
        fs::write(&path, serde_json::to_vec_pretty(&object)?).map_err(BenchError::file(path))?;
    }
    Ok(())
}

/// The specs of one object of each plugin of pods: each changes the recorded pods, or judges them. The hostile bodies meet the same.
const PLUGINS_OF_PODS: &str = include_str!("../../plugins-of-pods.json");

fn plugins(which: Plugins) -> Result<Vec<Value>, BenchError> {
    let object = |name: String, spec: Value| {
        json!({
            "apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin",
            "metadata": {"name": name}, "spec": spec,
        })
    };
    Ok(match which {
        Plugins::None => Vec::new(),
        Plugins::OfPods => serde_json::from_str::<Vec<Value>>(PLUGINS_OF_PODS)?
            .into_iter()
            .enumerate()
            .map(|(number, spec)| object(format!("plugin-{number}"), spec))
            .collect(),
        Plugins::Elsewhere(count) => (0..count)
            .map(|number| {
                let scope = json!({"namespaceSelector": {"matchLabels": {"tenant": format!("t{number}")}}});
                object(format!("plugin-{number:04}"), json!({"plugin": "AlwaysPullImages", "match": scope}))
            })
            .collect(),
    })
}

/// The matching sets are spread evenly between the others, so that no order of search favours them.
fn sidecar_sets(row: &Row) -> impl Iterator<Item = Value> {
    (0..row.sets).map(|number| {
        let selector = if matches(row, number) { matching_selector(number) } else { other_selector(number) };
        sidecar_set(number, &selector)
    })
}

fn set_name(number: usize) -> String {
    format!("sidecar-{number:04}")
}

const fn matches(row: &Row, number: usize) -> bool {
    if row.matching == 0 {
        return false;
    }
    let stride = row.sets / row.matching;
    number % stride == stride / 2 && number / stride < row.matching
}

/// Both recorded pods carry app=checkout, team=payments and tier=web.
fn matching_selector(number: usize) -> Value {
    match number % 2 {
        0 => json!({"matchLabels": {"app": "checkout"}}),
        _ => {
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["checkout", "cart"]}]})
        }
    }
}

/// The ways in which sets of a real cluster leave a pod alone; some share a label with it.
fn other_selector(number: usize) -> Value {
    let app = format!("app-{number:04}");
    match number % 10 {
        0 | 1 => json!({"matchExpressions": [
            {"key": "app", "operator": "In", "values": [app, format!("{app}-canary")]},
        ]}),
        2 => json!({"matchLabels": {"team": "payments", "app": app}}),
        3 => {
            json!({"matchExpressions": [{"key": format!("mesh.example.com/{app}"), "operator": "Exists"}]})
        }
        4 => json!({
            "matchLabels": {"team": format!("team-{number:04}")},
            "matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}],
        }),
        _ => json!({"matchLabels": {"app": app}}),
    }
}

fn sidecar_set(number: usize, selector: &Value) -> Value {
    let name = set_name(number);
    let port = 20_000 + number;
    json!({
        "apiVersion": "apps.outrider.dev/v1alpha1",
        "kind": "SidecarSet",
        "metadata": {"name": name},
        "spec": {
            "selector": selector,
            "containers": [{
                "name": name,
                "image": format!("registry.example.com/mesh/proxy:1.{number}.0"),
                "args": ["proxy", "--admin-port", port.to_string()],
                "env": [
                    {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
                    {"name": "LOG_LEVEL", "value": "warn"},
                ],
                "ports": [{"name": format!("admin-{number:04}"), "containerPort": port, "protocol": "TCP"}],
                "resources": {
                    "requests": {"cpu": "50m", "memory": "64Mi"},
                    "limits": {"memory": "128Mi"},
                },
                "readinessProbe": {
                    "httpGet": {"path": "/ready", "port": port},
                    "periodSeconds": 5,
                },
                "volumeMounts": [{"name": format!("{name}-data"), "mountPath": "/var/lib/proxy"}],
            }],
            "volumes": [{"name": format!("{name}-data"), "emptyDir": {}}],
        },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::reviews::RECORDED;
    use crate::rows::ROWS;

    /// Label selector semantics of k8s.io/apimachinery/pkg/labels, for the operators used here.
    fn selects(selector: &Value, labels: &Value) -> bool {
        let pairs = selector["matchLabels"].as_object().into_iter().flatten();
        let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
        pairs.into_iter().all(|(key, value)| labels[key] == *value)
            && expressions.into_iter().all(|expression| {
                let value = &labels[expression["key"].as_str().unwrap()];
                let listed = expression["values"].as_array().is_some_and(|values| values.contains(value));
                match expression["operator"].as_str().unwrap() {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => !value.is_null(),
                    operator => unreachable!("{operator}"),
                }
            })
    }

    #[test]
    fn every_row_has_as_many_sets_and_matches_as_it_says() {
        for row in &ROWS {
            let sets: Vec<Value> = sidecar_sets(row).collect();
            assert_eq!(sets.len(), row.sets, "{}", row.name);
            for body in &RECORDED {
                let review: Value = serde_json::from_str(body.text).unwrap();
                let labels = &review["request"]["object"]["metadata"]["labels"];
                let matching = sets.iter().filter(|set| selects(&set["spec"]["selector"], labels)).count();
                assert_eq!(matching, row.matching, "{} {}", row.name, body.name);
            }
        }
    }

    #[test]
    fn every_object_gets_its_own_file() {
        for row in ROWS.iter().filter(|row| row.sets <= 100) {
            let folder = tempfile::tempdir().unwrap();
            write(row, folder.path()).unwrap();
            let objects = row.sets + 1 + plugins(row.plugins).unwrap().len();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), objects, "{}", row.name);
        }
    }
}
