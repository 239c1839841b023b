//! `OwnerReferencesPermissionEnforcement` (4.15).

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::question::{Access, ServedResource};
use admission::registry::{FailurePolicy, Phase};
use admission::{Answers, Deadline, Decision, Known, Question, Unserved};
use serde_json::{Value, json};

use super::plugin;
use crate::offline::admit::{AdmitError, Admitted, Creation, Questions, create};
use crate::plugins::endpoints::demands;
use crate::plugins::owner_references::{CONTROL_PLANE_GROUPS, CONTROL_PLANE_USERS, LEFT_ALONE};
use crate::testing::{Cluster, Reply};

const PATH: &str = "/validate-any-any-any-any-ownerreferences";

fn on() -> Cluster {
    Cluster::from_objects(&[plugin("o", json!({"plugin": "OwnerReferencesPermissionEnforcement"}))])
}

/// An owner, and whether its deletion is blocked.
fn owner(kind: &str, uid: &str, blocks: Option<bool>) -> Value {
    let version = if kind == "DaemonSet" { "apps/v1" } else { "v1" };
    json!({"apiVersion": version, "kind": kind, "name": format!("{uid}-name"), "uid": uid, "blockOwnerDeletion": blocks})
}

fn review(resource: &str, user: &str, old: Option<&[Value]>, new: &[Value]) -> Value {
    let (resource, sub_resource) = resource.split_once('/').unwrap_or((resource, ""));
    let object = |owners: &[Value]| json!({"metadata": {"name": "x", "ownerReferences": owners}});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "name": "x", "namespace": "shop", "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": resource}, "subResource": sub_resource,
        "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": object(new), "oldObject": old.map(object),
    }})
}

/// What the users of the API server's own test may do.
fn may(access: &Access) -> bool {
    let Access { verb, resource, sub_resource, .. } = access;
    match access.user.as_str() {
        "non-deleter" => verb != "delete" && resource != "*",
        "non-pod-deleter" => !(verb == "delete" && resource == "pods") && resource != "*",
        "non-rc-deleter" => resource != "*" && !(resource == "replicationcontrollers" && sub_resource == "finalizers"),
        "non-node-deleter" => resource != "*" && !(resource == "nodes" && sub_resource == "finalizers"),
        _ => true,
    }
}

fn known(question: &Question) -> Known {
    let served = |kind: &str, resource: &str, is_namespaced| ServedResource {
        kind: kind.to_owned(),
        resource: resource.to_owned(),
        is_namespaced,
    };
    match question {
        Question::Access(access) => Known::Allowed(may(access), "because".to_owned()),
        Question::Resources(of) => Known::Resources(match of.to_string().as_str() {
            "v1" => Arc::new([
                served("Pod", "pods", true),
                served("ReplicationController", "replicationcontrollers", true),
                served("Node", "nodes", false),
            ]),
            "apps/v1" => Arc::new([served("DaemonSet", "daemonsets", true)]),
            _ => Arc::new([]),
        }),
        _ => panic!("{question:?}"),
    }
}

fn asked(cluster: &Cluster, review: &Value) -> (Reply, Vec<Question>) {
    cluster.ask_with(PATH, review, known).unwrap()
}

const RC: &str = "ReplicationController";
const DS: &str = "DaemonSet";

type Row = (&'static str, &'static str, Option<Vec<Value>>, Vec<Value>, Option<&'static str>);

const CANNOT_DELETE: &str = "cannot set an ownerRef on a resource you can't delete: because, <nil>";
const CANNOT_FINALIZE: &str = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: because, <nil>";

#[test]
fn a_change_of_owners_needs_the_right_to_delete_as_the_table_says() {
    let (one, two) = (owner(RC, "1", None), owner(RC, "2", None));
    let mut rows: Vec<Row> = Vec::new();
    for user in ["super", "non-deleter", "non-pod-deleter"] {
        rows.push(("pods", user, None, vec![], None));
        rows.push(("pods", user, None, vec![one.clone()], None));
        rows.push(("pods", user, Some(vec![]), vec![], None));
        rows.push(("pods", user, Some(vec![one.clone()]), vec![one.clone()], None));
    }
    for (old, new) in [
        (vec![], vec![one.clone()]),
        (vec![one.clone()], vec![one.clone(), two.clone()]),
        (vec![one.clone(), two.clone()], vec![two.clone(), one.clone()]),
        (vec![one.clone()], vec![]),
    ] {
        let row = |resource, user, said| (resource, user, Some(old.clone()), new.clone(), said);
        rows.extend([
            row("pods", "super", None),
            row("pods", "non-deleter", Some(CANNOT_DELETE)),
            row("pods", "non-pod-deleter", Some(CANNOT_DELETE)),
            row("pods/status", "non-pod-deleter", None),
            row("not-pods", "non-pod-deleter", None),
            row("not-pods/status", "non-deleter", Some(CANNOT_DELETE)),
        ]);
    }
    hold(&rows);
}

#[test]
fn owners_that_block_need_the_right_to_finalize_them_as_the_table_says() {
    let rc = |blocks| vec![owner(RC, "1", blocks)];
    let (node, ds) = (|blocks| vec![owner("Node", "3", blocks)], |blocks| vec![owner(DS, "2", blocks)]);
    let (t, f) = (Some(true), Some(false));
    let (of_rc, of_node) = ("non-rc-deleter", "non-node-deleter");
    let denied = Some(CANNOT_FINALIZE);
    let mut renamed = rc(t);
    renamed[0]["name"] = "other".into();
    hold(&[
        ("pods", of_rc, None, vec![], None),
        ("pods", of_rc, None, rc(None), None),
        ("pods", of_rc, None, rc(f), None),
        ("pods", of_rc, None, rc(t), denied),
        ("pods", of_rc, None, ds(t), None),
        ("pods", of_node, None, node(t), denied),
        ("pods", "super", None, [rc(t), node(t)].concat(), None),
        ("pods", of_rc, Some(rc(t)), rc(t), None),
        ("pods", of_rc, Some(rc(f)), rc(t), denied),
        ("pods", of_rc, Some(rc(None)), rc(t), denied),
        ("pods", of_node, Some(node(None)), node(t), denied),
        ("pods", of_rc, Some(rc(t)), rc(f), None),
        ("pods", of_rc, Some(ds(f)), ds(t), None),
        ("pods", of_rc, Some(vec![]), rc(f), None),
        ("pods", of_rc, Some(ds(t)), [ds(t), rc(None)].concat(), None),
        ("pods", of_rc, Some(vec![]), rc(t), denied),
        ("pods", of_rc, Some(vec![]), ds(t), None),
        ("pods", of_node, Some(vec![]), node(t), denied),
        // A uid that was there twice counts as its last, and one that blocked under another name blocked.
        ("pods", of_rc, Some([rc(t), rc(f)].concat()), rc(t), denied),
        ("pods", of_rc, Some(renamed.clone()), rc(t), None),
    ]);
}

fn hold(rows: &[Row]) {
    let cluster = on();
    for (row, (resource, user, old, new, said)) in rows.iter().enumerate() {
        let (reply, _) = asked(&cluster, &review(resource, user, old.as_deref(), new));
        assert_eq!(reply.decision == Decision::Denied, said.is_some(), "row {row}: {}", reply.message);
        if let Some(said) = said {
            let resource = resource.split('/').next().unwrap();
            let expected = format!("{resource} \"x\" is forbidden: {said}");
            assert_eq!((reply.code, reply.message), (Some(403), expected), "row {row}");
            assert_eq!(reply.audit["plugins"], "o=PluginDenied", "row {row}");
        }
    }
}

#[test]
fn who_may_finalize_anything_needs_no_discovery() {
    let blocking = [owner(RC, "1", Some(true)), owner("Node", "2", Some(true))];
    let (reply, questions) = asked(&on(), &review("pods", "super", None, &blocking));
    assert_eq!(reply.decision, Decision::Allowed);
    let [Question::Access(access)] = questions.as_slice() else { panic!("{questions:?}") };
    assert_eq!(
        (access.resource.as_str(), access.sub_resource.as_str(), access.name.as_str()),
        ("*", "finalizers", "*")
    );
}

#[test]
fn an_owner_in_a_namespace_is_in_that_of_the_object_and_one_of_the_cluster_is_not() {
    let blocking = [owner(RC, "1", Some(true)), owner("Node", "2", Some(true)), owner(RC, "1", Some(true))];
    let (_, questions) = asked(&on(), &review("pods", "non-pod-deleter", None, &blocking));
    let places: Vec<(String, String, String)> = questions
        .into_iter()
        .filter_map(|question| match question {
            Question::Access(it) if it.resource != "*" => Some((it.resource, it.namespace, it.name)),
            _ => None,
        })
        .collect();
    let place = |resource: &str, namespace: &str, name: &str| (resource.into(), namespace.into(), name.into());
    assert_eq!(places, [place("replicationcontrollers", "shop", "1-name"), place("nodes", "", "2-name")]);
}

#[test]
fn an_owner_of_a_kind_that_nobody_serves_cannot_be_blocked() {
    for (version, why) in [
        ("example.com/v1", "no matches for kind \"Pod\" in version \"example.com/v1\""),
        ("a/b/c", "unexpected GroupVersion string: a/b/c"),
        ("../../v1/secrets", "unexpected GroupVersion string: ../../v1/secrets"),
        ("x?y/v1", "no matches for kind \"Pod\" in version \"x?y/v1\""),
    ] {
        let mut one = owner("Pod", "1", Some(true));
        one["apiVersion"] = version.into();
        let (reply, questions) = asked(&on(), &review("pods", "non-deleter", None, &[one]));
        let begin = format!("cannot find RESTMapping for APIVersion {version} Kind Pod: {why}");
        assert!(reply.message.contains(&begin), "{}", reply.message);
        let is_asked = questions.iter().any(|question| matches!(question, Question::Resources(_)));
        assert_eq!(is_asked, version == "example.com/v1", "what can be no URL is not asked for: {questions:?}");
    }
}

#[test]
fn more_owners_than_questions_are_refused_and_not_passed_over() {
    let many: Vec<Value> = (0..17).map(|uid| owner(RC, &uid.to_string(), Some(true))).collect();
    let (reply, questions) = asked(&on(), &review("pods", "non-deleter", None, &many));
    assert!(reply.message.contains("more than 16 owners in one request"), "{}", reply.message);
    assert!(questions.len() <= 2, "{questions:?}");
    let mut versions = many.clone();
    for (at, one) in versions.iter_mut().enumerate() {
        one["apiVersion"] = format!("example.com/v{at}").into();
    }
    let (reply, questions) = asked(&on(), &review("pods", "non-deleter", None, &versions));
    assert!(reply.message.contains("more than 16 API versions"), "{}", reply.message);
    assert_eq!(questions.len(), 1);
    // Who may do anything may do that.
    assert_eq!(asked(&on(), &review("pods", "super", None, &many)).0.decision, Decision::Allowed);
}

#[test]
fn twenty_thousand_owners_are_judged_by_what_changes_and_more_than_can_be_stored_are_refused() {
    let many = |count: usize| -> Vec<Value> { (0..count).map(|uid| owner(DS, &uid.to_string(), Some(true))).collect() };
    let had = many(20_000);
    let (reply, questions) = asked(&on(), &review("pods", "non-rc-deleter", Some(&had[1..]), &had));
    assert_eq!((reply.decision, questions.len()), (Decision::Allowed, 4), "only the new one is asked about");
    let (reply, questions) = asked(&on(), &review("pods", "super", None, &many(115_001)));
    assert_eq!((reply.code, questions.len()), (Some(422), 0));
}

/// Hazards: leases, nodes, access reviews, the control plane, excluded namespaces and our own never wait for us.
#[test]
fn what_a_cluster_needs_is_never_asked_about() {
    let cluster = on();
    let blocking = [owner(RC, "1", Some(true))];
    let pass = |review: &Value| {
        let (reply, questions) = asked(&cluster, review);
        assert_eq!((reply.decision, questions.len()), (Decision::Allowed, 0), "{review}");
    };
    for place in LEFT_ALONE {
        let (group, resource) = place.split_once('/').unwrap();
        let mut review = review(resource, "non-deleter", Some(&[]), &blocking);
        review["request"]["resource"]["group"] = group.into();
        review["request"]["kind"] = json!({"group": group, "version": "v1", "kind": "Any"});
        pass(&review);
    }
    for user in CONTROL_PLANE_USERS {
        pass(&review("pods", user, Some(&[]), &blocking));
    }
    for group in CONTROL_PLANE_GROUPS {
        let mut review = review("pods", "non-deleter", Some(&[]), &blocking);
        review["request"]["userInfo"]["groups"] = json!(["system:authenticated", group]);
        pass(&review);
    }
    for namespace in ["kube-system", "kube-node-lease", "outrider-system"] {
        let mut review = review("pods", "non-deleter", Some(&[]), &blocking);
        review["request"]["namespace"] = namespace.into();
        pass(&review);
    }
    pass(&review("nodes/status", "non-deleter", Some(&[]), &blocking));
    let (reply, _) = asked(&cluster, &review("nodes", "non-deleter", Some(&[]), &blocking));
    assert_eq!(reply.decision, Decision::Denied, "an owner of a Node can have it deleted");
    // A resource of that name in another group is not what is left alone.
    let mut other = review("leases", "non-deleter", Some(&[]), &blocking);
    other["request"]["resource"]["group"] = "example.com".into();
    other["request"]["kind"]["group"] = "example.com".into();
    assert_eq!(asked(&cluster, &other).0.decision, Decision::Denied);
}

#[test]
fn the_conditions_of_the_entry_name_what_the_code_leaves_alone() {
    let mut cluster = on();
    cluster.snapshot.may_name_all_resources = true;
    let found = demands(&cluster.snapshot);
    let [entry] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((entry.phase, entry.failure_policy), (Phase::Validating, FailurePolicy::Ignore));
    let quoted = |name: &str| -> BTreeSet<&str> {
        let condition = entry.rule.match_conditions.iter().find(|condition| condition.name.ends_with(name)).unwrap();
        condition.expression.split('\'').skip(1).step_by(2).collect()
    };
    let beside = ["/", "", "nodes", "status"];
    assert_eq!(quoted("/left-alone"), LEFT_ALONE.into_iter().chain(beside).collect());
    assert_eq!(quoted("/control-plane"), CONTROL_PLANE_USERS.into_iter().chain(CONTROL_PLANE_GROUPS).collect());
    cluster.snapshot.may_name_all_resources = false;
    assert!(demands(&cluster.snapshot).is_empty(), "only where the installation allows an entry for all resources");
}

#[test]
fn objects_without_a_namespace_concern_every_plugin_and_resources_limit_one() {
    let spec = json!({
        "plugin": "OwnerReferencesPermissionEnforcement", "match": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
        "ownerReferencesPermissionEnforcement": {"resources": ["things.example.com"]},
    });
    let cluster = Cluster::from_objects(&[plugin("o", spec)]).live();
    let mut review = review("things", "non-deleter", Some(&[]), &[owner("Node", "1", None)]);
    review["request"]["namespace"] = "".into();
    review["request"]["kind"]["group"] = "example.com".into();
    assert_eq!(asked(&cluster, &review).0.decision, Decision::Allowed);
    review["request"]["resource"]["group"] = "example.com".into();
    let (reply, _) = asked(&cluster, &review);
    assert_eq!(reply.message, format!("things.example.com \"x\" is forbidden: {CANNOT_DELETE}"));
}

#[test]
fn modes_and_exempt_users() {
    let cluster = |mode: &str| {
        let spec = json!({"plugin": "OwnerReferencesPermissionEnforcement", "mode": mode, "match": {"excludeUsers": ["operator"]}});
        Cluster::from_objects(&[plugin("o", spec)])
    };
    let review = |user| review("pods", user, Some(&[]), &[owner(RC, "1", None)]);
    let (reply, _) = asked(&cluster("Warn"), &review("non-deleter"));
    assert_eq!((reply.decision, reply.audit["plugins"].as_str()), (Decision::Allowed, "o=PluginWouldDeny"));
    assert!(reply.warnings[0].contains(CANNOT_DELETE), "{:?}", reply.warnings);
    let (reply, _) = asked(&cluster("Audit"), &review("non-deleter"));
    assert_eq!((reply.warnings.len(), reply.audit["plugins"].as_str()), (0, "o=PluginWouldDeny"));
    let (reply, questions) = asked(&cluster("Enforce"), &review("operator"));
    assert_eq!((reply.decision, questions.len()), (Decision::Allowed, 0));
    let open = cluster("Enforce").ask(PATH, &review("non-deleter"));
    assert!(matches!(open, Err(Unserved::Unanswered(_))), "{open:?}");
}

#[test]
fn offline_what_depends_on_rights_is_unknown_unless_all_questions_are_answered_yes() {
    let cluster = on();
    let created = |blocks: bool, questions| {
        let owners = [owner(RC, "1", Some(blocks))];
        let metadata = json!({"name": "d", "ownerReferences": owners});
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata});
        create(&cluster.registry, &Creation { namespace: "shop", object: &object, questions }, &cluster.snapshot)
    };
    let open = created(true, Questions::Open);
    assert!(matches!(open, Err(AdmitError::Unserved(Unserved::Unanswered(_)))), "{open:?}");
    for (blocks, questions) in [(true, Questions::Allowed), (false, Questions::Open)] {
        let allowed = created(blocks, questions);
        assert!(matches!(&allowed, Ok(Admitted::Allowed(allowed)) if allowed.reason.is_none()), "{allowed:?}");
    }
}

#[test]
fn a_failed_discovery_and_a_long_name_are_refusals_and_a_known_denial_wins() {
    let blocking = [owner(RC, "1", Some(true)), owner(DS, "2", Some(true))];
    let review = review("pods", "non-rc-deleter", None, &blocking);
    let failing = |question: &Question| match question {
        Question::Resources(of) if of.group == "apps" => Known::Failed("unavailable".to_owned()),
        _ => known(question),
    };
    let (reply, _) = on().ask_with(PATH, &review, failing).unwrap();
    assert!(reply.message.contains(CANNOT_FINALIZE), "the first owner decides: {}", reply.message);
    let swapped = [blocking[1].clone(), blocking[0].clone()];
    let (reply, _) = on().ask_with(PATH, &self::review("pods", "non-rc-deleter", None, &swapped), failing).unwrap();
    assert!(reply.message.ends_with("Kind DaemonSet: unavailable"), "{}", reply.message);
    let mut long = owner("Pod", "1", Some(true));
    long["name"] = "n".repeat(254).into();
    let (reply, questions) = asked(&on(), &self::review("pods", "non-rc-deleter", None, &[long]));
    assert!(reply.message.contains("longer than 253 bytes"), "{}", reply.message);
    assert!(questions.iter().all(|question| !matches!(question, Question::Access(access) if access.name.len() > 253)));
}

#[test]
fn what_an_authorizer_could_not_decide_is_a_refusal_that_names_its_error() {
    let unsure = |question: &Question| match question {
        Question::Access(_) => Known::Unsure { reason: "because".to_owned(), error: "no role".to_owned() },
        _ => known(question),
    };
    let review = review("pods", "super", Some(&[]), &[owner(RC, "1", None)]);
    let (reply, _) = on().ask_with(PATH, &review, unsure).unwrap();
    assert!(reply.message.ends_with("a resource you can't delete: because, no role"), "{}", reply.message);
}

#[test]
fn plugins_that_do_not_bind_the_user_refuse_nothing_for_lack_of_answers_or_room() {
    let cluster = |mode: &str, users: &[&str]| {
        let spec =
            json!({"plugin": "OwnerReferencesPermissionEnforcement", "mode": mode, "match": {"excludeUsers": users}});
        Cluster::from_objects(&[plugin("o", spec)])
    };
    let asking = review("pods", "kim", Some(&[]), &[owner(RC, "1", None)]);
    let many: Vec<Value> = (0..115_001).map(|uid| json!({"uid": uid.to_string()})).collect();
    let large = review("pods", "kim", Some(&[]), &many);
    let mut closed = Answers::default();
    closed.close();
    for (mode, users, warnings) in [("Enforce", &["kim"][..], 0), ("Audit", &[], 0), ("Warn", &[], 1)] {
        let cluster = cluster(mode, users);
        for (review, said) in [(&asking, "did not answer"), (&large, "more than 115000 owners")] {
            let body = serde_json::to_vec(review).unwrap();
            let endpoint = &cluster.registry.find(PATH).unwrap().endpoint;
            let answer = endpoint.answer_with(&body, &cluster.snapshot, &closed, Deadline::default()).unwrap();
            assert_eq!(answer.decision, Decision::Allowed, "{mode}");
            let count = String::from_utf8(answer.body).unwrap().matches(said).count();
            assert_eq!(count, warnings, "{mode} {said}");
        }
    }
    let open = cluster("Warn", &[]).ask(PATH, &asking);
    assert!(matches!(open, Err(Unserved::Unanswered(_))), "it asks first: {open:?}");
    let body = serde_json::to_vec(&asking).unwrap();
    let enforced = cluster("Enforce", &[]);
    let endpoint = &enforced.registry.find(PATH).unwrap().endpoint;
    let open = endpoint.answer_with(&body, &enforced.snapshot, &closed, Deadline::default());
    assert!(matches!(open, Err(Unserved::Unanswered(_))));
}
