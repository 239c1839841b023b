//! The endpoints of plugins: new pods within the one call for pods, everything else at paths of its own.

mod claims;
pub mod entries;
mod events;
mod images;
mod namespaces;
mod new_nodes;
mod owner_references;
mod placed;
pub mod pods;
mod protected;
mod quotas;
mod report;
mod resized_claims;
mod restricted;
mod scope;
mod service_accounts;
mod services;
mod update;

use admission::Registry;

use self::entries::Group;
use crate::demand::Demand;
use crate::snapshot::Snapshot;

/// Key of the audit annotation with what each plugin did: a comma list of `<object>=<reason code>`.
pub const AUDIT: &str = "plugins";

/// Adds the endpoints beside that of new pods.
pub fn register(registry: Registry<Snapshot>) -> Registry<Snapshot> {
    let registry = update::MUTATING
        .into_iter()
        .fold(registry, |registry, (plugin, rule)| registry.mutating(rule, update::PodUpdateMutation { plugin }));
    let registry = update::VALIDATING.into_iter().fold(registry, |registry, (plugin, rule)| {
        registry.validating(rule, update::PluginUpdateValidation { plugin })
    });
    let registry = registry
        .mutating(update::EPHEMERAL, update::EphemeralMutation)
        .validating(update::EPHEMERAL, update::EphemeralValidation);
    let failing = Group::Failing;
    let registry = registry
        .validating(services::RULE, services::ServiceValidation { group: failing })
        .mutating(namespaces::LABELLING, namespaces::LabellingMutation { group: failing })
        .validating(namespaces::LABELLED, namespaces::LabelValidation { group: failing })
        .validating(namespaces::LIFECYCLE, namespaces::LifecycleValidation { group: failing })
        .validating(owner_references::RULE, owner_references::OwnerValidation { group: failing })
        .validating(events::RULE, events::EventValidation)
        .validating(quotas::RULE, quotas::QuotaValidation { group: failing })
        .validating(images::RULE, images::ImageValidation { group: failing })
        .mutating(claims::RULE, claims::ClaimMutation { group: failing })
        .mutating(protected::RULE, protected::ProtectedMutation { group: failing })
        .validating(resized_claims::RULE, resized_claims::ClaimResizeValidation { group: failing })
        .mutating(placed::RULE, placed::PlacedMutation)
        .mutating(new_nodes::RULE, new_nodes::NewNodeMutation)
        .validating(restricted::RULE, restricted::RestrictedValidation)
        .mutating(service_accounts::GIVING, service_accounts::PullSecretMutation { group: failing })
        .validating(service_accounts::LIMITING, service_accounts::SecretValidation { group: failing });
    let ignoring = Group::Ignoring;
    registry
        .validating(services::IGNORING, services::ServiceValidation { group: ignoring })
        .mutating(namespaces::LABELLING_IGNORING, namespaces::LabellingMutation { group: ignoring })
        .validating(namespaces::LABELLED_IGNORING, namespaces::LabelValidation { group: ignoring })
        .validating(namespaces::LIFECYCLE_IGNORING, namespaces::LifecycleValidation { group: ignoring })
        .validating(owner_references::IGNORING, owner_references::OwnerValidation { group: ignoring })
        .validating(quotas::IGNORING, quotas::QuotaValidation { group: ignoring })
        .validating(images::IGNORING, images::ImageValidation { group: ignoring })
        .mutating(claims::IGNORING, claims::ClaimMutation { group: ignoring })
        .mutating(protected::IGNORING, protected::ProtectedMutation { group: ignoring })
        .validating(resized_claims::IGNORING, resized_claims::ClaimResizeValidation { group: ignoring })
        .mutating(service_accounts::GIVING_IGNORING, service_accounts::PullSecretMutation { group: ignoring })
        .validating(service_accounts::LIMITING_IGNORING, service_accounts::SecretValidation { group: ignoring })
}

/// The entries that accepted objects need beside that of new pods.
pub fn demands(snapshot: &Snapshot) -> Vec<Demand> {
    entries::permitted(snapshot)
}
