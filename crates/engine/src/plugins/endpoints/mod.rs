//! The endpoints of plugins: new pods within the one call for pods, everything else at paths of its own.

mod events;
mod namespaces;
mod owner_references;
pub mod pods;
mod quotas;
mod report;
mod scope;
mod services;
mod update;

use admission::Registry;
use admission::registry::{FailurePolicy, Phase, Rule};

use super::Plugin;
use crate::demand::Demand;
use crate::snapshot::Snapshot;

/// Key of the audit annotation with what each plugin did: a comma list of `<object>=<reason code>`.
pub const AUDIT: &str = "plugins";

/// Adds the endpoints beside that of new pods.
pub fn register(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    let registry = update::MUTATING
        .into_iter()
        .fold(registry, |registry, (plugin, rule)| registry.mutating(rule, update::PodUpdateMutation { plugin }));
    let registry = update::VALIDATING
        .into_iter()
        .fold(registry, |registry, (plugin, rule)| registry.validating(rule, update::PodUpdateValidation { plugin }));
    registry
        .mutating(update::EPHEMERAL, update::EphemeralMutation)
        .validating(update::EPHEMERAL, update::EphemeralValidation)
        .validating(services::RULE, services::ServiceValidation)
        .mutating(namespaces::LABELLING, namespaces::LabellingMutation)
        .validating(namespaces::LABELLED, namespaces::LabelValidation)
        .validating(namespaces::LIFECYCLE, namespaces::LifecycleValidation)
        .validating(owner_references::RULE, owner_references::OwnerValidation)
        .validating(events::RULE, events::EventValidation)
        .validating(quotas::RULE, quotas::QuotaValidation)
}

/// The entries that accepted objects need beside that of new pods.
pub fn demands(snapshot: &Snapshot) -> Vec<Demand> {
    let is_on = |plugin| snapshot.plugins.iter().any(|one| one.plugin == plugin) && is_permitted(plugin, snapshot);
    entries(&is_on, snapshot)
}

/// Whether the installation allows the entry of the plugin. An entry for all resources that it does not allow would be refused by the
/// policies about our service account, and all other entries with it.
pub fn is_permitted(plugin: Plugin, snapshot: &Snapshot) -> bool {
    plugin != Plugin::OwnerReferencesPermissionEnforcement || snapshot.may_name_all_resources
}

/// Whether the on-demand entry of this name is for the plugin alone, and about more than pods.
pub fn is_entry_of(plugin: Plugin, name: &str) -> bool {
    OTHERS.iter().any(|(known, _, rule)| *known == plugin && rule.name == name)
}

/// The entries of one plugin.
fn entries(is_on: &dyn Fn(Plugin) -> bool, snapshot: &Snapshot) -> Vec<Demand> {
    let chosen = |(plugin, _): &(Plugin, Rule)| is_on(*plugin);
    let mutating = update::MUTATING.into_iter().filter(chosen).map(|(_, rule)| Demand::of(Phase::Mutating, rule));
    let validating = update::VALIDATING.into_iter().filter(chosen).map(|(_, rule)| Demand::of(Phase::Validating, rule));
    let ephemeral = is_on(Plugin::AlwaysPullImages) && snapshot.plugins.iter().any(|one| update::covers_ephemeral(one));
    let phases = ephemeral.then_some([Phase::Mutating, Phase::Validating]).into_iter().flatten();
    let ephemeral = phases.map(|phase| Demand::of(phase, update::EPHEMERAL));
    let others = OTHERS.into_iter().filter(|(plugin, ..)| is_on(*plugin));
    let others = others.map(|(plugin, phase, rule)| of_objects(plugin, phase, rule, snapshot));
    mutating.chain(validating).chain(ephemeral).chain(others).collect()
}

/// The entries whose objects say how the API server calls.
const OTHERS: [(Plugin, Phase, Rule); 7] = [
    (Plugin::DenyServiceExternalIPs, Phase::Validating, services::RULE),
    (Plugin::NamespaceLifecycle, Phase::Validating, namespaces::LIFECYCLE),
    (Plugin::PodSecurity, Phase::Mutating, namespaces::LABELLING),
    (Plugin::PodSecurity, Phase::Validating, namespaces::LABELLED),
    (Plugin::OwnerReferencesPermissionEnforcement, Phase::Validating, owner_references::RULE),
    (Plugin::EventRateLimit, Phase::Validating, events::RULE),
    (Plugin::ResourceQuota, Phase::Validating, quotas::RULE),
];

/// An entry fails if one of its objects wants it to, and waits as long as the most patient of them.
fn of_objects(plugin: Plugin, phase: Phase, rule: Rule, snapshot: &Snapshot) -> Demand {
    let rule = if plugin == Plugin::EventRateLimit { events::rule(snapshot) } else { rule };
    let objects = || snapshot.plugins.iter().filter(|one| one.plugin == plugin);
    let ignores = objects().all(|one| one.failure_policy == Some(FailurePolicy::Ignore));
    let seconds = objects().map(|one| one.timeout_seconds.unwrap_or(Rule::TIMEOUT_SECONDS)).max();
    Demand {
        failure_policy: if ignores { FailurePolicy::Ignore } else { FailurePolicy::Fail },
        timeout_seconds: seconds.unwrap_or(Rule::TIMEOUT_SECONDS),
        ..Demand::of(phase, rule)
    }
}

/// Names of the entries of the on-demand configurations that the object of this name needs, with the phase of each.
pub fn needs(name: &str, snapshot: &Snapshot) -> Vec<Demand> {
    let Some(object) = snapshot.plugins.get(name) else { return Vec::new() };
    entries(&|plugin| plugin == object.plugin, snapshot)
}
