//! The worlds in which bodies are decided on.

use std::sync::Arc;

use engine::sidecarset::api::SidecarSet;
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::index::SetIndex;
use engine::snapshot::Snapshot;
use serde_json::{Value, json};

use crate::bodies::Sets;

/// A world of these sets.
///
/// # Errors
/// When a set of this benchmark is none.
pub fn world(sets: Sets) -> Result<Snapshot, String> {
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
    let compiled: Result<Vec<_>, String> = (0..count).map(|number| compile(number, &selector(number))).collect();
    Ok(Snapshot { sets: Arc::new(SetIndex::build(compiled?)), ..Snapshot::default() })
}

fn compile(number: usize, selector: &Value) -> Result<Arc<CompiledSet>, String> {
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
