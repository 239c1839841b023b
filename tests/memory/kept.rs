//! The kinds, and how each is kept.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use engine::sidecarset::api::SidecarSet;
use engine::snapshot::Exclusion;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::namespace::Namespaces;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::ResourceExt as _;
use outrider::controller::Key;
use outrider::controller::owned::Owned;
use outrider::sidecarset::controller::pods::{PodIndex, PodKey};
use outrider::sidecarset::controller::record::{PodRecord, Wanted};
use outrider::sidecarset::controller::watched_pod::WatchedPod;
use outrider::watch::SidecarSetResource;
use outrider::watch::deployment::SlimDeployment;
use outrider::watch::lenient::Lenient;
use outrider::watch::partial::Partial;
use outrider::watch::relist::Relist;
use outrider::workshop::collector::api::Collector;
use outrider::workshop::collector::watched::SlimPod as CollectorPod;
use outrider::workshop::cronjob::api::CronJob;
use outrider::workshop::cronjob::controller::watched_job::WatchedJob;
use outrider::workshop::simpledeployment::api::SimpleDeployment;
use outrider::workshop::welcome::api::Welcome;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::objects::{Object, maps, metadata, owner, pod_spec, tiny};

/// A kind as a process keeps it.
pub struct Kind {
    pub name: &'static str,
    pub kept_by: &'static str,
    /// Keeps objects of these texts.
    pub keep: fn(&[String]) -> Box<dyn Any>,
    object: fn() -> Object,
    /// The places where a user may write anything, and what.
    full: fn(&Object) -> Vec<Object>,
    /// Bytes that it may cost where twice the bytes of its JSON are fewer; times, if it is otherwise.
    allowed: usize,
    at_most: bool,
}

impl Kind {
    pub fn ordinary(&self) -> Object {
        (self.object)()
    }

    pub fn hostile(&self) -> Vec<Object> {
        let mut all = self.ordinary().and_full_metadata();
        all.pop();
        all.extend((self.full)(&self.ordinary()));
        all
    }

    /// The bytes that may be kept of so many of JSON.
    pub fn limit(&self, json: usize) -> usize {
        if self.at_most { self.allowed } else { self.allowed.max(2 * json) }
    }

    pub fn limit_in_words(&self) -> String {
        let kib = self.allowed / 1024;
        if self.at_most { format!("{kib} KiB") } else { format!("twice its bytes, or {kib} KiB") }
    }
}

pub const KINDS: &[Kind] = &[
    Kind {
        name: "Pod",
        kept_by: "the leader, of every pod",
        keep: pods,
        object: pod,
        full: full_pods,
        allowed: 2048,
        at_most: true,
    },
    Kind {
        name: "Namespace",
        kept_by: "every replica",
        keep: namespaces,
        object: namespace,
        full: |_| Vec::new(),
        allowed: 40 * 1024,
        at_most: true,
    },
    Kind {
        name: "SidecarSet",
        kept_by: "every replica",
        keep: sets,
        object: set,
        full: |_| Vec::new(),
        allowed: 3 * 1024 * 1024,
        at_most: true,
    },
    Kind {
        name: "CronJob",
        kept_by: "the leader",
        keep: objects::<CronJob>,
        object: cronjob,
        full: full_cronjobs,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Job",
        kept_by: "the leader with `CronJob`, of every Job",
        keep: objects::<WatchedJob>,
        object: job,
        full: full_status,
        allowed: 4 * 1024,
        at_most: true,
    },
    Kind {
        name: "SimpleDeployment",
        kept_by: "the leader",
        keep: objects::<SimpleDeployment>,
        object: simple,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Welcome",
        kept_by: "the leader",
        keep: objects::<Welcome>,
        object: simple,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Deployment",
        kept_by: "the leader, of those with Outrider's label",
        keep: objects::<Owned<Deployment>>,
        object: deployment,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Service",
        kept_by: "the leader, of those with Outrider's label",
        keep: objects::<Owned<Service>>,
        object: deployment,
        full: full_status,
        allowed: 48 * 1024,
        at_most: false,
    },
    Kind {
        name: "Collector",
        kept_by: "the leader",
        keep: objects::<Collector>,
        object: collector,
        full: full_collectors,
        allowed: 1536 * 1024,
        at_most: false,
    },
    Kind {
        name: "Deployment of a Collector",
        kept_by: "the leader with `Collector`, of every Deployment",
        keep: objects::<SlimDeployment>,
        object: deployment,
        full: full_selectors,
        allowed: 144 * 1024,
        at_most: true,
    },
    Kind {
        name: "Pod of a Collector",
        kept_by: "the leader with `Collector`, of every pod",
        keep: objects::<CollectorPod>,
        object: pod,
        full: full_pods,
        allowed: 48 * 1024,
        at_most: true,
    },
];

/// As an operator's store does.
fn objects<K: DeserializeOwned + kube::Resource + 'static>(texts: &[String]) -> Box<dyn Any> {
    let mut store: BTreeMap<Key, Arc<K>> = BTreeMap::new();
    let mut relist = Relist::default();
    for text in texts {
        let guarded: Lenient<K> = serde_json::from_str(text).unwrap();
        let key = Key { namespace: guarded.namespace().unwrap_or_default(), name: guarded.name_any() };
        relist.seen(key.clone());
        if let Ok(object) = guarded.object {
            store.insert(key, Arc::from(object));
        }
    }
    Box::new((store, relist.finish()))
}

fn pods(texts: &[String]) -> Box<dyn Any> {
    let existing: BTreeSet<Arc<str>> = (0..64).map(|n| format!("{n:x}").into()).collect();
    let wanted = Wanted { sets: existing, ..Wanted::default() };
    let (mut index, mut relist) = (PodIndex::default(), Relist::<PodKey>::default());
    index.sets_are(&wanted.sets);
    relist.begin();
    for text in texts {
        let pod: WatchedPod = serde_json::from_str(text).unwrap();
        let key = index.shared(&PodKey::of(&pod));
        relist.seen(key.clone());
        index.update(&key, PodRecord::of(&pod, &wanted));
    }
    Box::new((index, relist, wanted))
}

fn sets(texts: &[String]) -> Box<dyn Any> {
    let mut feed = SnapshotBuilder::new(Exclusion::default(), true);
    for text in texts {
        let guarded: Lenient<SidecarSetResource> = serde_json::from_str(text).unwrap();
        feed.collections.sets.apply(&SidecarSet::from(*guarded.object.unwrap()));
    }
    feed.publish(&ArcSwap::default());
    Box::new(feed)
}

fn namespaces(texts: &[String]) -> Box<dyn Any> {
    let mut namespaces = Namespaces::default();
    for text in texts {
        let namespace: Partial<Namespace> = serde_json::from_str(text).unwrap();
        namespaces.insert(namespace.name_any(), namespace.labels().clone());
    }
    Box::new(namespaces)
}

fn pod() -> Object {
    let mut metadata = metadata(&owner("apps/v1", "ReplicaSet"));
    metadata["annotations"]["outrider.dev/injected"] = json!({
        "1": {"hash": "v1:0123456789abcdef", "containers": ["web"]}, "2": {"hash": "v1:0123456789abcdef", "containers": ["web"]},
    })
    .to_string()
    .into();
    let condition = |kind| json!({"type": kind, "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z"});
    let conditions =
        ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"].map(condition);
    let status = json!({
        "phase": "Running", "conditions": conditions, "podIP": "10.244.1.7", "podIPs": [{"ip": "10.244.1.7"}], "hostIP": "10.0.0.4",
        "containerStatuses": [{"name": "web", "ready": true, "restartCount": 0, "image": "registry.example.com/shop/web:1.2.3"}],
    });
    Object::new("as they are", json!({"metadata": metadata, "spec": pod_spec(), "status": status}))
}

fn full_pods(pod: &Object) -> Vec<Object> {
    let list = (0..50_000).map(|n| format!("{n:x}")).collect::<Vec<_>>().join(",");
    let short = list.get(..32_000).unwrap();
    let records = |count: usize| {
        let sets: serde_json::Map<_, _> =
            (0..count).map(|n| (format!("{n:x}"), json!({"hash": "v1:0123456789abcdef"}))).collect();
        json!(sets).to_string()
    };
    let put = |what, key: &str, value: &str| {
        let mut object = pod.clone();
        object.what = what;
        object.value["metadata"]["annotations"][key] = value.into();
        object
    };
    vec![
        put("a forged list of 50,000 sets", "kruise.io/sidecarset-injected-list", &list),
        put("a forged list that is short enough", "kruise.io/sidecarset-injected-list", short),
        put("forged records", "outrider.dev/injected", &records(25_000)),
        put("forged records that are short enough", "outrider.dev/injected", &records(700)),
        put("forged hashes", "kruise.io/sidecarset-hash", &records(700)),
        put("sets to go without", "outrider.dev/skip", &list),
        pod.with("a node selector", "/spec/nodeSelector", tiny(100_000)),
        pod.with(
            "containers",
            "/spec/containers",
            Value::Array((0..5_000).map(|n| json!({"name": format!("c{n}")})).collect()),
        ),
        pod.with("conditions", "/status/conditions", Value::Array((0..50_000).map(|_| json!({"type": "a"})).collect())),
        pod.with("addresses", "/status/podIPs", Value::Array((0..50_000).map(|_| json!({"ip": "1"})).collect())),
    ]
}

fn namespace() -> Object {
    let mut metadata = metadata(&json!([]));
    metadata["labels"]["kubernetes.io/metadata.name"] = "shop".into();
    Object::new("as they are", json!({"metadata": metadata, "status": {"phase": "Active"}}))
}

fn set() -> Object {
    let spec = json!({"selector": {"matchLabels": {"app.kubernetes.io/name": "web"}}, "containers": pod_spec()["containers"], "volumes": pod_spec()["volumes"]});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": {"matchedPods": 3}}))
}

fn cronjob() -> Object {
    let template = json!({"spec": {"template": {"spec": pod_spec()}}});
    let spec = json!({"schedule": "*/5 * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

fn full_cronjobs(cronjob: &Object) -> Vec<Object> {
    let mut all = full_status(cronjob);
    all.push(cronjob.with("a template of maps", "/spec/jobTemplate/x", maps(180_000)));
    all.push(cronjob.with("active Jobs", "/status/active", Value::Array((0..400_000).map(|_| json!({})).collect())));
    all
}

fn job() -> Object {
    let metadata = metadata(&owner("batch.outrider.dev/v1", "CronJob"));
    let status = json!({"startTime": "2030-01-01T00:00:00Z", "conditions": [{"type": "Complete", "status": "True"}]});
    Object::new(
        "as they are",
        json!({"metadata": metadata, "spec": {"template": {"spec": pod_spec()}}, "status": status}),
    )
}

fn simple() -> Object {
    let spec = json!({"replicas": 3, "name": "somebody"});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

fn deployment() -> Object {
    let metadata = metadata(&owner("apps.outrider.dev/v1", "SimpleDeployment"));
    let selector = json!({"matchLabels": {"app.kubernetes.io/name": "web"}});
    let spec = json!({"replicas": 3, "selector": selector, "template": {"spec": pod_spec()}});
    Object::new("as they are", json!({"metadata": metadata, "spec": spec, "status": status()}))
}

fn full_selectors(object: &Object) -> Vec<Object> {
    let mut all = full_status(object);
    all.push(object.with("a selector", "/spec/selector/matchLabels", tiny(100_000)));
    all.push(object.with("a selector that is short enough", "/spec/selector/matchLabels", tiny(800)));
    all
}

fn collector() -> Object {
    let spec = json!({"selector": {"matchLabels": {"app.kubernetes.io/name": "web"}}});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

fn full_collectors(collector: &Object) -> Vec<Object> {
    let mut all = full_selectors(collector);
    let addresses = (0..400_000).map(|_| json!({})).collect();
    all.push(collector.with("addresses", "/status/ips", Value::Array(addresses)));
    all
}

fn status() -> Value {
    let condition = |kind| {
        let message = "what it means, in a sentence";
        json!({"type": kind, "status": "True", "reason": "Reason", "message": message, "lastTransitionTime": "2030-01-01T00:00:00Z"})
    };
    json!({"observedGeneration": 3, "conditions": [condition("Available"), condition("Progressing")]})
}

fn full_status(object: &Object) -> Vec<Object> {
    let condition =
        json!({"type": "", "status": "", "reason": "", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"});
    vec![
        object.with("conditions", "/status/conditions", Value::Array(vec![condition; 13_000])),
        object.with("maps in the spec", "/spec/x", maps(180_000)),
    ]
}
