//! Objects of each kind: an ordinary one, and such as are full of what a user may write.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::snapshot::configuration::ALLOW_LIST_KEY;
use serde_json::{Value, json};

use crate::objects::{Object, maps, metadata, owner, pod_spec, tiny};

pub fn pod() -> Object {
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

pub fn full_pods(pod: &Object) -> Vec<Object> {
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
        pod.with("labels that are few enough", "/metadata/labels", tiny(320)),
        pod.with("a long owner", "/metadata/ownerReferences/0/name", "x".repeat(1_000_000).into()),
        pod.with(
            "containers",
            "/spec/containers",
            Value::Array((0..5_000).map(|n| json!({"name": format!("c{n}")})).collect()),
        ),
        pod.with("conditions", "/status/conditions", Value::Array((0..50_000).map(|_| json!({"type": "a"})).collect())),
        pod.with("addresses", "/status/podIPs", Value::Array((0..50_000).map(|_| json!({"ip": "1"})).collect())),
    ]
}

pub fn namespace() -> Object {
    let mut metadata = metadata(&json!([]));
    metadata["labels"]["kubernetes.io/metadata.name"] = "shop".into();
    Object::new("as they are", json!({"metadata": metadata, "status": {"phase": "Active"}}))
}

pub fn set() -> Object {
    let spec = json!({"selector": {"matchLabels": {"app.kubernetes.io/name": "web"}}, "containers": pod_spec()["containers"], "volumes": pod_spec()["volumes"]});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": {"matchedPods": 3}}))
}

pub fn cronjob() -> Object {
    let template = json!({"spec": {"template": {"spec": pod_spec()}}});
    let spec = json!({"schedule": "*/5 * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

pub fn full_cronjobs(cronjob: &Object) -> Vec<Object> {
    let mut all = full_status(cronjob);
    all.push(cronjob.with("a template of maps", "/spec/jobTemplate/x", maps(180_000)));
    all.push(cronjob.with("active Jobs", "/status/active", Value::Array((0..400_000).map(|_| json!({})).collect())));
    all
}

pub fn full_jobs(job: &Object) -> Vec<Object> {
    let mut all = full_status(job);
    let mut long_time = job.clone();
    long_time.what = "a long time";
    long_time.value["metadata"]["annotations"]["batch.outrider.dev/scheduled-at"] = "x".repeat(250_000).into();
    all.push(long_time);
    all.push(job.with("a long message", "/status/conditions/0/message", "x".repeat(1_000_000).into()));
    all.push(job.with("a long owner", "/metadata/ownerReferences/0/uid", "x".repeat(1_000_000).into()));
    all
}

pub fn job() -> Object {
    let metadata = metadata(&owner("batch.outrider.dev/v1", "CronJob"));
    let status = json!({"startTime": "2030-01-01T00:00:00Z", "conditions": [{"type": "Complete", "status": "True"}]});
    Object::new(
        "as they are",
        json!({"metadata": metadata, "spec": {"template": {"spec": pod_spec()}}, "status": status}),
    )
}

pub fn simple() -> Object {
    let spec = json!({"replicas": 3, "name": "somebody"});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

pub fn deployment() -> Object {
    let metadata = metadata(&owner("apps.outrider.dev/v1", "SimpleDeployment"));
    let selector = json!({"matchLabels": {"app.kubernetes.io/name": "web"}});
    let spec = json!({"replicas": 3, "selector": selector, "template": {"spec": pod_spec()}});
    Object::new("as they are", json!({"metadata": metadata, "spec": spec, "status": status()}))
}

pub fn full_selectors(object: &Object) -> Vec<Object> {
    let mut all = full_status(object);
    all.push(object.with("a selector", "/spec/selector/matchLabels", tiny(100_000)));
    all.push(object.with("a selector that is short enough", "/spec/selector/matchLabels", tiny(60)));
    all
}

pub fn collector() -> Object {
    let spec = json!({"selector": {"matchLabels": {"app.kubernetes.io/name": "web"}}});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

pub fn full_collectors(collector: &Object) -> Vec<Object> {
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

pub fn full_status(object: &Object) -> Vec<Object> {
    let condition =
        json!({"type": "", "status": "", "reason": "", "message": "", "lastTransitionTime": "2030-01-01T00:00:00Z"});
    vec![
        object.with("conditions", "/status/conditions", Value::Array(vec![condition; 13_000])),
        object.with("maps in the spec", "/spec/x", maps(180_000)),
        object.with(
            "a long owner",
            "/metadata/ownerReferences",
            json!([{"kind": "x".repeat(1_000_000), "controller": true}]),
        ),
    ]
}

pub fn full_namespaces(namespace: &Object) -> Vec<Object> {
    let put = |what, key: &str, value: Value| {
        let mut object = namespace.clone();
        object.what = what;
        object.value["metadata"]["annotations"][key] = value.to_string().into();
        object
    };
    let tolerations = |count: usize| json!((0..count).map(|n| json!({"key": n.to_string()})).collect::<Vec<_>>());
    vec![
        put("tolerations", "scheduler.alpha.kubernetes.io/defaultTolerations", tolerations(1_000)),
        put("allowed tolerations", "scheduler.alpha.kubernetes.io/tolerationsWhitelist", tolerations(1_000)),
        put("too many tolerations", "scheduler.alpha.kubernetes.io/defaultTolerations", tolerations(10_000)),
    ]
}

/// As much as admission lets through, and what may be stored while no webhook looks.
pub fn full_sets(set: &Object) -> Vec<Object> {
    let list = |count: usize, one: fn(usize) -> Value| Value::Array((0..count).map(one).collect());
    let named = |n: usize| json!({"name": format!("c{n}")});
    let with_lists = |n: usize| json!({"name": format!("c{n}"), "env": vec![json!({"name": "a"}); 50], "ports": vec![json!({"hostPort": 1}); 20]});
    vec![
        set.with("containers", "/spec/containers", list(100, named)),
        set.with("containers with lists", "/spec/containers", list(100, with_lists)),
        set.with("volumes", "/spec/volumes", list(200, named)),
        set.with("pull secrets", "/spec/imagePullSecrets", list(200, named)),
        set.with("a large container", "/spec/containers/0/args", list(19_000, |n| format!("{n:05}").into())),
        set.with("maps in a container", "/spec/containers/0/x", maps(9_900)),
        set.with("twice as many maps", "/spec/containers/0/x", maps(19_900)),
        set.with("maps that no webhook looked at", "/spec/containers/0/x", maps(150_000)),
        set.with("empty maps that no webhook looked at", "/spec/x", Value::Array(vec![json!({}); 400_000])),
        set.with("containers that no webhook looked at", "/spec/containers", list(40_000, named)),
        set.with("a selector", "/spec/selector/matchLabels", tiny(20_000)),
    ]
}

pub fn revision() -> Object {
    let spec = json!({"containers": pod_spec()["containers"], "volumes": pod_spec()["volumes"]});
    let mut metadata = metadata(&owner("apps.outrider.dev/v1alpha1", "SidecarSet"));
    metadata["labels"] = json!({"apps.outrider.dev/sidecarset-uid": "00000000-0000-0000-0000-000000000001",
        "apps.outrider.dev/sidecarset-custom-version": "v3"});
    Object::new("as they are", json!({"metadata": metadata, "data": {"spec": spec}, "revision": 3}))
}

pub fn full_revisions(revision: &Object) -> Vec<Object> {
    let owner = owner("apps.outrider.dev/v1alpha1", "SidecarSet");
    let other = json!({"apiVersion": "a", "kind": "b", "name": "c", "uid": "d"});
    let owners = [vec![other; 24_000], vec![owner[0].clone()]].concat();
    vec![
        revision.with("maps", "/data/spec/x", maps(180_000)),
        revision.with("maps beside its content", "/data/x", maps(180_000)),
        revision.with("owners", "/metadata/ownerReferences", owners.into()),
    ]
}

pub fn plugin() -> Object {
    let spec = json!({"plugin": "PodNodeSelector", "mode": "Enforce", "match": {"excludeNamespaces": ["a", "b"]},
        "podNodeSelector": {"clusterDefaultNodeSelector": "pool=web", "namespaceAllowLists": {"shop": "pool=web,zone=a"}}});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

pub fn full_plugins(plugin: &Object) -> Vec<Object> {
    let texts = |count: usize| Value::Array((0..count).map(|n| format!("{n:x}").into()).collect());
    let lists = |count: usize| Value::Object((0..count).map(|n| (format!("n{n:x}"), "a=b".into())).collect());
    let labels = (0..250).map(|n| format!("{n:x}=")).collect::<Vec<_>>().join(",");
    let mut all = full_status(plugin);
    all.extend([
        plugin.with("namespaces", "/spec/match/excludeNamespaces", texts(256)),
        plugin.with("users", "/spec/match/excludeUsers", texts(256)),
        plugin.with("a selector", "/spec/match/namespaceSelector", json!({"matchLabels": tiny(1_000)})),
        plugin.with("too many namespaces", "/spec/match/excludeNamespaces", texts(100_000)),
        plugin.with("allow lists", "/spec/podNodeSelector/namespaceAllowLists", lists(256)),
        plugin.with("too many allow lists", "/spec/podNodeSelector/namespaceAllowLists", lists(50_000)),
        plugin.with("labels", "/spec/podNodeSelector/clusterDefaultNodeSelector", labels.into()),
    ]);
    all
}

pub fn range() -> Object {
    let limit = json!({"type": "Container", "default": {"cpu": "500m", "memory": "256Mi"},
        "defaultRequest": {"cpu": "100m", "memory": "128Mi"}, "max": {"memory": "1Gi"}});
    let spec = json!({"limits": [limit], "namespaceSelector": {"matchLabels": {"team": "shop"}}});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

pub fn full_ranges(range: &Object) -> Vec<Object> {
    let amounts = |count: usize| Value::Object((0..count).map(|n| (format!("a/{n:x}"), "1".into())).collect());
    let mut all = full_status(range);
    all.extend([
        range.with("amounts", "/spec/limits/0/max", amounts(64)),
        range.with("too many amounts", "/spec/limits/0/max", amounts(50_000)),
        range.with("too many limits", "/spec/limits", Value::Array(vec![json!({"type": "Pod"}); 50_000])),
        range.with("a selector", "/spec/namespaceSelector/matchLabels", tiny(1_000)),
    ]);
    all
}

/// A `LimitRange` has no selector.
pub fn full_limit_ranges(range: &Object) -> Vec<Object> {
    let mut all = full_ranges(range);
    all.pop();
    all
}

pub fn security_profile() -> Object {
    let any = json!({"rule": "RunAsAny"});
    let range = json!({"rule": "MustRunAs", "ranges": [{"min": 1, "max": 65_535}]});
    let spec = json!({"seLinux": any, "runAsUser": {"rule": "MustRunAsNonRoot"}, "supplementalGroups": range, "fsGroup": range,
        "requiredDropCapabilities": ["ALL"], "volumes": ["configMap", "emptyDir", "projected", "secret"],
        "namespaceSelector": {"matchLabels": {"team": "shop"}}});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status()}))
}

pub fn full_security_profiles(profile: &Object) -> Vec<Object> {
    let texts = |count: usize, length: usize| -> Value {
        (0..count).map(|n| format!("{n:a>length$}")).collect::<Vec<_>>().into()
    };
    let mut all = full_status(profile);
    all.extend([
        profile.with("capabilities", "/spec/requiredDropCapabilities", texts(64, 512)),
        profile.with("too many capabilities", "/spec/requiredDropCapabilities", texts(50_000, 6)),
        profile.with("too many ranges", "/spec/fsGroup/ranges", vec![json!({"min": 1, "max": 1}); 50_000].into()),
        profile.with("a selector", "/spec/namespaceSelector/matchLabels", tiny(1_000)),
    ]);
    all
}

pub fn quota() -> Object {
    let amounts = json!({"pods": "10", "requests.cpu": "8", "requests.memory": "16Gi", "count/deployments.apps": "5"});
    let scopes = json!([{"scopeName": "PriorityClass", "operator": "In", "values": ["high", "low"]}]);
    let spec = json!({"hard": amounts, "scopeSelector": {"matchExpressions": scopes}});
    let status = json!({"hard": amounts, "used": amounts});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "spec": spec, "status": status}))
}

pub fn class() -> Object {
    let mut metadata = metadata(&json!([]));
    metadata["annotations"]["storageclass.kubernetes.io/is-default-class"] = "true".into();
    Object::new("as they are", json!({"metadata": metadata, "provisioner": "csi.example.com", "status": status()}))
}

pub fn account() -> Object {
    let mut metadata = metadata(&json!([]));
    metadata["annotations"]["kubernetes.io/enforce-mountable-secrets"] = "true".into();
    let names = json!([{"name": "database"}, {"name": "registry"}]);
    Object::new(
        "as they are",
        json!({"metadata": metadata, "secrets": names, "imagePullSecrets": [{"name": "registry"}]}),
    )
}

pub fn full_accounts(account: &Object) -> Vec<Object> {
    let names = |count: usize| Value::Array((0..count).map(|n| json!({"name": format!("{n:x}")})).collect());
    vec![
        account.with("secrets", "/secrets", names(60_000)),
        account.with("pull secrets", "/imagePullSecrets", names(60_000)),
        account.with("a long name", "/secrets/0/name", "x".repeat(1_000_000).into()),
        account.with(
            "a long answer",
            "/metadata/annotations/kubernetes.io~1enforce-mountable-secrets",
            "x".repeat(200_000).into(),
        ),
    ]
}

/// The controller of quotas copies the names of the spec into the status.
pub fn full_quotas(quota: &Object) -> Vec<Object> {
    let values = |count: usize| Value::Array((0..count).map(|n| format!("{n:x}").into()).collect());
    let names = |prefix: &str| -> Value {
        Value::Object((0..25_000).map(|n| (format!("{prefix}{n:x}"), "1".into())).collect())
    };
    let scopes = vec![json!({"scopeName": "PriorityClass", "operator": "Exists"}); 10_000];
    let hard = |what, prefix: &str| {
        let both = quota.with(what, "/spec/hard", names(prefix));
        both.with(what, "/status/hard", names(prefix))
    };
    vec![
        hard("objects", "count/"),
        hard("resources of pods", "requests.a/"),
        quota.with("values", "/spec/scopeSelector/matchExpressions/0/values", values(150_000)),
        quota.with("scopes", "/spec/scopeSelector/matchExpressions", scopes.into()),
        quota.with("scopes of one word", "/spec/scopes", vec!["BestEffort"; 50_000].into()),
    ]
}

pub fn secret() -> Object {
    let cluster = "clusters: [{name: a, cluster: {server: 'https://images.prod.svc/review'}}]";
    let kubeconfig = format!("apiVersion: v1\nkind: Config\n{cluster}\n# {}\n", "a certificate, a key ".repeat(100));
    let data = json!({"kubeconfig": STANDARD.encode(kubeconfig)});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "type": "Opaque", "data": data}))
}

pub fn full_secrets(secret: &Object) -> Vec<Object> {
    vec![
        secret.with("keys", "/data", tiny(100_000)),
        secret.with("a long text", "/data/kubeconfig", "YWFh".repeat(250_000).into()),
    ]
}

pub fn configuration() -> Object {
    let rule = json!({"allowedAnnotationKeyExprs": ["^example.com/", "^prometheus.io/.*$"]});
    let data = json!({ALLOW_LIST_KEY: json!({"rules": [rule]}).to_string()});
    Object::new("as they are", json!({"metadata": metadata(&json!([])), "data": data}))
}

pub fn full_configurations(configuration: &Object) -> Vec<Object> {
    // Compiling takes long, and large objects are few.
    let list = |what, rules: Value| {
        let rules = json!({ "rules": rules }).to_string();
        configuration.with(what, "/data", json!({ALLOW_LIST_KEY: rules, "x": "x".repeat(100_000)}))
    };
    let expressions = |expression: &str, count: usize| json!({"allowedAnnotationKeyExprs": vec![expression; count]});
    vec![
        configuration.with("keys", "/data/x", tiny(100_000).to_string().into()),
        list("expressions", json!([expressions("^a$", 1_000)])),
        list("expressions that are large once compiled", json!([expressions(r"^\w{10}$", 16)])),
        list("too many large expressions", json!([expressions(r"^\w{10}$", 100)])),
        list("rules", vec![expressions("a", 1); 1_000].into()),
        list(
            "a rule with a long selector",
            json!([{"selector": {"matchLabels": tiny(50_000)}, "allowedAnnotationKeyExprs": ["a"]}]),
        ),
        list("too many rules", vec![expressions("a", 1); 20_000].into()),
    ]
}
