//! Objects as the API server may store them.

use serde_json::{Map, Value, json};

/// Objects that are kept at one time, so that what a table takes beside them is shared out; of large ones few.
const OBJECTS: usize = 64;
const LARGE_OBJECTS: usize = 2;
const LARGE: usize = 100_000;

/// Replaced by the number of an object in its name.
const NUMBER: &str = "012345678901";

/// An object, and what is special about it.
#[derive(Clone)]
pub struct Object {
    pub what: &'static str,
    pub value: Value,
}

impl Object {
    pub fn new(what: &'static str, value: Value) -> Self {
        Self { what, value }
    }

    /// The JSON of so many of them, fewer where they are large.
    pub fn texts(&self) -> Vec<String> {
        let text = self.value.to_string();
        let objects = if text.len() < LARGE { OBJECTS } else { LARGE_OBJECTS };
        (0..objects).map(|number| text.replacen(NUMBER, &format!("{number:012}"), 1)).collect()
    }

    /// With this at the pointer.
    pub fn with(&self, what: &'static str, pointer: &str, put: Value) -> Self {
        let mut value = self.value.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let mut place = &mut value;
        for part in parent.split('/').skip(1) {
            place = match part.parse::<usize>() {
                Ok(item) if place.is_array() => &mut place[item],
                _ => &mut place[part],
            };
        }
        place[field] = put;
        Self { what, value }
    }

    /// This, and the same with each part of the metadata full of what is small in JSON and large elsewhere.
    pub fn and_full_metadata(self) -> Vec<Self> {
        let finalizers: Vec<String> = (0..150_000).map(|n| format!("a/{n}")).collect();
        vec![
            self.with("labels", "/metadata/labels", tiny(100_000)),
            self.with("annotations", "/metadata/annotations", tiny(25_000)),
            self.with("finalizers", "/metadata/finalizers", json!(finalizers)),
            self.with(
                "managed fields",
                "/metadata/managedFields",
                json!([{"manager": "m", "fieldsV1": fields(50_000)}]),
            ),
            self,
        ]
    }
}

/// What all objects have.
pub fn metadata(owner: &Value) -> Value {
    json!({
        "name": format!("object-{NUMBER}"), "uid": "00000000-0000-0000-0000-000000000002", "namespace": "shop", "resourceVersion": "123456", "generation": 3, "creationTimestamp": "2030-01-01T00:00:00Z",
        "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d4f8c7b9d"},
        "annotations": {"example.com/note": "an annotation of some length, as tools write them"},
        "ownerReferences": owner,
        "managedFields": [{
            "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2030-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:containers": {}}},
        }],
    })
}

/// A reference to a controller of ours.
pub fn owner(api_version: &str, kind: &str) -> Value {
    let uid = "00000000-0000-0000-0000-000000000001";
    json!([{"apiVersion": api_version, "kind": kind, "name": "owner", "uid": uid, "controller": true, "blockOwnerDeletion": true}])
}

/// So many entries of a few bytes.
pub fn tiny(entries: usize) -> Value {
    Value::Object((0..entries).map(|n| (format!("{n:x}"), Value::from(""))).collect())
}

fn fields(entries: usize) -> Value {
    Value::Object((0..entries).map(|n| (format!("f:{n:x}"), Map::new().into())).collect())
}

/// So many maps of one entry: seven bytes, and several hundred when they are decoded.
pub fn maps(count: usize) -> Value {
    Value::Array((0..count).map(|_| json!({"": 0})).collect())
}

/// A pod template.
pub fn pod_spec() -> Value {
    let mount = json!({"name": "data", "mountPath": "/data"});
    let container = json!({
        "name": "web", "image": "registry.example.com/shop/web:1.2.3", "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu"}], "volumeMounts": [mount],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
    });
    json!({
        "containers": [container], "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "serviceAccountName": "web",
        "nodeName": "node-1", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
        "volumes": [{"name": "data", "emptyDir": {}}], "securityContext": {"runAsNonRoot": true},
    })
}
