//! Sets and namespaces that do not change, and the endpoints with a reply read as the API server reads it.

use std::sync::{Arc, LazyLock};

use admission::{Registry, Unserved};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::limitrange;
use engine::limitrange::validation::ClusterLimitRangeValidation;
use engine::offline::manifest;
use engine::offline::model::{Reading, Validate, load};
use engine::plugins;
use engine::plugins::validation::AdmissionPluginValidation;
use engine::sidecarset::defaults::SidecarSetDefaults;
use engine::sidecarset::validation::SidecarSetValidation;
use engine::sidecarset::{mutating_rule, validating_rule};
use engine::snapshot::{Exclusion, Snapshot};
use serde_json::{Value, json};

/// Mutates new pods.
pub const MUTATE_POD: &str = "/mutate--v1-pod";
/// Validates new pods.
pub const VALIDATE_POD: &str = "/validate--v1-pod";
/// Fills in the defaults of sets.
pub const MUTATE_SET: &str = "/mutate-apps-outrider-dev-v1alpha1-sidecarset";
/// Validates sets.
pub const VALIDATE_SET: &str = "/validate-apps-outrider-dev-v1alpha1-sidecarset";

/// The namespace of pods that do not name one.
pub const NAMESPACE: &str = "shop";

/// The sets that pods are decided with.
const CLUSTERS: [&[(&str, &str)]; 2] = [
    &[
        ("agent.yaml", include_str!("../../../tests/fixtures/manifests/agent.yaml")),
        ("audit.yaml", include_str!("../../../tests/fixtures/manifests/audit.yaml")),
        ("log-agent.yaml", include_str!("../../../tests/fixtures/manifests/log-agent.yaml")),
        ("metrics.yaml", include_str!("../../../tests/fixtures/manifests/metrics.yaml")),
        ("namespaces.yaml", include_str!("../../../tests/fixtures/manifests/namespaces.yaml")),
        ("paused.yaml", include_str!("../../../tests/fixtures/manifests/paused.yaml")),
        ("proxy.yaml", include_str!("../../../tests/fixtures/manifests/proxy.yaml")),
        ("windows.yaml", include_str!("../../../tests/fixtures/manifests/windows.yaml")),
    ],
    &[("sets.yaml", include_str!("../../sets/sets.yaml"))],
];

/// The worlds, one for each list of manifests and version of the API server.
pub static ALL: LazyLock<Vec<Cluster>> = LazyLock::new(|| {
    let versions = [None, Some(28)];
    CLUSTERS.iter().flat_map(|manifests| versions.map(|minor| Cluster::new(manifests, minor))).collect()
});

/// Without sets, one object of each admission plugin, and a range.
pub static PLUGINS: LazyLock<Cluster> = LazyLock::new(|| Cluster::new(&[("plugins.yaml", PLUGINS_OF_CLUSTER)], None));

/// The manifests of [`PLUGINS`].
pub const PLUGINS_OF_CLUSTER: &str = include_str!("../../sets/plugins.yaml");

/// A snapshot, and the endpoints.
pub struct Cluster {
    pub registry: Registry<Snapshot>,
    pub snapshot: Snapshot,
}

/// A reply, read.
pub struct Reply {
    pub allowed: bool,
    /// The status of a refusal, as text.
    pub status: String,
    pub patch: Option<Vec<Value>>,
}

impl Cluster {
    fn new(manifests: &[(&str, &str)], minor_version: Option<u32>) -> Self {
        let registry = engine::pod::register(Registry::default(), Vec::new())
            .defaulting(mutating_rule(), SidecarSetDefaults)
            .validating(validating_rule(), SidecarSetValidation)
            .validating(plugins::validation::RULE, AdmissionPluginValidation)
            .validating(limitrange::validation::RULE, ClusterLimitRangeValidation);
        let registry = limitrange::endpoints::register(plugins::endpoints::register(registry));
        let exclusion = Arc::new(Exclusion::new("outrider-system", ["cert-manager".to_owned()]));
        let objects =
            manifests.iter().flat_map(|(file, text)| manifest::parse(file, text).expect("manifests are right"));
        let objects: Vec<_> = objects.collect();
        let reading = Reading {
            exclusion: &exclusion,
            registry: &registry,
            other_types: &[],
            validate: Validate::Strict,
            minor_version,
        };
        let snapshot = match load(&objects, reading) {
            Ok(loaded) => loaded.snapshot,
            Err(unusable) => panic!("{:?}", unusable.errors),
        };
        Self { registry, snapshot }
    }

    /// The paths of all endpoints.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.registry.entries().iter().map(|entry| entry.path.as_str())
    }

    /// The bytes of the reply of an endpoint.
    pub fn answer(&self, path: &str, body: &[u8]) -> Result<Vec<u8>, Unserved> {
        let entry = self.registry.find(path).unwrap_or_else(|| panic!("no endpoint at {path}"));
        entry.endpoint.answer(body, &self.snapshot).map(|answer| answer.body)
    }

    /// The reply of an endpoint to a review that can be read, and which must name it. `None` where there is no verdict.
    pub fn ask(&self, path: &str, review: &Value) -> Option<Reply> {
        let body = self.answer(path, review.to_string().as_bytes()).ok()?;
        let reply: Value = serde_json::from_slice(&body).expect("a reply is JSON");
        assert_eq!(reply["apiVersion"], review["apiVersion"]);
        assert_eq!(reply["kind"], "AdmissionReview");
        let response = &reply["response"];
        assert_eq!(response["uid"], review["request"]["uid"], "{path}: the reply names another review");
        let allowed = response["allowed"].as_bool().expect("a verdict");
        let operations = response.get("patch").map(|encoded| {
            assert_eq!(response["patchType"], "JSONPatch");
            assert!(allowed, "a refusal has a patch");
            assert!(path.starts_with("/mutate"), "{path} has a patch");
            let text = STANDARD.decode(encoded.as_str().expect("a text")).expect("base64");
            serde_json::from_slice(&text).expect("a list of operations")
        });
        assert!(
            allowed || response["status"]["message"].as_str().is_some_and(|text| !text.is_empty()),
            "no word on why"
        );
        Some(Reply { allowed, status: response["status"].to_string(), patch: operations })
    }
}

impl Reply {
    /// The object with the patch applied, which must change it.
    pub fn applied(&self, object: &Value) -> Value {
        let Some(operations) = &self.patch else { return object.clone() };
        let operations: json_patch::Patch = serde_json::from_value(json!(operations)).expect("operations of RFC 6902");
        let mut patched = object.clone();
        json_patch::patch(&mut patched, &operations).unwrap_or_else(|error| panic!("{error}: {operations:?}"));
        assert_ne!(patched, *object, "a patch that changes nothing");
        patched
    }
}

/// The review of the creation of a pod.
pub fn pod_review(namespace: &str, pod: &Value) -> Value {
    review(["", "v1", "Pod", "pods"], namespace, pod)
}

/// The review of the creation of a set.
pub fn set_review(set: &Value) -> Value {
    review(["apps.outrider.dev", "v1alpha1", "SidecarSet", "sidecarsets"], "", set)
}

fn review([group, version, kind, resource]: [&str; 4], namespace: &str, object: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7a1c",
            "kind": {"group": group, "version": version, "kind": kind},
            "resource": {"group": group, "version": version, "resource": resource},
            "name": object["metadata"]["name"].as_str().unwrap_or_default(),
            "namespace": namespace,
            "operation": "CREATE",
            "object": object,
        }
    })
}
