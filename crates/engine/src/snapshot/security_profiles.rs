//! The profiles as controllers see them: what was compiled, and what the status says.

use std::sync::Arc;

use admission::field::ErrorList;
use admission::format::selector::Selector;

use super::policies::{Policies, Policy, Record};
use super::scope::{ByName, Scoped};
use super::table::Table;
use crate::plugins::api::PluginStatus;
use crate::podsecurityprofile::api::{KIND, PodSecurityProfile};
use crate::podsecurityprofile::compiled::CompiledProfile;
use crate::sidecarset::api::Metadata;

/// One `PodSecurityProfile`.
pub type ProfileRecord = Record<CompiledProfile>;

/// Every `PodSecurityProfile`, for controllers.
pub type ProfileTable = Table<ProfileRecord>;

/// Every `PodSecurityProfile`, on its way into snapshots.
pub type ProfileList = Policies<PodSecurityProfile>;

impl Policy for PodSecurityProfile {
    type Compiled = CompiledProfile;
    type View = ByName<CompiledProfile>;

    const KIND: &'static str = KIND;

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn status(&self) -> Option<&PluginStatus> {
        self.status.as_ref()
    }

    fn compile(&self) -> Result<CompiledProfile, ErrorList> {
        CompiledProfile::compile(self)
    }

    fn view(all: impl Iterator<Item = Arc<CompiledProfile>>) -> Self::View {
        ByName::build(all)
    }
}

impl Scoped for CompiledProfile {
    const KIND: &'static str = KIND;
    const WORD: &'static str = "profile";

    fn name(&self) -> &str {
        &self.name
    }

    fn namespaces(&self) -> Option<&Selector> {
        self.namespaces.as_ref()
    }
}
