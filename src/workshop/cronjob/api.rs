//! The `CronJob` type, `batch.outrider.dev/v1`: what is stored, and what the controller reads.
//!
//! The Job template stays JSON: a field newer than this build reaches the Job untouched. Words from closed
//! vocabularies stay strings, so that one object written by a newer build does not break the watch.

use admission::review::null_as_default;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::template::RawTemplate;
use super::vocabulary::WAIT_FOR_ACTIVE_JOBS;
use crate::workshop::object::{KindSpec, Object, first_kept};

/// API group.
pub const GROUP: &str = concat!("batch.", api_domain!());
/// API version that is stored.
pub const VERSION: &str = "v1";
/// Group and version.
pub const API_VERSION: &str = concat!("batch.", api_domain!(), "/v1");
/// Kind.
pub const KIND: &str = "CronJob";
/// Resource: the plural in URLs.
pub const PLURAL: &str = "cronjobs";

/// Jobs that the status lists. An object has room for some thousand, and is written anew whenever one of them changes.
pub const ACTIVE_MAX: usize = 100;

/// Conditions that are read. There are three; one more makes the status another than ours, which is then written.
const CONDITIONS_MAX: usize = 3;

/// A Job for every time of a schedule.
pub type CronJob = Object<CronJobSpec>;

impl KindSpec for CronJobSpec {
    const GROUP: &'static str = GROUP;
    const VERSION: &'static str = VERSION;
    const KIND: &'static str = KIND;
    const PLURAL: &'static str = PLURAL;
    type Scope = NamespaceResourceScope;
    type Status = CronJobStatus;
}

/// What a `CronJob` asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobSpec {
    /// Five fields or a descriptor; see [`schedule`](super::schedule).
    #[serde(deserialize_with = "null_as_default")]
    pub schedule: String,
    /// IANA time zone that the schedule is read in; UTC when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// How many seconds late a run may start; any when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<i64>,
    /// `Allow` (default), `Forbid` or `Replace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<String>,
    /// Starts no further runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// `Delete` (default) or `WaitForActiveJobs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<String>,
    /// Metadata and spec of the Jobs.
    pub job_template: RawTemplate,
    /// Successful Jobs to keep; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,
    /// Failed Jobs to keep; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
}

impl CronJobSpec {
    /// Whether no further run may start.
    pub fn is_suspended(&self) -> bool {
        self.suspend == Some(true)
    }

    /// Whether the `CronJob` stays until no Job of it runs.
    pub fn waits_for_active_jobs(&self) -> bool {
        self.deletion_policy.as_deref() == Some(WAIT_FOR_ACTIVE_JOBS)
    }
}

/// What the controller saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CronJobStatus {
    /// The generation that the rest is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Jobs that have not ended, the first [`ACTIVE_MAX`] of them.
    #[serde(deserialize_with = "first_kept::<{ ACTIVE_MAX + 1 }, _, _>", skip_serializing_if = "Option::is_none")]
    pub active: Option<Vec<ObjectReference>>,
    /// When the newest run was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// When the next run is due; none while suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_schedule_time: Option<Time>,
    /// `Available`, `Progressing` and `Degraded`.
    #[serde(deserialize_with = "first_kept::<{ CONDITIONS_MAX + 1 }, _, _>", skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;
    use serde_json::json;

    use super::{API_VERSION, CronJob};
    use crate::API_DOMAIN;

    #[test]
    fn group_is_a_subdomain_of_the_one_domain() {
        assert_eq!(CronJob::api_version(&()), format!("batch.{API_DOMAIN}/v1"));
        assert_eq!(API_VERSION, CronJob::api_version(&()));
        assert_eq!(CronJob::url_path(&(), Some("a")), format!("/apis/batch.{API_DOMAIN}/v1/namespaces/a/cronjobs"));
    }

    #[test]
    fn objects_decode_with_little_and_keep_what_the_template_holds() {
        for object in [json!({}), json!({"metadata": null, "spec": null, "status": null}), json!({"spec": {}})] {
            assert_eq!(serde_json::from_value::<CronJob>(object).unwrap(), CronJob::default());
        }
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"fieldOfTomorrow": {"x": [1]}}});
        let cronjob: CronJob = serde_json::from_value(json!({"spec": {"jobTemplate": template}})).unwrap();
        assert_eq!(serde_json::to_value(&cronjob).unwrap()["spec"]["jobTemplate"], template);
    }
}
