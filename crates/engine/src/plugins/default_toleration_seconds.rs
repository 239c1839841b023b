//! `DefaultTolerationSeconds`: how long pods stay on a node that is not ready, or cannot be reached.
//!
//! The API server's own plugin has added its 300 s before a webhook is called, so that here the toleration that looks exactly like the
//! default is changed. A 300 that somebody wrote looks the same.

use admission::Text;

use super::change::{PodChange, Tolerations};
use super::pod_facts::Spec;
use super::toleration::{EXISTS, NO_EXECUTE, Tolerated, Toleration};

/// What the API server's flags default to.
pub const DEFAULT_SECONDS: i64 = 300;

/// Taint of a node that is not ready.
pub const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// Taint of a node that cannot be reached.
pub const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultTolerationSeconds {
    /// Seconds on a node that is not ready.
    pub not_ready: i64,
    /// Seconds on a node that cannot be reached.
    pub unreachable: i64,
}

impl DefaultTolerationSeconds {
    /// What is to be changed in a new pod.
    pub fn change<'a>(&self, spec: &Spec<'a>) -> PodChange<'a> {
        let wanted = [(NOT_READY, self.not_ready), (UNREACHABLE, self.unreachable)];
        let tolerates = |key: &str| {
            spec.tolerations().iter().map(|one| &one.toleration).any(|one| {
                (one.key.as_str() == key || one.key.is_empty())
                    && (one.effect.as_str() == NO_EXECUTE || one.effect.is_empty())
            })
        };
        let missing: Vec<(&'static str, i64)> = wanted.into_iter().filter(|(key, _)| !tolerates(key)).collect();
        let other = |one: &Toleration<'_>| {
            let seconds = wanted.iter().find(|(key, _)| one.key.as_str() == *key).map(|(_, seconds)| *seconds)?;
            (is_default(one) && seconds != DEFAULT_SECONDS).then_some(seconds)
        };
        let missing = missing.into_iter().map(|(key, seconds)| added(key.to_owned(), seconds));
        let tolerations = if spec.tolerations().iter().any(|one| other(&one.toleration).is_some()) {
            let changed = spec.tolerations().iter().map(|one| match other(&one.toleration) {
                Some(seconds) => added(one.toleration.key.to_string(), seconds),
                None => one.clone(),
            });
            Tolerations::Replaced(changed.chain(missing).collect())
        } else {
            Tolerations::Added(missing.collect())
        };
        PodChange { tolerations, ..PodChange::default() }
    }
}

fn added<'a>(key: String, seconds: i64) -> Tolerated<'a> {
    let toleration = Toleration { key: Text(key.into()), ..Toleration::exists("", NO_EXECUTE, Some(seconds)) };
    Tolerated::from(toleration)
}

/// Whether it is what the API server adds by default.
fn is_default(one: &Toleration<'_>) -> bool {
    one.operator.as_str() == EXISTS
        && one.effect.as_str() == NO_EXECUTE
        && one.value.is_empty()
        && one.toleration_seconds == Some(DEFAULT_SECONDS)
}
