//! `spec.injectionStrategy.revision`: which new pods get an older revision of the set.

use admission::field::ErrorList;
use admission::format::selector::{LabelSelector, Labels};
use admission::format::{IntOrString, Selector};

use crate::sidecarset::api::{ANNOTATION_PREFIXES, SidecarSetSpec, UpdateStrategy};
use crate::sidecarset::vocabulary::REVISION_PARTIAL;
use crate::sidecarset::workload::{BUCKETS, Workload};

/// How a revision is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevisionRef {
    /// The name of the `ControllerRevision`.
    Name(Box<str>),
    /// The user's own name for it.
    CustomVersion(Box<str>),
}

impl RevisionRef {
    /// The revision that these fields name: the name counts before the version, as in OpenKruise.
    pub fn of(revision_name: &str, custom_version: &str) -> Option<Self> {
        match (revision_name, custom_version) {
            ("", "") => None,
            ("", version) => Some(Self::CustomVersion(version.into())),
            (name, _) => Some(Self::Name(name.into())),
        }
    }
}

/// What a set's metadata gives as its version, where `spec.customVersion` is absent: OpenKruise's label, or the annotation of that name,
/// with their prefix or ours. `text` reads a key of `labels` or `annotations`. The first that is found counts.
pub(crate) fn versions_in_metadata<'a>(
    text: impl Fn(&str, &str) -> Option<&'a str>,
) -> impl Iterator<Item = (&'static str, String, &'a str)> {
    let places = ["labels", "annotations"].into_iter().flat_map(|map| ANNOTATION_PREFIXES.map(|prefix| (map, prefix)));
    places.filter_map(move |(map, prefix)| {
        let key = format!("{prefix}sidecarset-custom-version");
        let version = text(map, &key).filter(|version| !version.is_empty())?;
        Some((map, key, version))
    })
}

/// An older revision, and the new pods that get it.
#[derive(Debug, Clone)]
pub struct Pin {
    /// By which of its names the set refers to it.
    pub revision: RevisionRef,
    updates_are_paused: bool,
    is_partial: bool,
    /// Pods that get the current form, whatever the policy.
    updated: Option<Selector>,
    /// Below it the bucket of a workload is held back.
    held_back: u16,
}

/// Why a new pod gets the older revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Every pod gets it.
    Always,
    /// The rollout of the set does not include the pod yet.
    Partial,
}

impl Pin {
    /// Whether only some of the new pods get it.
    pub const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// That of the spec, if it names a revision.
    pub fn of(spec: &SidecarSetSpec, errors: &mut ErrorList) -> Option<Self> {
        let revision = spec.injection_strategy.as_ref()?.revision.as_ref()?;
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let named = RevisionRef::of(&text(&revision.revision_name), &text(&revision.custom_version))?;
        let nothing = UpdateStrategy::default();
        let strategy = spec.update_strategy.as_ref().unwrap_or(&nothing);
        let updated = strategy.selector.as_ref().map(LabelSelector::compile).transpose();
        let updated = updated.unwrap_or_else(|found| {
            errors.extend(found);
            None
        });
        Some(Self {
            revision: named,
            updates_are_paused: strategy.paused.unwrap_or_default(),
            is_partial: revision.policy.as_deref() == Some(REVISION_PARTIAL),
            updated,
            held_back: held_back(strategy.partition.as_ref()),
        })
    }

    /// Whether a new pod gets the revision, and why. A pod that the update selector matches gets what running ones are updated to.
    pub fn holds(&self, set: &str, labels: &(impl Labels + ?Sized), workload: &Workload<'_>) -> Option<Held> {
        if self.updates_are_paused {
            return Some(Held::Always);
        }
        match &self.updated {
            Some(selector) if selector.matches(labels) => None,
            _ if !self.is_partial => Some(Held::Always),
            Some(_) => Some(Held::Partial),
            // No digest where the percentage is 0.
            None if self.held_back == 0 => None,
            None => self.keeps(workload.bucket(set)).then_some(Held::Partial),
        }
    }

    /// Whether the percentage of `spec.updateStrategy.partition` is one of workloads, for running pods as for new ones.
    pub const fn is_by_workload(&self) -> bool {
        self.is_partial && self.updated.is_none() && self.held_back > 0
    }

    /// Whether running pods of a workload with this bucket stay at the form that they have: new ones get the older form.
    pub const fn keeps(&self, bucket: u16) -> bool {
        self.is_by_workload() && bucket < self.held_back
    }
}

/// A number is one of pods, and which of them are created next is not known: it holds none back, as in OpenKruise.
fn held_back(partition: Option<&IntOrString>) -> u16 {
    let Some(IntOrString::String(text)) = partition else { return 0 };
    let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<u16>().ok()).unwrap_or_default();
    percent.saturating_mul(BUCKETS / 100).min(BUCKETS)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    fn pin(update: serde_json::Value, policy: &str) -> Pin {
        let revision = json!({"customVersion": "1", "policy": policy});
        let spec = json!({"updateStrategy": update, "injectionStrategy": {"revision": revision}});
        let mut errors = ErrorList::default();
        let pin = Pin::of(&serde_json::from_value(spec).unwrap(), &mut errors).unwrap();
        assert!(errors.is_empty(), "{errors}");
        pin
    }

    fn workload(name: &str) -> Workload<'_> {
        Workload { namespace: "shop", kind: "Deployment", name }
    }

    fn canary(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("canary".to_owned(), value.to_owned())])
    }

    #[test]
    fn case_53_policy_selector_partition_and_pause_decide_as_in_openkruise() {
        let selector = json!({"matchLabels": {"canary": "true"}});
        for (update, policy, label, expected) in [
            (json!({"selector": selector}), "Partial", "false", Some(Held::Partial)),
            (json!({"selector": selector}), "Partial", "true", None),
            (json!({"partition": "100%"}), "Partial", "false", Some(Held::Partial)),
            (json!({"partition": "0%"}), "Partial", "false", None),
            (json!({"partition": 3}), "Partial", "false", None),
            (json!({}), "Partial", "false", None),
            (json!({"paused": true, "selector": selector}), "Partial", "true", Some(Held::Always)),
            (json!({}), "Always", "false", Some(Held::Always)),
            // What OpenKruise documents and does not do (its issue 1539).
            (json!({"selector": selector}), "Always", "true", None),
            (json!({"selector": selector}), "Always", "false", Some(Held::Always)),
        ] {
            let held = pin(update.clone(), policy).holds("s", &canary(label), &workload("web"));
            assert_eq!(held, expected, "{update} {policy} {label}");
        }
    }

    #[test]
    fn case_53_a_selector_that_cannot_be_read_is_an_error() {
        let selector = json!({"matchExpressions": [{"key": "canary", "operator": "Near"}]});
        let spec = json!({"updateStrategy": {"selector": selector}, "injectionStrategy": {"revision": {"customVersion": "1"}}});
        let mut errors = ErrorList::default();
        Pin::of(&serde_json::from_value(spec).unwrap(), &mut errors);
        assert!(errors.to_string().contains("not a valid selector operator"), "{errors}");
    }

    #[test]
    fn a_rollout_keeps_the_running_pods_whose_workloads_get_the_older_form() {
        let selector = json!({"matchLabels": {"canary": "true"}});
        for (update, policy, keeps) in [
            (json!({"partition": "100%"}), "Partial", true),
            (json!({"partition": "0%"}), "Partial", false),
            (json!({"partition": 3}), "Partial", false),
            (json!({"partition": "100%", "selector": selector}), "Partial", false),
            // Running pods follow the strategy of the rollout alone: case 54.
            (json!({"partition": "100%"}), "Always", false),
        ] {
            let pin = pin(update.clone(), policy);
            assert_eq!((pin.is_by_workload(), pin.keeps(0)), (keeps, keeps), "{update} {policy}");
        }
        let half = pin(json!({"partition": "50%"}), "Partial");
        assert!(half.keeps(4_999) && !half.keeps(5_000));
        for name in (0..100).map(|number| format!("web-{number}")) {
            let is_new_held = half.holds("s", &canary(""), &workload(&name)).is_some();
            assert_eq!(half.keeps(workload(&name).bucket("s")), is_new_held, "{name}");
        }
    }

    #[test]
    fn a_percentage_up_and_down_moves_workloads_one_way_and_back_to_where_they_were() {
        let names: Vec<String> = (0..400).map(|number| format!("web-{number}")).collect();
        let held = |percent: u32| -> Vec<&str> {
            let pin = pin(json!({"partition": format!("{percent}%")}), "Partial");
            let is_held = |name: &&String| pin.holds("s", &canary(""), &workload(name)).is_some();
            names.iter().filter(is_held).map(String::as_str).collect()
        };
        let up: Vec<Vec<&str>> = (0..=100).map(held).collect();
        for (less, more) in up.iter().zip(up.iter().skip(1)) {
            assert!(less.iter().all(|name| more.contains(name)));
        }
        let down: Vec<Vec<&str>> = (0..=100).rev().map(held).collect();
        assert!(up.iter().eq(down.iter().rev()));
        assert_eq!((up[0].len(), up[100].len()), (0, 400));
        // Buckets never change, so neither does this number.
        assert_eq!(up[50].len(), 186);
    }
}
