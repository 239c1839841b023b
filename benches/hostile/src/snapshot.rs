//! The worlds in which bodies are decided on.

use std::sync::Arc;

use engine::limitrange::compiled::CompiledRange;
use engine::plugins::api::AdmissionPlugin;
use engine::plugins::compiled::CompiledPlugin;
use engine::plugins::index::PluginIndex;
use engine::podsecurityprofile::compiled::CompiledProfile;
use engine::sidecarset::api::SidecarSet;
use engine::sidecarset::compiled::CompiledSet;
use engine::sidecarset::index::SetIndex;
use engine::snapshot::Snapshot;
use engine::snapshot::scope::ByName;
use engine::{limitrange, podsecurityprofile};
use serde_json::{Value, json};

use crate::bodies::{Body, Plugins, Policies, Sets};

/// The world that the body is decided in.
///
/// # Errors
/// When an object of this benchmark is none.
pub fn snapshot(body: &Body) -> Result<Snapshot, String> {
    let (mut limit_ranges, mut security_profiles) = (Vec::new(), Vec::new());
    match body.policies {
        Policies::None => {}
        Policies::Ranges => limit_ranges = (0..RANGES).map(range).collect::<Result<_, _>>()?,
        Policies::Profile => security_profiles.push(profile()?),
    }
    Ok(Snapshot {
        sets: Arc::new(sets(body.sets)?),
        plugins: Arc::new(plugins(body.plugins)?),
        limit_ranges: Arc::new(ByName::build(limit_ranges)),
        security_profiles: Arc::new(ByName::build(security_profiles)),
        ..Snapshot::default()
    })
}

/// Ranges that are there.
const RANGES: usize = 20;

fn range(number: usize) -> Result<Arc<CompiledRange>, String> {
    let amounts = json!({"cpu": (1_000 + number).to_string(), "x.y/0": "5"});
    let limits =
        json!([{"type": "Container", "max": amounts, "default": {"cpu": "1"}}, {"type": "Pod", "max": amounts}]);
    let object = policy("ClusterLimitRange", &format!("range-{number}"), &json!({ "limits": limits }));
    limitrange::validation::compile(&object).map(Arc::new).map_err(|error| error.to_string())
}

fn profile() -> Result<Arc<CompiledProfile>, String> {
    let any = json!({"rule": "RunAsAny"});
    let spec = json!({
        "seLinux": any, "runAsUser": any, "supplementalGroups": any, "fsGroup": any, "volumes": ["*"],
        "requiredDropCapabilities": ["ALL"],
    });
    let object = policy("PodSecurityProfile", "profile", &spec);
    podsecurityprofile::validation::compile(&object).map(Arc::new).map_err(|error| error.to_string())
}

fn policy(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// The specs that `make bench` measures, too.
const PLUGINS_OF_PODS: &str = include_str!("../../plugins-of-pods.json");

fn plugins(plugins: Plugins) -> Result<PluginIndex, String> {
    let specs = match plugins {
        Plugins::None => vec![],
        Plugins::OfPods => of_pods()?,
        Plugins::Quota => vec![json!({"plugin": "ResourceQuota", "resourceQuota":
            {"limitedResources": [{"resource": "pods", "matchContains": ["requests.x.y/none"]}]}})],
    };
    let compiled: Result<Vec<_>, String> =
        specs.into_iter().enumerate().map(|(number, spec)| plugin(number, &spec)).collect();
    Ok(PluginIndex::build(compiled?))
}

/// One object of each plugin of pods. What a hostile body tolerates is on the whitelist, so that it is judged to the end.
fn of_pods() -> Result<Vec<Value>, String> {
    let mut specs: Vec<Value> = serde_json::from_str(PLUGINS_OF_PODS).map_err(|error| error.to_string())?;
    let whitelists = specs.iter_mut().filter_map(|spec| spec.pointer_mut("/podTolerationRestriction/whitelist"));
    for whitelist in whitelists {
        *whitelist = json!([{"operator": "Exists"}, {"key": "team", "operator": "Exists"}]);
    }
    Ok(specs)
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
        Sets::None => (0, &|_| Value::Null),
        Sets::Musts(count) => (count, &|_| selecting.clone()),
        Sets::One => (1, &|_| selecting.clone()),
        Sets::Matching(count) => (count, &|_| selecting.clone()),
        Sets::Negations(count) => (count, &negation),
    };
    let compiled: Result<Vec<_>, String> = (0..count).map(|number| set(number, &selector(number), sets)).collect();
    Ok(SetIndex::build(compiled?))
}

fn set(number: usize, selector: &Value, sets: Sets) -> Result<Arc<CompiledSet>, String> {
    let mut set = json!({
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
    if let Sets::Musts(_) = sets {
        set["spec"] = json!({
            "selector": selector, "optOut": "Denied", "clashPolicy": "Refuse",
            "containers": [{"name": format!("sidecar-{number}"), "image": "sidecar:1"}],
        });
    }
    let set: SidecarSet = serde_json::from_value(set).map_err(|error| error.to_string())?;
    CompiledSet::compile(&set).map(Arc::new).map_err(|error| format!("{error:?}"))
}
