//! A pod put together from bytes: each byte chooses among names, images and fields that sets and pods have in common, so that few bytes
//! reach what takes long texts in JSON. No bytes give the simplest pod.

use serde_json::{Map, Value, json};

/// What the bytes choose.
pub struct Choices<'d> {
    rest: &'d [u8],
}

/// A field, that it is there once in so many pods, and its value.
type Field<'f, C> = (&'f str, u8, &'f dyn Fn(&mut C) -> Value);

const CONTAINERS: [&str; 12] =
    ["app", "web", "proxy", "log", "agent", "hot-1", "hot-2", "stage", "iptables", "sidecar", "audit", "metrics"];
const IMAGES: [&str; 9] =
    ["app:1", "proxy:1", "proxy:2", "log:1", "agent:1", "agent:2", "hot:1", "empty:1", "registry.example/proxy:2.0.1"];
const VARIABLES: [&str; 10] =
    ["A", "B", "TZ", "STAGE", "MODE", "LEVEL", "AGENT", "TRACE", "IS_INJECTED", "SIDECARSET_VERSION"];
const VOLUMES: [&str; 7] = ["data", "certs", "buffer", "agent", "app-logs", "kube-api-access", "cache"];
const PATHS: [&str; 8] =
    ["/data", "/certs", "/buffer", "/agent", "/agent/", "/tmp/x", "/var/run/secrets/kubernetes.io/serviceaccount", "/"];
const QUANTITIES: [&str; 8] = ["1", "100m", "0", "1Gi", "64Mi", "1e3", "-1", "1.5"];
const LABELS: [(&str, &[&str]); 10] = [
    ("app", &["web", "quiet"]),
    ("mesh", &["enabled", ""]),
    ("logs", &["yes", "no"]),
    ("agent", &["on", "off"]),
    ("hot", &["yes"]),
    ("team", &["batch", "payments"]),
    ("audit", &["full", "brief"]),
    ("metrics", &["on"]),
    ("profiler", &["on"]),
    ("batch.kubernetes.io/job-name", &["report"]),
];
const SETS: [&str; 8] = ["proxy", "log", "agent", "hot", "jobs", "namespaced", "audit", "unknown"];

impl<'d> Choices<'d> {
    /// Choices of these bytes.
    pub const fn new(data: &'d [u8]) -> Self {
        Self { rest: data }
    }

    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// One of some values, the first without bytes.
    pub fn of<'v, T>(&mut self, values: &'v [T]) -> &'v T {
        &values[usize::from(self.byte()) % values.len()]
    }

    fn text(&mut self, values: &[&str]) -> Value {
        json!(self.of(values))
    }

    fn happens(&mut self, one_in: u8) -> bool {
        self.byte() % one_in == 1
    }

    fn list(&mut self, most: u8, mut element: impl FnMut(&mut Self) -> Value) -> Value {
        let length = self.byte() % (most + 1);
        (0..length).map(|_| element(self)).collect()
    }

    /// Some of these fields.
    fn fields(&mut self, fields: &[Field<'_, Self>]) -> Value {
        let mut map = Map::new();
        for (name, one_in, value) in fields {
            if *one_in == 0 || self.happens(*one_in) {
                let value = value(self);
                map.insert((*name).to_owned(), value);
            }
        }
        Value::Object(map)
    }

    /// The pod.
    pub fn pod(&mut self) -> Value {
        let metadata = self.metadata();
        let spec = self.spec();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        if self.happens(16) {
            pod["fieldOfTomorrow"] = json!([{"a": 1}]);
        }
        if self.happens(24) {
            self.spoil(&mut pod);
        }
        pod
    }

    /// Puts a value of another type in place of one.
    fn spoil(&mut self, pod: &mut Value) {
        const PLACES: [&str; 12] = [
            "/metadata/labels",
            "/metadata/annotations",
            "/spec",
            "/spec/containers",
            "/spec/containers/0",
            "/spec/containers/0/env",
            "/spec/containers/0/volumeMounts",
            "/spec/containers/0/name",
            "/spec/initContainers",
            "/spec/volumes",
            "/spec/volumes/0",
            "/spec/imagePullSecrets",
        ];
        let place = *self.of(&PLACES);
        let value = self.of(&[Value::Null, json!([]), json!({}), json!(""), json!(0), json!([null])]).clone();
        if let Some(at) = pod.pointer_mut(place) {
            *at = value;
        }
    }

    fn metadata(&mut self) -> Value {
        let mut labels = Map::new();
        for (key, values) in LABELS {
            if self.happens(3) {
                labels.insert(key.to_owned(), self.text(values));
            }
        }
        let annotations = self.annotations();
        let mut metadata = json!({"name": "web-0", "labels": labels});
        if annotations.as_object().is_some_and(|annotations| !annotations.is_empty()) {
            metadata["annotations"] = annotations;
        }
        if self.happens(8) {
            let owner = *self.of(&["Job", "ReplicaSet", "DaemonSet", "Node"]);
            metadata["ownerReferences"] =
                json!([{"apiVersion": "batch/v1", "kind": owner, "name": "o", "uid": "u", "controller": true}]);
        }
        metadata
    }

    fn annotations(&mut self) -> Value {
        self.fields(&[
            ("outrider.dev/skip", 6, &|choices| choices.skip()),
            ("outrider.dev/injected", 6, &|choices| choices.record()),
            ("kruise.io/sidecarset-injected-list", 10, &|choices| choices.text(&SETS)),
            ("outrider.dev/overrides", 8, &|choices| choices.overrides()),
            ("kubectl.kubernetes.io/default-container", 10, &|choices| choices.text(&CONTAINERS)),
            ("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes", 8, &|choices| {
                choices.text(&["", "data", "a,b", ","])
            }),
            ("example.com/retained", 8, &|choices| choices.text(&["", "x"])),
            ("example.com/overwritten", 8, &|choices| choices.text(&["", "b", "x"])),
            ("example.com/merged", 8, &|choices| {
                choices.text(&["", "{}", r#"{"log": 1}"#, r#"{"gone": 1}"#, "{", "[1]"])
            }),
            ("of", 8, &|choices| choices.text(&CONTAINERS)),
        ])
    }

    fn skip(&mut self) -> Value {
        match self.byte() % 4 {
            0 => json!("true"),
            1 => self.text(&["", "false", " ,,", "TRUE"]),
            _ => {
                let names: Vec<&str> = (0..=self.byte() % 3).map(|_| *self.of(&SETS)).collect();
                json!(names.join(", "))
            }
        }
    }

    fn record(&mut self) -> Value {
        if self.happens(4) {
            return self.text(&["", "{", "[]", "null", r#"{"proxy": null}"#, r#"{"proxy": {"containers": "proxy"}}"#]);
        }
        let mut record = Map::new();
        for _ in 0..=self.byte() % 2 {
            let set = (*self.of(&SETS)).to_owned();
            let hash = self.text(&["v1:0123456789abcdef", ""]);
            let names = |choices: &mut Self| choices.list(2, |choices| choices.text(&CONTAINERS));
            let (containers, inits) = (names(self), names(self));
            record
                .insert(set, json!({"hash": hash, "revision": "r", "containers": containers, "initContainers": inits}));
        }
        json!(Value::Object(record).to_string())
    }

    fn overrides(&mut self) -> Value {
        let change = match self.byte() % 4 {
            0 => json!({"image": *self.of(&IMAGES)}),
            1 => json!({"env": {*self.of(&VARIABLES): "x"}}),
            2 => json!({"resources": self.resources()}),
            _ => json!([1]),
        };
        json!(json!({*self.of(&CONTAINERS): change}).to_string())
    }

    fn spec(&mut self) -> Value {
        self.fields(&[
            ("containers", 0, &|choices| {
                let mut first = choices.container(false);
                first["name"] = choices.text(&CONTAINERS);
                let mut rest = choices.list(2, |choices| choices.container(false));
                rest.as_array_mut().expect("a list").insert(0, first);
                rest
            }),
            ("initContainers", 3, &|choices| choices.list(2, |choices| choices.container(true))),
            ("volumes", 2, &|choices| choices.list(3, Self::volume)),
            ("imagePullSecrets", 6, &|choices| {
                choices.list(2, |choices| json!({"name": *choices.of(&["registry", "other"])}))
            }),
            ("restartPolicy", 3, &|choices| choices.text(&["Always", "Never", "OnFailure"])),
            ("hostNetwork", 8, &|_| json!(true)),
            ("hostUsers", 12, &|_| json!(false)),
            ("os", 10, &|choices| json!({"name": *choices.of(&["linux", "windows"])})),
            ("nodeSelector", 10, &|choices| json!({"kubernetes.io/os": *choices.of(&["linux", "windows"])})),
            ("securityContext", 8, &|_| json!({"runAsNonRoot": true, "runAsUser": 1000})),
            ("resources", 10, &|choices| choices.resources()),
            ("automountServiceAccountToken", 10, &|_| json!(false)),
            ("ephemeralContainers", 20, &|choices| choices.list(1, |choices| choices.container(false))),
            ("fieldOfTomorrow", 12, &|_| json!({"x": [1]})),
        ])
    }

    fn container(&mut self, init: bool) -> Value {
        let mut container = self.fields(&[
            ("name", 0, &|choices| choices.text(&CONTAINERS)),
            ("image", 0, &|choices| choices.text(&IMAGES)),
            ("env", 3, &|choices| choices.list(3, Self::variable)),
            ("envFrom", 12, &|_| json!([{"configMapRef": {"name": "c"}}])),
            ("volumeMounts", 3, &|choices| choices.list(3, Self::mount)),
            ("volumeDevices", 10, &|_| json!([{"name": "data", "devicePath": "/dev/x"}])),
            ("ports", 5, &|choices| choices.list(2, Self::port)),
            ("resources", 4, &|choices| choices.resources()),
            ("securityContext", 6, &|choices| {
                choices.text(&["x"]).as_str().map_or(Value::Null, |_| json!({"privileged": true}))
            }),
            ("command", 10, &|_| json!(["sh"])),
            ("terminationMessagePath", 4, &|_| json!("/dev/termination-log")),
            ("fieldOfTomorrow", 12, &|_| json!(1)),
        ]);
        if init && self.happens(2) {
            container["restartPolicy"] = json!("Always");
        }
        container
    }

    fn variable(&mut self) -> Value {
        match self.byte() % 4 {
            0 => json!({"name": *self.of(&VARIABLES)}),
            1 => json!({"name": *self.of(&VARIABLES), "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}),
            _ => json!({"name": *self.of(&VARIABLES), "value": *self.of(&["", "1", "true", "$(A)", "strict", "info"])}),
        }
    }

    fn mount(&mut self) -> Value {
        let mut mount = json!({"name": *self.of(&VOLUMES), "mountPath": *self.of(&PATHS)});
        match self.byte() % 6 {
            1 => mount["subPathExpr"] = json!("$(A)/x"),
            2 => mount["subPath"] = json!("x"),
            3 => mount["mountPropagation"] = json!("Bidirectional"),
            4 => mount["readOnly"] = json!(true),
            _ => {}
        }
        mount
    }

    fn port(&mut self) -> Value {
        let mut port = json!({"containerPort": *self.of(&[80, 15000, 9100, 0])});
        if self.happens(3) {
            port["hostPort"] = json!(self.of(&[9100, 80]));
        }
        if self.happens(3) {
            port["name"] = self.text(&["admin", "http"]);
        }
        port
    }

    fn resources(&mut self) -> Value {
        let amounts = |choices: &mut Self| {
            choices.fields(&[
                ("cpu", 2, &|choices| choices.text(&QUANTITIES)),
                ("memory", 2, &|choices| choices.text(&QUANTITIES)),
                ("example.com/gpu", 8, &|choices| choices.text(&QUANTITIES)),
            ])
        };
        self.fields(&[("limits", 2, &amounts), ("requests", 2, &amounts)])
    }

    fn volume(&mut self) -> Value {
        let name = *self.of(&VOLUMES);
        match self.byte() % 6 {
            1 => json!({"name": name, "hostPath": {"path": "/x"}}),
            2 => {
                json!({"name": name, "projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "mesh"}}]}})
            }
            3 => json!({"name": name, "persistentVolumeClaim": {"claimName": "c"}}),
            4 => json!({"name": name, "sourceOfTomorrow": {}}),
            5 => json!({"name": name}),
            _ => json!({"name": name, "emptyDir": {}}),
        }
    }
}
