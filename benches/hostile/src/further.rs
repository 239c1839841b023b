//! Bodies for the other paths: pods that change, ranges, profiles, `CronJob`s and conversions.

use engine::pod::limits;

use crate::bodies::{Body, CONVERT, CRON_JOBS, Kind, Plugins, Policies, Sets, containers, joined, kind};

const MUTATE: &str = "/mutate--v1-pod";
const VALIDATE: &str = "/validate--v1-pod";
const UPDATE: &str = "/validate--v1-pod-update";
const RESIZE_BY_RANGES: &str = "/validate--v1-pod-resize-limitranger";

/// A quarter of a limit, so that four times as much just keeps it.
const CONTAINERS: usize = limits::CONTAINERS / 4;
const RESOURCES: usize = limits::RESOURCES / 8;
/// Mandatory sets that select a pod that changes.
const MUSTS: usize = 20;

/// What the path of a review is called with.
const CREATED: Call = Call { operation: "CREATE", sub_resource: "" };
const UPDATED: Call = Call { operation: "UPDATE", sub_resource: "" };
const RESIZED: Call = Call { operation: "UPDATE", sub_resource: "resize" };
const EPHEMERAL: Call = Call { operation: "UPDATE", sub_resource: "ephemeralcontainers" };

struct Call {
    operation: &'static str,
    sub_resource: &'static str,
}

/// Further kinds, each up to a limit and far beyond it.
pub const KINDS: &[Kind] = &[
    kind("n containers of a changed pod, musts", CONTAINERS, |n| changed(&UPDATED, Sets::Musts(MUSTS), n)),
    kind("n containers of a changed pod, musts, beyond the limit", 5_000, |n| changed(&UPDATED, Sets::Musts(MUSTS), n)),
    Kind {
        name: "n musts of a changed pod",
        n: 100,
        make: |n| changed(&UPDATED, Sets::Musts(n), 4 * MUSTS),
        beside_harmless: false,
    },
    kind("n containers of a resized pod, musts", CONTAINERS, |n| changed(&RESIZED, Sets::Musts(MUSTS), n)),
    kind("n containers of a resized pod, musts, beyond the limit", 5_000, |n| changed(&RESIZED, Sets::Musts(MUSTS), n)),
    kind("n ephemeral containers, musts", CONTAINERS, ephemeral),
    kind("n ephemeral containers, musts, beyond the limit", 10_000, ephemeral),
    kind("n containers, ranges", CONTAINERS, |n| new(MUTATE, Policies::Ranges, &sized(n, "1"))),
    kind("n containers, ranges, validated", CONTAINERS, |n| new(VALIDATE, Policies::Ranges, &sized(n, "9000"))),
    kind("n containers, ranges, validated, beyond the limit", 5_000, |n| {
        new(VALIDATE, Policies::Ranges, &sized(n, "9000"))
    }),
    kind("n resources of a container, ranges, validated", RESOURCES, |n| {
        let amounts = joined(n, |i| format!(r#""x.y/{i}":"1""#));
        let resources = format!(r#"{{"requests":{{{amounts}}},"limits":{{{amounts}}}}}"#);
        new(VALIDATE, Policies::Ranges, &format!(r#"{{"name":"a","image":"b","resources":{resources}}}"#))
    }),
    kind("n containers of a resized pod, ranges", CONTAINERS, |n| {
        let pod = |amount: &str| pod(&sized(n, amount), "");
        let text = review(&RESIZED, &pod("9000"), Some(&pod("1")));
        Body { policies: Policies::Ranges, ..body(RESIZE_BY_RANGES, text, Sets::None) }
    }),
    kind("n containers, profile", CONTAINERS, |n| new(MUTATE, Policies::Profile, &containers(n))),
    kind("n privileged containers, profile, validated", CONTAINERS, |n| {
        let one = |i: usize| format!(r#"{{"name":"n{i}","image":"b","securityContext":{{"privileged":true}}}}"#);
        new(VALIDATE, Policies::Profile, &joined(n, one))
    }),
    kind("n containers, profile, beyond the limit", 5_000, |n| new(MUTATE, Policies::Profile, &containers(n))),
    kind("n fields of the template of a CronJob", 1_000, |n| cron_job(&joined(n, |i| format!(r#""x{i}":{{"":0}}"#)))),
    kind("n fields of the template of a CronJob, beyond the limit", 100_000, |n| {
        cron_job(&joined(n, |i| format!(r#""x{i}":{{"":0}}"#)))
    }),
    kind("n CronJobs to convert", 500, |n| {
        converted(&joined(n, |i| {
            format!(
                r#"{{"apiVersion":"batch.outrider.dev/v1","kind":"CronJob","metadata":{{"name":"a{i}"}},"spec":{{"schedule":"@yearly"}}}}"#
            )
        }))
    }),
    kind("n maps in a CronJob to convert", 50_000, |n| {
        converted(&format!(
            r#"{{"apiVersion":"batch.outrider.dev/v1","kind":"CronJob","metadata":{{"name":"a"}},"spec":{{"schedule":"@yearly","jobTemplate":[{}]}}}}"#,
            joined(n, |_| r#"{"":0}"#.to_owned())
        ))
    }),
];

fn body(path: &'static str, text: String, sets: Sets) -> Body {
    Body { path, text, sets, plugins: Plugins::None, policies: Policies::None }
}

fn pod(containers: &str, more: &str) -> String {
    format!(r#"{{"metadata":{{"name":"p","labels":{{"app":"web"}}}},"spec":{{"containers":[{containers}]{more}}}}}"#)
}

fn review(call: &Call, object: &str, old: Option<&str>) -> String {
    let Call { operation, sub_resource } = call;
    let old = old.unwrap_or("null");
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"","version":"v1","kind":"Pod"}},"resource":{{"group":"","version":"v1","resource":"pods"}},"subResource":"{sub_resource}","namespace":"shop","operation":"{operation}","userInfo":{{"username":"ann"}},"object":{object},"oldObject":{old}}}}}"#
    )
}

fn new(path: &'static str, policies: Policies, containers: &str) -> Body {
    Body { policies, ..body(path, review(&CREATED, &pod(containers, ""), None), Sets::None) }
}

fn sized(n: usize, amount: &str) -> String {
    joined(n, |i| format!(r#"{{"name":"n{i}","image":"b","resources":{{"limits":{{"cpu":"{amount}"}}}}}}"#))
}

/// A pod with the containers of sets, and `n` of its own, all of which become others.
fn changed(call: &Call, sets: Sets, n: usize) -> Body {
    let of_sets = |image: &str| joined(MUSTS, |i| format!(r#"{{"name":"sidecar-{i}","image":"{image}"}}"#));
    let (old, new) = (containers(n), containers(n).replace(r#""image":"b""#, r#""image":"c""#));
    let pod = |image: &str, own: &str| pod(&format!("{},{own}", of_sets(image)), "");
    body(UPDATE, review(call, &pod("evil:1", &new), Some(&pod("sidecar:1", &old))), sets)
}

/// New ones that target containers of sets, and have long names.
fn ephemeral(n: usize) -> Body {
    let of_sets = joined(MUSTS, |i| format!(r#"{{"name":"sidecar-{i}","image":"sidecar:1"}}"#));
    let name = "e".repeat(50);
    let new =
        joined(n, |i| format!(r#"{{"name":"{name}{i}","image":"b","targetContainerName":"sidecar-{}"}}"#, i % MUSTS));
    let with = pod(&of_sets, &format!(r#","ephemeralContainers":[{new}]"#));
    body(UPDATE, review(&EPHEMERAL, &with, Some(&pod(&of_sets, ""))), Sets::Musts(MUSTS))
}

fn cron_job(fields: &str) -> Body {
    body(CRON_JOBS, cron_job_review(fields), Sets::None)
}

/// A review of a `CronJob` whose pods have these fields.
fn cron_job_review(fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { "," };
    let pod = format!(r#"{{"restartPolicy":"Never","containers":[{{"name":"a","image":"b"}}]{comma}{fields}}}"#);
    let spec = format!(r#"{{"schedule":"@every 5h","jobTemplate":{{"spec":{{"template":{{"spec":{pod}}}}}}}}}"#);
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","kind":{{"group":"batch.outrider.dev","version":"v1","kind":"CronJob"}},"resource":{{"group":"batch.outrider.dev","version":"v1","resource":"cronjobs"}},"namespace":"shop","operation":"CREATE","userInfo":{{}},"object":{{"apiVersion":"batch.outrider.dev/v1","kind":"CronJob","metadata":{{"name":"a"}},"spec":{spec}}},"oldObject":null}}}}"#
    )
}

/// A review for the conversion of these to the other version.
fn converted(objects: &str) -> Body {
    let text = format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{{"uid":"u","desiredAPIVersion":"batch.outrider.dev/v2","objects":[{objects}]}}}}"#
    );
    body(CONVERT, text, Sets::None)
}

/// A `CronJob`, filled with variables, to be validated or converted.
pub fn harmless_cron_job(path: &'static str, env: &str) -> Body {
    let filled = cron_job(&format!(r#""env":[{env}]"#));
    if path == CRON_JOBS {
        return filled;
    }
    converted(&format!(
        r#"{{"apiVersion":"batch.outrider.dev/v1","kind":"CronJob","metadata":{{"name":"a"}},"spec":{{"schedule":"@yearly","jobTemplate":{{"env":[{env}]}}}}}}"#
    ))
}

/// A pod that changes little, of these containers with an image. Its path says by which call.
pub fn harmless_change(path: &'static str, containers: impl Fn(&str) -> String) -> Body {
    let call = if path == RESIZE_BY_RANGES { &RESIZED } else { &UPDATED };
    let pod = |image: &str| pod(&containers(image), "");
    body(path, review(call, &pod("app:2"), Some(&pod("app:1"))), Sets::Musts(MUSTS))
}

/// Whether a path decides on pods that change.
pub fn is_of_changes(path: &str) -> bool {
    [UPDATE, RESIZE_BY_RANGES].contains(&path)
}
