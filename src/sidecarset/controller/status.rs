//! Writes the status of a set when it differs from the stored one, and Events for what has just begun.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::answers::{NoAnswer, code, in_time, said};
use crate::events::Events;
use crate::field_managers::{SIDECARSET, patching};
use crate::sidecarset::controller::conditions::{Found, conditions, news};
use crate::sidecarset::controller::count::Counts;
use crate::sidecarset::controller::locks::locked;
use crate::sidecarset::controller::{NAME, programmed};
use crate::watch::SidecarSetResource;
use crate::watch::coverage::Coverage;
use crate::watch::partial::Partial;
use engine::sidecarset::api::{API_VERSION, Condition, KIND, SidecarSetStatus};
use engine::sidecarset::compiled::CompiledSet;
use engine::snapshot::sets::SetRecord;

/// An Event of one reason is written once in this time, however often its cause comes and goes.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// A status that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("the status cannot be written: {}", said(.0))]
    Write(#[source] kube::Error),
    /// No answer in time.
    #[error(transparent)]
    Timeout(#[from] NoAnswer),
}

/// What the controller owns of the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The numbers.
    pub counts: Counts,
    /// The newest revision; what it was where it could not be made sure of.
    pub latest_revision: Option<String>,
    /// One of each type.
    pub conditions: Vec<Condition>,
}

/// The status of a set.
pub fn of(
    set: &SetRecord,
    compiled: &CompiledSet,
    found: &Found<'_>,
    latest_revision: Option<&str>,
    coverage: &Coverage,
) -> Status {
    let (stored, now) = (set.status.as_ref(), Timestamp::now());
    let mut all = conditions(found, stored, now);
    all.extend(programmed::condition(compiled, set.compiled_generation, coverage, stored, now));
    let before = stored.and_then(|status| status.latest_revision.clone());
    Status { counts: found.counts, latest_revision: latest_revision.map(str::to_owned).or(before), conditions: all }
}

impl Status {
    fn differs_from(&self, stored: Option<&SidecarSetStatus>) -> bool {
        let conditions = stored.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let ours = |condition: &&Condition| {
            self.conditions.iter().any(|ours| ours.type_ == condition.type_)
                || condition.type_ == programmed::PROGRAMMED
        };
        let stored_ours: Vec<&Condition> = conditions.iter().filter(ours).collect();
        let is_same = self.conditions.len() == stored_ours.len()
            && self.conditions.iter().all(|condition| stored_ours.contains(&condition));
        let revision = stored.and_then(|status| status.latest_revision.as_ref());
        self.counts.differ_from(stored) || !is_same || revision != self.latest_revision.as_ref()
    }

    fn document(&self, set: &SetRecord) -> Value {
        let mut status = json!(self.counts);
        status["conditions"] = json!(self.conditions);
        if let Some(revision) = &self.latest_revision {
            status["latestRevision"] = revision.as_str().into();
        }
        // The uid keeps the numbers of a deleted set from a new one of the same name.
        json!({
            "apiVersion": API_VERSION, "kind": KIND,
            "metadata": {"name": set.name, "uid": set.uid}, "status": status,
        })
    }
}

/// Writes statuses.
pub struct StatusWriter {
    // Of what is answered nothing is read: a stored set may take hundreds of times its bytes.
    sets: Api<Partial<SidecarSetResource>>,
    events: Events,
    told: Told,
}

/// When an Event was last written, by set and reason.
#[derive(Default)]
struct Told(Mutex<HashMap<String, HashMap<String, Instant>>>);

impl Told {
    /// Takes note of an Event, unless one of that reason was written a short while ago.
    fn is_news(&self, set: &str, reason: &str, now: Instant) -> bool {
        let mut told = locked(&self.0);
        let of_set = told.entry(set.to_owned()).or_default();
        let is_news = of_set.get(reason).is_none_or(|last| now.duration_since(*last) >= TOLD_AGAIN_AFTER);
        if is_news {
            of_set.insert(reason.to_owned(), now);
        }
        is_news
    }

    fn forget(&self, set: &str) {
        locked(&self.0).remove(set);
    }
}

impl StatusWriter {
    /// With this client.
    pub fn new(client: Client) -> Self {
        Self { sets: Api::all(client.clone()), events: Events::new(client, NAME), told: Told::default() }
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        self.told.forget(set);
    }

    /// Writes the status, by server-side apply of our own fields, unless it is what is stored.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn write(&self, set: &SetRecord, status: &Status) -> Result<(), Error> {
        if !status.differs_from(set.status.as_ref()) {
            return Ok(());
        }
        tracing::debug!(counts = ?status.counts, "Writing status");
        let document = status.document(set);
        let write = in_time(async {
            let (params, patch) = (PatchParams::apply(SIDECARSET).force(), Patch::Apply(&document));
            let applied = self.sets.patch_status(&set.name, &params, &patch).await;
            let applied = match applied {
                Err(error) if is_older_definition(&error) => {
                    let (params, patch) = (patching(SIDECARSET), Patch::Merge(&document));
                    self.sets.patch_status(&set.name, &params, &patch).await
                }
                applied => applied,
            };
            match applied {
                // Deleted meanwhile.
                Err(error) if code(&error) == Some(404) => Ok(false),
                Err(error) => Err(Error::Write(error)),
                Ok(_) => Ok(true),
            }
        });
        if !write.await? {
            return Ok(());
        }
        self.tell(set, status).await;
        Ok(())
    }

    async fn tell(&self, set: &SetRecord, status: &Status) {
        let stored = set.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let object = SidecarSetResource {
            metadata: ObjectMeta { name: Some(set.name.clone()), uid: Some(set.uid.clone()), ..ObjectMeta::default() },
            ..SidecarSetResource::default()
        };
        for (warns, reason, message) in news(stored, &status.conditions) {
            if self.told.is_news(&set.name, &reason, Instant::now()) {
                self.events.reconciled(&object, warns, &reason, &message).await;
            }
        }
    }
}

/// Whether the stored definition of the kind is older than this build and lacks a field: server-side apply is refused then, while a
/// merge patch drops the field. So it is during an upgrade in which the definitions come last.
fn is_older_definition(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.message.contains("field not declared in schema"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_field_that_the_definition_lacks_is_a_reason_for_a_merge_patch() {
        let error = |message: &str| kube::Error::Api(Box::new(kube::core::Status::failure(message, "")));
        let lacks = "failed to create typed patch object (/web; apps.outrider.dev/v1alpha1, Kind=SidecarSet): .status.uninjectedPods: \
                     field not declared in schema";
        assert!(is_older_definition(&error(lacks)));
        assert!(!is_older_definition(&error("sidecarsets.apps.outrider.dev \"web\" not found")));
    }

    #[test]
    fn an_event_of_one_reason_and_set_is_written_once_in_ten_minutes() {
        let (told, begun) = (Told::default(), Instant::now());
        let is_news =
            |set: &str, reason: &str, seconds: u64| told.is_news(set, reason, begun + Duration::from_secs(seconds));
        for (set, reason, seconds, expected) in [
            ("a", "Degraded", 0, true),
            ("a", "Degraded", 1, false),
            ("a", "RolloutComplete", 1, true),
            ("b", "Degraded", 1, true),
            ("a", "Degraded", 599, false),
            // Counted from the one that was written.
            ("a", "Degraded", 600, true),
            ("a", "Degraded", 1_199, false),
        ] {
            assert_eq!(is_news(set, reason, seconds), expected, "{set} {reason} after {seconds} s");
        }
        told.forget("a");
        assert!(is_news("a", "Degraded", 1_199), "another set of the name of one that is gone");
        assert!(!is_news("b", "Degraded", 600));
    }

    #[test]
    fn a_status_is_written_only_where_something_of_ours_differs() {
        let condition = |type_: &str, status: &str| Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            ..Condition::default()
        };
        let status = Status {
            counts: Counts::default(),
            latest_revision: Some("a-1".to_owned()),
            conditions: vec![condition("Ready", "True"), condition("Available", "True")],
        };
        let stored = |conditions: Vec<Condition>, revision: &str| -> SidecarSetStatus {
            let mut stored = json!(status.counts);
            stored["conditions"] = json!(conditions);
            stored["latestRevision"] = revision.into();
            serde_json::from_value(stored).unwrap()
        };
        let (ready, available) = (condition("Ready", "True"), condition("Available", "True"));
        let of_others = condition("OfOthers", "True");
        for (case, conditions, revision, differs) in [
            ("the same", vec![ready.clone(), available.clone()], "a-1", false),
            (
                "in another order, with one of somebody else",
                vec![of_others, available.clone(), ready.clone()],
                "a-1",
                false,
            ),
            ("another revision", vec![ready.clone(), available.clone()], "a-0", true),
            ("another status", vec![condition("Ready", "False"), available.clone()], "a-1", true),
            ("one is missing", vec![ready.clone()], "a-1", true),
            ("one that is no longer ours to say", vec![ready, available, condition("Programmed", "True")], "a-1", true),
        ] {
            assert_eq!(status.differs_from(Some(&stored(conditions, revision))), differs, "{case}");
        }
        assert!(status.differs_from(None));
    }
}
