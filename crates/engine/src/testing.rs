//! For tests: a snapshot from objects, and the real endpoints for pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::{Answer, Answers, Deadline, Decision, Known, Question, Reason, Registry, Unserved};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::plugins;
use crate::plugins::index::PluginIndex;
use crate::plugins::service_account::Account;
use crate::plugins::storage_classes::{StorageClass, StorageClasses};
use crate::pod::older::{TakenOut, take_out};
use crate::podsecurityprofile::endpoints::PodSecurityProfiles;
use crate::sidecarset::api::SidecarSet;
use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL};
use crate::sidecarset::index::SetIndex;
use crate::snapshot::Exclusion;
use crate::snapshot::Snapshot;
use crate::snapshot::collection::Collection as _;
use crate::snapshot::configuration::{ConfigurationMap, ConfigurationMaps};
use crate::snapshot::namespace::Namespaces;
use crate::snapshot::nodes::Nodes;
use crate::snapshot::pinned::PinnedForms;
use crate::snapshot::quotas::{QuotaKey, Quotas, read};
use crate::snapshot::revisions::{Revision, RevisionIndex};
use crate::snapshot::scope::ByName;
use crate::snapshot::service_accounts::{AccountKey, ServiceAccounts};
use crate::snapshot::while_read::WhileRead as _;

/// The namespace of pods that do not say another.
pub const NAMESPACE: &str = "shop";

/// Where pods are decided on.
pub struct Cluster {
    pub(crate) snapshot: Snapshot,
    pub(crate) registry: Registry<Snapshot>,
}

impl Cluster {
    /// A cluster offline with these objects.
    pub fn from_objects(objects: &[Value]) -> Self {
        let (mut sets, mut plugins, mut ranges, mut profiles) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut namespaces = Namespaces::default();
        let mut quotas = Quotas::default();
        let mut classes = StorageClasses::default();
        let mut nodes = Nodes::default();
        let mut accounts = ServiceAccounts::default();
        let mut configuration = ConfigurationMaps::default();
        let mut revisions = Vec::new();
        for object in objects {
            if object["kind"] == "Namespace" {
                let labels: Option<BTreeMap<String, String>> =
                    serde_json::from_value(object["metadata"]["labels"].clone()).unwrap();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                let mut labels = labels.unwrap_or_default();
                labels.insert(NAMESPACE_NAME_LABEL.to_owned(), name.clone());
                let annotations: Option<BTreeMap<String, String>> =
                    serde_json::from_value(object["metadata"]["annotations"].clone()).unwrap();
                namespaces.insert_annotated(name, labels, annotations.unwrap_or_default());
            } else if object["kind"] == "AdmissionPlugin" {
                plugins.push(Arc::new(crate::plugins::validation::compile(object).unwrap()));
            } else if object["kind"] == "ClusterLimitRange" {
                ranges.push(Arc::new(crate::limitrange::validation::compile(object).unwrap()));
            } else if object["kind"] == "PodSecurityProfile" {
                profiles.push(Arc::new(crate::podsecurityprofile::validation::compile(object).unwrap()));
            } else if object["kind"] == "ResourceQuota" {
                let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
                let key = QuotaKey { namespace: text("namespace"), name: text("name") };
                let (spec, status) = (object["spec"].clone(), object["status"].clone());
                let quota = read(serde_json::from_value(spec).unwrap(), serde_json::from_value(status).unwrap());
                quotas.insert(key, Arc::new(quota));
            } else if object["kind"] == "ServiceAccount" {
                let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
                let key = AccountKey { namespace: text("namespace"), name: text("name") };
                accounts.insert(key, Arc::new(Account::read(object)));
            } else if object["kind"] == "Node" {
                let labels: BTreeMap<_, _> = serde_json::from_value(object["metadata"]["labels"].clone()).unwrap();
                nodes.insert(object["metadata"]["name"].as_str().unwrap().to_owned(), Arc::new(labels));
            } else if object["kind"] == "StorageClass" {
                let metadata = &object["metadata"];
                let class = StorageClass::of(
                    |key| metadata["annotations"][key].as_str(),
                    metadata["creationTimestamp"].as_str().unwrap_or_default(),
                    object["allowVolumeExpansion"] == true,
                );
                classes.insert(metadata["name"].as_str().unwrap().to_owned(), class);
            } else if object["kind"] == "ControllerRevision" {
                revisions.push(Arc::new(Revision::of(object).unwrap()));
            } else if object["kind"] == "ConfigMap" {
                let allow_list = object["data"]["SidecarSet_PatchPodMetadata_WhiteList"].as_str().map(str::to_owned);
                configuration.apply(&ConfigurationMap { allow_list });
            } else {
                sets.push(Arc::new(compile(object)));
            }
        }
        let revisions = RevisionIndex::build(revisions);
        let pinned = PinnedForms::default().next(sets.iter().map(|set| (set, "")), &revisions);
        let snapshot = Snapshot {
            sets: Arc::new(SetIndex::build(sets)),
            pinned: Arc::new(pinned),
            revisions: Arc::new(revisions),
            plugins: Arc::new(PluginIndex::build(plugins)),
            limit_ranges: Arc::new(ByName::build(ranges)),
            security_profiles: Arc::new(ByName::build(profiles)),
            namespaces: Arc::new(namespaces),
            quotas: Arc::new(quotas),
            storage_classes: Arc::new(classes),
            nodes: Arc::new(nodes),
            service_accounts: Arc::new(accounts),
            exclusion: Arc::new(Exclusion::new("outrider-system", ["cert-manager".to_owned()])),
            configuration: configuration.view(),
            ..Snapshot::default()
        };
        let registry = crate::pod::register(Registry::default(), vec![&PodSecurityProfiles]);
        let registry = crate::limitrange::endpoints::register(plugins::endpoints::register(registry));
        Self { snapshot, registry: crate::podsecurityprofile::endpoints::register(registry) }
    }

    /// The same with a cluster, in which namespaces may appear.
    pub fn live(mut self) -> Self {
        self.snapshot.namespaces_may_appear = true;
        self
    }

    /// The same with an API server of this minor version.
    pub fn on(mut self, minor: u32) -> Self {
        self.snapshot.minor_version = Some(minor);
        self
    }

    /// The same with an API server that resizes pods.
    pub fn resizing(mut self) -> Self {
        self.snapshot.resizes_pods = true;
        self
    }

    /// What `/mutate--v1-pod` says to the creation of a pod in [`NAMESPACE`].
    pub fn mutate(&self, pod: &Value) -> Reply {
        self.mutate_in(NAMESPACE, pod).unwrap()
    }

    /// What `/mutate--v1-pod` says to the creation of a pod in a namespace.
    pub fn mutate_in(&self, namespace: &str, pod: &Value) -> Result<Reply, Unserved> {
        self.ask("/mutate--v1-pod", &review(namespace, pod))
    }

    /// What `/validate--v1-pod` says to the creation of a pod in [`NAMESPACE`].
    pub fn validate(&self, pod: &Value) -> Reply {
        self.ask("/validate--v1-pod", &review(NAMESPACE, pod)).unwrap()
    }

    /// What `outrider render` takes out of a pod in [`NAMESPACE`].
    pub fn take_out(&self, pod: &Value) -> TakenOut {
        take_out(pod, NAMESPACE, &self.snapshot).unwrap()
    }

    /// What an endpoint says to a review.
    pub fn ask(&self, path: &str, review: &Value) -> Result<Reply, Unserved> {
        let body = serde_json::to_vec(review).unwrap();
        self.ask_bytes(path, &body)
    }

    /// The answer of an endpoint as the server gets it.
    pub fn answer(&self, path: &str, body: &[u8]) -> Result<Answer, Unserved> {
        self.registry.find(path).unwrap().endpoint.answer(body, &self.snapshot)
    }

    /// The same while a client waits for it.
    pub fn answer_within<'a>(&self, path: &str, body: &'a [u8], deadline: Deadline<'a>) -> Result<Answer, Unserved> {
        self.registry.find(path).unwrap().endpoint.answer_with(body, &self.snapshot, Answers::NONE, deadline)
    }

    /// What an endpoint says to a body.
    pub fn ask_bytes(&self, path: &str, body: &[u8]) -> Result<Reply, Unserved> {
        Ok(taken_apart(self.answer(path, body)?, body))
    }

    /// What an endpoint says to a review when its questions are answered, and all of these.
    pub fn ask_with(
        &self,
        path: &str,
        review: &Value,
        mut answer: impl FnMut(&Question) -> Known,
    ) -> Result<(Reply, Vec<Question>), Unserved> {
        let (body, mut answers, mut asked) = (serde_json::to_vec(review).unwrap(), Answers::default(), Vec::new());
        loop {
            let endpoint = &self.registry.find(path).unwrap().endpoint;
            match endpoint.answer_with(&body, &self.snapshot, &answers, Deadline::default()) {
                Err(Unserved::Unanswered(questions)) => {
                    assert!(asked.len() < 64, "it asks for ever: {questions:?}");
                    for question in questions {
                        answers.insert(question.clone(), answer(&question));
                        asked.push(question);
                    }
                }
                found => return Ok((taken_apart(found?, &body), asked)),
            }
        }
    }
}

fn taken_apart(answer: Answer, body: &[u8]) -> Reply {
    let response = serde_json::from_slice::<Value>(&answer.body).unwrap()["response"].take();
    let mut object = serde_json::from_slice::<Value>(body).unwrap_or_default()["request"]["object"].take();
    let operations: Option<Value> = response.get("patch").map(|text| {
        assert_eq!(response["patchType"], "JSONPatch");
        serde_json::from_slice(&STANDARD.decode(text.as_str().unwrap()).unwrap()).unwrap()
    });
    if let Some(operations) = operations.clone() {
        let operations: json_patch::Patch = serde_json::from_value(operations).unwrap();
        json_patch::patch(&mut object, &operations).unwrap();
    }
    Reply {
        decision: answer.decision,
        reason: answer.reason,
        message: answer.message,
        code: response["status"]["code"].as_u64(),
        causes: response["status"]["details"]["causes"].clone(),
        warnings: serde_json::from_value(response.get("warnings").cloned().unwrap_or_else(|| json!([]))).unwrap(),
        audit: serde_json::from_value(response.get("auditAnnotations").cloned().unwrap_or_else(|| json!({}))).unwrap(),
        patch: operations,
        pod: object,
        body: answer.body,
    }
}

/// An answer, taken apart.
#[derive(Debug)]
pub struct Reply {
    /// The decision.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// The sentence of a denial.
    pub message: String,
    /// The code of a denial.
    pub code: Option<u64>,
    /// The causes of a denial.
    pub causes: Value,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Audit annotations.
    pub audit: BTreeMap<String, String>,
    /// The patch, if there is one.
    pub patch: Option<Value>,
    /// The pod after the patch.
    pub pod: Value,
    /// The body of the reply.
    pub body: Vec<u8>,
}

impl Reply {
    /// Names in a list of the pod's spec.
    pub fn names(&self, list: &str) -> Vec<&str> {
        names(&self.pod, list)
    }

    /// Our record on the pod.
    pub fn record(&self) -> Value {
        let text = self.pod["metadata"]["annotations"]["outrider.dev/injected"].as_str();
        serde_json::from_str(text.unwrap_or("null")).unwrap()
    }
}

/// Names in a list of a pod's spec.
pub fn names<'p>(pod: &'p Value, list: &str) -> Vec<&'p str> {
    let elements = pod["spec"][list].as_array().map(Vec::as_slice).unwrap_or_default();
    elements.iter().map(|element| element["name"].as_str().unwrap_or("")).collect()
}

/// A review of the creation of a pod.
pub fn review(namespace: &str, pod: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0a1b",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "name": pod["metadata"]["name"],
            "namespace": namespace,
            "operation": "CREATE",
            "object": pod,
        }
    })
}

/// A pod with the label `app: web` and a container `app`, with more of a spec.
pub fn pod(spec: Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-0", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "shop:1"}]},
    });
    json_patch::merge(&mut pod, &json!({"spec": spec}));
    pod
}

/// A set that selects `app: web` and adds a container of the set's name, with more of a spec.
pub fn set(name: &str, spec: Value) -> Value {
    let mut set = json!({
        "apiVersion": "apps.outrider.dev/v1alpha1",
        "kind": "SidecarSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "containers": [{"name": name, "image": format!("{name}:1")}],
        },
    });
    json_patch::merge(&mut set, &json!({"spec": spec}));
    set
}

/// A set, compiled.
pub fn compile(set: &Value) -> CompiledSet {
    let set: SidecarSet = serde_json::from_value(set.clone()).unwrap();
    CompiledSet::compile(&set).unwrap()
}
