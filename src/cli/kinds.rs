//! The flag that turns kinds of the workshop on.

use clap::Args;

use crate::kinds::Kinds;

/// Kinds beside the product's own.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Kinds")]
pub struct KindArgs {
    /// Kinds in addition to SidecarSet, comma-separated: * is all, -NAME leaves one out. A kind that is off has no
    /// CRD, RBAC rule, webhook, watch or controller
    #[arg(
        long,
        env = "ENABLE_KINDS",
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub enable_kinds: Kinds,
}
