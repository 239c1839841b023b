//! Break-glass: turns our webhooks to Ignore, and back, with nothing but access to the API server.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{PatchParams, PostParams};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::configuration::Configuration;
use super::error;
use super::failure_policies::{IGNORE, annotation, patch, policies, rewrite};
use crate::field_managers::patching;

/// Annotation of a webhook configuration while break-glass is in force: a [`BreakGlassRecord`] as JSON.
pub use crate::names::BREAK_GLASS as ANNOTATION;

const FIELD_MANAGER: &str = "outrider-break-glass";

/// Who broke the glass, when, and what was behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakGlassRecord {
    /// User, as the API server knows it.
    pub by: String,
    /// When it was done, in RFC 3339.
    pub at: String,
    /// `failurePolicy` of each entry before.
    pub was: BTreeMap<String, String>,
}

/// Why the policies could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration could not be read or written.
    #[error("{}", .0.to_user("break-glass needs get and patch"))]
    Request(#[from] error::Error),
    /// The configuration cannot be put back by what the annotation says.
    #[error(
        "{name}: the annotation {ANNOTATION} cannot be read ({why}); set failurePolicy of its entries by hand, then remove the \
         annotation"
    )]
    Record {
        /// Name of the configuration.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

/// What is asked for.
#[derive(Debug, Clone)]
pub enum Order {
    /// Ignore, from now on.
    Break {
        /// The user.
        by: String,
        /// The time of the command.
        at: Timestamp,
    },
    /// As it was.
    Undo,
}

/// What is to be done to a configuration, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyStep {
    /// There is no such configuration.
    Absent,
    /// Nothing: it is as asked for. With the record that is in force.
    Nothing(Option<BreakGlassRecord>),
    /// These entries get these policies.
    Change(Vec<PolicyChange>),
}

/// What happens to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyChange {
    /// Name of the entry.
    pub entry: String,
    /// Its policy before.
    pub from: String,
    /// Its policy afterwards.
    pub to: String,
}

/// The moment without parts of a second, as Kubernetes writes times.
pub fn whole_seconds(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

/// When the glass was broken, of a record, which an earlier version may have written.
pub fn since(at: &str) -> String {
    at.parse::<Timestamp>().map_or_else(|_| at.to_owned(), |at| whole_seconds(at).to_string())
}

/// The user of the credentials, as the API server knows them.
///
/// # Errors
/// When the API server does not return it.
pub async fn who(client: &Client) -> Result<String, kube::Error> {
    let api = Api::<SelfSubjectReview>::all(client.clone());
    let answer = api.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(answer.status.and_then(|status| status.user_info?.username).unwrap_or_default())
}

/// Does what is asked for to one configuration; `dry_run` has the API server check it without storing it. How long a request may take
/// is the client's.
///
/// # Errors
/// [`Error`].
pub async fn carry_out<C: Configuration>(client: &Client, order: &Order, dry_run: bool) -> Result<PolicyStep, Error> {
    let params = PatchParams { dry_run, ..patching(FIELD_MANAGER) };
    let plan = |found: &Value| match plan(found, order) {
        Ok((step, patch)) => (Ok(step), patch),
        Err(why) => (Err(why), None),
    };
    match rewrite::<C, _>(client, &params, plan).await? {
        Some((step, _)) => step.map_err(|why| Error::Record { name: C::NAME, why }),
        None => Ok(PolicyStep::Absent),
    }
}

/// What is to be done to a configuration, and the patch that does it.
///
/// # Errors
/// Why an annotation that is to be undone cannot be read.
fn plan(found: &Value, order: &Order) -> Result<(PolicyStep, Option<Value>), String> {
    let record = annotation(found, ANNOTATION).and_then(Value::as_str).map(serde_json::from_str::<BreakGlassRecord>);
    let (wanted, record) = match (order, record) {
        (Order::Undo, None) => return Ok((PolicyStep::Nothing(None), None)),
        (Order::Undo, Some(Err(error))) => return Err(error.to_string()),
        (Order::Undo, Some(Ok(record))) => (record.was, None),
        (Order::Break { by, at }, record) => {
            let in_force = record.and_then(Result::ok);
            let mut wanted = BTreeMap::new();
            let mut new = in_force.clone().unwrap_or_else(|| BreakGlassRecord {
                by: by.clone(),
                at: at.to_string(),
                was: BTreeMap::new(),
            });
            for (entry, policy) in policies(found) {
                wanted.insert(entry.to_owned(), IGNORE.to_owned());
                // An entry may have come, or been put back by an upgrade, since the glass was broken.
                new.was.entry(entry.to_owned()).or_insert_with(|| policy.to_owned());
            }
            if in_force.as_ref() == Some(&new) && changes(found, &wanted).is_empty() {
                return Ok((PolicyStep::Nothing(in_force), None));
            }
            (wanted, Some(new))
        }
    };
    let changes = changes(found, &wanted);
    let policies: Vec<(&str, &str)> =
        changes.iter().map(|change| (change.entry.as_str(), change.to.as_str())).collect();
    let note = match record {
        Some(record) => Value::String(json!(record).to_string()),
        None => Value::Null,
    };
    let patch = patch(found, ANNOTATION, &note, &policies);
    Ok((PolicyStep::Change(changes), Some(patch)))
}

/// Whether break-glass is in force for a configuration.
pub fn is_in_force(configuration: &Value) -> bool {
    annotation(configuration, ANNOTATION).is_some()
}

fn changes(found: &Value, wanted: &BTreeMap<String, String>) -> Vec<PolicyChange> {
    let change = |(entry, from): (&str, &str)| {
        let to = wanted.get(entry).filter(|to| *to != from)?;
        Some(PolicyChange { entry: entry.to_owned(), from: from.to_owned(), to: to.clone() })
    };
    policies(found).filter_map(change).collect()
}

/// Gives the entries of a configuration that is about to be applied the policies that are stored, while break-glass is in
/// force: the client that applies it owns every field that it names.
pub fn keep_policies(wanted: &mut Value, stored: &Value) {
    if !is_in_force(stored) {
        return;
    }
    let kept: BTreeMap<&str, &str> = policies(stored).collect();
    for entry in wanted.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let policy = entry.get("name").and_then(Value::as_str).and_then(|name| kept.get(name));
        if let (Some(policy), Some(entry)) = (policy.copied(), entry.as_object_mut()) {
            entry.insert("failurePolicy".to_owned(), policy.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(policies: &[(&str, &str)], annotation: Option<&str>) -> Value {
        let webhooks: Vec<Value> =
            policies.iter().map(|(name, policy)| json!({"name": name, "failurePolicy": policy})).collect();
        let annotations = annotation.map(|text| json!({ANNOTATION: text}));
        json!({"metadata": {"resourceVersion": "7", "annotations": annotations}, "webhooks": webhooks})
    }

    fn order() -> Order {
        Order::Break { by: "jane".to_owned(), at: "2026-01-02T03:04:05Z".parse().unwrap() }
    }

    fn change(entry: &str, from: &str, to: &str) -> PolicyChange {
        PolicyChange { entry: entry.to_owned(), from: from.to_owned(), to: to.to_owned() }
    }

    const RECORD: &str = r#"{"by":"jane","at":"2026-01-02T03:04:05Z","was":{"a":"Fail","b":"Ignore"}}"#;

    #[test]
    fn every_entry_is_turned_to_ignore_and_what_it_was_is_recorded() {
        let (step, patch) = plan(&configuration(&[("a", "Fail"), ("b", "Ignore")], None), &order()).unwrap();
        assert_eq!(step, PolicyStep::Change(vec![change("a", "Fail", "Ignore")]));
        let patch = patch.unwrap();
        assert_eq!(patch["webhooks"], json!([{"name": "a", "failurePolicy": "Ignore"}]));
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let record: Value =
            serde_json::from_str(patch["metadata"]["annotations"][ANNOTATION].as_str().unwrap()).unwrap();
        assert_eq!(record, serde_json::from_str::<Value>(RECORD).unwrap());
    }

    #[test]
    fn times_are_told_in_whole_seconds() {
        assert_eq!(since("2026-01-02T03:04:05.123456789Z"), "2026-01-02T03:04:05Z");
        assert_eq!(since("some day"), "some day");
    }

    #[test]
    fn undo_puts_back_what_was_and_removes_the_record() {
        let broken = configuration(&[("a", "Ignore"), ("b", "Ignore"), ("new", "Ignore")], Some(RECORD));
        let (step, patch) = plan(&broken, &Order::Undo).unwrap();
        assert_eq!(step, PolicyStep::Change(vec![change("a", "Ignore", "Fail")]));
        assert_eq!(
            patch.unwrap(),
            json!({"metadata": {"resourceVersion": "7", "annotations": {ANNOTATION: null}},
                "webhooks": [{"name": "a", "failurePolicy": "Fail"}]})
        );
    }

    #[test]
    fn both_ways_can_be_gone_twice() {
        let broken = configuration(&[("a", "Ignore"), ("b", "Ignore")], Some(RECORD));
        let in_force = PolicyStep::Nothing(Some(serde_json::from_str(RECORD).unwrap()));
        assert_eq!(plan(&broken, &order()).unwrap(), (in_force, None));
        assert_eq!(
            plan(&configuration(&[("a", "Fail")], None), &Order::Undo).unwrap(),
            (PolicyStep::Nothing(None), None)
        );
    }

    #[test]
    fn an_upgrade_meanwhile_does_not_change_what_is_put_back() {
        let upgraded = configuration(&[("a", "Fail"), ("b", "Ignore"), ("new", "Fail")], Some(RECORD));
        let (step, patch) = plan(&upgraded, &order()).unwrap();
        assert_eq!(step, PolicyStep::Change(vec![change("a", "Fail", "Ignore"), change("new", "Fail", "Ignore")]));
        let record = patch.unwrap()["metadata"]["annotations"][ANNOTATION].as_str().unwrap().to_owned();
        let record: BreakGlassRecord = serde_json::from_str(&record).unwrap();
        assert_eq!(
            record.was,
            [("a", "Fail"), ("b", "Ignore"), ("new", "Fail")].map(|(a, b)| (a.into(), b.into())).into()
        );
    }

    #[test]
    fn a_record_that_cannot_be_read_is_not_undone_by_guessing() {
        assert!(plan(&configuration(&[("a", "Ignore")], Some("{")), &Order::Undo).is_err());
    }

    #[test]
    fn what_is_applied_keeps_the_policies_only_while_the_record_is_there() {
        let wanted =
            || json!({"webhooks": [{"name": "a", "failurePolicy": "Fail"}, {"name": "new", "failurePolicy": "Fail"}]});
        for (annotation, expected) in [(Some(RECORD), ["Ignore", "Fail"]), (None, ["Fail", "Fail"])] {
            let mut applied = wanted();
            keep_policies(&mut applied, &configuration(&[("a", "Ignore")], annotation));
            assert_eq!([&applied["webhooks"][0]["failurePolicy"], &applied["webhooks"][1]["failurePolicy"]], expected);
        }
    }
}
