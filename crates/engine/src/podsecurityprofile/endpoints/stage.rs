//! New pods: profiles come last, as they judge what all others have made of a pod.

use admission::patch::escape;
use admission::{Denial, PatchBuilder, Reason, Unserved};
use serde_json::Value;

use super::{AUDIT, concerned, decide};
use crate::plugins::endpoints::pods::is_mirrored_by;
use crate::pod::stages::{PodRequest, Stage, Step};
use crate::pod::view::MIRROR_ANNOTATION;
use crate::podsecurityprofile::choose::ANNOTATION;
use crate::podsecurityprofile::pod::Pod;
use crate::reasons;
use crate::snapshot::Snapshot;

/// The stage.
#[derive(Debug)]
pub struct PodSecurityProfiles;

impl Stage for PodSecurityProfiles {
    fn is_idle(&self, snapshot: &Snapshot) -> bool {
        snapshot.security_profiles.is_empty()
    }

    fn concerns(&self, request: &PodRequest<'_>, snapshot: &Snapshot) -> bool {
        // What cannot be said without the namespace is said when the pod is decided on.
        let found = concerned(snapshot, &request.namespace);
        found.map_or(true, |found| !found.objects.is_empty() || !found.warnings.is_empty())
    }

    fn mutate(&self, pod: &mut PatchBuilder, request: &PodRequest<'_>, snapshot: &Snapshot) -> Result<Step, Unserved> {
        let (step, found) = decided(pod.document(), request, snapshot, true)?;
        let Some((profile, change)) = found else { return Ok(step) };
        let annotation = format!("/metadata/annotations/{}", escape(ANNOTATION));
        let written = change.apply(pod).and_then(|()| pod.set(&annotation, profile.into()));
        Ok(match written {
            Ok(()) => step,
            Err(error) => {
                let denial = (Reason::UNDECODABLE, Denial::bad_request(error.to_string()));
                Step { denial: Some(denial), ..step }
            }
        })
    }

    fn validate(&self, pod: &Value, request: &PodRequest<'_>, snapshot: &Snapshot) -> Result<Step, Unserved> {
        decided(pod, request, snapshot, false).map(|(step, _)| step)
    }
}

type ChosenProfile = (String, crate::podsecurityprofile::judge::FilledIn);

fn decided(
    pod: &Value,
    request: &PodRequest<'_>,
    snapshot: &Snapshot,
    may_change: bool,
) -> Result<(Step, Option<ChosenProfile>), Unserved> {
    let concerned = concerned(snapshot, &request.namespace)?;
    let mut step = Step { warnings: concerned.warnings, ..Step::default() };
    let pod = Pod::of(pod);
    let is_mirror = is_mirrored_by(pod.annotation(MIRROR_ANNOTATION).is_some(), &request.user_info);
    if concerned.objects.is_empty() || is_mirror {
        return Ok((step, None));
    }
    let decided = decide(&pod, &concerned.objects, may_change, request)?;
    step.audit.extend(decided.audit.map(|text| (AUDIT.into(), text)));
    step.counts.push(decided.count);
    match decided.result {
        Ok(found) => {
            step.reason = Some(if may_change { reasons::PLUGIN_CHANGED } else { reasons::ALLOWED });
            Ok((step, Some(found)))
        }
        Err(refusal) => {
            step.denial = Some(refusal);
            Ok((step, None))
        }
    }
}
