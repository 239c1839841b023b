//! How a process keeps the objects of each kind.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use engine::findings::namespace_limits::NamespaceLimits;
use engine::limitrange::api::{ClusterLimitRange, RangeSpec};
use engine::plugins::api::AdmissionPlugin;
use engine::podsecurityprofile::api::PodSecurityProfile;
use engine::sidecarset::api::SidecarSet;
use engine::snapshot::Exclusion;
use engine::snapshot::builder::SnapshotBuilder;
use engine::snapshot::collection::{Collection as _, CollectionChange};
use engine::snapshot::configuration::{ALLOW_LIST_KEY, ConfigurationMap, ConfigurationMaps};
use k8s_openapi::api::core::v1::{ConfigMap, LimitRange};
use kube::ResourceExt as _;
use outrider::controller::Key;
use outrider::image_policy::ImageBackends;
use outrider::sidecarset::controller::pods::{PodIndex, PodKey};
use outrider::sidecarset::controller::record::{PodRecord, Wanted};
use outrider::sidecarset::controller::watched_pod::WatchedPod;
use outrider::watch::image_policy::kubeconfigs;
use outrider::watch::lenient::Lenient;
use outrider::watch::partial::Partial;
use outrider::watch::read_model::known;
use outrider::watch::relist::Relist;
use outrider::watch::revision::RevisionResource;
use outrider::watch::while_read::WhileRead;
use outrider::watch::{
    AdmissionPluginResource, ClusterLimitRangeResource, PodSecurityProfileResource, SidecarSetResource,
};
use outrider::workshop::collector::api::Collector;
use serde::de::DeserializeOwned;

/// As an operator's store does.
pub fn objects<K: DeserializeOwned + kube::Resource<DynamicType = ()> + 'static>(texts: &[String]) -> Box<dyn Any> {
    let mut store: BTreeMap<Key, Arc<K>> = BTreeMap::new();
    let mut relist = Relist::default();
    for text in texts {
        let lenient: Lenient<K> = serde_json::from_str(text).unwrap();
        let key = Key { namespace: lenient.namespace().unwrap_or_default(), name: lenient.name_any() };
        relist.seen(key.clone());
        if let Ok(object) = lenient.object() {
            store.insert(key, Arc::from(object));
        }
    }
    Box::new((store, relist.finish()))
}

/// What a controller of Collectors keeps: its selectors are compiled.
pub fn collectors(texts: &[String]) -> Box<dyn Any> {
    let selectors = texts.iter().map(|text| {
        let lenient: Lenient<Collector> = serde_json::from_str(text).unwrap();
        Some(lenient.object().ok()?.spec.selector?.decoded().compile().unwrap())
    });
    Box::new((objects::<Collector>(texts), selectors.collect::<Vec<_>>()))
}

pub fn pods(texts: &[String]) -> Box<dyn Any> {
    let existing: BTreeSet<Arc<str>> = (0..64).map(|n| format!("{n:x}").into()).collect();
    let wanted = Wanted { sets: existing, ..Wanted::default() };
    let (mut index, mut relist) = (PodIndex::default(), Relist::<PodKey>::default());
    index.sets_are(&wanted.sets);
    relist.begin();
    for text in texts {
        let pod: WatchedPod = serde_json::from_str(text).unwrap();
        let key = index.shared(&PodKey::of(&pod));
        relist.seen(key.clone());
        index.update(&key, PodRecord::of(&pod, &wanted));
    }
    Box::new((index, relist, wanted))
}

/// As the snapshot that decisions read has objects, each of which is taken in so.
fn published(texts: &[String], take: impl Fn(&mut SnapshotBuilder, &str)) -> Box<dyn Any> {
    let mut builder = SnapshotBuilder::new(Exclusion::default(), true);
    for text in texts {
        take(&mut builder, text);
    }
    builder.publish(&ArcSwap::default());
    Box::new(builder)
}

/// The object, if it can be read: one that cannot be is not kept.
fn decoded<K: DeserializeOwned + kube::Resource<DynamicType = ()>>(text: &str) -> Option<K> {
    let lenient: Lenient<K> = serde_json::from_str(text).unwrap();
    lenient.object().ok().map(|object| *object)
}

pub fn sets(texts: &[String]) -> Box<dyn Any> {
    published(texts, |builder, text| {
        decoded::<SidecarSetResource>(text).map(|set| builder.collections.sets.apply(&SidecarSet::from(set)));
    })
}

pub fn namespaces(texts: &[String]) -> Box<dyn Any> {
    published(texts, |builder, text| {
        builder.collections.namespaces.apply(&known(serde_json::from_str(text).unwrap()));
    })
}

pub fn revisions(texts: &[String]) -> Box<dyn Any> {
    published(texts, |builder, text| {
        let revision = decoded::<RevisionResource>(text).and_then(|object| object.revision);
        revision.map(|revision| builder.collections.revisions.apply(&revision));
    })
}

pub fn plugins(texts: &[String]) -> Box<dyn Any> {
    published(texts, |builder, text| {
        let plugin = decoded::<AdmissionPluginResource>(text).map(AdmissionPlugin::from);
        plugin.map(|plugin| builder.collections.plugins.apply(&plugin));
    })
}

pub fn ranges(texts: &[String]) -> Box<dyn Any> {
    published(texts, |builder, text| {
        let range = decoded::<ClusterLimitRangeResource>(text).map(ClusterLimitRange::from);
        range.map(|range| builder.collections.limit_ranges.apply(&range));
    })
}

pub fn security_profiles(texts: &[String]) -> Box<dyn Any> {
    published(texts, |builder, text| {
        let profile = decoded::<PodSecurityProfileResource>(text).map(PodSecurityProfile::from);
        profile.map(|profile| builder.collections.security_profiles.apply(&profile));
    })
}

/// What is watched while a plugin reads it.
pub fn while_read<R: WhileRead>(texts: &[String]) -> Box<dyn Any> {
    published(texts, |builder, text| {
        let object: R::Object = serde_json::from_str(text).unwrap();
        R::apply(&CollectionChange::Is(R::key(&object), R::read(object)), builder);
    })
}

/// What a leader compares sets with.
pub fn limits_of_namespaces(texts: &[String]) -> Box<dyn Any> {
    let mut limits = NamespaceLimits::default();
    for (index, text) in texts.iter().enumerate() {
        let range: Partial<LimitRange, RangeSpec> = serde_json::from_str(text).unwrap();
        limits.range(&format!("namespace-{index}"), &range.name_any(), range.spec);
    }
    Box::new(limits)
}

/// There is one: several are kept by as many processes.
pub fn secrets(texts: &[String]) -> Box<dyn Any> {
    let keep = |text: &String| {
        let (backends, found) = (ImageBackends::default(), kubeconfigs(serde_json::from_str(text).unwrap()));
        backends.are(Some(found.clone()));
        (backends, found)
    };
    Box::new(texts.iter().map(keep).collect::<Vec<_>>())
}

/// There is one: several are kept by as many processes.
pub fn configurations(texts: &[String]) -> Box<dyn Any> {
    let keep = |text: &String| {
        let map: ConfigMap = serde_json::from_str(text).unwrap();
        let allow_list = map.data.and_then(|mut data| data.remove(ALLOW_LIST_KEY));
        let mut maps = ConfigurationMaps::default();
        maps.apply(&ConfigurationMap { allow_list });
        maps
    };
    Box::new(texts.iter().map(keep).collect::<Vec<_>>())
}
