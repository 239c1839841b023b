//! What `outrider doctor` reports of objects whose conditions are not as they should be.

use engine::sidecarset::api::Condition;

use super::conditions::NO_BACKEND;
use super::statuses::PENDING;

/// What a condition says is wrong, and what to do about it.
pub fn diagnosis(condition: &Condition) -> Option<(String, &'static str)> {
    let message = &condition.message;
    match (condition.type_.as_str(), condition.status.as_str(), condition.reason.as_str()) {
        ("Accepted", "False", _) => Some((format!("it cannot be used: {message}"), "correct the object")),
        ("Programmed", "False", PENDING) => Some((
            format!("the API server does not call for it: {message}"),
            "read the log of the leader, and check the configurations outrider-on-demand-mutating and -validating",
        )),
        ("Programmed", "False", NO_BACKEND) => Some((
            format!("images are not reviewed: {message}"),
            "put the kubeconfig of a backend that answers into the Secret outrider-image-policy in the namespace of \
             Outrider; docs/plugins/ImagePolicyWebhook.md shows one",
        )),
        ("Conflict", "True", _) => Some((
            format!("another object contradicts it: {message}"),
            "give both objects the same values, or selectors that no namespace fits both of",
        )),
        _ => None,
    }
}
