//! Bodies that cost far more than their size, as far as anybody knows, at any size.

use std::fmt::Write as _;

/// What is asked, and of which world.
pub struct Body {
    /// Where it is posted.
    pub path: &'static str,
    /// The review.
    pub text: String,
    /// The sets of the world.
    pub sets: Sets,
    /// The admission plugins of the world.
    pub plugins: Plugins,
}

/// The admission plugins that are there when a body is decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugins {
    /// None.
    None,
    /// One of each plugin of pods.
    OfPods,
    /// One that demands a quota.
    Quota,
}

/// The sets that are there when a body is decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sets {
    /// One, which selects the pod.
    One,
    /// So many that select the pod.
    Matching(usize),
    /// So many whose selector is a negation that the pod does not satisfy.
    Negations(usize),
}

/// A kind of body.
pub struct Kind {
    /// In words.
    pub name: &'static str,
    /// `n` of the smaller body. The larger one has four times as much.
    pub n: usize,
    /// Makes one.
    pub make: fn(usize) -> Body,
    /// Whether it is held against a harmless body of the same size: sets that match have a cost of their own.
    pub beside_harmless: bool,
}

const MUTATE: &str = "/mutate--v1-pod";
const VALIDATE: &str = "/validate--v1-pod";
/// Asked behind everything else that may change a pod.
const QUOTA: &str = "/validate--v1-pod-resourcequota";
const MUTATE_SET: &str = "/mutate-apps-outrider-dev-v1alpha1-sidecarset";
const VALIDATE_SET: &str = "/validate-apps-outrider-dev-v1alpha1-sidecarset";

/// What the API server fills in.
const DEFAULTS: &str = r#""resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent""#;

/// All kinds.
pub const KINDS: &[Kind] = &[
    kind("record of n names, n containers", 6_000, |n| record(n, MUTATE)),
    kind("the same, validated", 6_000, |n| record(n, VALIDATE)),
    kind("n resources of an init container, n/8 more", 10_000, resources),
    kind("n commas to skip", 60_000, |n| annotated("outrider.dev/skip", &",".repeat(n))),
    kind("n commas to skip, beyond the limit", 750_000, |n| annotated("outrider.dev/skip", &",".repeat(n))),
    kind("n names for OpenKruise", 10_000, |n| {
        annotated("kruise.io/sidecarset-injected-list", &joined(n, |i| format!("{i:x}")))
    }),
    kind("n empty containers", 10_000, |n| pod("", &joined(n, |_| "{}".to_owned()), "")),
    kind("n empty containers, beyond the limit", 500_000, |n| pod("", &joined(n, |_| "{}".to_owned()), "")),
    kind("n containers of a name each", 10_000, |n| pod("", &containers(n), "")),
    kind("n ports of different addresses", 15_000, |n| {
        ports(n, |i| format!(r#"{{"containerPort":80,"hostPort":80,"hostIP":"{i}"}}"#))
    }),
    kind("n equal ports", 87_000, |n| ports(n, |_| r#"{"containerPort":80}"#.to_owned())),
    kind("n labels", 40_000, |n| pod(&joined(n, |i| format!(r#""l{i}":"""#)), CONTAINER, "")),
    kind("n annotations", 9_000, |n| annotations(&joined(n, |i| format!(r#""{i:x}":"""#)))),
    kind("n labels for nodes", 40_000, |n| {
        spec(&format!(r#""nodeSelector":{{{}}}"#, joined(n, |i| format!(r#""l{i}":"""#))))
    }),
    kind("n expressions of an affinity", 100_000, |n| {
        spec(&format!(
            r#""affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{{"matchExpressions":[{{"key":"kubernetes.io/os"}},{}]}}]}}}}}}"#,
            joined(n, |_| "{}".to_owned())
        ))
    }),
    kind("n volumes", 30_000, |n| spec(&format!(r#""volumes":[{}]"#, joined(n, |i| format!(r#"{{"name":"v{i}"}}"#))))),
    kind("n pull secrets", 50_000, |n| {
        spec(&format!(r#""imagePullSecrets":[{}]"#, joined(n, |i| format!(r#"{{"name":"s{i}"}}"#))))
    }),
    kind("n of everything", 2_500, everything),
    kind("n variables, mounts and arguments", 20_000, unread),
    kind("n deep where nothing is read", 50_000, |n| spec(&format!(r#""x":{}"#, deep(n)))),
    kind("n deep resources", 50_000, |n| pod("", &format!(r#"{{"name":"app","resources":{}}}"#, deep(n)), "")),
    kind("a set of n empty maps", 1_000, |n| set(MUTATE_SET, &joined(n, |_| r#"{"":0}"#.to_owned()))),
    kind("the same, validated", 4_000, |n| set(VALIDATE_SET, &joined(n, |_| r#"{"":0}"#.to_owned()))),
    kind("the same, beyond the limit", 225_000, |n| set(VALIDATE_SET, &joined(n, |_| r#"{"":0}"#.to_owned()))),
    kind("a set of n containers of a name each", 400, |n| set(VALIDATE_SET, &containers(n))),
    kind("n tolerations, plugins", 15_000, |n| {
        plugins(spec(&format!(r#""tolerations":[{}]"#, joined(n, |i| format!(r#"{{"key":"k{i}"}}"#)))))
    }),
    kind("n equal tolerations, plugins", 15_000, |n| {
        plugins(spec(&format!(r#""tolerations":[{}]"#, joined(n, |_| r#"{"operator":"Exists"}"#.to_owned()))))
    }),
    kind("n extended resources, plugins", 15_000, |n| plugins(pod("", &extended(0, n), ""))),
    kind("n containers of an extended resource each, plugins", 5_000, |n| {
        plugins(pod("", &joined(n, |i| extended(i, 1)), ""))
    }),
    kind("n labels for nodes, plugins", 40_000, |n| {
        plugins(spec(&format!(r#""nodeSelector":{{{}}}"#, joined(n, |i| format!(r#""l{i}":"""#)))))
    }),
    kind("n terms of an affinity, plugins", 20_000, |n| {
        let term = |i: usize| {
            format!(r#"{{"topologyKey":"kubernetes.io/hostname","labelSelector":{{"matchLabels":{{"a":"{i}"}}}}}}"#)
        };
        let terms = joined(n, term);
        plugins(spec(&format!(
            r#""affinity":{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{terms}]}}}}"#
        )))
    }),
    kind("n extended resources, quota", 15_000, |n| Body {
        plugins: Plugins::Quota,
        ..pod_of(QUOTA, "", &extended(0, n), "")
    }),
    kind("n containers of an extended resource each, quota", 5_000, |n| Body {
        plugins: Plugins::Quota,
        ..pod_of(QUOTA, "", &joined(n, |i| extended(i, 1)), "")
    }),
    Kind { name: "n sets that match", n: 250, make: |n| among(Sets::Matching(n)), beside_harmless: false },
    kind("n sets of negations", 1_250, |n| among(Sets::Negations(n))),
];

const fn kind(name: &'static str, n: usize, make: fn(usize) -> Body) -> Kind {
    Kind { name, n, make, beside_harmless: true }
}

/// An ordinary body for the same path, filled to so many bytes with variables of one container.
pub fn harmless(path: &'static str, bytes: usize) -> Body {
    let with = |variables: usize| {
        let env = joined(variables, |i| format!(r#"{{"name":"VARIABLE_{i}","value":"the value of variable {i}"}}"#));
        let container = format!(r#"{{"name":"app","image":"app:1","env":[{env}],{DEFAULTS}}}"#);
        if path == MUTATE_SET || path == VALIDATE_SET {
            set(path, &container)
        } else {
            Body { path, ..pod("", &container, "") }
        }
    };
    let (empty, thousand) = (with(0).text.len(), with(1000).text.len());
    with(bytes.saturating_sub(empty) * 1000 / (thousand - empty))
}

const CONTAINER: &str = r#"{"name":"app","image":"app:1"}"#;

fn joined(n: usize, element: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for i in 0..n {
        // A String takes everything.
        let _ = write!(text, "{}{}", if i == 0 { "" } else { "," }, element(i));
    }
    text
}

fn deep(n: usize) -> String {
    format!("{}{}", "[".repeat(n), "]".repeat(n))
}

fn containers(n: usize) -> String {
    joined(n, |i| format!(r#"{{"name":"n{i}","image":"b",{DEFAULTS}}}"#))
}

fn review(path: &'static str, object: &str) -> Body {
    let (group, version, kind, resource) = if path == MUTATE_SET || path == VALIDATE_SET {
        ("apps.outrider.dev", "v1alpha1", "SidecarSet", "sidecarsets")
    } else {
        ("", "v1", "Pod", "pods")
    };
    let text = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"{group}","version":"{version}","kind":"{kind}"}},"resource":{{"group":"{group}","version":"{version}","resource":"{resource}"}},"namespace":"shop","operation":"CREATE","userInfo":{{}},"object":{object},"oldObject":null}}}}"#
    );
    Body { path, text, sets: Sets::One, plugins: Plugins::None }
}

fn pod(labels: &str, containers: &str, more: &str) -> Body {
    pod_of(MUTATE, labels, containers, more)
}

fn pod_of(path: &'static str, labels: &str, containers: &str, more: &str) -> Body {
    let comma = if labels.is_empty() { "" } else { "," };
    let metadata = format!(r#"{{"name":"p","labels":{{"app":"web"{comma}{labels}}}}}"#);
    review(path, &format!(r#"{{"metadata":{metadata},"spec":{{"containers":[{containers}]{more}}}}}"#))
}

/// With every plugin of pods.
fn plugins(body: Body) -> Body {
    Body { plugins: Plugins::OfPods, ..body }
}

/// A container that asks for `n` extended resources.
fn extended(number: usize, n: usize) -> String {
    let requests = joined(n, |i| format!(r#""x.y/{}":"1""#, number + i));
    format!(r#"{{"name":"c{number}","resources":{{"requests":{{{requests}}}}}}}"#)
}

fn spec(field: &str) -> Body {
    pod("", CONTAINER, &format!(",{field}"))
}

fn annotations(annotations: &str) -> Body {
    let metadata = format!(r#"{{"name":"p","labels":{{"app":"web"}},"annotations":{{{annotations}}}}}"#);
    review(MUTATE, &format!(r#"{{"metadata":{metadata},"spec":{{"containers":[{CONTAINER}]}}}}"#))
}

fn annotated(key: &str, value: &str) -> Body {
    annotations(&format!(r#""{key}":"{value}""#))
}

fn record(n: usize, path: &'static str) -> Body {
    // Below the API server's limit for annotations, which would end the matter.
    let names = joined(n, |i| format!(r#"\"n{i}\""#)).replace(r#"\"n"#, r#"\""#);
    let metadata = format!(
        r#"{{"name":"p","labels":{{"app":"web"}},"annotations":{{"outrider.dev/injected":"{{\"set-0\":{{\"containers\":[{names}]}}}}"}}}}"#
    );
    review(path, &format!(r#"{{"metadata":{metadata},"spec":{{"containers":[{}]}}}}"#, containers(n)))
}

fn resources(n: usize) -> Body {
    let amounts = joined(n, |i| format!(r#""x{i}":"1""#));
    let sidecar = format!(r#"{{"name":"s","restartPolicy":"Always","resources":{{"requests":{{{amounts}}}}}}}"#);
    let plain = joined(n / 8, |i| format!(r#"{{"name":"z{i}"}}"#));
    spec(&format!(r#""resources":{{"requests":{{"cpu":"1"}}}},"initContainers":[{sidecar},{plain}]"#))
}

fn ports(n: usize, port: impl Fn(usize) -> String) -> Body {
    pod("", &format!(r#"{{"name":"app","ports":[{}]}}"#, joined(n, port)), "")
}

fn everything(n: usize) -> Body {
    let list = |field: &str, element: fn(usize) -> String| format!(r#","{field}":[{}]"#, joined(n, element));
    let named: fn(usize) -> String = |i| format!(r#"{{"name":"n{i}"}}"#);
    let ports = joined(n, |i| format!(r#"{{"containerPort":{},"hostPort":{}}}"#, i + 1, i + 1));
    let env = joined(n, |i| format!(r#"{{"name":"E{i}","value":"{i}"}}"#));
    let mounts = joined(n, |i| format!(r#"{{"name":"n{i}","mountPath":"/{i}"}}"#));
    let first = format!(r#"{{"name":"app","ports":[{ports}],"env":[{env}],"volumeMounts":[{mounts}]}}"#);
    let labels = joined(n, |i| format!(r#""l{i}":"{i}""#));
    let more = [
        list("initContainers", |i| {
            format!(r#"{{"name":"i{i}","restartPolicy":"Always","ports":[{{"containerPort":{}}}]}}"#, i + 1)
        }),
        list("volumes", named),
        list("imagePullSecrets", named),
        list("resourceClaims", named),
        list("tolerations", |i| format!(r#"{{"key":"k{i}","operator":"Exists"}}"#)),
        format!(r#","nodeSelector":{{{labels}}}"#),
    ]
    .concat();
    pod(&labels, &format!("{first},{}", containers(n)), &more)
}

fn unread(n: usize) -> Body {
    let env = joined(n, |i| format!(r#"{{"name":"E{i}"}}"#));
    let mounts = joined(n, |i| format!(r#"{{"name":"n{i}","mountPath":"/{i}"}}"#));
    let arguments = joined(n, |_| r#""""#.to_owned());
    pod("", &format!(r#"{{"name":"app","env":[{env}],"volumeMounts":[{mounts}],"args":[{arguments}]}}"#), "")
}

fn set(path: &'static str, containers: &str) -> Body {
    let spec = format!(r#"{{"selector":{{"matchLabels":{{"app":"web"}}}},"containers":[{containers}]}}"#);
    let head = r#""apiVersion":"apps.outrider.dev/v1alpha1","kind":"SidecarSet","metadata":{"name":"a"}"#;
    review(path, &format!(r#"{{{head},"spec":{spec}}}"#))
}

fn among(sets: Sets) -> Body {
    Body { sets, ..pod(r#""tier":"back""#, CONTAINER, "") }
}
