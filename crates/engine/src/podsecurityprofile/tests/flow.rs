//! Who may use which profile, which requests are judged, and how (4.17, authorization, preferred and update).

use std::cell::RefCell;

use admission::question::Question;
use admission::{Decision, Known, Operation, Reason, Unserved};
use serde_json::{Value, json};

use super::{by_ann, chosen, mutate, pod, profile, rights, validate};
use crate::podsecurityprofile::choose::ASKED;
use crate::podsecurityprofile::endpoints::demands;
use crate::reasons;
use crate::testing::{Cluster, Reply, review, set};

const UPDATES: &str = "/validate--v1-pod-podsecurityprofiles";
const EPHEMERAL: &str = "/validate--v1-pod-ephemeralcontainers-podsecurityprofiles";

fn cluster(profiles: &[(&str, Value)]) -> Cluster {
    Cluster::from_objects(&profiles.iter().map(|(name, more)| profile(name, more)).collect::<Vec<_>>())
}

fn privileged() -> Value {
    pod(json!({"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": true}}]}))
}

#[test]
fn a_profile_counts_for_who_may_use_it_the_user_or_the_service_account() {
    let two = cluster(&[("a", json!({})), ("b", json!({"privileged": true}))]);
    for (may, profile) in [
        (&["ann:a"][..], "a"),
        (&["runner:a"], "a"),
        (&["runner:b"], "b"),
        (&["ann:b", "runner:a"], "a"),
        (&["ann:a", "ann:b"], "a"),
    ] {
        let reply = mutate(&two, &pod(json!({})), may);
        assert_eq!((reply.message.as_str(), chosen(&reply.pod)), ("", profile), "{may:?}");
        assert_eq!(reply.audit["profile"], format!("{profile}=PluginChanged"));
        assert_eq!(validate(&two, &reply.pod, may).audit["profile"], format!("{profile}=Allowed"), "{may:?}");
    }
}

#[test]
fn who_may_use_none_learns_what_to_give_and_to_whom() {
    let two = cluster(&[("a", json!({})), ("b", json!({"privileged": true}))]);
    let said = |cluster: &Cluster, pod: &Value, may| mutate(cluster, pod, may).message;
    let nobody = "pods \"p\" is forbidden: PodSecurityPolicy: unable to admit pod: []: neither system:serviceaccount:shop:runner nor ann \
                  may use a PodSecurityProfile that allows the pod; give one of them the verb use on \
                  podsecurityprofiles.policy.outrider.dev in namespace shop";
    assert_eq!(said(&two, &pod(json!({})), &[]), nobody);
    // Faults are those of profiles that may be used, and of no other one.
    let other = cluster(&[("a", json!({})), ("b", json!({"readOnlyRootFilesystem": true}))]);
    let writes = pod(json!({"containers": [{"name": "c", "image": "i",
        "securityContext": {"privileged": true, "readOnlyRootFilesystem": false}}]}));
    let of_a = said(&other, &writes, &["ann:a"]);
    assert!(of_a.contains("Privileged") && !of_a.contains("ReadOnly"), "{of_a}");
    let of_both = said(&other, &writes, &["*"]);
    assert!(of_both.matches("Privileged").count() == 2 && of_both.contains("ReadOnly"), "{of_both}");
    // Without a service account the user alone counts.
    let alone = said(&two, &pod(json!({"serviceAccountName": null})), &["runner:a"]);
    assert!(alone.contains("unable to admit pod: []: ann may not use a PodSecurityProfile"), "{alone}");
}

#[test]
fn rights_are_asked_for_and_a_review_waits_for_the_answers() {
    let two = cluster(&[("a", json!({})), ("b", json!({"privileged": true}))]);
    let asked = |pod: &Value| {
        let asked = RefCell::new(Vec::new());
        let answer = |question: &Question| {
            let Question::Access(access) = question else { panic!("{question:?}") };
            asked.borrow_mut().push(format!("{}:{}", access.user.rsplit(':').next().unwrap(), access.name));
            Known::Allowed(false, String::new())
        };
        two.ask_with("/mutate--v1-pod", &by_ann("shop", pod), answer).unwrap();
        asked.into_inner()
    };
    assert_eq!(asked(&pod(json!({}))), ["runner:a", "ann:a", "runner:b", "ann:b"]);
    assert_eq!(asked(&privileged()), ["runner:b", "ann:b", "runner:a", "ann:a"]);
    let open = two.ask("/mutate--v1-pod", &by_ann("shop", &pod(json!({}))));
    assert!(matches!(open, Err(Unserved::Unanswered(questions)) if questions.len() == 4));
    // An authorizer that failed might have said yes, and did not.
    let unsure = |_: &Question| Known::Unsure { reason: String::new(), error: "gone".to_owned() };
    let reply = two.ask_with("/mutate--v1-pod", &by_ann("shop", &pod(json!({}))), unsure).unwrap().0;
    assert_eq!(reply.decision, Decision::Denied);
}

#[test]
fn of_very_many_profiles_only_some_are_asked_about_and_the_refusal_says_so() {
    let many: Vec<Value> =
        (0..40).map(|at| profile(&format!("p{at:02}"), &json!({"privileged": at % 2 == 0}))).collect();
    let cluster = Cluster::from_objects(&many);
    let (reply, asked) =
        cluster.ask_with("/mutate--v1-pod", &by_ann("shop", &privileged()), rights(&["ann:p36"])).unwrap();
    assert_eq!(asked.len(), 2 * ASKED + 16, "two rounds about those that allow it, and one about others");
    let said = &reply.message;
    assert!(
        said.contains("20 PodSecurityProfiles allow the pod, and the rights to the first 16 alone were checked"),
        "{said}"
    );
    assert!(said.contains("12 more PodSecurityProfiles do not allow the pod"), "{said}");
    assert_eq!(chosen(&mutate(&cluster, &privileged(), &["ann:p30"]).pod), "p30");
}

#[test]
fn where_there_is_no_profile_nothing_is_judged() {
    assert_eq!(Cluster::from_objects(&[]).mutate(&privileged()).decision, Decision::Allowed);
    let strict = cluster(&[("a", json!({}))]);
    for excluded in ["kube-system", "outrider-system", "cert-manager"] {
        for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
            let reply = strict.ask(path, &by_ann(excluded, &privileged())).unwrap();
            assert_eq!((reply.decision, reply.patch), (Decision::Allowed, None), "{excluded}");
        }
    }
    let selector = json!({"namespaceSelector": {"matchLabels": {"team": "a"}}});
    let namespace = |labels: Value| json!({"kind": "Namespace", "metadata": {"name": "shop", "labels": labels}});
    for (labels, decision) in [(json!({"team": "a"}), Decision::Denied), (json!({"team": "b"}), Decision::Allowed)] {
        let cluster = Cluster::from_objects(&[profile("a", &selector), namespace(labels)]);
        assert_eq!(mutate(&cluster, &privileged(), &["*"]).decision, decision);
    }
    // A pod elsewhere costs nothing, and may be as large as without profiles.
    let elsewhere = Cluster::from_objects(&[profile("a", &selector), namespace(json!({}))]);
    let ports: Vec<Value> = (1..25_000).map(|port| json!({"containerPort": port})).collect();
    let large = pod(json!({"containers": [{"name": "c", "image": "i", "ports": ports}]}));
    assert_eq!(mutate(&elsewhere, &large, &[]).decision, Decision::Allowed);
    let unknown = Cluster::from_objects(&[profile("a", &selector)]).live();
    let reply = unknown.ask("/mutate--v1-pod", &by_ann("new", &privileged()));
    assert!(matches!(reply, Err(Unserved::NamespaceUnknown(name)) if name == "new"));
    let reply = Cluster::from_objects(&[profile("a", &selector)]).mutate(&privileged());
    assert!(reply.warnings[0].contains("PodSecurityProfile \"a\" reads labels of namespaces"), "{:?}", reply.warnings);
}

#[test]
fn a_pod_of_a_kubelet_is_left_alone_and_the_annotation_of_one_is_no_pass() {
    let cluster = cluster(&[("a", json!({}))]);
    let mut mirrored = privileged();
    mirrored["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    assert_eq!(mutate(&cluster, &mirrored, &["*"]).decision, Decision::Denied);
    let mut of_node = review("shop", &mirrored);
    of_node["request"]["userInfo"] = json!({"username": "system:node:n", "groups": ["system:nodes"]});
    for path in ["/mutate--v1-pod", "/validate--v1-pod"] {
        assert_eq!(cluster.ask(path, &of_node).unwrap().decision, Decision::Allowed);
    }
}

#[test]
fn the_profile_of_the_annotation_goes_first_when_a_pod_is_stored_if_it_may_be_used() {
    let three = cluster(&[("a", json!({})), ("b", json!({})), ("c", json!({"readOnlyRootFilesystem": true}))]);
    let of = |hint: &str, may| {
        let mut pod = pod(json!({}));
        pod["metadata"]["annotations"] = json!({"kubernetes.io/psp": hint});
        validate(&three, &pod, may)
    };
    assert_eq!(of("b", &["*"]).audit["profile"], "b=Allowed");
    assert_eq!(of("b", &["ann:a"]).audit["profile"], "a=Allowed");
    assert_eq!(of("none", &["*"]).audit["profile"], "a=Allowed");
    // One that would change the pod does not count.
    assert_eq!(of("c", &["*"]).audit["profile"], "a=Allowed");
    let said = of("c", &["ann:c"]).message;
    assert!(said.contains("PodSecurityPolicy: unable to validate pod: []: neither"), "{said}");
}

fn update(old: &Value, new: &Value, sub_resource: &str) -> Value {
    let mut review = by_ann("shop", new);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["subResource"] = sub_resource.into();
    review["request"]["oldObject"] = old.clone();
    review
}

fn updated(cluster: &Cluster, path: &str, old: &Value, new: &Value) -> Reply {
    let sub_resource = if path == EPHEMERAL { "ephemeralcontainers" } else { "" };
    cluster.ask_with(path, &update(old, new, sub_resource), rights(&["*"])).unwrap().0
}

#[test]
fn a_pod_that_changes_is_judged_as_it_is_to_be_and_only_if_its_spec_changes() {
    let cluster = cluster(&[("a", json!({"readOnlyRootFilesystem": true}))]);
    let image = |mut pod: Value| {
        pod["spec"]["containers"][0]["image"] = "other".into();
        pod
    };
    let mut labelled = privileged();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    labelled["metadata"]["ownerReferences"] = json!([{"name": "o"}]);
    labelled["metadata"]["finalizers"] = json!(["a.com/b"]);
    let reply = updated(&cluster, UPDATES, &privileged(), &labelled);
    assert_eq!((reply.decision, reply.reason), (Decision::Allowed, reasons::NO_MATCH));
    let said = updated(&cluster, UPDATES, &privileged(), &image(privileged())).message;
    assert!(said.contains("unable to validate pod: [spec.containers[0].securityContext.privileged"), "{said}");
    // What would have to change is refused.
    let said = updated(&cluster, UPDATES, &pod(json!({})), &image(pod(json!({})))).message;
    assert!(said.contains("unable to validate pod: []"), "{said}");
    let fine = mutate(&cluster, &pod(json!({})), &["*"]).pod;
    let reply = updated(&cluster, UPDATES, &fine, &image(fine.clone()));
    assert_eq!((reply.decision, reply.audit["profile"].as_str()), (Decision::Allowed, "a=Allowed"));
    // A pod that goes must be able to go.
    let mut leaving = privileged();
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(updated(&cluster, UPDATES, &leaving, &image(leaving.clone())).decision, Decision::Allowed);
}

#[test]
fn ephemeral_containers_are_judged_and_never_filled_in() {
    let cluster = cluster(&[("a", json!({"allowPrivilegeEscalation": false}))]);
    let old = mutate(&cluster, &pod(json!({})), &["*"]).pod;
    let with = |context: Value| {
        let mut new = old.clone();
        new["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": "i", "securityContext": context}]);
        updated(&cluster, EPHEMERAL, &old, &new)
    };
    let said = with(json!({"privileged": true, "allowPrivilegeEscalation": false})).message;
    assert!(said.contains("[spec.ephemeralContainers[0].securityContext.privileged: Invalid value: true"), "{said}");
    assert!(with(Value::Null).message.contains("unable to validate pod: []"));
    assert_eq!(with(json!({"allowPrivilegeEscalation": false})).decision, Decision::Allowed);
}

#[test]
fn entries_for_changed_pods_exist_while_there_is_a_profile() {
    let entries = |cluster: &Cluster| {
        let all = demands(&cluster.snapshot);
        all.iter().map(|one| (one.rule.resources[0].resource, one.rule.operations)).collect::<Vec<_>>()
    };
    assert_eq!(
        entries(&cluster(&[("a", json!({}))])),
        [("pods", &[Operation::Update][..]), ("pods/ephemeralcontainers", &[Operation::Update])]
    );
    assert!(entries(&Cluster::from_objects(&[])).is_empty());
}

#[test]
fn containers_of_sets_are_judged_and_left_as_the_sets_have_them() {
    let strict = profile("a", &json!({"readOnlyRootFilesystem": true}));
    let of_set = |context: Value| {
        let container = json!({"name": "log", "image": "log:1", "securityContext": context});
        let mut must = set("log", json!({"containers": [container], "optOut": "Denied"}));
        must["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
        Cluster::from_objects(&[strict.clone(), must])
    };
    let mut pod = pod(json!({}));
    pod["metadata"]["labels"] = json!({"app": "web"});
    let said = mutate(&of_set(Value::Null), &pod, &["*"]).message;
    assert!(
        said.contains("[spec.containers[0].securityContext.readOnlyRootFilesystem: Invalid value: \"null\""),
        "{said}"
    );
    let cluster = of_set(json!({"readOnlyRootFilesystem": true}));
    let reply = mutate(&cluster, &pod, &["*"]);
    assert_eq!((reply.message.as_str(), reply.reason), ("", reasons::INJECTED));
    assert_eq!(reply.pod["spec"]["containers"][1]["securityContext"], json!({"readOnlyRootFilesystem": true}));
    assert_eq!(mutate(&cluster, &reply.pod, &["*"]).pod, reply.pod);
    assert_eq!(validate(&cluster, &reply.pod, &["*"]).message, "");
    // Who writes the record by hand gets nothing filled in, and is judged as all are.
    let mut forged = pod.clone();
    forged["metadata"]["labels"] = json!({});
    forged["metadata"]["annotations"] =
        json!({"outrider.dev/injected": json!({"log": {"hash": "v1:0", "containers": ["c"]}}).to_string()});
    let said = mutate(&cluster, &forged, &["*"]).message;
    assert!(said.contains("ReadOnlyRootFilesystem may not be nil"), "{said}");
}

#[test]
fn what_cannot_be_written_into_is_refused_as_undecodable() {
    let cluster = cluster(&[("a", json!({"readOnlyRootFilesystem": true}))]);
    let odd = pod(json!({"containers": [{"name": "c", "image": "i", "securityContext": "x"}]}));
    let reply = mutate(&cluster, &odd, &["*"]);
    assert_eq!((reply.decision, reply.reason), (Decision::Denied, Reason::UNDECODABLE), "{}", reply.message);
}
