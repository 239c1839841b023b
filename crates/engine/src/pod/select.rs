//! Which sets a pod is to carry.

mod canary;
mod opt_out;
mod revision;

pub use self::canary::gives_way;
pub use self::opt_out::{SKIP_ANNOTATION, Skip, opts_out_of_nothing};
pub use self::revision::held_back;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admission::review::UserInfo;
use admission::{Reason, Unserved};

use crate::limitrange::endpoints::pods::own_defaults;
use crate::plugins::endpoints::pods::node_labels;
use crate::pod::borrowed_map::BorrowedMap;
use crate::pod::decoded::Decoded;
use crate::pod::limits::{self, Exceeded};
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::affinity::Affinity;
use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope, Platform};
use crate::sidecarset::injection::{AmountsSource, Clash, Fit, Fitting, Injection, Tailor};
use crate::sidecarset::platform::PLATFORM_LABELS;
use crate::sidecarset::resources::OwnDefaults;
use crate::snapshot::Snapshot;
use crate::snapshot::namespace::KnownNamespace;

/// What a set means for a pod.
#[derive(Debug, Clone)]
pub enum Selection {
    /// The pod is to carry the set.
    Selected,
    /// The set selects the pod, and the pod goes without it.
    Skipped(Reason, String),
    /// The pod must carry the set, and does not say that it runs on the set's operating system.
    Unbound,
    /// The set cannot be evaluated for the pod.
    Unfit(Clash),
}

impl Selection {
    /// Whether a container of the pod may be the set's. One may have come before the set was paused.
    fn may_have_come(&self) -> bool {
        !matches!(self, Self::Skipped(reason, _) if *reason != reasons::SET_PAUSED)
    }
}

/// What can be added to a pod, which was read from `body`, of the sets that [`fitted`] has returned. A container that runs the same as
/// that of a set which the pod goes without is the pod's own.
pub fn injection<'p, 's>(
    pod: &'p PodView<'p>,
    body: &'p str,
    sets: &'s [Cow<'_, CompiledSet>],
    selections: &[Selection],
) -> Injection<'p, 's> {
    let absent = sets.iter().zip(selections).filter(|(_, selection)| !selection.may_have_come());
    let absent = absent.map(|(set, _)| set.name.as_str()).collect();
    Injection::new(pod, body, sets.iter().map(|set| -> &CompiledSet { set }), absent)
}

/// Sets that select a pod, in the order of injection, and what each means for it.
pub type Selected<'s> = Vec<(&'s Arc<CompiledSet>, Selection)>;

/// The sets that select a pod, with all that depends on the pod settled.
#[derive(Debug)]
pub struct Fitted<'s> {
    /// The sets, each as the pod gets it, in the order of injection.
    pub sets: Vec<Cow<'s, CompiledSet>>,
    /// What each means for the pod.
    pub selections: Vec<Selection>,
    /// About what the pod asks of no set.
    pub warnings: Vec<String>,
}

/// The same sets, each as a pod gets it that is about to be created.
///
/// # Errors
/// [`Unserved`] when it cannot be decided what the pod's own containers are to get.
pub fn fitted_at_creation<'s>(
    pod: &PodView<'_>,
    (namespace, body): (&str, &str),
    selected: Selected<'s>,
    snapshot: &Snapshot,
) -> Result<Fitted<'s>, Unserved> {
    let computes = |set: &CompiledSet| set.pieces().any(|piece| piece.policy.is_some());
    // Sets see what the pod's own containers ask for once it is stored, as they are judged by it then.
    let defaults = if !snapshot.limit_ranges.is_empty() && selected.iter().any(|(set, _)| computes(set)) {
        own_defaults(namespace, snapshot)?
    } else {
        OwnDefaults::default()
    };
    Ok(fitted(pod, body, selected, (AmountsSource::Computed(defaults), None), snapshot))
}

/// The same sets, each as this pod gets it. The pod was read from `body`. `before` is what it was before it was changed, if it runs.
pub fn fitted<'s, 'p>(
    pod: &'p PodView<'p>,
    body: &str,
    selected: Selected<'s>,
    (amounts, before): (AmountsSource<'p>, Option<&'p PodView<'p>>),
    snapshot: &Snapshot,
) -> Fitted<'s> {
    let coming = selected.iter().filter(|(_, selection)| selection.may_have_come());
    let sets: Vec<&'s CompiledSet> = coming.map(|(set, _)| -> &CompiledSet { set }).collect();
    let tailor = Tailor::new(pod, sets, (amounts, before), snapshot.minor_version);
    let tailored = |(set, selection): (&'s Arc<CompiledSet>, Selection)| match selection {
        Selection::Selected => match tailor.fit(set) {
            Ok(Fit::AsWritten) => (Cow::Borrowed(&**set), Selection::Selected),
            Ok(Fit::Tailored(tailored)) => (Cow::Owned(*tailored), Selection::Selected),
            Ok(Fit::Skipped(reason, why)) => (Cow::Borrowed(&**set), Selection::Skipped(reason, why)),
            Err(clash) => (Cow::Borrowed(&**set), Selection::Unfit(clash)),
        },
        other => (Cow::Borrowed(&**set), other),
    };
    let (mut sets, mut selections): (Vec<Cow<'s, CompiledSet>>, Vec<Selection>) =
        selected.into_iter().map(tailored).unzip();
    let warnings = tailor.overrides_of_nothing(sets.iter().map(|set| -> &CompiledSet { set }));
    // Once the containers of all sets are in the lists that they go to.
    let coming = sets.iter().zip(&selections).filter(|(_, selection)| selection.may_have_come());
    let mut fitting = Fitting::new(pod, body, &coming.map(|(set, _)| -> &CompiledSet { set }).collect::<Vec<_>>());
    let mut fit = |(set, selection): (&Cow<'s, CompiledSet>, &mut Selection)| {
        if !matches!(selection, Selection::Selected) {
            return None;
        }
        fitting.fit(set).unwrap_or_else(|clash| {
            *selection = Selection::Unfit(clash);
            None
        })
    };
    let fitted: Vec<Option<CompiledSet>> = sets.iter().zip(&mut selections).map(&mut fit).collect();
    for (set, fitted) in sets.iter_mut().zip(fitted) {
        if let Some(fitted) = fitted {
            *set = Cow::Owned(fitted);
        }
    }
    Fitted { sets, selections, warnings }
}

/// The sets that select the pod, or what is too long in a pod that a set selects, or may select. A pod that concerns no set is left
/// to the API server, whatever its size.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] and [`Unserved::NamespaceLabels`]: a selector reads what is not known of the namespace.
pub fn selected<'s>(
    pod: &Decoded<PodView<'_>>,
    namespace: &str,
    snapshot: &'s Snapshot,
) -> Result<Result<Selected<'s>, Exceeded>, Unserved> {
    selected_with(pod, namespace, snapshot, |_| Ok(NodeLabels::new()))
}

/// Labels that the node selector of a pod is to get.
type NodeLabels = BTreeMap<&'static str, String>;

fn selected_with<'s>(
    pod: &Decoded<PodView<'_>>,
    namespace: &str,
    snapshot: &'s Snapshot,
    coming: impl FnOnce(&PodView<'_>) -> Result<NodeLabels, Unserved>,
) -> Result<Result<Selected<'s>, Exceeded>, Unserved> {
    let reached = match reached(&pod.even_if_cut().metadata.labels, namespace, snapshot)? {
        Ok(reached) if reached.is_empty() => return Ok(Ok(Selected::new())),
        Ok(reached) => reached,
        Err(exceeded) => return Ok(Err(exceeded)),
    };
    let pod = match pod.whole() {
        Ok(pod) => pod,
        Err(exceeded) => return Ok(Err(exceeded)),
    };
    let skip = Skip::read(pod.metadata.annotation(SKIP_ANNOTATION));
    let platform = platform(pod, &coming(pod)?);
    let selection = |(set, is_known): (&'s Arc<CompiledSet>, bool)| {
        (set, if is_known { selection(set, platform, &skip) } else { namespace_unknown(set, namespace) })
    };
    Ok(Ok(reached.into_iter().map(selection).collect()))
}

/// The musts that a pod with these labels is to carry. Nothing else of the pod decides that.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] and [`Unserved::NamespaceLabels`]: a selector reads what is not known of the namespace.
pub fn musts_of<'s>(
    labels: &BorrowedMap<'_>,
    namespace: &str,
    snapshot: &'s Snapshot,
) -> Result<Result<BTreeSet<&'s str>, Exceeded>, Unserved> {
    let musts = |reached: Reached<'s>| {
        let musts = reached.into_iter().filter(|(set, is_known)| *is_known && set.is_must() && !set.paused);
        musts.map(|(set, _)| set.name.as_str()).collect()
    };
    Ok(reached(labels, namespace, snapshot)?.map(musts))
}

/// The same for a pod that this user is about to create: in place of a set its canary, and the revision that new pods get. The
/// operating system is that of the pod as it is stored, with the node selector that plugins give it, or of the node that it names.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] and [`Unserved::NamespaceLabels`]: a selector reads what is not known of the namespace.
pub fn selected_at_creation<'s>(
    pod: &Decoded<PodView<'_>>,
    (namespace, user): (&str, &UserInfo<'_>),
    snapshot: &'s Snapshot,
) -> Result<Result<Selected<'s>, Exceeded>, Unserved> {
    let coming = |pod: &PodView<'_>| {
        if pod.spec.os.is_some() {
            return Ok(NodeLabels::new());
        }
        let mut labels = node_labels(&PLATFORM_LABELS, namespace, user, snapshot)?;
        // The node of a pod that names one, where nodes are watched. A pod that a scheduler has put there named none.
        if let Some(node) = snapshot.nodes.labels(pod.spec.node_name.as_str()) {
            for (key, value) in PLATFORM_LABELS.iter().filter_map(|key| Some((*key, node.get(*key)?))) {
                labels.entry(key).or_insert_with(|| value.clone());
            }
        }
        Ok(labels)
    };
    let mut selected = selected_with(pod, namespace, snapshot, coming)?;
    if let (Ok(all), Ok(pod)) = (&mut selected, pod.whole()) {
        canary::give_way(all, pod);
        revision::pin(all, pod, namespace, snapshot);
    }
    Ok(selected)
}

/// Sets that select a pod, in the order of injection, each with whether it is known to reach into the pod's namespace.
type Reached<'s> = Vec<(&'s Arc<CompiledSet>, bool)>;

/// The sets that select a pod with these labels; the limit that they do not keep, where it is unknown which do.
///
/// # Errors
/// [`Unserved::NamespaceUnknown`] when a selector needs the labels of a namespace that is not known yet,
/// [`Unserved::NamespaceLabels`] when it needs labels that were not kept.
fn reached<'s>(
    of_pod: &BorrowedMap<'_>,
    namespace: &str,
    snapshot: &'s Snapshot,
) -> Result<Result<Reached<'s>, Exceeded>, Unserved> {
    if let Some(exceeded) = limits::labels(of_pod).filter(|_| !snapshot.sets.is_empty()) {
        return Ok(Err(exceeded));
    }
    let known = snapshot.namespaces.known(namespace);
    let labels = known.map(KnownNamespace::labels);
    let mut reached = Reached::new();
    // A set that needs a label which was not kept is a candidate, too.
    let complete = known.filter(|known| !known.lacks_labels()).map(KnownNamespace::labels);
    for set in snapshot.sets.candidates(of_pod.iter(), namespace, complete) {
        if !set.selector.matches(of_pod) {
            continue;
        }
        if let (NamespaceScope::Selected { selector, .. }, Some(known)) = (&set.scope, known)
            && known.is_selected(selector).is_none()
        {
            return Err(Unserved::NamespaceLabels(namespace.to_owned()));
        }
        match reaches(set, namespace, labels) {
            Reach::No => {}
            Reach::Yes => reached.push((set, true)),
            Reach::Unknown if snapshot.namespaces_may_appear => {
                return Err(Unserved::NamespaceUnknown(namespace.to_owned()));
            }
            Reach::Unknown => reached.push((set, false)),
        }
    }
    Ok(Ok(reached))
}

/// Whether a set reaches into a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// That depends on labels of the namespace that are not known.
    Unknown,
}

/// Whether the set reaches into the namespace with these labels, which may not be known.
pub fn reaches(set: &CompiledSet, namespace: &str, labels: Option<&BTreeMap<String, String>>) -> Reach {
    let matches = match (&set.scope, labels) {
        (NamespaceScope::All, _) => true,
        (NamespaceScope::Named(name), _) => name == namespace,
        // The API server sets this label on every namespace and lets no user change it.
        (NamespaceScope::Selected { selector, by_name_alone: true }, _) => {
            selector.matches(&[(NAMESPACE_NAME_LABEL, namespace)][..])
        }
        (NamespaceScope::Selected { selector, .. }, Some(labels)) => selector.matches(labels),
        (NamespaceScope::Selected { .. }, None) => return Reach::Unknown,
    };
    if matches { Reach::Yes } else { Reach::No }
}

fn selection(set: &CompiledSet, platform: Option<Platform>, skip: &Skip<'_>) -> Selection {
    let name = &set.name;
    match holds_back(set, platform, skip) {
        None => Selection::Selected,
        Some(Hold::Paused) => {
            Selection::Skipped(reasons::SET_PAUSED, format!("injection by SidecarSet {name:?} is paused"))
        }
        Some(Hold::Platform) => Selection::Skipped(
            reasons::WRONG_PLATFORM,
            format!(
                "the pod runs on {:?}, the containers of SidecarSet {name:?} on {:?}",
                platform.unwrap_or(Platform::Linux),
                set.platform
            ),
        ),
        Some(Hold::Unbound) => Selection::Unbound,
        Some(Hold::OptedOut) => Selection::Skipped(
            reasons::OPTED_OUT,
            format!("the pod opted out of SidecarSet {name:?} by its annotation {SKIP_ANNOTATION}"),
        ),
    }
}

/// What keeps a set from a pod that it selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Injection by the set is paused.
    Paused,
    /// The pod runs on another operating system, or is taken to.
    Platform,
    /// The pod may run on the operating system of a set that no pod goes without, and does not say so: it is unknown whether
    /// the set's containers could run in it.
    Unbound,
    /// The pod asks to go without, and the set allows it.
    OptedOut,
}

/// What keeps the set from a pod that it selects, which is bound to `platform` and asks to go without `skip`.
///
/// A pod that is bound to none is taken for one on Linux, unless the set is a must for Windows: to say nothing would evade it.
pub fn holds_back(set: &CompiledSet, platform: Option<Platform>, skip: &Skip<'_>) -> Option<Hold> {
    if set.paused {
        Some(Hold::Paused)
    } else if platform.unwrap_or(Platform::Linux) != set.platform {
        Some(if platform.is_none() && set.is_must() { Hold::Unbound } else { Hold::Platform })
    } else if set.may_opt_out && skip.asks_for(set) {
        Some(Hold::OptedOut)
    } else {
        None
    }
}

fn namespace_unknown(set: &CompiledSet, namespace: &str) -> Selection {
    Selection::Skipped(
        reasons::NAMESPACE_UNKNOWN,
        format!(
            "SidecarSet {:?} selects namespaces by label, and the labels of namespace {namespace:?} are not known; \
             the set counts as not matching. Add the Namespace with its labels to the manifests",
            set.name
        ),
    )
}

fn platform(pod: &PodView<'_>, coming: &NodeLabels) -> Option<Platform> {
    let spec = &pod.spec;
    let affinity = || spec.affinity.and_then(|raw| Affinity::read(raw.get()));
    let label = |label: &str| spec.node_selector.get(label).or_else(|| coming.get(label).map(String::as_str));
    Platform::of_pod(spec.os.as_ref().map(|os| os.name.as_str()), label, affinity)
}
