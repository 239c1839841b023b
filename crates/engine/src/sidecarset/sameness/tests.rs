//! Containers of pods against the set's.

mod empty;
mod identities;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Around, CompiledAllowedChanges, Form};

fn container() -> Value {
    json!({
        "name": "proxy",
        "image": "registry.example:5000/proxy:1",
        "args": ["-v"],
        "env": [{"name": "MODE", "value": "enforce"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 80}},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
        "resources": {"requests": {"cpu": "0.1"}, "limits": {"memory": "1024Mi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {"runAsUser": 7},
    })
}

/// The container as `SidecarSet`s are stored, with the API server's defaults, and as the API server stores it in a pod.
fn stored() -> (Value, Value) {
    let ours = json!({
        "name": "proxy", "image": "proxy:1", "imagePullPolicy": "IfNotPresent", "args": [], "tty": null,
        "env": [{"name": "MODE", "value": "enforce"}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"limits": {"memory": "1024Mi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": true}],
    });
    let mut pods = ours.clone();
    json_patch::merge(
        &mut pods,
        &json!({"args": null, "tty": null, "resources": {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}}),
    );
    (ours, pods)
}

fn form(container: &Value) -> Form {
    Form::of(container.as_object().unwrap(), &container.to_string().into())
}

#[test]
fn a_container_as_the_api_server_stores_it_reads_as_the_sets() {
    let (ours, mut pods) = stored();
    let form = form(&ours);
    let same = |container: &str, volumes: &[&RawValue]| {
        let container = RawValue::from_string(container.to_owned()).unwrap();
        super::verbatim::is_same(&container, form.stored.value(), form.room, &Around::new(false, volumes))
    };
    assert!(same(&pods.to_string(), &[]));
    for changed in [
        pods.to_string().replacen('{', r#"{"fieldOfTomorrow":1,"#, 1),
        pods.to_string().replacen(r#""imagePullPolicy":"IfNotPresent""#, r#""name":"proxy""#, 1),
        pods.to_string().replace("enforce", "off"),
        pods.to_string().replace("80", "81"),
        pods.to_string().replace("true", "false"),
        r#""proxy""#.to_owned(),
        "[]".to_owned(),
    ] {
        assert!(!same(&changed, &[]), "{changed}");
    }
    let path = "/var/run/secrets/kubernetes.io/serviceaccount";
    let mount = json!({"name": "token", "mountPath": path, "readOnly": true});
    pods["volumeMounts"].as_array_mut().unwrap().push(mount.clone());
    let volume = json!({"name": "token", "projected": {"sources": identities::token_sources()}});
    let volume = RawValue::from_string(volume.to_string()).unwrap();
    assert!(same(&pods.to_string(), &[&volume]));
    assert!(!same(&pods.to_string(), &[]));
    pods["volumeMounts"].as_array_mut().unwrap().push(mount);
    assert!(!same(&pods.to_string(), &[&volume]));
}

struct Case {
    ours: Value,
    allowed: Value,
    volumes: Vec<Value>,
    host_network: bool,
}

impl Default for Case {
    fn default() -> Self {
        Self { ours: container(), allowed: json!({}), volumes: Vec::new(), host_network: false }
    }
}

impl Case {
    fn allowing(allowed: Value) -> Self {
        Self { allowed, ..Self::default() }
    }

    /// The first difference of the set's container with this change (RFC 7386).
    fn with(&self, change: Value) -> Option<String> {
        let mut found = self.ours.clone();
        json_patch::merge(&mut found, &change);
        self.of(&found)
    }

    fn of(&self, found: &Value) -> Option<String> {
        let raw = |value: &Value| RawValue::from_string(value.to_string()).unwrap();
        let (found, volumes): (_, Vec<_>) = (raw(found), self.volumes.iter().map(raw).collect());
        let volumes: Vec<&RawValue> = volumes.iter().map(AsRef::as_ref).collect();
        let around = Around::new(self.host_network, &volumes);
        let allowed = serde_json::from_value(self.allowed.clone()).unwrap();
        form(&self.ours).difference(Some(&found), &CompiledAllowedChanges::of(Some(&allowed)), &around)
    }
}

fn with_mounts(more: Value) -> Value {
    let mut mounts = container()["volumeMounts"].clone();
    mounts.as_array_mut().unwrap().push(more);
    json!({"volumeMounts": mounts})
}

fn with_env(more: &[Value]) -> Value {
    let mut env = container()["env"].clone();
    env.as_array_mut().unwrap().extend(more.iter().cloned());
    json!({"env": env})
}

#[test]
fn what_the_api_server_fills_in_is_no_difference() {
    let stored = json!({
        "name": "proxy",
        "image": "registry.example:5000/proxy:1",
        "args": ["-v"],
        "env": [
            {"name": "MODE", "value": "enforce"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}},
        ],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "livenessProbe": {
            "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
            "timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
        },
        "lifecycle": {"preStop": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}}},
        "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {"runAsUser": 7, "procMount": "Default"},
        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    });
    assert_eq!(Case::default().of(&stored), None);
}

/// Half a surrogate is JSON that no string can hold.
#[test]
fn what_cannot_be_read_is_a_difference() {
    let unreadable = Some("a part that cannot be read".to_owned());
    let allowed = CompiledAllowedChanges::default();
    let of = |text: &str| {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        form(&container()).difference(Some(&raw), &allowed, &Around::default())
    };
    let whole = container().to_string();
    assert_eq!(of(&whole), None);
    for (from, to) in
        [(r#""-v""#, r#""\ud800""#), (r#""enforce""#, r#""\udc00x""#), (r#"{"name":"#, r#"{"\ud800":null,"name":"#)]
    {
        let changed = whole.replacen(from, to, 1);
        assert_ne!(changed, whole, "{from}");
        assert_eq!(of(&changed), unreadable, "{changed}");
    }
    for text in [r#""proxy""#, "[]", "null", "7"] {
        assert_eq!(of(text), unreadable, "{text}");
    }
    assert_eq!(form(&container()).difference(None, &allowed, &Around::default()), unreadable, "no text");
}

#[test]
fn every_other_field_is_a_difference() {
    let case = Case::default();
    for (change, field) in [
        (json!({"fieldOfTomorrow": false}), "fieldOfTomorrow"),
        (json!({"ports": [{"containerPort": 80, "fieldOfTomorrow": 1}]}), "ports"),
        (json!({"securityContext": {"runAsNonRoot": false}}), "securityContext"),
        (json!({"securityContext": {"allowPrivilegeEscalation": false}}), "securityContext"),
        (json!({"args": null}), "args"),
        (json!({"args": "-v"}), "args"),
        (json!({"env": {}}), "env"),
        (json!({"env": null}), "env[MODE]"),
        (json!({"env": {"MODE": "enforce"}}), "env"),
        (json!({"args": ["x".repeat(100_000)]}), "its length"),
        (json!({"env": "MODE"}), "env"),
        (json!({"volumeMounts": null}), "volumeMounts[/data]"),
        (json!({"resources": null}), "resources.limits[memory]"),
        (json!({"resources": {"limits": {"memory": "1"}}}), "resources.limits[memory]"),
        (json!({"resources": {"limits": "none"}}), "resources.limits"),
        (json!({"resources": {"claims": [{"name": "gpu"}]}}), "resources.claims"),
        (json!({"resources": "none"}), "resources"),
        (json!({"imagePullPolicy": "Never"}), "imagePullPolicy"),
        (json!({"imagePullPolicy": 1}), "imagePullPolicy"),
        (json!({"livenessProbe": {"terminationGracePeriodSeconds": 1}}), "livenessProbe"),
        (json!({"image": "registry.example:5000/proxy"}), "image"),
        (json!({"image": null}), "image"),
    ] {
        assert_eq!(case.with(change.clone()).as_deref(), Some(field), "{change}");
    }
    assert!(Form::default().difference(None, &CompiledAllowedChanges::default(), &Around::default()).is_some());
}

#[test]
fn requests_and_limits_that_the_set_leaves_open_may_be_filled() {
    let limit_range = json!({"resources": {"requests": {"ephemeral-storage": "1Gi"}, "limits": {"cpu": "500m"}}});
    assert_eq!(Case::default().with(limit_range), None);
    let open = Case { ours: json!({"name": "a", "image": "a:1"}), ..Case::default() };
    assert_eq!(open.with(json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}})), None);
}

#[test]
fn with_the_network_of_the_node_each_port_is_one_of_the_node() {
    let ports = json!({"ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]});
    assert_eq!(Case::default().with(ports.clone()).as_deref(), Some("ports"));
    let case = Case { host_network: true, ..Case::default() };
    assert_eq!(case.with(ports), None);
    assert_eq!(case.with(json!({"ports": [{"containerPort": 80, "hostPort": 81}]})).as_deref(), Some("ports"));
}

#[test]
fn allowed_changes_are_no_difference() {
    let env = Case::allowing(json!({"env": ["DD_*", "MODE"]}));
    assert_eq!(env.with(with_env(&[json!({"name": "DD_ENV", "value": "prod"})])), None);
    assert_eq!(env.with(json!({"env": [{"name": "MODE", "value": "off"}, container()["env"][1].clone()]})), None);
    assert_eq!(env.with(json!({"env": [container()["env"][1].clone()]})), None);
    assert_eq!(env.with(with_env(&[json!({"name": "OTHER"})])).as_deref(), Some("env[OTHER]"));
    let mounts = Case::allowing(json!({"mountPaths": ["/etc/pki/*"]}));
    assert_eq!(mounts.with(with_mounts(json!({"name": "ca", "mountPath": "/etc/pki/ca"}))), None);
    assert_eq!(mounts.with(with_mounts(json!({"name": "ca", "mountPath": "/etc/pki/ca/"}))), None);
    for path in [
        "/etc",
        "/etc/pki/",
        "/etc/pki/../../usr/bin",
        "/etc/pki/ca/..",
        "/etc/pki/./ca",
        "/etc/pki/.",
        "/etc/pki//",
        "/etc/pki//ca",
        r"/etc/pki/ca\..\..\bin",
    ] {
        assert!(mounts.with(with_mounts(json!({"name": "ca", "mountPath": path}))).is_some(), "{path}");
    }
    let everywhere = Case::allowing(json!({"mountPaths": ["*"]}));
    assert_eq!(everywhere.with(with_mounts(json!({"name": "ca", "mountPath": r"C:\ca"}))), None);
    let fields = Case::allowing(json!({"fields": ["resources", "securityContext", "imagePullPolicy"]}));
    let changed =
        json!({"resources": {"limits": {"memory": "1"}}, "securityContext": null, "imagePullPolicy": "Never"});
    assert_eq!(fields.with(changed), None);
    assert_eq!(fields.with(json!({"tty": true})).as_deref(), Some("tty"));
}

#[test]
fn the_mark_of_an_injected_container_is_never_another() {
    let mark = |value: &str| json!({"name": "IS_INJECTED", "value": value});
    let mut ours = container();
    ours["env"].as_array_mut().unwrap().push(mark("true"));
    let case = Case { ours, ..Case::allowing(json!({"env": ["*"]})) };
    assert_eq!(case.with(with_env(&[json!({"name": "OTHER"}), mark("true")])), None);
    let changed = [with_env(&[]), with_env(&[mark("false")]), with_env(&[mark("true"), mark("false")])];
    for env in changed {
        assert_eq!(case.with(env.clone()).as_deref(), Some("env[IS_INJECTED]"), "{env}");
    }
}

#[test]
fn a_digest_may_follow_the_image_where_it_is_allowed() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let case = Case::allowing(json!({"fields": ["imageDigest"]}));
    for (image, is_same) in [
        (format!("registry.example:5000/proxy:1@{digest}"), true),
        (format!("registry.example:5000/proxy@{digest}"), true),
        (format!("registry.example:5000/proxy:2@{digest}"), false),
        (format!("registry.example:5000/other@{digest}"), false),
        (format!("registry.example@{digest}"), false),
        ("registry.example:5000/proxy@sha256:abc".to_owned(), false),
        ("registry.example:5000/proxy".to_owned(), false),
    ] {
        assert_eq!(case.with(json!({"image": image})).is_none(), is_same, "{image}");
        assert!(Case::default().with(json!({"image": image})).is_some(), "{image}");
    }
    // A digest that the set pins stays.
    let mut ours = container();
    ours["image"] = json!(format!("proxy:1@{digest}"));
    let pinned = Case { ours, ..Case::allowing(json!({"fields": ["imageDigest"]})) };
    assert!(pinned.with(json!({"image": format!("proxy:1@sha256:{}", "b".repeat(64))})).is_some());
}
