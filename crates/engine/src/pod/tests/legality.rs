//! Pods that the API server would refuse with the set in them.

use serde_json::{Value, json};

use crate::reasons;
use crate::testing::{Cluster, pod, set};

fn container(fields: Value) -> Value {
    let mut container = json!({"name": "log", "image": "l:1"});
    json_patch::merge(&mut container, &fields);
    json!({"containers": [container]})
}

fn init(fields: Value) -> Value {
    let mut spec = container(fields);
    json!({"containers": null, "initContainers": spec["containers"].take()})
}

/// Spec of the set, spec of the pod, and the fault with its field where there is one.
type Case = (Value, Value, Option<(&'static str, &'static str)>);

fn check(cases: Vec<Case>) {
    for (spec, pod_spec, fault) in cases {
        let reply = Cluster::from_objects(&[set("s", spec.clone())]).mutate(&pod(pod_spec.clone()));
        match fault {
            None => assert_eq!(reply.reason, reasons::INJECTED, "{spec} {pod_spec}: {}", reply.message),
            Some((field, text)) => {
                assert_eq!(reply.reason, reasons::RESULT_ILLEGAL, "{spec} {pod_spec}");
                assert_eq!(reply.causes[0]["field"], field);
                let said = format!("with SidecarSet \"s\" the API server would refuse the pod: {text}");
                assert_eq!(reply.causes[0]["message"], said);
            }
        }
    }
}

#[test]
fn what_a_container_asks_of_its_pod_is_there_or_it_is_refused() {
    let mut resize = container(json!({"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}));
    // As a native sidecar it goes without.
    resize["jobPods"] = json!("Inject");
    let unmasked = container(json!({"securityContext": {"procMount": "Unmasked"}}));
    let stop = container(json!({"lifecycle": {"stopSignal": "SIGUSR1"}}));
    let sleep = container(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}));
    let claims = container(json!({"resources": {"claims": [{"name": "gpu"}]}}));
    check(vec![
        (resize.clone(), json!({"restartPolicy": "Always"}), None),
        (resize.clone(), json!({}), None),
        (
            resize,
            json!({"restartPolicy": "Never"}),
            Some(("spec.restartPolicy", "container \"log\" restarts on resize, and the pod never restarts")),
        ),
        (unmasked.clone(), json!({"hostUsers": false}), None),
        (
            unmasked,
            json!({}),
            Some(("spec.hostUsers", "container \"log\" has procMount Unmasked, which needs hostUsers: false")),
        ),
        (stop.clone(), json!({"os": {"name": "linux"}}), None),
        (stop, json!({}), Some(("spec.os", "container \"log\" has a stopSignal, which needs spec.os.name"))),
        (sleep.clone(), json!({"terminationGracePeriodSeconds": 31}), None),
        (
            sleep,
            json!({}),
            Some((
                "spec.terminationGracePeriodSeconds",
                "container \"log\" sleeps 31 s in a hook, the pod grants 30 s",
            )),
        ),
        (claims.clone(), json!({"resourceClaims": [{"name": "gpu"}]}), None),
        (
            claims,
            json!({"resourceClaims": null}),
            Some(("spec.resourceClaims", "container \"log\" uses resource claim \"gpu\", which the pod does not have")),
        ),
    ]);
}

#[test]
fn containers_fit_into_the_resources_of_the_pod() {
    let asks = |kind: &str, cpu: &str| json!({"resources": {kind: {"cpu": cpu}}});
    let whole = |kind: &str, cpu: &str, own: &str| {
        json!({
            "resources": {kind: {"cpu": cpu}},
            "containers": [{"name": "app", "image": "a", "resources": {"requests": {"cpu": own}}}],
        })
    };
    let too_much = |sum: &'static str| Some(("spec.resources.requests[cpu]", sum));
    let sidecar = |cpu: &str| {
        let mut fields = asks("requests", cpu);
        fields["restartPolicy"] = json!("Always");
        init(fields)
    };
    check(vec![
        (container(asks("requests", "1")), whole("requests", "2", "1000m"), None),
        (
            container(asks("requests", "1001m")),
            whole("requests", "2", "1"),
            too_much("its containers would request 2001m cpu together, and the pod as a whole has requests of 2"),
        ),
        // A limit without a request is also the request.
        (
            container(asks("limits", "2")),
            whole("requests", "2", "1"),
            too_much("its containers would request 3 cpu together, and the pod as a whole has requests of 2"),
        ),
        (
            container(asks("limits", "3")),
            whole("limits", "2", "1"),
            Some((
                "spec.resources.limits[cpu]",
                "container \"log\" has a limit of 3 cpu, above the pod's own limit of 2",
            )),
        ),
        // The API server fills in what the pod as a whole requests, which may not exceed its limit.
        (container(asks("limits", "1")), whole("limits", "2", "1"), None),
        (
            container(asks("limits", "2")),
            whole("limits", "2", "1"),
            Some((
                "spec.resources.limits[cpu]",
                "its containers would request 3 cpu together, and the pod as a whole has limits of 2",
            )),
        ),
        // A plain init container runs alone, a native sidecar beside the others.
        (init(asks("requests", "2")), whole("requests", "2", "1"), None),
        (
            init(asks("requests", "3")),
            whole("requests", "2", "1"),
            too_much("its containers would request 3 cpu together, and the pod as a whole has requests of 2"),
        ),
        (sidecar("1"), whole("requests", "2", "1"), None),
        (
            sidecar("2"),
            whole("requests", "2", "1"),
            too_much("its containers would request 3 cpu together, and the pod as a whole has requests of 2"),
        ),
        (container(asks("requests", "100")), json!({}), None),
    ]);
}

#[test]
fn annotations_and_hooks_agree_with_the_pod() {
    let profile = container(json!({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}));
    let noted = |value: &str| {
        let mut pod = pod(json!({}));
        pod["metadata"]["annotations"] = json!({"container.seccomp.security.alpha.kubernetes.io/log": value});
        Cluster::from_objects(&[set("s", profile.clone())]).mutate(&pod)
    };
    assert_eq!(noted("runtime/default").reason, reasons::INJECTED);
    assert_eq!(noted("docker/default").reason, reasons::INJECTED);
    let reply = noted("unconfined");
    assert_eq!(reply.reason, reasons::RESULT_ILLEGAL);
    assert!(reply.message.contains("the seccomp profile RuntimeDefault, and an annotation of the pod says"));
    let hook = |seconds: i64| container(json!({"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}}));
    let negative = json!({"terminationGracePeriodSeconds": -1});
    check(vec![
        (container(json!({})), negative.clone(), None),
        (
            hook(0),
            negative,
            Some(("spec.terminationGracePeriodSeconds", "container \"log\" sleeps 0 s in a hook, the pod grants -1 s")),
        ),
    ]);
}

#[test]
fn host_processes_are_all_containers_or_none() {
    const FIELD: &str = "spec.securityContext.windowsOptions.hostProcess";
    let process = |host: bool| json!({"windowsOptions": {"hostProcess": host}});
    let ours = |context: Value| container(json!({"securityContext": context}));
    let windows = |context: Value, own: Value| {
        json!({
            "nodeSelector": {"kubernetes.io/os": "windows"}, "hostNetwork": true, "securityContext": context,
            "containers": [{"name": "app", "image": "a", "securityContext": own}],
        })
    };
    let mixed =
        "with container \"log\" some containers are hostProcess containers and some are not; all must be, or none";
    let differs = "container \"log\" has another hostProcess than the pod, which says true";
    check(vec![
        (ours(process(true)), windows(process(true), json!({})), None),
        (ours(json!({"windowsOptions": {}})), windows(process(true), json!({})), None),
        (ours(process(true)), windows(json!({}), process(true)), None),
        (ours(process(false)), windows(json!({}), json!({})), None),
        (ours(process(false)), windows(process(true), json!({})), Some((FIELD, differs))),
        (ours(process(true)), windows(json!({}), json!({})), Some((FIELD, mixed))),
        (ours(json!({"windowsOptions": {}})), windows(json!({}), process(true)), Some((FIELD, mixed))),
    ]);
}

#[test]
fn a_pod_that_says_windows_takes_no_linux_fields() {
    let ours = |field: &str, value: Value| container(json!({"securityContext": {"windowsOptions": {}, field: value}}));
    let windows = json!({"os": {"name": "windows"}});
    let fault = "container \"log\" has securityContext.runAsUser, which a Windows pod may not have";
    check(vec![
        (ours("runAsNonRoot", json!(true)), windows.clone(), None),
        (ours("runAsUser", json!(1)), windows, Some(("spec.os", fault))),
        (ours("runAsUser", json!(1)), json!({"nodeSelector": {"kubernetes.io/os": "windows"}}), None),
    ]);
}

#[test]
fn no_volume_refers_to_the_claim_of_an_ephemeral_one() {
    let template = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let mut ours = container(json!({"volumeMounts": [{"name": "scratch", "mountPath": "/s"}]}));
    ours["volumes"] = json!([{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]);
    let injected = |name: &str, claim: &str| {
        let volume = json!({"name": "kept", "persistentVolumeClaim": {"claimName": claim}});
        let mut pod = pod(json!({"volumes": [volume]}));
        pod["metadata"]["name"] = json!(name);
        Cluster::from_objects(&[set("s", ours.clone())]).mutate(&pod)
    };
    assert_eq!(injected("app", "app-kept").reason, reasons::INJECTED);
    assert_eq!(injected("", "-scratch").reason, reasons::INJECTED);
    let reply = injected("app", "app-scratch");
    assert_eq!(reply.reason, reasons::RESULT_ILLEGAL);
    assert!(reply.message.contains("volume \"kept\" refers to claim \"app-scratch\""), "{}", reply.message);
}
