//! The worlds in which bodies are decided on.

use std::sync::Arc;

use engine::plugins::api::AdmissionPlugin;
use engine::plugins::compiled::CompiledPlugin;
use engine::plugins::index::PluginIndex;
use engine::sidecarset::api::SidecarSet;
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::index::SetIndex;
use engine::snapshot::Snapshot;
use serde_json::{Value, json};

use crate::bodies::{Body, Plugins, Sets};

/// The world that the body is decided in.
///
/// # Errors
/// When an object of this benchmark is none.
pub fn world(body: &Body) -> Result<Snapshot, String> {
    Ok(Snapshot { sets: Arc::new(sets(body.sets)?), plugins: Arc::new(plugins(body.plugins)?), ..Snapshot::default() })
}

fn plugins(plugins: Plugins) -> Result<PluginIndex, String> {
    let allowed = json!([{"operator": "Exists"}, {"key": "team", "operator": "Exists"}]);
    let specs = match plugins {
        Plugins::None => vec![],
        Plugins::OfPods => vec![
            json!({"plugin": "AlwaysPullImages"}),
            json!({"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "pool=shared"}}),
            json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": {"notReadySeconds": 30}}),
            json!({"plugin": "PodTolerationRestriction", "podTolerationRestriction":
                {"default": [{"key": "team", "operator": "Exists"}], "whitelist": allowed}}),
            json!({"plugin": "ExtendedResourceToleration"}),
            json!({"plugin": "LimitPodHardAntiAffinityTopology"}),
        ],
        Plugins::Quota => vec![json!({"plugin": "ResourceQuota", "resourceQuota":
            {"limitedResources": [{"resource": "pods", "matchContains": ["requests.x.y/none"]}]}})],
    };
    let compiled: Result<Vec<_>, String> =
        specs.into_iter().enumerate().map(|(number, spec)| plugin(number, &spec)).collect();
    Ok(PluginIndex::build(compiled?))
}

fn plugin(number: usize, spec: &Value) -> Result<Arc<CompiledPlugin>, String> {
    let object = json!({
        "apiVersion": "policy.outrider.dev/v1alpha1", "kind": "AdmissionPlugin",
        "metadata": {"name": format!("plugin-{number}")}, "spec": spec,
    });
    let object: AdmissionPlugin = serde_json::from_value(object).map_err(|error| error.to_string())?;
    CompiledPlugin::compile(&object).map(Arc::new).map_err(|error| format!("{error:?}"))
}

fn sets(sets: Sets) -> Result<SetIndex, String> {
    let selecting = json!({"matchLabels": {"app": "web"}});
    let negation = |number: usize| match number % 2 {
        0 => json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
        _ => {
            json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": [format!("t{number}"), "back"]}]})
        }
    };
    let (count, selector): (usize, &dyn Fn(usize) -> Value) = match sets {
        Sets::One => (1, &|_| selecting.clone()),
        Sets::Matching(count) => (count, &|_| selecting.clone()),
        Sets::Negations(count) => (count, &negation),
    };
    let compiled: Result<Vec<_>, String> = (0..count).map(|number| set(number, &selector(number))).collect();
    Ok(SetIndex::build(compiled?))
}

fn set(number: usize, selector: &Value) -> Result<Arc<CompiledSet>, String> {
    let set = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "metadata": {"name": format!("set-{number}")},
        "spec": {
            "selector": selector,
            "containers": [{
                "name": format!("sidecar-{number}"), "image": "sidecar:1", "ports": [{"containerPort": 10_000 + number}],
                "resources": {"requests": {"cpu": "1m"}},
                "volumeMounts": [{"name": format!("volume-{number}"), "mountPath": "/data"}],
            }],
            "volumes": [{"name": format!("volume-{number}"), "emptyDir": {}}],
            "imagePullSecrets": [{"name": format!("secret-{number}")}],
        },
    });
    let set: SidecarSet = serde_json::from_value(set).map_err(|error| error.to_string())?;
    CompiledSet::compile(&set).map(Arc::new).map_err(|error| format!("{error:?}"))
}
