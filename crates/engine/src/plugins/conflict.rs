//! Two objects of one plugin that say different things for one namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Plugin;
use super::compiled::{CompiledPlugin, Mode, Settings};
use super::index::PluginIndex;
use super::namespace_lifecycle::NamespaceLifecycle;
use super::placement::labels;
use super::pod_node_selector::{AllowLists, PodNodeSelector};
use super::pod_security::PodSecurity;
use super::pod_toleration_restriction::{PodTolerationRestriction, is_built_in};
use super::service_account::ServiceAccountSettings;
use super::toleration::Toleration;
use crate::sidecarset::compiled::NAMESPACE_NAME_LABEL;

/// In what two objects contradict each other, if there can be a namespace that both select. One that is tried out in another mode
/// contradicts none.
pub fn between(one: &CompiledPlugin, other: &CompiledPlugin) -> Option<String> {
    let both_decide = one.plugin == other.plugin && [one, other].iter().all(|object| object.mode == Mode::Enforce);
    if !both_decide || one.name == other.name || one.settings == other.settings || !overlap(one, other) {
        return None;
    }
    contradiction(&one.settings, &other.settings).map(|(field, what)| {
        let section = one.plugin.section();
        format!("spec.{section}{field}: AdmissionPlugin {:?} {what}", other.name)
    })
}

/// The contradictions of every object, by its name; at most so many of each.
pub fn all(plugins: &PluginIndex, most: usize) -> HashMap<String, Vec<String>> {
    let mut by_plugin = BTreeMap::<Plugin, Vec<&Arc<CompiledPlugin>>>::new();
    for one in plugins.iter().filter(|one| one.mode == Mode::Enforce) {
        by_plugin.entry(one.plugin).or_default().push(one);
    }
    let mut found = HashMap::new();
    for objects in by_plugin.values().filter(|objects| objects.len() > 1) {
        let apart = Apart::of(objects);
        for one in objects {
            let others = apart.candidates(one).filter_map(|other| between(one, other));
            let said: Vec<String> = others.take(most).collect();
            if !said.is_empty() {
                found.insert(one.name.clone(), said);
            }
        }
    }
    found
}

/// Objects by the value that they need of the label that most of them need: those with different values have no namespace in common,
/// and need not be compared. Where each tenant has objects of its own, that leaves few pairs.
struct Apart<'o> {
    key: Option<&'o str>,
    by_value: HashMap<&'o str, Vec<&'o CompiledPlugin>>,
    others: Vec<&'o CompiledPlugin>,
    all: &'o [&'o Arc<CompiledPlugin>],
}

impl<'o> Apart<'o> {
    fn of(all: &'o [&'o Arc<CompiledPlugin>]) -> Self {
        let mut counts = BTreeMap::<&str, usize>::new();
        for (key, _) in all.iter().flat_map(|one| one.needed_labels()) {
            *counts.entry(key).or_default() += 1;
        }
        let key = counts.into_iter().max_by_key(|(_, count)| *count).map(|(key, _)| key);
        let mut apart = Self { key, by_value: HashMap::new(), others: Vec::new(), all };
        for one in all {
            match apart.values(one) {
                Some(values) => {
                    for value in values {
                        apart.by_value.entry(value).or_default().push(one);
                    }
                }
                None => apart.others.push(one),
            }
        }
        apart
    }

    fn values(&self, one: &'o CompiledPlugin) -> Option<&'o [String]> {
        one.needed_labels().find(|(key, _)| Some(*key) == self.key).map(|(_, values)| values)
    }

    /// Those that may have a namespace in common with it.
    fn candidates(&self, one: &'o CompiledPlugin) -> Box<dyn Iterator<Item = &'o CompiledPlugin> + '_> {
        super::work::done(1);
        let Some(values) = self.values(one) else { return Box::new(self.all.iter().map(|other| &***other)) };
        let same = values.iter().filter_map(|value| self.by_value.get(value.as_str())).flatten();
        let mut found: Vec<&'o CompiledPlugin> = same.chain(&self.others).copied().collect();
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        found.dedup_by(|a, b| a.name == b.name);
        Box::new(found.into_iter())
    }
}

fn overlap(one: &CompiledPlugin, other: &CompiledPlugin) -> bool {
    super::work::done(1);
    let left_alone = |by: &CompiledPlugin, of: &CompiledPlugin| {
        of.needed_labels()
            .filter(|(key, _)| *key == NAMESPACE_NAME_LABEL)
            .any(|(_, names)| names.iter().all(|name| by.excludes(name)))
    };
    let share = match (&one.namespaces, &other.namespaces) {
        (Some(one), Some(other)) => one.overlaps(other),
        _ => true,
    };
    share && !left_alone(one, other) && !left_alone(other, one)
}

/// The settings of the same plugin; those of another contradict nothing.
macro_rules! same {
    ($plugin:ident, $settings:expr) => {
        match $settings {
            Settings::$plugin(same) => same,
            _ => return None,
        }
    };
}

/// What the other says that this one contradicts, and in which field below the section.
fn contradiction(one: &Settings, other: &Settings) -> Option<(&'static str, String)> {
    // By the kind of the first, so that a new plugin says here what contradicts it.
    match one {
        Settings::AlwaysPullImages(a) => {
            let what = "has another list; an image is exempt only if both lists have it";
            differs(".exemptImages", &a.exempt, &same!(AlwaysPullImages, other).exempt, what)
        }
        Settings::PodNodeSelector(a) => of_selectors(a, same!(PodNodeSelector, other)),
        Settings::DefaultTolerationSeconds(a) => {
            let what = "has other seconds; the first by name that differs from 300 counts";
            differs("", a, same!(DefaultTolerationSeconds, other), what)
        }
        Settings::PodTolerationRestriction(a) => of_tolerations(a, same!(PodTolerationRestriction, other)),
        Settings::LimitTopology(a) => {
            let what = "has another list; a pod may use only keys that are on both";
            differs(".allowedTopologyKeys", a.allowed(), same!(LimitTopology, other).allowed(), what)
        }
        Settings::DenyServiceExternalIps(a) => {
            let what = "has other ranges; only addresses that are in ranges of both are allowed";
            differs(".allowedCIDRs", a, same!(DenyServiceExternalIps, other), what)
        }
        Settings::NamespaceLifecycle(a) => of_lifecycles(a, same!(NamespaceLifecycle, other)),
        Settings::PodSecurity(a) => of_labels(a, same!(PodSecurity, other)),
        Settings::DefaultStorageClass(a) => {
            other_class(".storageClassName", &a.class, &same!(DefaultStorageClass, other).class)
        }
        Settings::Priority(a) => other_class(".priorityClassName", &a.name, &same!(Priority, other).name),
        Settings::RuntimeClass(a) => other_class(".runtimeClassName", &a.name, &same!(RuntimeClass, other).name),
        Settings::ServiceAccount(a) => of_accounts(a, same!(ServiceAccount, other)),
        // All of them must allow a request, and the limits of all hold: none takes anything from another. Two that add tolerations add
        // the same.
        Settings::ExtendedResourceToleration
        | Settings::OwnerReferences(_)
        | Settings::EventRateLimit(_)
        | Settings::ResourceQuota(_)
        | Settings::ImagePolicy(_)
        | Settings::PodTopologyLabels(_)
        | Settings::StorageObjectInUseProtection
        | Settings::PersistentVolumeClaimResize
        | Settings::TaintNodesByCondition
        | Settings::NodeRestriction => None,
    }
}

fn differs<T: PartialEq + ?Sized>(
    field: &'static str,
    one: &T,
    other: &T,
    what: &str,
) -> Option<(&'static str, String)> {
    (one != other).then(|| (field, what.to_owned()))
}

fn other_class<C: PartialEq>(field: &'static str, one: &C, other: &C) -> Option<(&'static str, String)> {
    differs(field, one, other, "has another class; the first by name counts")
}

fn of_selectors(a: &PodNodeSelector, b: &PodNodeSelector) -> Option<(&'static str, String)> {
    const DEFAULT: &str = ".clusterDefaultNodeSelector";
    const LISTS: &str = ".namespaceAllowLists";
    let differs =
        a.cluster_default.iter().find(|(key, value)| b.cluster_default.get(*key).is_some_and(|v| v != *value));
    if let Some((key, _)) = differs {
        let what = format!("has another value of {key}; pods in namespaces without the annotation are refused");
        return Some((DEFAULT, what));
    }
    let outside = |default: &BTreeMap<String, String>, lists: &AllowLists| {
        lists.iter().find_map(|(namespace, list)| {
            let list = labels(list).unwrap_or_default();
            let (key, _) = default.iter().find(|(key, value)| list.get(*key) != Some(*value))?;
            Some(format!("{key} in namespace {namespace}; pods there are refused, unless the annotation of the namespace says otherwise"))
        })
    };
    if let Some(what) = outside(&a.cluster_default, &b.allow_lists) {
        return Some((DEFAULT, format!("does not allow {what}")));
    }
    if let Some(what) = outside(&b.cluster_default, &a.allow_lists) {
        return Some((LISTS, format!("adds a default, and this list does not allow {what}")));
    }
    let differs = |one: &str, other: &str| one != other && labels(one) != labels(other);
    let mut differing =
        a.allow_lists.iter().filter(|(name, list)| b.allow_lists.get(name).is_some_and(|other| differs(list, other)));
    let (name, _) = differing.next()?;
    Some((LISTS, format!("has another list for namespace {name}; its pods may select only labels that are on both")))
}

fn of_tolerations(a: &PodTolerationRestriction, b: &PodTolerationRestriction) -> Option<(&'static str, String)> {
    let refused = |defaults: &[Toleration<'static>], by: &PodTolerationRestriction| {
        let is_allowed = |one: &Toleration<'_>| by.allowed.covers(one) || (by.allows_built_in && is_built_in(one));
        !by.allowed.is_empty() && !defaults.iter().all(is_allowed)
    };
    let pods = "pods in namespaces without the annotations are refused";
    if refused(&a.default, b) {
        return Some((".default", format!("has a whitelist that does not allow all of these; {pods}")));
    }
    if refused(&b.default, a) {
        return Some((".whitelist", format!("adds tolerations that this list does not allow; {pods}")));
    }
    let differ = a.allowed != b.allowed && !a.allowed.is_empty() && !b.allowed.is_empty();
    differ.then(|| (".whitelist", "has another list; pods may tolerate only what both allow".to_owned()))
}

fn of_accounts(a: &ServiceAccountSettings, b: &ServiceAccountSettings) -> Option<(&'static str, String)> {
    const PULL_SECRETS: &str = ".imagePullSecrets";
    let refused = |by: &ServiceAccountSettings, given: &ServiceAccountSettings| {
        by.limits_all && !given.pull_secrets.iter().all(|it| by.pull_secrets.contains(it))
    };
    if refused(a, b) {
        let what = "gives pods pull secrets that this object refuses, unless their account names them";
        return Some((".limitSecretReferences", what.to_owned()));
    }
    if refused(b, a) {
        return Some((PULL_SECRETS, "refuses some of these, unless the account of a pod names them".to_owned()));
    }
    let differ = a.pull_secrets != b.pull_secrets && !a.pull_secrets.is_empty() && !b.pull_secrets.is_empty();
    differ.then(|| (PULL_SECRETS, "has another list; the first by name counts".to_owned()))
}

fn of_lifecycles(a: &NamespaceLifecycle, b: &NamespaceLifecycle) -> Option<(&'static str, String)> {
    let by_name = a.protected.iter().any(|one| b.protected.iter().any(|other| one.may_overlap(other)));
    let by_label = matches!((&a.selector, &b.selector), (Some(one), Some(other)) if one.overlaps(other));
    (a.break_glass != b.break_glass && (by_name || by_label)).then(|| {
        let what = "has another annotation; a namespace that both protect can be deleted only if both allow it";
        (".breakGlassAnnotation", what.to_owned())
    })
}

fn of_labels(a: &PodSecurity, b: &PodSecurity) -> Option<(&'static str, String)> {
    let differs = |(key, value): &&(&'static str, String)| b.labels.iter().any(|(k, v)| k == key && v != value);
    let (key, _) = a.labels.iter().find(differs)?;
    Some((".defaults", format!("has another value of {key}; the first by name counts")))
}
