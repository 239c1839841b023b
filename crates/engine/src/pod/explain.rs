//! Why a new pod gets a set, or does not: what [`mutate`](super::mutate) decides, set by set, with those that do not select the pod.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use admission::format::Selector;
use admission::format::selector::{Labels, Requirement};
use admission::{ParseError, Reason, Request, Review, Unserved};

use crate::outcome::first_named;
use crate::pod::decoded::Decoded;
use crate::pod::limits::too_large;
use crate::pod::mutate::{Outcome, ignored_opt_outs, outcome};
use crate::pod::select::{
    Fitted, Reach, SKIP_ANNOTATION, Skip, fitted_at_creation, held_back, injection, opts_out_of_nothing, reaches,
    selected_at_creation,
};
use crate::pod::skip::skip;
use crate::pod::view::PodView;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, NAMESPACE_NAME_LABEL, NamespaceScope};
use crate::sidecarset::injection::{AppAddition, Clash, UnmatchedEntry, outdated};
use crate::sidecarset::pin::Held;
use crate::snapshot::{EXCLUDE_LABEL, Snapshot};

/// What becomes of a new pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Why the webhook decides on the pod without its sets, if it does.
    pub pod: Option<Why>,
    /// What becomes of each set, in the order of injection.
    pub sets: Vec<SetExplanation>,
    /// The warnings that the webhook returns beside, and those about entries of sets that name no container of the pod.
    pub warnings: Vec<String>,
}

/// A reason and a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The code.
    pub reason: Reason,
    /// For people.
    pub text: String,
}

/// What becomes of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetExplanation {
    /// Name of the set.
    pub set: String,
    /// What becomes of it.
    pub fate: Fate,
    /// The rule that led to it, and in words.
    pub why: Why,
    /// What the pod's own containers get of it now.
    pub app_containers: Vec<AppAddition>,
    /// Entries of `spec.appContainers` that name none of them.
    pub unmatched: Vec<UnmatchedEntry>,
}

/// What becomes of a set for a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The pod has it, from now on or already.
    Injected,
    /// The pod has an older form of it, and keeps that.
    Outdated,
    /// The pod goes without it.
    NotInjected,
    /// The pod is refused because of it.
    Refused,
}

impl Fate {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Injected => "injected",
            Self::Outdated => "outdated",
            Self::NotInjected => "not injected",
            Self::Refused => "refused",
        }
    }
}

impl Explanation {
    /// Of a pod that is decided on without its sets.
    const fn of_pod(reason: Reason, text: String) -> Self {
        Self { pod: Some(Why { reason, text }), sets: Vec::new(), warnings: Vec::new() }
    }

    /// Whether the pod is refused.
    pub fn is_refused(&self) -> bool {
        let by_pod = self.pod.as_ref().is_some_and(|why| why.reason == Reason::TOO_LARGE);
        by_pod || self.sets.iter().any(|set| set.fate == Fate::Refused)
    }
}

/// Why nothing can be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The review is none of a pod.
    #[error("the pod cannot be read: {0}")]
    Unreadable(String),
    /// There is no decision.
    #[error(transparent)]
    Unserved(#[from] Unserved),
}

/// Explains what the mutating webhook decides on the creation of a pod. `body` is the review that it would get.
///
/// # Errors
/// [`ExplainError`] when the review cannot be read, or there is no decision.
pub fn explain(body: &[u8], snapshot: &Snapshot) -> Result<Explanation, ExplainError> {
    let review = Review::<Decoded<PodView<'_>>>::parse(body).map_err(|error| match error {
        ParseError::Object { message, .. } | ParseError::TooLarge { message, .. } | ParseError::Unreadable(message) => {
            ExplainError::Unreadable(message)
        }
    })?;
    let request = &review.request;
    if let Some(reason) = skip(request, snapshot) {
        let text = why_skipped(reason, &request.namespace, snapshot);
        return Ok(Explanation::of_pod(reason, text));
    }
    let Some(pod) = &request.object else {
        return Err(ExplainError::Unreadable("the review has no object".to_owned()));
    };
    let selected = match selected_at_creation(pod, (&request.namespace, &request.user_info), snapshot)? {
        Ok(selected) => selected,
        Err(exceeded) => return Ok(Explanation::of_pod(Reason::TOO_LARGE, too_large(exceeded).message)),
    };
    // Of a pod that no set selects the labels alone are read, and those are whole.
    let pod = pod.even_if_cut();
    let skip = Skip::read(pod.metadata.annotation(SKIP_ANNOTATION));
    // As by the webhook, which does not read the annotation where no set selects the pod.
    let mut warnings =
        if selected.is_empty() { Vec::new() } else { opts_out_of_nothing(&skip, &selected, &snapshot.sets) };
    let Fitted { sets, selections, warnings: of_overrides } =
        fitted_at_creation(pod, (&request.namespace, request.body), selected, snapshot)?;
    warnings.splice(0..0, ignored_opt_outs(&skip, &sets));
    warnings.extend(of_overrides);
    let mut injection = injection(pod, request.body, &sets, &selections);
    let selecting = sets.iter().zip(selections);
    let mut selecting: BTreeMap<&str, SetExplanation> = selecting
        .map(|(set, selection)| {
            let missing = injection.examine(set).ok();
            let to_app = missing.as_ref().map(|missing| injection.app_additions(missing)).unwrap_or_default();
            let older = missing.and_then(|missing| missing.outdated().map(|differing| outdated(set, differing)));
            let mut explained = explained(set, outcome(&mut injection, set, selection), older, to_app);
            if matches!(explained.fate, Fate::Injected | Fate::Outdated) {
                explained.unmatched = injection.unmatched_entries(set);
            }
            (set.name.as_str(), with_revision(explained, pod, &request.namespace, snapshot))
        })
        .collect();
    warnings.extend(selecting.values().flat_map(adding_nothing));
    // What is outdated is said of its set.
    let of_sets = |warning: &&String| !warning.starts_with(reasons::OUTDATED.as_str());
    if selecting.values().all(|set| set.fate != Fate::Refused) {
        warnings.extend(injection.warnings().iter().filter(of_sets).cloned());
    }
    let of = |set: &Arc<CompiledSet>| {
        selecting.remove(set.name.as_str()).unwrap_or_else(|| not_selecting(set, request, pod, snapshot))
    };
    Ok(Explanation { pod: None, sets: snapshot.sets.iter().map(of).collect(), warnings })
}

/// Warnings about entries of a set that name no container of the pod.
fn adding_nothing(explained: &SetExplanation) -> impl Iterator<Item = String> + '_ {
    explained.unmatched.iter().map(|entry| {
        let UnmatchedEntry { index, init_container, .. } = entry;
        let hint = init_container.as_ref().map(|name| {
            format!("; {name:?} is an init container, and the entry includes these only with initContainers: true")
        });
        format!(
            "SidecarSet {:?}: spec.appContainers[{index}].containerNames: the pod has no container of its own named {}, so it gets \
             nothing of this entry{}",
            explained.set,
            named(&entry.names),
            hint.unwrap_or_default()
        )
    })
}

/// Names in quotes, any of which is meant.
pub fn named(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    first_named(&quoted, if names.len() > 2 { ", " } else { " or " })
}

/// What became of a set; `older` says in what the pod's form of it differs from the current one, `to_app` what the pod's own containers
/// get where it is injected.
fn explained(
    set: &CompiledSet,
    outcome: Outcome,
    older: Option<String>,
    mut to_app: Vec<AppAddition>,
) -> SetExplanation {
    if !matches!(outcome, Outcome::Carried(reasons::INJECTED)) {
        to_app.clear();
    }
    let (fate, reason, text) = match outcome {
        Outcome::Carried(reason @ reasons::OUTDATED) => {
            (Fate::Outdated, reason, older.unwrap_or_else(|| reasons::meaning(reason).to_owned()))
        }
        Outcome::Carried(reason) => (Fate::Injected, reason, carried(set, reason, &to_app)),
        Outcome::Skipped(reason, why) => (Fate::NotInjected, reason, why),
        Outcome::Refused(clash) => (Fate::Refused, clash.reason, with_field(&clash)),
    };
    SetExplanation {
        set: set.name.clone(),
        fate,
        why: Why { reason, text },
        app_containers: to_app,
        unmatched: Vec::new(),
    }
}

/// Names the older revision that the pod gets.
fn with_revision(
    mut explained: SetExplanation,
    pod: &PodView<'_>,
    namespace: &str,
    snapshot: &Snapshot,
) -> SetExplanation {
    let reason = explained.why.reason;
    let has_it = matches!(reason, reasons::INJECTED | reasons::ALREADY_INJECTED);
    let pinned = snapshot.pinned.revision(&explained.set).filter(|_| has_it);
    let set = snapshot.sets.get(&explained.set);
    let (Some(revision), Some(held)) = (pinned, set.and_then(|set| held_back(set, pod, namespace))) else {
        return explained;
    };
    let why = match held {
        Held::Always => "spec.injectionStrategy.revision",
        Held::Partial => {
            if reason == reasons::INJECTED {
                explained.why.reason = reasons::PARTIAL_HELD_BACK;
            }
            "spec.injectionStrategy.revision, as spec.updateStrategy does not include the pod yet"
        }
    };
    let text = &mut explained.why.text;
    // Writing to a String cannot fail.
    let _ = if reason == reasons::INJECTED {
        write!(text, " of revision {revision:?} ({why})")
    } else {
        write!(text, " It gets revision {revision:?} ({why}).")
    };
    explained
}

fn carried(set: &CompiledSet, reason: Reason, to_app: &[AppAddition]) -> String {
    if reason != reasons::INJECTED {
        return reasons::meaning(reason).to_owned();
    }
    let names = |pieces: Vec<&str>| pieces.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    let containers = names(set.containers.iter().map(|piece| piece.name.as_str()).collect());
    let inits = names(set.init_containers.iter().map(|piece| piece.name.as_str()).collect());
    let lists = [("containers", containers), ("init containers", inits)];
    let lists = lists.into_iter().filter(|(_, names)| !names.is_empty()).map(|(list, names)| format!("{list} {names}"));
    let to_app = to_app.iter().map(|addition| {
        let quoted = |texts: &[String]| names(texts.iter().map(String::as_str).collect());
        let what = [("variables", quoted(&addition.env)), ("mounts at", quoted(&addition.mounts))];
        let what = what.into_iter().filter(|(_, names)| !names.is_empty());
        let what: Vec<String> = what.map(|(kind, names)| format!("{kind} {names}")).collect();
        format!("in container {:?} {}", addition.container, what.join(" and "))
    });
    let added: Vec<String> = lists.chain(to_app).collect();
    if added.is_empty() {
        "the pod gets what the set adds".to_owned()
    } else {
        format!("the pod gets {}", added.join(" and "))
    }
}

fn why_skipped(reason: Reason, namespace: &str, snapshot: &Snapshot) -> String {
    if reason == Reason::INVALID {
        return "spec.containers is empty: the API server refuses the pod".to_owned();
    }
    if reason != reasons::NAMESPACE_EXCLUDED {
        return reasons::meaning(reason).to_owned();
    }
    if snapshot.exclusion.covers(namespace, None) {
        format!("namespace {namespace:?} is excluded by its name (--excluded-namespaces)")
    } else {
        format!("namespace {namespace:?} is excluded by its label {EXCLUDE_LABEL}")
    }
}

/// The first condition of a set that the pod or its namespace does not meet.
fn not_selecting(
    set: &CompiledSet,
    request: &Request<'_, Decoded<PodView<'_>>>,
    pod: &PodView<'_>,
    snapshot: &Snapshot,
) -> SetExplanation {
    let namespace: &str = &request.namespace;
    let labels = snapshot.namespaces.labels(namespace);
    let text = if let Some(term) = unmet(&set.selector, &pod.metadata.labels) {
        format!("spec.selector: {}", differs(term, "pod", &pod.metadata.labels))
    } else if reaches(set, namespace, labels) == Reach::No {
        match (&set.scope, labels) {
            (NamespaceScope::Named(name), _) => {
                format!("spec.namespace: the set is for namespace {name:?}, and the pod is in {namespace:?}")
            }
            (NamespaceScope::Selected { selector, .. }, labels) => {
                let by_name = BTreeMap::from([(NAMESPACE_NAME_LABEL.to_owned(), namespace.to_owned())]);
                let labels = labels.unwrap_or(&by_name);
                let whose = format!("namespace {namespace:?}");
                let why = unmet(selector, labels).map(|term| differs(term, &whose, labels));
                format!("spec.namespaceSelector: {}", why.unwrap_or_default())
            }
            (NamespaceScope::All, _) => String::new(),
        }
    } else {
        reasons::meaning(reasons::NO_MATCH).to_owned()
    };
    let why = Why { reason: reasons::NO_MATCH, text };
    let set = set.name.clone();
    SetExplanation { set, fate: Fate::NotInjected, why, app_containers: Vec::new(), unmatched: Vec::new() }
}

fn unmet<'s>(selector: &'s Selector, labels: &(impl Labels + ?Sized)) -> Option<&'s Requirement> {
    selector.requirements().iter().find(|term| !term.matches(labels))
}

fn differs(term: &Requirement, whose: &str, labels: &(impl Labels + ?Sized)) -> String {
    match labels.get(term.key()) {
        Some(value) => format!("\"{term}\" does not match the {whose}, whose label {:?} is {value:?}", term.key()),
        None => format!("\"{term}\" does not match the {whose}, which has no label {:?}", term.key()),
    }
}

/// The text of a clash behind its field, where it is about one.
fn with_field(clash: &Clash) -> String {
    if clash.field.is_empty() { clash.text.clone() } else { format!("{}: {}", clash.field, clash.text) }
}
