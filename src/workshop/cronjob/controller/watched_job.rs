//! A Job as the watch keeps it.

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer};

use crate::controller::owner::owner_key;
use crate::watch::owners::controller_among;
use crate::watch::resource_of_kind;
use crate::workshop::cronjob::api::CronJob;
use crate::workshop::cronjob::reconcile::ChildJob;
use crate::workshop::cronjob::vocabulary::SCHEDULED_AT;

/// Bytes of a time, generously. A user may write any text in its place.
const TIME_MAX_BYTES: usize = 64;

/// A Job without its spec, and without all else that no decision reads. Every Job of the cluster is watched, as any may be
/// owned; of one that no `CronJob` of ours owns only the identity is kept.
#[derive(Debug, Clone)]
pub struct WatchedJob {
    /// What was kept of the metadata.
    pub metadata: ObjectMeta,
    /// Absent for a Job without one, and for a foreign Job. In a box, as the others have none.
    status: Option<Box<JobStatus>>,
}

impl WatchedJob {
    /// What decisions read.
    pub fn child(&self) -> ChildJob {
        ChildJob::of(&self.metadata, self.status.as_deref())
    }
}

#[derive(Deserialize)]
struct Whole {
    #[serde(default)]
    metadata: ObjectMeta,
    status: Option<JobStatus>,
}

impl<'de> Deserialize<'de> for WatchedJob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Whole { metadata, status } = Whole::deserialize(deserializer)?;
        let mut kept = Self { metadata: identity(&metadata), status: None };
        kept.metadata.owner_references = controller_among(metadata.owner_references);
        if owner_key::<CronJob, Self>(&kept).is_none() {
            kept.metadata.owner_references = None;
            return Ok(kept);
        }
        kept.metadata.deletion_timestamp = metadata.deletion_timestamp;
        kept.metadata.annotations = metadata.annotations.map(|mut annotations| {
            annotations.retain(|key, value| key == SCHEDULED_AT && value.len() <= TIME_MAX_BYTES);
            annotations
        });
        kept.status = status.map(|status| {
            Box::new(JobStatus {
                conditions: status.conditions.map(ended),
                start_time: status.start_time,
                ..JobStatus::default()
            })
        });
        Ok(kept)
    }
}

/// The conditions that say how a Job ended, without their messages.
fn ended(mut conditions: Vec<JobCondition>) -> Vec<JobCondition> {
    conditions.retain(|condition| matches!(condition.type_.as_str(), "Complete" | "Failed"));
    let named = |JobCondition { type_, status, .. }| JobCondition { type_, status, ..JobCondition::default() };
    let mut ended: Vec<_> = conditions.into_iter().take(2).map(named).collect();
    // It has the place of the list that it was made from.
    ended.shrink_to_fit();
    ended
}

fn identity(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        ..ObjectMeta::default()
    }
}

resource_of_kind!(WatchedJob: Job);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(api_version: &str) -> Value {
        json!({
            "metadata": {
                "name": "nightly-60", "namespace": "a", "uid": "1", "resourceVersion": "7", "labels": {"team": "a"},
                "annotations": {SCHEDULED_AT: "1970-01-01T00:01:00Z", "note": "b"},
                "ownerReferences": [{
                    "apiVersion": api_version, "kind": "CronJob", "name": "nightly", "uid": "2", "controller": true,
                }],
            },
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": []}}},
            "status": {
                "startTime": "1970-01-01T00:01:01Z", "active": 1,
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        })
    }

    #[test]
    fn decisions_read_the_same_of_what_is_kept_as_of_the_whole() {
        let whole = job("batch.outrider.dev/v1");
        let kept: WatchedJob = serde_json::from_value(whole.clone()).unwrap();
        let of_whole: Job = serde_json::from_value(whole).unwrap();
        assert_eq!(kept.child(), ChildJob::of(&of_whole.metadata, of_whole.status.as_ref()));
        let kept = json!({"metadata": kept.metadata, "status": kept.status});
        for absent in ["/spec", "/status/active", "/metadata/labels", "/metadata/annotations/note"] {
            assert_eq!(kept.pointer(absent), None, "{absent}");
        }
    }

    #[test]
    fn what_a_user_may_make_long_is_not_kept() {
        let long = "x".repeat(100_000);
        let mut job = job("batch.outrider.dev/v1");
        job["metadata"]["annotations"][SCHEDULED_AT] = long.as_str().into();
        job["status"]["conditions"][0]["message"] = long.as_str().into();
        let kept: WatchedJob = serde_json::from_value(job.clone()).unwrap();
        assert!(json!({"metadata": kept.metadata, "status": kept.status}).to_string().len() < 1_000);
        assert!(kept.child().outcome.is_some());
        job["metadata"]["ownerReferences"][0]["name"] = long.into();
        let kept: WatchedJob = serde_json::from_value(job).unwrap();
        assert_eq!(kept.metadata.owner_references, None);
    }

    #[test]
    fn of_a_foreign_job_the_identity_is_kept() {
        for foreign in [job("batch/v1"), job("example.com/v1")] {
            let kept: WatchedJob = serde_json::from_value(foreign).unwrap();
            let metadata = json!({"name": "nightly-60", "namespace": "a", "uid": "1", "resourceVersion": "7"});
            assert_eq!((json!(kept.metadata), kept.status), (metadata, None));
        }
    }
}
