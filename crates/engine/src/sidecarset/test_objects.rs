//! Objects for property tests: right, nearly right, and wrong in shape.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Names of fields that the code reads, so that random objects reach it.
pub const FIELDS: &[&str] = &[
    "name",
    "image",
    "containers",
    "initContainers",
    "volumes",
    "ports",
    "containerPort",
    "hostPort",
    "protocol",
    "env",
    "value",
    "valueFrom",
    "fieldRef",
    "fieldPath",
    "resourceFieldRef",
    "configMapKeyRef",
    "secretKeyRef",
    "fileKeyRef",
    "envFrom",
    "configMapRef",
    "secretRef",
    "prefix",
    "resources",
    "limits",
    "requests",
    "claims",
    "cpu",
    "memory",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "httpGet",
    "tcpSocket",
    "grpc",
    "exec",
    "command",
    "port",
    "path",
    "scheme",
    "httpHeaders",
    "lifecycle",
    "postStart",
    "preStop",
    "sleep",
    "seconds",
    "volumeMounts",
    "mountPath",
    "subPath",
    "subPathExpr",
    "readOnly",
    "mountPropagation",
    "volumeDevices",
    "devicePath",
    "restartPolicy",
    "securityContext",
    "privileged",
    "runAsUser",
    "emptyDir",
    "hostPath",
    "secret",
    "secretName",
    "configMap",
    "projected",
    "sources",
    "downwardAPI",
    "items",
    "persistentVolumeClaim",
    "podInjectPolicy",
    "upgradeStrategy",
    "upgradeType",
    "hotUpgradeEmptyImage",
    "shareVolumePolicy",
    "shareVolumeDevicePolicy",
    "type",
    "transferEnv",
    "sourceContainerNameFrom",
    "resourcesPolicy",
    "targetContainersMode",
    "targetContainersNameRegex",
    "resourcesExpr",
    "resourceDefaults",
    "appContainers",
    "containerNames",
    "overwriteEnv",
    "podOverrides",
    "imageTag",
    "max",
    "min",
    "jobPods",
    "platform",
    "podSecurity",
    "selector",
    "namespaceSelector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "updateStrategy",
    "partition",
    "maxUnavailable",
    "priorityStrategy",
    "weightPriority",
    "orderPriority",
    "scatterStrategy",
    "injectionStrategy",
    "revision",
    "patchPodMetadata",
    "annotations",
    "imagePullSecrets",
    "customVersion",
    "order",
    "clashPolicy",
    "optOut",
    "metadata",
    "labels",
    "spec",
    "unknownToUs",
    "a/b~c",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..100_i64).prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        proptest::sample::select(vec![
            "",
            "a",
            "b",
            "A b",
            "1",
            "100m",
            "0.1234u",
            "1Gi",
            "50%",
            "200%",
            "nginx:latest",
            "Always",
            "RollingUpdate",
            "In",
            "Exists",
            "HotUpgrade",
            "sum",
            "cpu*50%",
            "(",
            "enabled",
            "é\u{0}",
            "/data",
            "../x",
            "kubernetes.io/metadata.name",
        ])
        .prop_map(Value::from),
    ]
}

/// Any JSON value with fields that the code reads.
pub fn arbitrary_json() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 96, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(proptest::sample::select(FIELDS), inner, 0..7)
                .prop_map(|map| Value::Object(map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())),
        ]
    })
}

fn list() -> impl Strategy<Value = Value> {
    prop_oneof![4 => vec(arbitrary_json(), 0..4).prop_map(Value::from), 1 => arbitrary_json()]
}

/// A `SidecarSet`, often of the right shape at the top.
pub fn arbitrary_set() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => arbitrary_json(),
        4 => (list(), list(), list(), arbitrary_json(), arbitrary_json()).prop_map(|(containers, inits, volumes, selector, strategy)| {
            json!({"metadata": {"name": "set"}, "spec": {
                "containers": containers, "initContainers": inits, "volumes": volumes, "selector": selector,
                "updateStrategy": strategy,
            }})
        }),
    ]
}
