//! Which revisions a set keeps, and what their labels say.

use super::*;

fn set(spec: Value) -> CompiledSet {
    let mut whole = json!({"selector": {"matchLabels": {"app": "web"}}, "containers": [{"name": "c", "image": "c:1"}]});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    CompiledSet::compile(&serde_json::from_value(json!({"metadata": {"name": "a"}, "spec": whole})).unwrap()).unwrap()
}

fn record() -> SetRecord {
    SetRecord {
        name: "a".to_owned(),
        uid: "u".to_owned(),
        terminating: false,
        status: None,
        compiled: None,
        compiled_generation: 1,
    }
}

#[test]
fn case_108_a_change_of_annotations_is_another_revision_and_one_of_the_strategy_is_none() {
    let annotations = json!({"patchPodMetadata": [{"annotations": {"a.example/b": "c"}}]});
    let names = [json!({}), annotations, json!({"updateStrategy": {"paused": true}, "customVersion": "2"})]
        .map(|spec| revision_name("a", &set(spec).hash));
    assert_ne!(names[0], names[1]);
    assert_eq!(names[0], names[2]);
}

#[test]
fn a_revision_belongs_to_the_set_and_holds_what_is_injected() {
    let set = set(json!({"customVersion": "blue", "order": 3}));
    let record = record();
    let done = Done {
        uid: "u".to_owned(),
        newest: revision_name("a", &set.hash),
        custom_version: Some("blue".to_owned()),
        pinned: None,
        limit: 10,
    };
    let revision = json!(revision(&record, &set, &done, 4, None));
    assert_eq!(revision["metadata"]["labels"][CUSTOM_VERSION_LABEL], "blue");
    assert_eq!(revision["metadata"]["labels"][SET_LABEL], "u");
    assert_eq!(revision["metadata"]["ownerReferences"][0]["uid"], "u");
    let data = json!({"spec": {"$patch": "replace", "containers": [{"name": "c", "image": "c:1"}]}});
    assert_eq!((&revision["data"], &revision["revision"]), (&data, &json!(4)));
}

#[test]
fn what_new_pods_get_is_not_deleted_however_old_it_is() {
    let kept = |number: i64| Kept { name: format!("a-{number}"), number, custom_version: Some(format!("v{number}")) };
    let all: Vec<Kept> = (0..10_000).map(kept).collect();
    for (named, expected) in [
        (RevisionRef::Name("a-3".into()), Some("a-3")),
        (RevisionRef::CustomVersion("v5".into()), Some("a-5")),
        (RevisionRef::CustomVersion("v".into()), None),
    ] {
        let pinned = pinned(&all, &named);
        assert_eq!(pinned.as_deref(), expected);
        let go = too_many(&all, 10, &pinned.into_iter().collect());
        assert!(expected.is_none_or(|name| !go.iter().any(|gone| gone == name)));
        assert_eq!(go.len(), 9_990);
    }
}

#[test]
fn of_several_revisions_with_the_pinned_version_the_newest_is_kept() {
    let version = || Some("1".to_owned());
    let kept = [("a-1", 3), ("a-2", 7), ("a-3", 5)].map(|(name, number)| Kept {
        name: name.to_owned(),
        number,
        custom_version: version(),
    });
    let found = pinned(&kept, &RevisionRef::CustomVersion("1".into()));
    assert_eq!(found.as_deref(), Some("a-2"));
}

/// An API server whose one revision is the current form with the version 1, while the set is of version 2.
#[tokio::test]
async fn the_version_of_a_revision_follows_the_set_unless_new_pods_get_that_version() {
    for (pinned, expected) in [("1", 0), ("2", 1)] {
        let revision = json!({"customVersion": pinned});
        let set = set(json!({"customVersion": "2", "injectionStrategy": {"revision": revision}}));
        let owners = [json!({"apiVersion": API_VERSION, "kind": KIND, "name": "a", "uid": "u", "controller": true})];
        let metadata = json!({
            "name": revision_name("a", &set.hash), "ownerReferences": owners,
            "labels": {SET_LABEL: "u", CUSTOM_VERSION_LABEL: "1"},
        });
        let one = json!({"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": metadata, "revision": 1});
        let patches = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&patches);
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let list =
                json!({"kind": "ControllerRevisionList", "apiVersion": "apps/v1", "metadata": {}, "items": [one]});
            let is_patch = request.method() == "PATCH";
            counted.fetch_add(usize::from(is_patch), std::sync::atomic::Ordering::SeqCst);
            let body = if is_patch { one.clone() } else { list };
            let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
            async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
        });
        let revisions = Revisions::new(Client::new(service, "default"), "default");
        revisions.keep(&record(), &set, &BTreeSet::new()).await.unwrap();
        assert_eq!(patches.load(std::sync::atomic::Ordering::SeqCst), expected, "{pinned}");
    }
}

#[test]
fn revisions_are_listed_again_when_something_differs_or_after_a_while() {
    let done = |newest: &str| Done {
        uid: "u".to_owned(),
        newest: newest.to_owned(),
        custom_version: None,
        pinned: None,
        limit: 10,
    };
    let used = |names: &[&str]| -> BTreeSet<String> { names.iter().map(|name| (*name).to_owned()).collect() };
    let sure = |at| MadeSure { done: done("a-1"), surplus_in_use: used(&["a-0"]), at };
    let (now, both) = (Instant::now(), used(&["a-0", "a-1"]));
    assert!(sure(now).holds_for(&done("a-1"), &both).is_some_and(|left| left <= VERIFIED_AFTER));
    assert_eq!(sure(now).holds_for(&done("a-2"), &both), None, "the set has another form");
    let pinned = Done { pinned: Some(RevisionRef::Name("a-0".into())), ..done("a-1") };
    assert_eq!(sure(now).holds_for(&pinned, &both), None, "new pods get another revision");
    assert_eq!(sure(now).holds_for(&done("a-1"), &used(&["a-1"])), None, "an old one has become free");
    let long_ago = now.checked_sub(VERIFIED_AFTER * 2).unwrap();
    assert_eq!(sure(long_ago).holds_for(&done("a-1"), &both), None, "somebody may have deleted one");
}

/// An API server that lists no revision and has one of the name, which belongs to the set of this uid.
#[tokio::test]
async fn a_revision_that_lost_its_label_gets_it_back_and_one_of_somebody_else_stays() {
    for (owner, expected) in [("u", true), ("other", false)] {
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let owners =
                [json!({"apiVersion": API_VERSION, "kind": KIND, "name": "a", "uid": owner, "controller": true})];
            let metadata = json!({"name": "x", "ownerReferences": owners});
            let one =
                json!({"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": metadata, "revision": 1});
            let list = json!({"kind": "ControllerRevisionList", "apiVersion": "apps/v1", "metadata": {}, "items": []});
            let conflict = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "", "reason": "AlreadyExists", "code": 409});
            let is_list = request.uri().path().ends_with("controllerrevisions");
            let (code, body) = match request.method().as_str() {
                "POST" => (409, conflict),
                "GET" if is_list => (200, list),
                _ => (200, one),
            };
            let mut response = http::Response::new(http_body_util::Full::new(bytes::Bytes::from(body.to_string())));
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        let revisions = Revisions::new(Client::new(service, "default"), "default");
        let kept = revisions.keep(&record(), &set(json!({})), &BTreeSet::new()).await;
        assert_eq!(kept.is_ok(), expected, "{kept:?}");
    }
}

/// An API server that has no revision and takes note of what is created.
#[tokio::test]
async fn a_revision_that_was_deleted_by_hand_returns() {
    let created = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = std::sync::Arc::clone(&created);
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let list = json!({"kind": "ControllerRevisionList", "apiVersion": "apps/v1", "metadata": {}, "items": []});
        let one =
            json!({"kind": "ControllerRevision", "apiVersion": "apps/v1", "metadata": {"name": "x"}, "revision": 1});
        let is_post = request.method() == "POST";
        counted.fetch_add(usize::from(is_post), std::sync::atomic::Ordering::SeqCst);
        let body = if is_post { one } else { list };
        let body = http_body_util::Full::new(bytes::Bytes::from(body.to_string()));
        async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
    });
    let revisions = Revisions::new(Client::new(service, "default"), "default");
    let (record, set, none) = (record(), set(json!({})), BTreeSet::new());
    for (after, expected) in [(Duration::ZERO, 1), (Duration::ZERO, 1), (VERIFIED_AFTER * 2, 2)] {
        if let Some(sure) = revisions.made_sure().get_mut("a") {
            sure.at = sure.at.checked_sub(after).unwrap();
        }
        revisions.keep(&record, &set, &none).await.unwrap();
        assert_eq!(created.load(std::sync::atomic::Ordering::SeqCst), expected, "{after:?}");
    }
}
