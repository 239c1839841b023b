//! The condition `Ready` of a kind that keeps a Deployment.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Resource as _;

use crate::controller::apply::Error;
use crate::controller::conditions::Statement;
use crate::controller::owned::Owned;

/// Type of the condition.
pub const READY: &str = "Ready";
/// Reason when an owned object has another owner.
pub const NOT_OURS: &str = "NotOurs";

/// Ready when as many pods as wanted are available from the newest template.
pub fn of_deployment(deployment: &Owned<Deployment>) -> Statement {
    let wanted = deployment.integer(["spec", "replicas"]).unwrap_or(1);
    let observed = deployment.integer(["status", "observedGeneration"]) >= deployment.meta().generation;
    let [available, updated] = ["availableReplicas", "updatedReplicas"].map(|field| pods(deployment, field));
    let ready = observed && available >= wanted && updated >= wanted;
    Statement {
        type_: READY,
        holds: ready,
        reason: if ready { "DeploymentAvailable" } else { "DeploymentProgressing" },
        message: format!("{available} of {wanted} replicas are available"),
    }
}

/// How many pods the field of the status counts.
pub fn pods(deployment: &Owned<Deployment>, field: &str) -> i32 {
    deployment.integer(["status", field]).unwrap_or(0)
}

/// Not ready, as an owned object is not as it should be.
pub fn of_error(error: &Error) -> Statement {
    let reason = if matches!(error, Error::Foreign { .. }) { NOT_OURS } else { "ApplyFailed" };
    Statement { type_: READY, holds: false, reason, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ready_means_all_wanted_replicas_of_the_newest_template() {
        for (generation, replicas, status, ready, message) in [
            (1, Some(1), json!({}), false, "0 of 1 replicas are available"),
            (
                2,
                Some(1),
                json!({"observedGeneration": 1, "availableReplicas": 1, "updatedReplicas": 1}),
                false,
                "1 of 1",
            ),
            (
                2,
                Some(1),
                json!({"observedGeneration": 2, "availableReplicas": 1, "updatedReplicas": 0}),
                false,
                "1 of 1",
            ),
            (
                2,
                Some(1),
                json!({"observedGeneration": 2, "availableReplicas": 1, "updatedReplicas": 1}),
                true,
                "1 of 1",
            ),
            (
                1,
                Some(3),
                json!({"observedGeneration": 1, "availableReplicas": 2, "updatedReplicas": 3}),
                false,
                "2 of 3",
            ),
            (1, Some(0), json!({"observedGeneration": 1}), true, "0 of 0"),
        ] {
            let deployment = json!({"metadata": {"generation": generation}, "status": status,
                "spec": {"replicas": replicas, "selector": {}, "template": {}}});
            let statement = of_deployment(&serde_json::from_value(deployment.clone()).unwrap());
            assert_eq!(statement.holds, ready, "{deployment}");
            assert!(statement.message.starts_with(message), "{}", statement.message);
        }
    }
}
