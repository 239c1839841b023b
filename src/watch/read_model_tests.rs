//! Events into snapshots.

use crate::watch::lenient::Lenient;
use engine::snapshot::configuration::ALLOW_LIST_KEY;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;

fn set(name: &str, generation: i64) -> Lenient<SidecarSetResource> {
    serde_json::from_value(json!({
        "apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet",
        "metadata": {"name": name, "uid": name, "generation": generation},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "containers": [{"name": "c", "image": "i"}]},
    }))
    .unwrap()
}

/// The set with this at the pointer.
fn with(set: &Lenient<SidecarSetResource>, pointer: &str, value: serde_json::Value) -> Lenient<SidecarSetResource> {
    let mut object = serde_json::to_value(&*set.clone().object().unwrap()).unwrap();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    serde_json::from_value(object).unwrap()
}

fn namespace(name: &str) -> PartialNamespace {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"env": "prod"}}})).unwrap()
}

fn unreadable(name: &str) -> Lenient<SidecarSetResource> {
    serde_json::from_value(json!({"metadata": {"name": name, "uid": name}, "spec": "none"})).unwrap()
}

#[test]
fn a_relist_removes_sets_that_disappeared_and_keeps_the_unreadable() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let mut handler = EventHandler::of(&model);
    for event in [Event::Init, Event::InitApply(set("a", 1)), Event::InitApply(set("b", 1)), Event::InitDone] {
        handler.set(Ok(event), &mut builder);
    }
    model.publish(&mut builder);
    handler.pass_on(&builder);
    let mut changes = model.changes();
    for event in [Event::Init, Event::InitApply(unreadable("b")), Event::InitDone] {
        handler.set(Ok(event), &mut builder);
    }
    assert!(model.sets.get("a").is_none());
    assert!(model.sets.get("b").unwrap().compiled.is_some());
    model.publish(&mut builder);
    handler.pass_on(&builder);
    assert_eq!(changes.try_recv().unwrap(), Change::Set("a".into()));
    assert!(changes.try_recv().is_err());
}

#[test]
fn a_change_is_sent_once_and_only_when_the_snapshot_has_it() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let (mut handler, mut changes) = (EventHandler::of(&model), model.changes());
    for event in [Event::Apply(namespace("a")), Event::Delete(namespace("a")), Event::Apply(namespace("a"))] {
        handler.namespace(Ok(event), &mut builder);
        handler.pass_on(&builder);
    }
    assert!(changes.try_recv().is_err(), "there is no snapshot with it yet");
    model.publish(&mut builder);
    handler.pass_on(&builder);
    assert_eq!(changes.try_recv().unwrap(), Change::Namespace("a".into()));
    assert!(changes.try_recv().is_err());
    let counted = set("s", 1);
    handler.set(Ok(Event::Apply(counted.clone())), &mut builder);
    model.publish(&mut builder);
    handler.pass_on(&builder);
    assert_eq!(changes.try_recv().unwrap(), Change::Set("s".into()));
    handler.set(Ok(Event::Apply(with(&counted, "/status", json!({"matchedPods": 3})))), &mut builder);
    handler.pass_on(&builder);
    assert_eq!(changes.try_recv().unwrap(), Change::Set("s".into()), "a status waits for no snapshot");
}

#[test]
fn nothing_is_published_before_all_collections_are_complete() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let mut handler = EventHandler::of(&model);
    handler.set(Ok(Event::Init), &mut builder);
    handler.set(Ok(Event::InitDone), &mut builder);
    assert!(!handler.all_listed());
    for event in [Event::Init, Event::InitApply(namespace("a")), Event::InitDone] {
        handler.namespace(Ok(event), &mut builder);
    }
    assert!(!handler.all_listed());
    for event in [Event::Init, Event::InitDone] {
        handler.configuration(Ok(event), &mut builder);
    }
    assert!(!handler.all_listed());
    for event in [Event::Init, Event::InitDone] {
        handler.revision(Ok(event), &mut builder);
    }
    assert!(!handler.all_listed());
    let mut plugins = PolicyWatch::<AdmissionPluginResource>::of(&model.plugins);
    for event in [Event::Init, Event::InitDone] {
        plugins.take(Ok(event), &mut builder.collections.plugins);
    }
    assert!(!handler.all_listed());
    let mut ranges = PolicyWatch::<ClusterLimitRangeResource>::of(&model.limit_ranges);
    for event in [Event::Init, Event::InitDone] {
        ranges.take(Ok(event), &mut builder.collections.limit_ranges);
    }
    assert!(!handler.all_listed());
    let mut profiles = PolicyWatch::<PodSecurityProfileResource>::of(&model.security_profiles);
    for event in [Event::Init, Event::InitDone] {
        profiles.take(Ok(event), &mut builder.collections.security_profiles);
    }
    assert!(handler.all_listed() && !model.is_published());
    model.publish(&mut builder);
    assert!(model.is_published());
    assert!(model.snapshot.load().namespaces.labels("a").is_some());
}

/// A revision of the set, with this image.
fn revision(set: &str, image: &str) -> Lenient<RevisionResource> {
    let mut object = serde_json::to_value(&*self::set(set, 1).object().unwrap()).unwrap();
    object["spec"]["containers"][0]["image"] = image.into();
    let compiled =
        engine::sidecarset::compiled::CompiledSet::compile(&serde_json::from_value(object).unwrap()).unwrap();
    let owner = json!({"apiVersion": "apps.outrider.dev/v1alpha1", "kind": "SidecarSet", "name": set, "uid": set, "controller": true});
    let name = engine::sidecarset::compiled::revision_name(set, &compiled.hash);
    let labels = json!({"apps.outrider.dev/sidecarset-custom-version": "old"});
    let data = json!({"spec": engine::sidecarset::canonical::injected_fields(&compiled.spec())});
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]}, "revision": 1, "data": data,
    }))
    .unwrap()
}

#[test]
fn a_revision_that_appears_after_its_set_is_in_the_next_snapshot_and_its_set_is_reconciled() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let (mut handler, mut changes) = (EventHandler::of(&model), model.changes());
    let pinned = set("s", 1);
    let strategy = json!({"revision": {"customVersion": "old"}});
    handler.set(Ok(Event::Apply(with(&pinned, "/spec/injectionStrategy", strategy))), &mut builder);
    let mut publish = |handler: &mut EventHandler<'_>, builder: &mut SnapshotBuilder| {
        model.publish(builder);
        handler.pass_on(builder);
        assert_eq!(changes.try_recv().unwrap(), Change::Set("s".into()));
        let snapshot = model.snapshot.load_full();
        let image = |form: &engine::snapshot::pinned::PinnedForm| {
            form.as_ref().ok().map(|form| form.containers.iter().next().unwrap().image.clone())
        };
        (snapshot.generation, image(snapshot.pinned.form("s").unwrap()))
    };
    assert_eq!(publish(&mut handler, &mut builder), (1, None));
    let old = revision("s", "old:1");
    handler.revision(Ok(Event::Apply(old.clone())), &mut builder);
    assert_eq!(publish(&mut handler, &mut builder), (2, Some("old:1".to_owned())));
    handler.revision(Ok(Event::Apply(old.clone())), &mut builder);
    assert!(!builder.is_stale(), "nothing has changed");
    handler.revision(Ok(Event::Delete(old)), &mut builder);
    assert_eq!(publish(&mut handler, &mut builder), (3, None));
}

#[test]
fn a_cluster_that_does_not_know_plugins_has_none_and_no_fault() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let mut plugins = PolicyWatch::<AdmissionPluginResource>::of(&model.plugins);
    let object = json!({"metadata": {"name": "a", "uid": "a"}, "spec": {"plugin": "AlwaysPullImages"}});
    plugins.take(Ok(Event::Apply(serde_json::from_value(object).unwrap())), &mut builder.collections.plugins);
    assert_eq!(model.plugin_table.all().len(), 1);
    let missing = kube::core::Status::failure("not found", "NotFound").with_code(404).boxed();
    plugins.take(Err(watcher::Error::InitialListFailed(kube::Error::Api(missing))), &mut builder.collections.plugins);
    assert!(model.plugins.is_synced() && model.plugins.failing().is_none());
    assert!(model.plugin_table.all().is_empty(), "the definition went, and its objects with it");
    assert_eq!(model.plugins.age(), Some(Duration::ZERO));
}

#[test]
fn annotations_of_namespaces_that_plugins_read_are_kept() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let annotations = json!({"scheduler.alpha.kubernetes.io/node-selector": "a=b", "other": "x"});
    let namespace = serde_json::from_value(json!({"metadata": {"name": "a", "annotations": annotations}})).unwrap();
    EventHandler::of(&model).namespace(Ok(Event::Apply(namespace)), &mut builder);
    model.publish(&mut builder);
    let snapshot = model.snapshot.load();
    let placement = snapshot.namespaces.known("a").unwrap().placement().unwrap();
    assert_eq!(placement.node_selector, Some(Ok([("a".to_owned(), "b".to_owned())].into())));
}

#[test]
fn the_list_of_annotations_is_published_and_goes_with_its_map() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let mut handler = EventHandler::of(&model);
    let map: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": CONFIG_MAP},
        "data": {ALLOW_LIST_KEY: r#"{"rules":[{"allowedAnnotationKeyExprs":["key.*"]}]}"#},
    }))
    .unwrap();
    let mut allows = |event: Event<ConfigMap>| {
        handler.configuration(Ok(event), &mut builder);
        model.publish(&mut builder);
        model.snapshot.load().configuration.allow_list.allows(&<_>::default(), "key1")
    };
    assert!(!allows(Event::Init));
    assert!(allows(Event::InitApply(map.clone())));
    assert!(!allows(Event::Delete(map.clone())));
    assert!(allows(Event::Apply(map)));
}

#[test]
fn of_every_watch_it_is_noted_that_it_fails() {
    let mut builder = SnapshotBuilder::new(engine::snapshot::Exclusion::default(), true);
    let model = ReadModel::of(&builder);
    let mut handler = EventHandler::of(&model);
    handler.set(Err(watcher::Error::NoResourceVersion), &mut builder);
    handler.namespace(Err(watcher::Error::NoResourceVersion), &mut builder);
    handler.configuration(Err(watcher::Error::NoResourceVersion), &mut builder);
    let mut plugins = PolicyWatch::<AdmissionPluginResource>::of(&model.plugins);
    plugins.take(Err(watcher::Error::NoResourceVersion), &mut builder.collections.plugins);
    handler.revision(Err(watcher::Error::NoResourceVersion), &mut builder);
    for watch in [&model.sidecarsets, &model.plugins, &model.namespaces, &model.configuration, &model.revisions] {
        assert!(watch.failing().is_some());
    }
}

#[test]
fn the_first_change_after_a_pause_is_published_at_once_and_a_burst_is_not() {
    let mut pace = Pace::default();
    assert!(pace.next_publication(false).is_none());
    let now = Instant::now();
    pace.published(now);
    assert_eq!(pace.next_publication(true), Some(now + PACE));
}
