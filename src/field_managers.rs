//! Who writes, as it shows in managedFields.

use kube::api::{PatchParams, PostParams};

/// Field manager of the status of sets.
pub const SIDECARSET: &str = "outrider-sidecarset";
/// Field manager of the status of plugins.
pub const ADMISSION_PLUGIN: &str = "outrider-admissionplugin";
/// Field manager of the status of ranges.
pub const CLUSTER_LIMIT_RANGE: &str = "outrider-clusterlimitrange";
/// Field manager of the status of profiles.
pub const POD_SECURITY_PROFILE: &str = "outrider-podsecurityprofile";
/// Field manager of the Lease.
pub const LEADER_ELECTION: &str = "outrider-leader-election";
/// Field manager of our own authority's Secret.
pub const CERTIFICATES: &str = "outrider-certificates";
/// Field manager of what `outrider uninstall` releases.
pub const UNINSTALL: &str = "outrider-uninstall";
/// Field manager of what `outrider verify` makes.
pub const VERIFY: &str = "outrider-verify";

/// Parameters of a create or a replace by this field manager.
pub fn posting(manager: &str) -> PostParams {
    PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() }
}

/// Parameters of a patch by this field manager.
pub fn patching(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}
