//! Configurations of the API server's own plugins as specs of `AdmissionPlugin` objects.

use engine::plugins::Plugin;
use engine::plugins::catalog::find;
use serde_json::{Map, Value, json};

use super::image_policy;

/// The spec for a configuration.
///
/// # Errors
/// What cannot be carried over.
pub fn converted(name: &str, configuration: &Value) -> Result<Value, String> {
    let empty = Map::new();
    let fields = match configuration {
        Value::Null => &empty,
        Value::Object(fields) => fields,
        _ => return Err("the configuration is no map".to_owned()),
    };
    let Some(plugin) = Plugin::named(name) else {
        return Err(match find(name) {
            Some(entry) => format!("its configuration cannot be carried over: {}", entry.how()),
            None => "Kubernetes has no such admission plugin".to_owned(),
        });
    };
    match plugin {
        Plugin::PodNodeSelector => node_selector(fields),
        Plugin::PodTolerationRestriction => {
            only(fields, &["apiVersion", "kind", "default", "whitelist"])?;
            let list = |field: &str| fields.get(field).cloned().unwrap_or_else(|| json!([]));
            let section =
                json!({"default": list("default"), "whitelist": list("whitelist"), "alwaysAllowBuiltin": false});
            Ok(json!({"plugin": name, "podTolerationRestriction": section}))
        }
        Plugin::PodSecurity => pod_security(fields),
        Plugin::ImagePolicyWebhook => image_policy::spec(fields),
        Plugin::ResourceQuota => {
            only(fields, &["apiVersion", "kind", "limitedResources"])?;
            let limited = fields.get("limitedResources").cloned().unwrap_or_else(|| json!([]));
            Ok(json!({"plugin": name, "resourceQuota": {"limitedResources": limited}}))
        }
        Plugin::EventRateLimit => {
            only(fields, &["apiVersion", "kind", "limits"])?;
            let limits = fields.get("limits").cloned().unwrap_or_else(|| json!([]));
            Ok(json!({"plugin": name, "eventRateLimit": {"limits": limits}}))
        }
        _ => {
            only(fields, &["apiVersion", "kind"])?;
            Ok(json!({"plugin": name}))
        }
    }
}

/// Refuses fields that would be dropped.
///
/// # Errors
/// The first of them.
pub fn only(fields: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match fields.keys().find(|field| !known.contains(&field.as_str())) {
        None => Ok(()),
        Some(field) => Err(format!("field {field:?} cannot be carried over")),
    }
}

/// The members of a map, none where it is absent.
///
/// # Errors
/// That it is no map.
pub fn map<'f>(
    fields: &'f Map<String, Value>,
    field: &str,
) -> Result<impl Iterator<Item = (&'f String, &'f Value)> + use<'f>, String> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None.into_iter().flatten()),
        Some(Value::Object(map)) => Ok(Some(map).into_iter().flatten()),
        Some(_) => Err(format!("{field} is no map")),
    }
}

fn node_selector(fields: &Map<String, Value>) -> Result<Value, String> {
    only(fields, &["apiVersion", "kind", "podNodeSelectorPluginConfig"])?;
    let mut lists = Map::new();
    let mut section = Map::new();
    for (key, text) in map(fields, "podNodeSelectorPluginConfig")? {
        if key == "clusterDefaultNodeSelector" {
            section.insert(key.clone(), text.clone());
        } else {
            lists.insert(key.clone(), text.clone());
        }
    }
    if !lists.is_empty() {
        section.insert("namespaceAllowLists".to_owned(), lists.into());
    }
    Ok(json!({"plugin": "PodNodeSelector", "podNodeSelector": section}))
}

fn pod_security(fields: &Map<String, Value>) -> Result<Value, String> {
    only(fields, &["apiVersion", "kind", "defaults", "exemptions"])?;
    let mut spec = json!({"plugin": "PodSecurity", "podSecurity": {"defaults": fields.get("defaults").cloned().unwrap_or_else(|| json!({}))}});
    for (kind, list) in map(fields, "exemptions")? {
        if !list.is_null() && !list.is_array() {
            return Err(format!("exemptions.{kind} is no list"));
        }
        let is_empty = list.as_array().is_none_or(Vec::is_empty);
        match kind.as_str() {
            "namespaces" if !is_empty => spec["match"] = json!({"excludeNamespaces": list}),
            _ if is_empty => {}
            other => {
                return Err(format!(
                    "exemptions.{other} cannot be carried over: labels of namespaces cannot express them"
                ));
            }
        }
    }
    Ok(spec)
}
