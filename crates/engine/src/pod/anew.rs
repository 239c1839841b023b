//! Whether a pod that is created in place of a running one would have the current form of a set.

use admission::Unserved;
use admission::patch::apply;
use admission::review::UserInfo;
use serde_json::Value;

use crate::pod::decoded::Decoded;
use crate::pod::mutate::{Outcome, outcome};
use crate::pod::older::take_out;
use crate::pod::select::{Fitted, fitted_at_creation, injection, selected_at_creation};
use crate::pod::view::PodView;
use crate::reasons;
use crate::snapshot::Snapshot;

/// Why a new pod in place of this one would not have the current form of the set; nothing if it would.
///
/// The template of the pod is not known: what older forms of sets brought is taken out of the pod, as `outrider render` does, and
/// admission decides on what is left. What cannot be taken out, as additions to the pod's own containers, may only make the answer that
/// a new pod would not help.
///
/// # Errors
/// [`Unserved`] when it cannot be decided which sets select the pod.
pub fn why_not(pod: &Value, namespace: &str, set: &str, snapshot: &Snapshot) -> Result<Option<String>, Unserved> {
    let mut template = pod.clone();
    let patch = Value::from(take_out(pod, namespace, snapshot)?.patch).to_string();
    if let Err(error) = apply(&mut template, patch.as_bytes()) {
        return Ok(Some(format!("its older form cannot be taken out: {error}")));
    }
    let text = template.to_string();
    let Ok(view) = serde_json::from_str::<Decoded<PodView<'_>>>(&text) else {
        return Ok(Some("the pod cannot be read".to_owned()));
    };
    let (Ok(selected), Ok(view)) =
        (selected_at_creation(&view, (namespace, &UserInfo::default()), snapshot)?, view.whole())
    else {
        return Ok(Some("the pod is too large".to_owned()));
    };
    let Fitted { sets, selections, .. } = fitted_at_creation(view, (namespace, &text), selected, snapshot)?;
    let mut injection = injection(view, &text, &sets, &selections);
    let current = snapshot.sets.get(set).map(|set| set.hash.as_str());
    let mut found = Some("no new pod of these labels gets the set".to_owned());
    for (one, selection) in sets.iter().zip(selections) {
        match outcome(&mut injection, one, selection) {
            // By whichever set: the workload would be left without its pod.
            Outcome::Refused(clash) => {
                return Ok(Some(format!("a new pod would be refused for SidecarSet {:?}: {}", one.name, clash.text)));
            }
            _ if one.name != set => {}
            Outcome::Skipped(_, why) => found = Some(format!("a new pod would go without the set: {why}")),
            Outcome::Carried(reasons::INJECTED | reasons::ALREADY_INJECTED) => {
                let is_older = current != Some(one.hash.as_str());
                found = is_older.then(|| "a new pod would get an older revision of the set".to_owned());
            }
            Outcome::Carried(_) => found = Some("a new pod would have an older form of the set as well".to_owned()),
        }
    }
    Ok(found)
}
