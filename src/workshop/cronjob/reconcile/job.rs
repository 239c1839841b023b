//! The Job for a run.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::workshop::cronjob::api::{API_VERSION, CronJob, KIND};
use crate::workshop::cronjob::vocabulary::SCHEDULED_AT;

/// A Job, `batch/v1`, to be created. What the template says stays JSON on its way.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewJob {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Texts::is_empty")]
    labels: Texts,
    annotations: Texts,
    owner_references: [OwnerReference; 1],
}

/// Labels or annotations, also where values are not strings: the API server's message is the best one for that.
type Texts = BTreeMap<String, Box<RawValue>>;

impl NewJob {
    /// The Job for a run as the template has it, whatever fields that has.
    pub fn of(cronjob: &CronJob, run: Timestamp) -> Self {
        let name = cronjob.metadata.name.as_deref().unwrap_or_default();
        let template = cronjob.spec.job_template.parts();
        let TemplateMetadata { labels, mut annotations } = TemplateMetadata::of(template.metadata);
        annotations.extend(serde_json::value::to_raw_value(&run).ok().map(|run| (SCHEDULED_AT.to_owned(), run)));
        let owner = OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            name: name.to_owned(),
            uid: cronjob.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        Self {
            api_version: "batch/v1",
            kind: "Job",
            metadata: Metadata {
                name: job_name(name, run),
                namespace: cronjob.metadata.namespace.clone(),
                labels,
                annotations,
                owner_references: [owner],
            },
            spec: template.spec.map(ToOwned::to_owned),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }
}

/// By what is sent.
impl PartialEq for NewJob {
    fn eq(&self, other: &Self) -> bool {
        let text = |job: &Self| serde_json::to_string(job).ok();
        text(self) == text(other)
    }
}

/// The name of the Job for a run: the same for the same run, so that it cannot start twice.
pub fn job_name(cronjob: &str, run: Timestamp) -> String {
    format!("{cronjob}-{}", run.as_second())
}

struct TemplateMetadata {
    labels: Texts,
    annotations: Texts,
}

impl TemplateMetadata {
    fn of(metadata: Option<&RawValue>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Raw<'t> {
            #[serde(borrow)]
            labels: Option<&'t RawValue>,
            #[serde(borrow)]
            annotations: Option<&'t RawValue>,
        }

        let raw =
            metadata.and_then(|metadata| serde_json::from_str::<Raw<'_>>(metadata.get()).ok()).unwrap_or_default();
        let texts =
            |map: Option<&RawValue>| map.and_then(|map| serde_json::from_str(map.get()).ok()).unwrap_or_default();
        Self { labels: texts(raw.labels), annotations: texts(raw.annotations) }
    }
}
