//! What the status of an `AdmissionPlugin` says: whether it can be used, whether the API server calls for it, and whether another
//! contradicts it.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;

use engine::plugins::Plugin;
use engine::plugins::compiled::{CompiledPlugin, Mode, Settings};
use engine::plugins::conflict;
use engine::plugins::endpoints::entries::{self, PluginEntry};
use engine::plugins::index::PluginIndex;
use engine::snapshot::plugins::PluginRecord;

use super::statuses::{self, PENDING, StatementFacts, not_seen};
use crate::controller::conditions::Statement;
use crate::image_policy::BackendState;

/// Contradictions that a condition names.
const TOLD: usize = 4;

/// What contradicts each object. It is found anew only if an object changed.
#[derive(Default)]
pub struct Contradictions {
    of: Arc<PluginIndex>,
    /// By name of the object.
    pub found: HashMap<String, Vec<String>>,
}

impl Contradictions {
    /// Finds them anew if these are other objects than before.
    pub fn update(&mut self, plugins: &Arc<PluginIndex>) {
        if !Arc::ptr_eq(&self.of, plugins) {
            self.found = conflict::all(plugins, TOLD);
            self.of = Arc::clone(plugins);
        }
    }
}

/// The minor version since which a pod gets the labels of its binding.
const LABELS_OF_BINDINGS: u32 = 35;

/// The reason of what is called and can ask no backend.
pub const NO_BACKEND: &str = "NoBackend";

/// What else the statements about a plugin follow from.
pub struct Asked<'f> {
    /// Every on-demand entry that is needed.
    pub needed: &'f [PluginEntry],
    /// The backends that review images, by their keys in the Secret.
    pub backends: &'f BTreeMap<String, BackendState>,
}

/// Whether the API server calls for it.
pub fn programmed(record: &PluginRecord, facts: &StatementFacts, asked: &Asked<'_>) -> Statement {
    statuses::programmed(record, |plugin| {
        if plugin.mode == Mode::Off {
            return (false, "Off", "spec.mode is Off.".to_owned());
        }
        let pending = missing(plugin, facts, asked.needed).map(|what| (PENDING, what));
        match pending.or_else(|| without_backend(plugin, asked.backends)) {
            Some((reason, what)) => (false, reason, what),
            None => (true, "Programmed", called(plugin, facts, asked.needed)),
        }
    })
}

/// What is missing for the API server to call.
fn missing(plugin: &CompiledPlugin, facts: &StatementFacts, needed: &[PluginEntry]) -> Option<String> {
    if facts.snapshot.plugins.get(&plugin.name).is_none_or(|known| **known != *plugin) {
        return Some(not_seen());
    }
    if !entries::is_permitted(plugin.plugin, &facts.snapshot) {
        return Some(
            "The webhook entry would be for all resources, which the installation does not allow: set the chart value \
             guard.allResources, or the flag --on-demand-all-resources and the variable allResources of the policy outrider-guard-webhooks."
                .to_owned(),
        );
    }
    if plugin.plugin == Plugin::ResourceQuota && !facts.snapshot.quotas.is_complete {
        return Some(
            "ResourceQuotas have not been read yet, and requests wait for that; the ClusterRole must allow to list and watch them."
                .to_owned(),
        );
    }
    let waiting = match &plugin.settings {
        Settings::DefaultStorageClass(settings) if settings.may_read_classes() => {
            Some("claims that depend on the default")
        }
        Settings::PersistentVolumeClaimResize => Some("claims that grow"),
        _ => None,
    };
    if let Some(waiting) = waiting.filter(|_| !facts.snapshot.storage_classes.is_complete) {
        return Some(format!(
            "StorageClasses have not been read yet, and {waiting} wait for that; the ClusterRole must allow to list and watch them."
        ));
    }
    if plugin.plugin == Plugin::PodTopologyLabels && !facts.snapshot.nodes.is_complete {
        return Some(
            "Nodes have not been read yet, and pods get none of their labels; the ClusterRole must allow to list and watch them."
                .to_owned(),
        );
    }
    let of_pods = if plugin.plugin.is_of_pods() { facts.lacks_pods() } else { None };
    of_pods.or_else(|| facts.lacks_entry(needed.iter().filter(|entry| entry.serves(plugin)).map(|entry| &entry.demand)))
}

/// Why there is no backend to ask about images, and what becomes of pods meanwhile.
fn without_backend(
    plugin: &CompiledPlugin,
    backends: &BTreeMap<String, BackendState>,
) -> Option<(&'static str, String)> {
    let Settings::ImagePolicy(settings) = &plugin.settings else { return None };
    let meanwhile = || match (settings.default_allow, plugin.mode) {
        (true, _) => "defaultAllow lets pods through",
        (false, Mode::Enforce) => "pods are refused",
        (false, _) => "every pod is reported",
    };
    match backends.get(&settings.backend.name) {
        Some(BackendState::Usable) => None,
        Some(BackendState::Faulty(why)) => {
            Some((NO_BACKEND, format!("The backend cannot be used: {why}. Until it can, {}.", meanwhile())))
        }
        Some(BackendState::Silent(why)) => {
            let what = format!(
                "The backend gave no verdict when the leader last sent it a review: {why}. Until it does, {}.",
                meanwhile()
            );
            Some((NO_BACKEND, what))
        }
        Some(BackendState::Unread) | None => {
            let what = "The Secret with the kubeconfig of the backend has not been read yet; the Role in the namespace of Outrider must \
                        allow to list and watch it.";
            Some((PENDING, what.to_owned()))
        }
    }
}

/// That the API server calls, and what of the object does not hold while Outrider does not answer.
fn called(plugin: &CompiledPlugin, facts: &StatementFacts, needed: &[PluginEntry]) -> String {
    let mut message = "The API server calls Outrider for what the plugin decides.".to_owned();
    let of_pods = plugin.plugin.is_of_pods();
    if of_pods {
        message += &facts.left_out();
    }
    let entries = needed.iter().filter(|entry| entry.serves(plugin));
    let mut fields: Vec<&str> = entries.flat_map(|entry| entry.not_evaluated(plugin)).collect();
    fields.sort_unstable();
    fields.dedup();
    if matches!(&plugin.settings, Settings::PodTopologyLabels(settings) if settings.labels)
        && facts.snapshot.minor_version.is_some_and(|minor| minor < LABELS_OF_BINDINGS)
    {
        message += " This API server copies annotations of bindings to pods, and no labels: those came with Kubernetes 1.35. Set \
                    target: Annotations.";
    }
    if of_pods && plugin.has_scope() {
        message += " While Outrider does not answer, the failure policy of the entries of pods applies to all new pods, whatever \
                    spec.match says.";
    }
    if !fields.is_empty() {
        let fields = fields.join(", ");
        let _ = write!(
            message,
            " While Outrider does not answer, {fields} do not hold: the webhook entry is shared with objects that differ, or cannot \
             express them."
        );
    }
    message
}

/// Whether another object contradicts it.
pub fn contradicted(found: Option<&Vec<String>>) -> Statement {
    let (holds, reason, message) = match found {
        None => (false, "NoConflict", "No other AdmissionPlugin contradicts this one.".to_owned()),
        Some(found) => (true, "Contradicted", found.join("; ")),
    };
    Statement { type_: "Conflict", holds, reason, message }
}

#[cfg(test)]
mod tests {
    use engine::plugins::endpoints::entries;
    use engine::sidecarset::narrowing::NarrowingRule;
    use engine::snapshot::builder::SnapshotBuilder;
    use engine::snapshot::{Exclusion, Snapshot};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::plugins::entries::PodEntries;
    use crate::plugins::statuses::{accepted, status_of};
    use crate::watch::coverage::Coverage;
    use crate::watch::in_order::InOrder;

    fn table(objects: &[(&str, Value)]) -> (Snapshot, Vec<Arc<PluginRecord>>) {
        let (mut builder, target) = (SnapshotBuilder::new(Exclusion::default(), true), arc_swap::ArcSwap::default());
        for (name, spec) in objects {
            let object = json!({"metadata": {"name": name, "uid": name, "generation": 1}, "spec": spec});
            builder.collections.plugins.apply(&serde_json::from_value(object).unwrap());
        }
        builder.publish(&target);
        (Snapshot::clone(&target.load()), builder.collections.plugins.collection().table().all())
    }

    type Change = fn(&mut Case);

    /// The statements about the first object.
    struct Case {
        snapshot: Snapshot,
        record: PluginRecord,
        in_order: InOrder,
        of_pods: PodEntries,
        coverage: Coverage,
        backends: BTreeMap<String, BackendState>,
    }

    impl Case {
        fn of(objects: &[(&str, Value)]) -> Self {
            let (snapshot, records) = table(objects);
            let needed = entries::all(&snapshot).into_iter().map(|entry| entry.demand).collect();
            let record = PluginRecord::clone(&records[0]);
            let of_pods = PodEntries::default();
            let (coverage, backends) = (Coverage::Off, BTreeMap::new());
            Self { snapshot, record, in_order: Arc::new(needed), of_pods, coverage, backends }
        }

        fn programmed(&self) -> Statement {
            let facts = StatementFacts {
                snapshot: Arc::new(self.snapshot.clone()),
                in_order: self.in_order.clone(),
                of_pods: self.of_pods.clone(),
                coverage: self.coverage.clone(),
            };
            let needed = entries::all(&self.snapshot);
            programmed(&self.record, &facts, &Asked { needed: &needed, backends: &self.backends })
        }
    }

    #[test]
    fn programmed_is_true_once_every_entry_is_as_it_should_be_and_the_condition_covers_all_pods() {
        let case = || Case::of(&[("a", json!({"plugin": "LimitPodHardAntiAffinityTopology"}))]);
        assert!(case().programmed().holds);
        let cases: [(Change, &str); 4] = [
            (|case| case.snapshot = Snapshot::default(), "has not seen"),
            (|case| case.in_order = InOrder::default(), "limitpodhardantiaffinitytopology.policy.outrider.dev"),
            (|case| case.coverage = Coverage::Known(NarrowingRule::of([])), "does not cover all pods"),
            (|case| case.of_pods.fault = Some("It is not there.".to_owned()), "It is not there."),
        ];
        for (change, part) in cases {
            let mut case = case();
            change(&mut case);
            let said = case.programmed();
            assert!(!said.holds && said.reason == PENDING && said.message.contains(part), "{said:?}");
        }
    }

    #[test]
    fn an_entry_with_another_policy_or_time_out_than_the_object_needs_is_not_in_order() {
        let spec = |policy: &str| json!({"plugin": "DenyServiceExternalIPs", "failurePolicy": policy});
        let (before, mut now) = (Case::of(&[("a", spec("Ignore"))]), Case::of(&[("a", spec("Fail"))]));
        assert!(now.programmed().holds);
        now.in_order = before.in_order;
        assert_eq!(now.programmed().reason, PENDING);
    }

    #[test]
    fn what_does_not_hold_while_nobody_answers_is_said() {
        let object = |scope: Value| json!({"plugin": "DenyServiceExternalIPs", "match": scope});
        let alone = Case::of(&[("a", object(json!({"excludeUsers": ["root"]})))]);
        assert!(!alone.programmed().message.contains("do not hold"), "{:?}", alone.programmed());
        let both = Case::of(&[("a", object(json!({"excludeUsers": ["root"]}))), ("b", object(json!({})))]);
        let said = both.programmed();
        assert!(said.holds && said.message.contains("excludeUsers"), "{said:?}");
        let of_pods = Case::of(&[("a", json!({"plugin": "AlwaysPullImages", "match": {"excludeUsers": ["root"]}}))]);
        assert!(of_pods.programmed().message.contains("applies to all new pods"));
    }

    #[test]
    fn an_entry_for_all_resources_that_is_not_allowed_is_said_and_not_waited_for_in_silence() {
        let mut case = Case::of(&[("a", json!({"plugin": "OwnerReferencesPermissionEnforcement"}))]);
        let refused = case.programmed();
        assert!(!refused.holds && refused.message.contains("guard.allResources"), "{refused:?}");
        case.snapshot.may_name_all_resources = true;
        assert!(case.programmed().holds, "{:?}", case.programmed());
    }

    #[test]
    fn a_backend_that_cannot_be_asked_is_said_with_what_becomes_of_pods() {
        let section = |default_allow: bool| json!({"kubeConfigKey": "reviewer", "defaultAllow": default_allow});
        let spec =
            |allow, mode| json!({"plugin": "ImagePolicyWebhook", "mode": mode, "imagePolicyWebhook": section(allow)});
        let faulty = || BackendState::Faulty("there is no Secret".to_owned());
        for (key, state, default_allow, expected) in [
            ("reviewer", BackendState::Usable, false, ("Programmed", "The API server calls")),
            ("other", BackendState::Usable, false, (PENDING, "has not been read yet")),
            ("reviewer", BackendState::Unread, false, (PENDING, "has not been read yet")),
            ("reviewer", faulty(), false, (NO_BACKEND, "there is no Secret. Until it can, pods are refused")),
            (
                "reviewer",
                BackendState::Silent("invalid peer certificate: UnknownIssuer".to_owned()),
                false,
                (
                    NO_BACKEND,
                    "when the leader last sent it a review: invalid peer certificate: UnknownIssuer. Until it does, pods are refused",
                ),
            ),
            (
                "reviewer",
                faulty(),
                true,
                (NO_BACKEND, "there is no Secret. Until it can, defaultAllow lets pods through"),
            ),
        ] {
            let mut case = Case::of(&[("a", spec(default_allow, "Enforce"))]);
            case.backends.insert(key.to_owned(), state);
            let said = case.programmed();
            assert_eq!((said.holds, said.reason), (expected.0 == "Programmed", expected.0), "{said:?}");
            assert!(said.message.contains(expected.1), "{said:?}");
        }
        let mut case = Case::of(&[("a", spec(false, "Warn"))]);
        case.backends.insert("reviewer".to_owned(), faulty());
        assert!(case.programmed().message.contains("every pod is reported"), "{:?}", case.programmed());
        (case.in_order, case.backends) = (InOrder::default(), [("reviewer".to_owned(), faulty())].into());
        assert_eq!(case.programmed().reason, PENDING, "what is not called comes first");
    }

    #[test]
    fn an_object_that_cannot_be_used_and_one_that_is_off_say_so() {
        let mut invalid = Case::of(&[("a", json!({"plugin": "AlwaysAdmit"}))]);
        let said = accepted(&invalid.record);
        assert!(
            said.reason == "Invalid" && said.message.contains("spec.plugin") && said.message.ends_with("does nothing.")
        );
        assert!(invalid.programmed().message.ends_with("does nothing."));
        invalid.record.compiled = Case::of(&[("a", json!({"plugin": "AlwaysPullImages"}))]).record.compiled;
        assert!(accepted(&invalid.record).message.ends_with("The last form that could be used stays in force."));
        assert!(invalid.programmed().message.starts_with("The last form that could be used stays in force"));
        let off = Case::of(&[("a", json!({"plugin": "AlwaysPullImages", "mode": "Off"}))]);
        assert!(accepted(&off.record).holds);
        assert_eq!(off.programmed().reason, "Off");
    }

    #[test]
    fn a_contradiction_names_the_other_object_and_is_found_anew_when_objects_change() {
        let with = |seconds| json!({"plugin": "DefaultTolerationSeconds", "defaultTolerationSeconds": {"notReadySeconds": seconds}});
        let mut known = Contradictions::default();
        known.update(&table(&[("a", with(30)), ("b", with(60))]).0.plugins);
        let said = contradicted(known.found.get("a"));
        assert!(said.holds && said.message.contains("AdmissionPlugin \"b\""), "{said:?}");
        known.update(&table(&[("a", with(30))]).0.plugins);
        assert!(!contradicted(known.found.get("a")).holds);
    }

    #[test]
    fn a_status_that_says_the_same_keeps_its_times() {
        let mut case = Case::of(&[("a", json!({"plugin": "AlwaysPullImages"}))]);
        let statements = |case: &Case| vec![accepted(&case.record), case.programmed(), contradicted(None)];
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = status_of(&case.record, statements(&case), at(1));
        case.record.status = serde_json::from_value(first.clone()).unwrap();
        assert_eq!(status_of(&case.record, statements(&case), at(9)), first);
        assert_eq!(json!(case.record.status), first, "what is stored is what was written");
    }
}
