//! A set that is to take the place of another one in new pods: the canary of its base.

use admission::field::{Error, ErrorList};
use serde_json::Value;

use super::node::Node;
use crate::sidecarset::api::ANNOTATION_PREFIXES;
use crate::sidecarset::compiled::{JobPods, bases};
use crate::sidecarset::index::SetIndex;
use crate::sidecarset::vocabulary::{CLASH_SKIP, JOB_SKIP, NOT_UPDATE};

const BASE: &str = "sidecarset-base";

/// Checks the annotations of a canary, and what it may be.
pub fn check(metadata: &Node<'_>, spec: &Node<'_>, sets: &SetIndex, errors: &mut ErrorList) {
    let annotations = metadata.child("annotations");
    let name = metadata.text("name");
    let found: Vec<&str> = bases(|key| annotations.value.get(key).and_then(Value::as_str)).collect();
    for base in &found {
        let prefix = ANNOTATION_PREFIXES
            .into_iter()
            .find(|prefix| annotations.value.get(format!("{prefix}{BASE}")).and_then(Value::as_str) == Some(base));
        let path = annotations.path.key(format!("{}{BASE}", prefix.unwrap_or_default()));
        if *base == name {
            errors.push(Error::invalid(
                &path,
                *base,
                "a set cannot be its own canary; name the set that it is to replace",
            ));
            continue;
        }
        let Some(set) = sets.get(base) else {
            errors.push(Error::not_found(&path, *base));
            continue;
        };
        if !set.bases.is_empty() {
            errors.push(Error::invalid(&path, *base, "is a canary itself; name a set that is none"));
        }
        let may_go_without = spec.text("optOut") != "Denied" || spec.text("clashPolicy") == CLASH_SKIP;
        if set.is_must() && may_go_without {
            let detail = format!(
                "no pod may go without SidecarSet {base:?}, so none may go without its canary: set it to Denied, and clashPolicy to Refuse"
            );
            errors.push(Error::invalid(&spec.path.child("optOut"), spec.text("optOut"), detail));
        }
        if set.is_must() && set.job_pods != JobPods::Skip && spec.text("jobPods") == JOB_SKIP {
            let detail = format!(
                "no pod may go without SidecarSet {base:?}, which does not leave out pods that end, so its canary may not either: set it to \
                 NativeSidecar or Inject"
            );
            errors.push(Error::invalid(&spec.path.child("jobPods"), JOB_SKIP, detail));
        }
    }
    if !found.is_empty() && spec.child("updateStrategy").text("type") != NOT_UPDATE {
        let strategy = spec.child("updateStrategy");
        let detail = "a canary concerns new pods only: it needs NotUpdate";
        errors.push(Error::invalid(&strategy.path.child("type"), strategy.text("type"), detail));
    }
    if found.len() > 1 && found.first() != found.last() {
        let detail = "a set is the canary of one set; remove one of the annotations";
        errors.push(Error::forbidden(&annotations.path, detail));
    }
}

/// Of which set a canary is stays as it is: pods that carry it would be counted for neither.
pub fn check_change(metadata: &Node<'_>, old: &Node<'_>, errors: &mut ErrorList) {
    let (annotations, before) = (metadata.child("annotations"), old.child("annotations"));
    let of = |node: &Node<'_>| -> Option<String> {
        bases(|key| node.value.get(key).and_then(Value::as_str)).next().map(str::to_owned)
    };
    if let (Some(now), Some(before)) = (of(&annotations), of(&before))
        && now != before
    {
        let detail = format!("the base of a canary may not change, and it was {before:?}; create another canary");
        errors.push(Error::invalid(&annotations.path, now, detail));
    }
}
