//! Which entries of the on-demand configurations plugins need, and what of their objects the API server itself evaluates there.

use std::collections::BTreeSet;
use std::sync::Arc;

use admission::format::selector::Selector;
use admission::patch::quoted;
use admission::registry::{FailurePolicy, Namespaces, Phase, Rule};

use super::{
    claims, events, images, namespaces, new_nodes, owner_references, placed, protected, quotas, resized_claims,
    restricted, service_accounts, services, update,
};
use crate::demand::Demand;
use crate::plugins::Plugin;
use crate::plugins::compiled::{CompiledPlugin, Settings};
use crate::snapshot::Snapshot;

/// The objects of a plugin that one entry is for. A review does not name the entry, so each group has a path of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Those with `failurePolicy: Fail`. Where there is none, this path decides by the others: for a person who posts a review, or an API
    /// server whose entries have not been written anew yet.
    Failing,
    /// Those with `failurePolicy: Ignore`.
    Ignoring,
}

impl Group {
    /// Whether it has an object of this plugin.
    pub fn has(self, one: &CompiledPlugin, plugin: Plugin, snapshot: &Snapshot) -> bool {
        one.plugin == plugin
            && match self {
                Self::Failing => !one.ignores() || !snapshot.plugins.fails(plugin),
                Self::Ignoring => one.ignores(),
            }
    }
}

/// The entries whose objects say how the API server calls.
///
/// With the rule for those that say `Ignore`, where others may say `Fail`.
const OTHERS: [(Plugin, Phase, Rule, Option<Rule>); 16] = [
    (Plugin::DenyServiceExternalIPs, Phase::Validating, services::RULE, Some(services::IGNORING)),
    (Plugin::NamespaceLifecycle, Phase::Validating, namespaces::LIFECYCLE, Some(namespaces::LIFECYCLE_IGNORING)),
    (Plugin::PodSecurity, Phase::Mutating, namespaces::LABELLING, Some(namespaces::LABELLING_IGNORING)),
    (Plugin::PodSecurity, Phase::Validating, namespaces::LABELLED, Some(namespaces::LABELLED_IGNORING)),
    (
        Plugin::OwnerReferencesPermissionEnforcement,
        Phase::Validating,
        owner_references::RULE,
        Some(owner_references::IGNORING),
    ),
    (Plugin::EventRateLimit, Phase::Validating, events::RULE, None),
    (Plugin::ResourceQuota, Phase::Validating, quotas::RULE, Some(quotas::IGNORING)),
    (Plugin::ImagePolicyWebhook, Phase::Validating, images::RULE, Some(images::IGNORING)),
    (Plugin::DefaultStorageClass, Phase::Mutating, claims::RULE, Some(claims::IGNORING)),
    (Plugin::PodTopologyLabels, Phase::Mutating, placed::RULE, None),
    (Plugin::StorageObjectInUseProtection, Phase::Mutating, protected::RULE, Some(protected::IGNORING)),
    (Plugin::PersistentVolumeClaimResize, Phase::Validating, resized_claims::RULE, Some(resized_claims::IGNORING)),
    (Plugin::TaintNodesByCondition, Phase::Mutating, new_nodes::RULE, None),
    (Plugin::NodeRestriction, Phase::Validating, restricted::RULE, None),
    (Plugin::ServiceAccount, Phase::Mutating, service_accounts::GIVING, Some(service_accounts::GIVING_IGNORING)),
    (Plugin::ServiceAccount, Phase::Validating, service_accounts::LIMITING, Some(service_accounts::LIMITING_IGNORING)),
];

/// The most groups that a match condition compares those of a user with: the API server bounds the cost of conditions.
const MAX_GROUPS: usize = 32;

/// An entry, and whose it is.
#[derive(Debug)]
pub struct PluginEntry {
    /// The entry.
    pub demand: Demand,
    plugin: Plugin,
    is_for: fn(&CompiledPlugin) -> bool,
    shared: SharedScope,
}

/// On what all objects of an entry agree. The API server evaluates it, so that it also holds while Outrider does not answer.
#[derive(Debug, Default)]
struct SharedScope {
    namespaces: Option<Selector>,
    excluded: BTreeSet<String>,
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl PluginEntry {
    /// Whether the object needs it.
    pub fn serves(&self, object: &CompiledPlugin) -> bool {
        object.plugin == self.plugin && (self.is_for)(object)
    }

    /// Fields of the object that the API server does not evaluate, because it shares the entry with objects that differ, or because
    /// an entry cannot express them: while Outrider does not answer, they do not hold.
    pub fn not_evaluated(&self, object: &CompiledPlugin) -> Vec<&'static str> {
        let seconds = object.timeout_seconds.is_some_and(|seconds| seconds != self.demand.timeout_seconds);
        let chooses = matches!(&object.settings, Settings::OwnerReferences(owners) if !owners.resources.is_empty());
        let fields = [
            ("spec.ownerReferencesPermissionEnforcement.resources", chooses),
            ("spec.timeoutSeconds", seconds),
            ("spec.match.namespaceSelector", object.namespaces != self.shared.namespaces),
            ("spec.match.excludeNamespaces", !object.excluded_namespaces().is_subset(&self.shared.excluded)),
            ("spec.match.excludeUsers or excludeServiceAccounts", !object.users().is_subset(&self.shared.users)),
            ("spec.match.excludeGroups", !object.groups().is_subset(&self.shared.groups)),
        ];
        fields.into_iter().filter_map(|(field, is_lacking)| is_lacking.then_some(field)).collect()
    }
}

/// Whether the installation allows the entry of the plugin. An entry for all resources that it does not allow would be refused by the
/// policies about our service account, and all other entries with it.
pub fn is_permitted(plugin: Plugin, snapshot: &Snapshot) -> bool {
    plugin != Plugin::OwnerReferencesPermissionEnforcement || snapshot.may_name_all_resources
}

/// What accepted objects need, as far as the installation allows it.
pub fn permitted(snapshot: &Snapshot) -> Vec<Demand> {
    let permitted = all(snapshot).into_iter().filter(|entry| is_permitted(entry.plugin, snapshot));
    permitted.map(|entry| entry.demand).collect()
}

/// Whether a rule of this name is for objects of the plugin, and not only for some that another rule is for as well.
pub fn is_of(plugin: Plugin, name: &str, snapshot: &Snapshot) -> bool {
    let fails = snapshot.plugins.fails(plugin);
    OTHERS.iter().filter(|(of, ..)| *of == plugin).any(|(_, _, rule, ignoring)| {
        rule.name == name || (fails && ignoring.as_ref().is_some_and(|ignoring| ignoring.name == name))
    })
}

/// Whether the API server may call the entry of a rule with this name. One of a plugin it calls only while an object needs it, and that
/// of objects which say `Ignore` only beside others.
pub fn may_be_called(name: &str, snapshot: &Snapshot) -> bool {
    let is_named = |rule: &Rule| rule.name == name;
    let row = OTHERS.iter().find(|(_, _, rule, ignoring)| is_named(rule) || ignoring.as_ref().is_some_and(is_named));
    row.is_none_or(|(plugin, ..)| {
        snapshot.plugins.iter().any(|one| one.plugin == *plugin) && is_of(*plugin, name, snapshot)
    })
}

/// Every entry that accepted objects need beside that of new pods.
pub fn all(snapshot: &Snapshot) -> Vec<PluginEntry> {
    const ANY: fn(&CompiledPlugin) -> bool = |_| true;
    let of_pods = |phase: Phase| move |(plugin, rule): (Plugin, Rule)| (plugin, phase, rule, ANY);
    let covers: fn(&CompiledPlugin) -> bool = update::covers_ephemeral;
    let ephemeral =
        [Phase::Mutating, Phase::Validating].map(|phase| (Plugin::AlwaysPullImages, phase, update::EPHEMERAL, covers));
    let of_pods = update::MUTATING
        .into_iter()
        .map(of_pods(Phase::Mutating))
        .chain(update::VALIDATING.into_iter().map(of_pods(Phase::Validating)))
        .chain(ephemeral);
    let of_pods = of_pods.filter_map(|(plugin, phase, rule, is_for)| entry(plugin, phase, rule, is_for, snapshot));
    of_pods.chain(OTHERS.into_iter().flat_map(|row| of_objects(row, snapshot))).collect()
}

/// One entry for the objects that say `Fail`, and one for those that say `Ignore`. Where all agree, it has the name of the plugin.
fn of_objects(
    (plugin, phase, rule, ignoring): (Plugin, Phase, Rule, Option<Rule>),
    snapshot: &Snapshot,
) -> Vec<PluginEntry> {
    let rule = if plugin == Plugin::EventRateLimit { events::rule(snapshot) } else { rule };
    let Some(ignoring) = ignoring else {
        return entry(plugin, phase, rule, |_| true, snapshot).into_iter().collect();
    };
    let failing = entry(plugin, phase, rule, |one| !one.ignores(), snapshot);
    let ignoring = entry(plugin, phase, ignoring, CompiledPlugin::ignores, snapshot).map(|mut entry| {
        if failing.is_none() {
            rule.name.clone_into(&mut entry.demand.name);
        }
        entry
    });
    failing.into_iter().chain(ignoring).collect()
}

fn entry(
    plugin: Plugin,
    phase: Phase,
    rule: Rule,
    is_for: fn(&CompiledPlugin) -> bool,
    snapshot: &Snapshot,
) -> Option<PluginEntry> {
    let objects: Vec<&Arc<CompiledPlugin>> =
        snapshot.plugins.iter().filter(|one| one.plugin == plugin && is_for(one)).collect();
    let shared = shared(&objects, &rule)?;
    let mut demand = Demand::of(phase, rule);
    if rule.failure_policy != FailurePolicy::Chosen {
        // Every object waits as long as the most patient one: a review does not say for whom the API server waits.
        let seconds = objects.iter().map(|one| one.timeout_seconds.unwrap_or(rule.timeout_seconds)).max();
        demand.timeout_seconds = seconds.unwrap_or(rule.timeout_seconds);
    }
    let by_name = &mut demand.match_conditions;
    if rule.namespaces == Namespaces::NotExcluded {
        demand.excluded_namespaces.clone_from(&shared.excluded);
        demand.namespaces.clone_from(&shared.namespaces);
    } else if !shared.excluded.is_empty() {
        // By name: a user who creates a namespace can write any label.
        let name =
            "has(request.name) && request.name != '' ? request.name : oldObject != null ? oldObject.metadata.name : ''";
        by_name.push((named("excluded-namespaces"), format!("!(({name}) in {})", listed(&shared.excluded))));
    }
    demand.match_conditions.extend(exemptions(&shared));
    Some(PluginEntry { demand, plugin, is_for, shared })
}

/// What all of these objects have; none where there are no objects.
fn shared(objects: &[&Arc<CompiledPlugin>], rule: &Rule) -> Option<SharedScope> {
    let (first, others) = objects.split_first()?;
    let common = |of: fn(&CompiledPlugin) -> &BTreeSet<String>| -> BTreeSet<String> {
        of(first).iter().filter(|text| others.iter().all(|other| of(other).contains(*text))).cloned().collect()
    };
    let groups = common(CompiledPlugin::groups);
    // A user who creates a namespace writes its labels, so they are no condition for the call.
    let has_selector =
        rule.namespaces == Namespaces::NotExcluded && others.iter().all(|other| other.namespaces == first.namespaces);
    Some(SharedScope {
        namespaces: first.namespaces.clone().filter(|_| has_selector),
        excluded: common(CompiledPlugin::excluded_namespaces),
        users: common(CompiledPlugin::users),
        groups: if groups.len() > MAX_GROUPS { BTreeSet::new() } else { groups },
    })
}

fn exemptions(shared: &SharedScope) -> Vec<(String, String)> {
    let mut conditions = Vec::new();
    if !shared.users.is_empty() {
        let user = "request.userInfo.username";
        conditions.push((named("exempt-users"), format!("!has({user}) || !({user} in {})", listed(&shared.users))));
    }
    if !shared.groups.is_empty() {
        let groups = "request.userInfo.groups";
        let any = format!("{groups}.exists(g, g in {})", listed(&shared.groups));
        conditions.push((named("exempt-groups"), format!("!has({groups}) || !{any}")));
    }
    conditions
}

fn named(name: &str) -> String {
    format!("{}/{name}", api_domain!())
}

/// A list in CEL, whose strings have the escapes of JSON.
fn listed(texts: &BTreeSet<String>) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", quoted.join(", "))
}
