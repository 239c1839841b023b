//! The flags about a Deployment that is scaled to zero.

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

use crate::names::APP;

/// What happens when the Deployment is scaled to zero.
#[derive(Debug, Clone, Args)]
pub struct FailOpenArgs {
    /// Let requests pass without Outrider while its Deployment is scaled to 0 or deleted: sets are bypassed meanwhile
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    pub fail_open_when_scaled_to_zero: bool,
    /// Name of the Deployment that Outrider runs in, for --fail-open-when-scaled-to-zero
    #[arg(long, env = "DEPLOYMENT_NAME", hide_env_values = true, value_name = "NAME", default_value = APP)]
    pub deployment_name: String,
}

impl FailOpenArgs {
    /// The Deployment, if fail-open is on.
    pub fn deployment(&self) -> Option<String> {
        self.fail_open_when_scaled_to_zero.then(|| self.deployment_name.clone())
    }
}
