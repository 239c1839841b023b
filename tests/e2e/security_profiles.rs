//! PodSecurityProfiles on a real API server: users and service accounts with a right to use one, and without.

use serde_json::{Value, json};

use crate::plugins::{apply, served, webhooks};
use crate::process::eventually;

const TEAM: &str = "profiles-team";
const OTHER: &str = "profiles-other";

fn profile(name: &str, more: &Value) -> Value {
    let any = json!({"rule": "RunAsAny"});
    let mut spec = json!({"seLinux": any, "runAsUser": any, "supplementalGroups": any, "fsGroup": any, "volumes": ["*"],
        "namespaceSelector": {"matchLabels": {"profiles": "team"}}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"apiVersion": "policy.outrider.dev/v1alpha1", "kind": "PodSecurityProfile", "metadata": {"name": name}, "spec": spec})
}

/// Lets a subject use a profile in the namespace.
fn right(subject: &Value, profile: &str) -> [Value; 2] {
    let name = format!("use-{profile}");
    let group = "rbac.authorization.k8s.io";
    [
        json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": name, "namespace": TEAM}, "rules": [
            {"apiGroups": ["policy.outrider.dev"], "resources": ["podsecurityprofiles"], "verbs": ["use"], "resourceNames": [profile]}]}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": name, "namespace": TEAM},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name}, "subjects": [subject]}),
    ]
}

fn pod(name: &str, namespace: &str, account: &str, context: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {"serviceAccountName": account, "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": "i:1", "securityContext": context}]}})
}

#[test]
#[ignore = "needs a control plane: make test"]
fn a_profile_counts_for_who_may_use_it_on_a_real_api_server() {
    let (cluster, _outrider) = served(&[]);
    let namespace = |name: &str, team: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"profiles": team}}});
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": TEAM}});
    let users = |name: &str| json!({"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"});
    let group = "rbac.authorization.k8s.io";
    let mut objects = vec![namespace(TEAM, "team"), namespace(OTHER, "none"), account("runner"), account("idle")];
    // The role edit is empty without the controller that aggregates it.
    objects.push(json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": "editors", "namespace": TEAM},
        "rules": [{"apiGroups": [""], "resources": ["pods", "pods/ephemeralcontainers"], "verbs": ["create", "get", "patch"]}]}));
    objects.push(json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": {"name": "editors", "namespace": TEAM}, "roleRef": {"apiGroup": group, "kind": "Role", "name": "editors"},
        "subjects": [users("ann"), users("bob")]}));
    objects.extend(right(&json!({"kind": "ServiceAccount", "name": "runner", "namespace": TEAM}), "restricted"));
    objects.extend(right(&users("ann"), "open"));
    objects.push(profile("open", &json!({"privileged": true})));
    objects.push(profile(
        "restricted",
        &json!({"readOnlyRootFilesystem": true, "runAsUser": {"rule": "MustRunAsNonRoot"}}),
    ));
    apply(&cluster, &objects);
    eventually("the entries of the profiles exist", || {
        webhooks(&cluster).iter().filter(|name| name.starts_with("podsecurityprofiles")).count() == 2
    });
    let programmed = "jsonpath={.status.conditions[?(@.type==\"Programmed\")].status}";
    eventually("the profile is programmed", || {
        cluster.kubectl_ok(&["get", "podsecurityprofile", "restricted", "-o", programmed], None).unwrap() == "True"
    });
    let create = |user: &str, pod: &Value| {
        let user = format!("--as={user}");
        cluster.kubectl(&["create", "-o", "json", "-f", "-", &user], Some(&pod.to_string())).unwrap()
    };
    eventually("the rights are known", || {
        let may = |user: &str, profile: &str| {
            let what = format!("podsecurityprofiles.policy.outrider.dev/{profile}");
            let arguments = ["auth", "can-i", "use", &what, "-n", TEAM, &format!("--as={user}")];
            cluster.kubectl(&arguments, None).unwrap().success()
        };
        may("ann", "open") && may(&format!("system:serviceaccount:{TEAM}:runner"), "restricted")
    });

    // Ann may use "open", which allows all and changes nothing.
    let privileged = json!({"privileged": true});
    let stored = create("ann", &pod("of-ann", TEAM, "idle", &privileged));
    assert!(stored.success(), "{}", stored.stderr);
    let stored: Value = serde_json::from_str(&stored.stdout).unwrap();
    assert_eq!(stored["metadata"]["annotations"]["kubernetes.io/psp"], "open");
    // Bob may use none, but the service account of the pod may use "restricted", which fills in what is open.
    let refused = create("bob", &pod("of-bob", TEAM, "idle", &json!({})));
    let why = "pods \"of-bob\" is forbidden: PodSecurityPolicy: unable to admit pod: []: neither";
    assert!(!refused.success() && refused.stderr.contains(why), "{}", refused.stderr);
    let refused = create("bob", &pod("of-bob", TEAM, "runner", &privileged));
    let why = "unable to admit pod: [spec.containers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed]";
    assert!(!refused.success() && refused.stderr.contains(why), "{}", refused.stderr);
    let stored = create("bob", &pod("of-bob", TEAM, "runner", &json!({})));
    assert!(stored.success(), "{}", stored.stderr);
    let stored: Value = serde_json::from_str(&stored.stdout).unwrap();
    assert_eq!(stored["metadata"]["annotations"]["kubernetes.io/psp"], "restricted");
    let context = &stored["spec"]["containers"][0]["securityContext"];
    assert_eq!(*context, json!({"readOnlyRootFilesystem": true, "runAsNonRoot": true}));
    // Where no profile counts, nothing is judged.
    let left = pod("left-alone", OTHER, "default", &privileged);
    let made = cluster.kubectl(&["create", "-f", "-"], Some(&left.to_string())).unwrap();
    assert!(made.success(), "{}", made.stderr);

    // A change of the spec is judged by what the pod's account may use; one of labels is not.
    let patch = |name: &str, patch: &Value, sub_resource: &[&str]| {
        let patch = patch.to_string();
        let arguments = [&["patch", "pod", name, "-n", TEAM, "--as=bob", "-p", &patch][..], sub_resource].concat();
        cluster.kubectl(&arguments, None).unwrap()
    };
    let image = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    let changed = patch("of-bob", &image, &[]);
    assert!(changed.success(), "{}", changed.stderr);
    let refused = patch("of-ann", &image, &[]);
    assert!(refused.stderr.contains("PodSecurityPolicy: unable to validate pod: []"), "{}", refused.stderr);
    let labelled = patch("of-ann", &json!({"metadata": {"labels": {"a": "b"}}}), &[]);
    assert!(labelled.success(), "{}", labelled.stderr);
    let debug =
        json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "i:1", "securityContext": privileged}]}});
    let sub_resource = ["--subresource=ephemeralcontainers"];
    let refused = patch("of-bob", &debug, &sub_resource);
    let why = "spec.ephemeralContainers[0].securityContext.privileged: Invalid value: true";
    assert!(!refused.success() && refused.stderr.contains(why), "{}", refused.stderr);

    let objects = ["delete", "podsecurityprofile/open", "podsecurityprofile/restricted"];
    cluster.kubectl_ok(&objects, None).unwrap();
    eventually("the entries are withdrawn", || webhooks(&cluster).is_empty());
}
