//! Bodies that cost far more than their size, as far as anybody knows, at any size.

use std::fmt::Write as _;

use engine::pod::limits;
use engine::sidecarset::injection::INJECTED_ANNOTATION;

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
    /// What else limits pods there.
    pub policies: Policies,
}

/// What else limits pods when a body is decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policies {
    /// Nothing.
    None,
    /// Ranges.
    Ranges,
    /// A profile of pod security.
    Profile,
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
    /// None.
    None,
    /// So many mandatory ones that select the pod.
    Musts(usize),
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
pub const MUTATE_SET: &str = "/mutate-apps-outrider-dev-v1alpha1-sidecarset";
/// Where `CronJob`s are validated.
pub const CRON_JOBS: &str = "/validate-batch-outrider-dev-v1-cronjob";
/// Where objects are converted.
pub const CONVERT: &str = "/convert";
pub const VALIDATE_SET: &str = "/validate-apps-outrider-dev-v1alpha1-sidecarset";

/// What the API server fills in.
pub const DEFAULTS: &str = r#""resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent""#;

/// A quarter of a limit, so that four times as much just keeps it.
const CONTAINERS: usize = limits::CONTAINERS / 4;
const VOLUMES: usize = limits::VOLUMES / 4;
const NAMES: usize = limits::NAMES / 4;
/// Plugins add some.
const TOLERATIONS: usize = (limits::TOLERATIONS - 10) / 4;
const PAIRS: usize = limits::PAIRS / 4;
/// Two values are the resources themselves, and their requests.
const RESOURCES: usize = (limits::RESOURCES - 2) / 4;
/// Containers of a set.
const OF_A_SET: usize = 25;

/// All kinds. What has a limit is there twice: up to it, and far beyond it.
pub const KINDS: &[Kind] = &[
    kind("record of 12,000 names, n containers", CONTAINERS, |n| record(12_000, n, MUTATE)),
    kind("the same, validated", CONTAINERS, |n| record(12_000, n, VALIDATE)),
    kind("record of 2,000 names, n containers", CONTAINERS, |n| record(2_000, n, MUTATE)),
    kind("the same, validated", CONTAINERS, |n| record(2_000, n, VALIDATE)),
    kind("record of n sets", 125, records),
    kind("record of n sets, beyond the limit", 6_000, records),
    kind("record of n names, n containers, beyond the limit", 6_000, |n| record(n, n, MUTATE)),
    kind("n resources of an init container, n/8 more", RESOURCES, resources),
    kind("n resources of an init container, n/8 more, beyond the limit", 10_000, resources),
    kind("n commas to skip", 60_000, |n| annotated("outrider.dev/skip", &",".repeat(n))),
    kind("n commas to skip, beyond the limit", 750_000, |n| annotated("outrider.dev/skip", &",".repeat(n))),
    kind("n names for OpenKruise", 10_000, |n| {
        annotated("kruise.io/sidecarset-injected-list", &joined(n, |i| format!("{i:x}")))
    }),
    kind("n empty containers", CONTAINERS, empty_containers),
    kind("n empty containers, beyond the limit", 10_000, empty_containers),
    kind("n empty containers, far beyond the limit", 500_000, empty_containers),
    kind("n containers of a name each", CONTAINERS, |n| pod("", &containers(n), "")),
    kind("n containers of a name each, beyond the limit", 10_000, |n| pod("", &containers(n), "")),
    kind("n ports of different addresses", 15_000, |n| {
        ports(n, |i| format!(r#"{{"containerPort":80,"hostPort":80,"hostIP":"{i}"}}"#))
    }),
    kind("n equal ports", 87_000, |n| ports(n, |_| r#"{"containerPort":80}"#.to_owned())),
    kind("n labels", PAIRS - 1, |n| pod(&labels(n), CONTAINER, "")),
    kind("n labels, beyond the limit", 40_000, |n| pod(&labels(n), CONTAINER, "")),
    kind("n annotations", PAIRS, |n| annotations(&joined(n, |i| format!(r#""{i:x}":"""#)))),
    kind("n annotations, beyond the limit", 9_000, |n| annotations(&joined(n, |i| format!(r#""{i:x}":"""#)))),
    kind("n labels for nodes", PAIRS, |n| spec(&format!(r#""nodeSelector":{{{}}}"#, labels(n)))),
    kind("n labels for nodes, beyond the limit", 40_000, |n| spec(&format!(r#""nodeSelector":{{{}}}"#, labels(n)))),
    kind("n expressions of an affinity", 100_000, |n| {
        spec(&format!(
            r#""affinity":{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{{"matchExpressions":[{{"key":"kubernetes.io/os"}},{}]}}]}}}}}}"#,
            joined(n, |_| "{}".to_owned())
        ))
    }),
    kind("n volumes", VOLUMES, |n| spec(&named("volumes", n))),
    kind("n volumes, beyond the limit", 30_000, |n| spec(&named("volumes", n))),
    kind("n pull secrets", NAMES, |n| spec(&named("imagePullSecrets", n))),
    kind("n pull secrets, beyond the limit", 50_000, |n| spec(&named("imagePullSecrets", n))),
    kind("n of everything", CONTAINERS - 1, everything),
    kind("n of everything, plugins", CONTAINERS - 1, |n| plugins(everything(n))),
    kind("n of everything, beyond the limit", 2_500, everything),
    kind("n variables, mounts and arguments", 20_000, unread),
    kind("n deep where nothing is read", 50_000, |n| spec(&format!(r#""x":{}"#, deep(n)))),
    kind("n deep resources", 50_000, |n| pod("", &format!(r#"{{"name":"app","resources":{}}}"#, deep(n)), "")),
    kind("a set of n empty maps", OF_A_SET, |n| set(MUTATE_SET, &empty_maps(n))),
    kind("the same, validated", OF_A_SET, |n| set(VALIDATE_SET, &empty_maps(n))),
    kind("the same, beyond the limit", 1_000, |n| set(MUTATE_SET, &empty_maps(n))),
    kind("the same, beyond the limit, validated", 4_000, |n| set(VALIDATE_SET, &empty_maps(n))),
    kind("the same, far beyond the limit", 225_000, |n| set(VALIDATE_SET, &empty_maps(n))),
    kind("a set of n short volumes", OF_A_SET, |n| set_of(MUTATE_SET, CONTAINER, &empty_maps(2 * n))),
    kind("a set of n containers of a name each", OF_A_SET, |n| set(VALIDATE_SET, &containers(n))),
    kind("n tolerations, plugins", TOLERATIONS, |n| plugins(tolerations(n, |i| format!(r#"{{"key":"k{i}"}}"#)))),
    kind("n tolerations, plugins, beyond the limit", 15_000, |n| {
        plugins(tolerations(n, |i| format!(r#"{{"key":"k{i}"}}"#)))
    }),
    kind("n equal tolerations, plugins", TOLERATIONS, |n| {
        plugins(tolerations(n, |_| r#"{"operator":"Exists"}"#.to_owned()))
    }),
    kind("n extended resources, plugins", RESOURCES, |n| plugins(pod("", &extended(0, n), ""))),
    kind("n extended resources, plugins, beyond the limit", 15_000, |n| plugins(pod("", &extended(0, n), ""))),
    kind("n containers of an extended resource each, plugins", CONTAINERS, |n| {
        plugins(pod("", &joined(n, |i| extended(i, 1)), ""))
    }),
    kind("n containers of one of 288 extended resources each, plugins", CONTAINERS, |n| {
        plugins(pod("", &joined(n, |i| extended_of(i, i % (4 * TOLERATIONS), 1)), ""))
    }),
    kind("n containers of an extended resource each, plugins, beyond the limit", 5_000, |n| {
        plugins(pod("", &joined(n, |i| extended(i, 1)), ""))
    }),
    kind("n labels for nodes, plugins", PAIRS, |n| plugins(spec(&format!(r#""nodeSelector":{{{}}}"#, labels(n))))),
    kind("n labels for nodes, plugins, beyond the limit", 40_000, |n| {
        plugins(spec(&format!(r#""nodeSelector":{{{}}}"#, labels(n))))
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
    kind("n extended resources, quota", RESOURCES, |n| quota(&extended(0, n))),
    kind("n extended resources, quota, beyond the limit", 15_000, |n| quota(&extended(0, n))),
    kind("n containers of an extended resource each, quota", CONTAINERS, |n| quota(&joined(n, |i| extended(i, 1)))),
    kind("n containers of an extended resource each, quota, beyond the limit", 5_000, |n| {
        quota(&joined(n, |i| extended(i, 1)))
    }),
    Kind { name: "n sets that match", n: 1000, make: |n| among(Sets::Matching(n)), beside_harmless: false },
    kind("n sets of negations", 1_250, |n| among(Sets::Negations(n))),
];

/// One that is held against a harmless body.
pub const fn kind(name: &'static str, n: usize, make: fn(usize) -> Body) -> Kind {
    Kind { name, n, make, beside_harmless: true }
}

const CONTAINER: &str = r#"{"name":"app","image":"app:1"}"#;

/// So many elements, with commas between.
pub fn joined(n: usize, element: impl Fn(usize) -> String) -> String {
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

/// So many containers of a name each.
pub fn containers(n: usize) -> String {
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
    Body { path, text, sets: Sets::One, plugins: Plugins::None, policies: Policies::None }
}

pub fn pod(labels: &str, containers: &str, more: &str) -> Body {
    pod_of(MUTATE, labels, containers, more)
}

fn pod_of(path: &'static str, labels: &str, containers: &str, more: &str) -> Body {
    let comma = if labels.is_empty() { "" } else { "," };
    let metadata = format!(r#"{{"name":"p","labels":{{"app":"web"{comma}{labels}}}}}"#);
    review(path, &format!(r#"{{"metadata":{metadata},"spec":{{"containers":[{containers}]{more}}}}}"#))
}

fn empty_containers(n: usize) -> Body {
    pod("", &joined(n, |_| "{}".to_owned()), "")
}

fn empty_maps(n: usize) -> String {
    joined(n, |_| r#"{"":0}"#.to_owned())
}

fn labels(n: usize) -> String {
    joined(n, |i| format!(r#""l{i}":"""#))
}

/// A field with a list of names.
fn named(field: &str, n: usize) -> String {
    format!(r#""{field}":[{}]"#, joined(n, |i| format!(r#"{{"name":"n{i}"}}"#)))
}

fn tolerations(n: usize, one: impl Fn(usize) -> String) -> Body {
    spec(&format!(r#""tolerations":[{}]"#, joined(n, one)))
}

/// With a plugin that demands a quota.
fn quota(containers: &str) -> Body {
    Body { plugins: Plugins::Quota, ..pod_of(QUOTA, "", containers, "") }
}

/// With every plugin of pods.
fn plugins(body: Body) -> Body {
    Body { plugins: Plugins::OfPods, ..body }
}

/// A container that asks for `n` extended resources.
fn extended(number: usize, n: usize) -> String {
    extended_of(number, number, n)
}

/// The same, of the resources from this one on.
fn extended_of(number: usize, first: usize, n: usize) -> String {
    let requests = joined(n, |i| format!(r#""x.y/{}":"1""#, first + i));
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

fn record(names: usize, n: usize, path: &'static str) -> Body {
    // Below the API server's limit for annotations, which would end the matter.
    let names = joined(names, |i| format!(r#"\"n{i}\""#)).replace(r#"\"n"#, r#"\""#);
    let metadata = format!(
        r#"{{"name":"p","labels":{{"app":"web"}},"annotations":{{"outrider.dev/injected":"{{\"set-0\":{{\"containers\":[{names}]}}}}"}}}}"#
    );
    review(path, &format!(r#"{{"metadata":{metadata},"spec":{{"containers":[{}]}}}}"#, containers(n)))
}

/// A record of so many sets that are not there.
fn records(n: usize) -> Body {
    let sets = joined(n, |i| format!(r#"\"{i:x}\":{{}}"#));
    annotated(INJECTED_ANNOTATION, &format!("{{{sets}}}"))
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

/// Of lists with a lower limit, as many as it allows.
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
        format!(
            r#","tolerations":[{}]"#,
            joined(n.min(4 * TOLERATIONS), |i| format!(r#"{{"key":"k{i}","operator":"Exists"}}"#))
        ),
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

pub fn set(path: &'static str, containers: &str) -> Body {
    set_of(path, containers, "")
}

fn set_of(path: &'static str, containers: &str, volumes: &str) -> Body {
    let spec = format!(
        r#"{{"selector":{{"matchLabels":{{"app":"web"}}}},"containers":[{containers}],"volumes":[{volumes}]}}"#
    );
    let head = r#""apiVersion":"apps.outrider.dev/v1alpha1","kind":"SidecarSet","metadata":{"name":"a"}"#;
    review(path, &format!(r#"{{{head},"spec":{spec}}}"#))
}

fn among(sets: Sets) -> Body {
    Body { sets, ..pod(r#""tier":"back""#, CONTAINER, "") }
}
