//! The pods for which the API server calls the webhook, as far as that is known.

use engine::sidecarset::narrowing::NarrowingRule;

/// The pods for which the API server is known to call the webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// It is not narrowed: sets have no such condition.
    Off,
    /// Not looked yet, or there is no configuration.
    Unknown,
    /// By this rule.
    Known(NarrowingRule),
}
