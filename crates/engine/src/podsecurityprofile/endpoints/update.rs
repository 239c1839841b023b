//! Pods that change, and ephemeral containers: judged, never changed.

use admission::{Findings, Request, Unserved, Validating};
use serde_json::Value;

use super::{AUDIT, concerned, decide};
use crate::outcome::refuse;
use crate::plugins::endpoints::pods::is_mirrored_by;
use crate::pod::view::MIRROR_ANNOTATION;
use crate::podsecurityprofile::pod::Pod;
use crate::reasons;
use crate::snapshot::Snapshot;

/// The endpoint.
pub struct UpdateValidation;

impl Validating<Snapshot> for UpdateValidation {
    type Object<'a> = Value;

    fn validate(
        &self,
        request: &Request<'_, Value>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let Some((new, Some(old))) = findings.stored(request) else { return Ok(()) };
        let (new, old) = (Pod::of(new), Pod::of(old));
        // A pod that is being deleted must be able to lose its finalizers, whatever anybody decides.
        let is_mirror = is_mirrored_by(old.annotation(MIRROR_ANNOTATION).is_some(), &request.user_info);
        if snapshot.security_profiles.is_empty() || old.is_leaving() || is_mirror || new.spec == old.spec {
            return Ok(());
        }
        let concerned = concerned(snapshot, &request.namespace)?;
        findings.warnings.extend(concerned.warnings);
        if concerned.objects.is_empty() {
            return Ok(());
        }
        let decided = decide(&new, &concerned.objects, false, request)?;
        findings.reason = reasons::ALLOWED;
        findings.audit.extend(decided.audit.map(|text| (AUDIT.into(), text)));
        findings.counts.push(decided.count);
        if let Err((reason, denial)) = decided.result {
            refuse(findings, reason, denial);
        }
        Ok(())
    }
}
