//! Releases the objects of a workshop kind that is no longer reconciled: the API server stops calling this process for their
//! conversion, and our finalizers are removed.

use std::fmt::Write as _;
use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::error::Error;
use crate::answers::{code, next_page, to_user, within};
use crate::field_managers::{UNINSTALL, patching};
use crate::kind::Kind;

const POLL: Duration = Duration::from_millis(500);

/// Objects in one page of a list: users may make the metadata of each as large as an object can be.
const PAGE: u32 = 50;

/// What to release.
#[derive(Debug, Clone)]
pub struct Retirement {
    /// Name of the definition.
    pub definition: String,
    /// The group, which our finalizers begin with.
    group: String,
    /// How objects are stored, and so how they can be had when nothing is converted.
    objects: ApiResource,
}

/// What became of a kind that was to be retired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetireOutcome {
    /// There is no such definition.
    Absent,
    /// We may not look whether there is one, as the API server says.
    Unknown(String),
    /// Nothing of ours is left.
    Free {
        /// Versions that are not served any more.
        stopped: Vec<String>,
        /// Objects that had a finalizer of ours.
        freed: usize,
    },
}

impl Retirement {
    /// Of a kind that has something to release: objects that are converted, or that its controller may have put a finalizer
    /// on, as it may write them.
    pub fn of(kind: &Kind) -> Option<Self> {
        let spec = kind.definition().spec;
        let (group, names) = (spec.group, spec.names);
        let is_own = |list: Option<Vec<String>>, own: &str| list.iter().flatten().any(|found| found == own);
        let writes = kind.cluster_rules().into_iter().any(|rule| {
            is_own(rule.api_groups, &group)
                && is_own(rule.resources, &names.plural)
                && rule.verbs.iter().any(|verb| verb == "patch")
        });
        (writes || spec.conversion.is_some()).then(|| Self {
            definition: format!("{}.{group}", names.plural),
            objects: kind.api_resource(),
            group,
        })
    }

    /// Has the API server serve the stored version alone and convert nothing, and takes our finalizers from every object. A
    /// controller that still runs does not put them back, as it sees that not every version is served.
    ///
    /// # Errors
    /// What the API server says; [`Error::Timeout`] when objects get finalizers of ours anew for so long.
    pub async fn carry_out(
        &self,
        client: &Client,
        grace_period: Duration,
        dry_run: bool,
    ) -> Result<RetireOutcome, Error> {
        within(grace_period, self.release(client, dry_run)).await
    }

    /// Whether there is a definition, and it is not retired. Where we may not read it, the kind was never installed for us.
    ///
    /// # Errors
    /// What else the API server says.
    pub async fn is_in_force(&self, client: &Client) -> Result<bool, Error> {
        match self.ask(definitions(client).get_opt(&self.definition)).await {
            Ok(found) => Ok(found.is_some_and(|found| stored_version_alone(&found.data).0.is_some())),
            Err(error) if error.code() == Some(403) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes our finalizers from objects that are being deleted. Returns how many there were.
    ///
    /// # Errors
    /// What the API server says; [`Error::Timeout`].
    pub async fn free_leaving(&self, client: &Client, grace_period: Duration) -> Result<usize, Error> {
        let free = async {
            let mut freed = 0;
            for object in self.held(client, |object| object.deletion_timestamp.is_some()).await? {
                freed += usize::from(self.free_one(client, &object, &patching(UNINSTALL)).await?);
            }
            Ok(freed)
        };
        within(grace_period, free).await
    }

    /// The objects that have a finalizer of ours, of those that are meant.
    async fn held(&self, client: &Client, is_meant: impl Fn(&ObjectMeta) -> bool) -> Result<Vec<ObjectMeta>, Error> {
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &self.objects);
        let (mut held, mut next) = (Vec::new(), Some(ListParams::default().limit(PAGE)));
        while let Some(params) = next {
            let page = self.ask(all.list_metadata(&params)).await?;
            next = next_page(params, &page.metadata);
            let found = page.items.into_iter().map(|object| object.metadata);
            held.extend(found.filter(|object| is_meant(object) && self.holds(object)).map(identity));
        }
        Ok(held)
    }

    async fn release(&self, client: &Client, dry_run: bool) -> Result<RetireOutcome, Error> {
        let definitions = definitions(client);
        let found = match self.ask(definitions.get_opt(&self.definition)).await {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(RetireOutcome::Absent),
            Err(Error::Api { source, .. }) if code(&source) == Some(403) => {
                return Ok(RetireOutcome::Unknown(to_user(&source, "uninstall needs get and patch")));
            }
            Err(error) => return Err(error),
        };
        let params = PatchParams { dry_run, ..patching(UNINSTALL) };
        let (patch, stopped) = stored_version_alone(&found.data);
        if let Some(patch) = patch {
            self.ask(definitions.patch(&self.definition, &params, &Patch::Merge(&patch))).await?;
        }
        let freed = self.free(client, &params).await?;
        Ok(RetireOutcome::Free { stopped, freed })
    }

    /// Looks again until none is held: a controller may have been about to hold one.
    async fn free(&self, client: &Client, params: &PatchParams) -> Result<usize, Error> {
        let mut freed = 0;
        loop {
            let held = self.held(client, |_| true).await?;
            if held.is_empty() {
                return Ok(freed);
            }
            for object in &held {
                freed += usize::from(self.free_one(client, object, params).await?);
            }
            if params.dry_run {
                return Ok(freed);
            }
            sleep(POLL).await;
        }
    }

    async fn free_one(&self, client: &Client, object: &ObjectMeta, params: &PatchParams) -> Result<bool, Error> {
        let Some(name) = &object.name else { return Ok(false) };
        let objects: Api<DynamicObject> = match &object.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.objects),
            None => Api::all_with(client.clone(), &self.objects),
        };
        let others: Vec<&String> =
            object.finalizers.iter().flatten().filter(|finalizer| !self.is_ours(finalizer)).collect();
        let patch = json!({"metadata": {"finalizers": others, "resourceVersion": object.resource_version}});
        match self.ask(objects.patch_metadata(name, params, &Patch::Merge(&patch))).await {
            Ok(_) => Ok(true),
            // Gone, or changed: the next pass reads it again.
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn holds(&self, object: &ObjectMeta) -> bool {
        object.finalizers.iter().flatten().any(|finalizer| self.is_ours(finalizer))
    }

    fn is_ours(&self, finalizer: &str) -> bool {
        finalizer.strip_prefix(&self.group).is_some_and(|rest| rest.starts_with('/'))
    }

    async fn ask<T>(&self, request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
        request.await.map_err(Error::api(&self.definition))
    }
}

/// What is read of an object that is held.
fn identity(object: ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: object.name,
        namespace: object.namespace,
        resource_version: object.resource_version,
        deletion_timestamp: object.deletion_timestamp,
        finalizers: object.finalizers,
        ..ObjectMeta::default()
    }
}

fn definitions(client: &Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()))
}

/// The merge patch that leaves only the stored version served, if another is, and the names of the others.
fn stored_version_alone(definition: &Value) -> (Option<Value>, Vec<String>) {
    let mut versions = definition.pointer("/spec/versions").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut stopped = Vec::new();
    for version in &mut versions {
        if version["served"] == true && version["storage"] != true {
            version["served"] = false.into();
            stopped.extend(version["name"].as_str().map(str::to_owned));
        }
    }
    // A list in a merge patch is taken as a whole.
    let conversion = json!({"strategy": "None", "webhook": null});
    let patch = json!({"spec": {"versions": versions, "conversion": conversion}});
    ((!stopped.is_empty()).then_some(patch), stopped)
}

impl RetireOutcome {
    /// In words, as a line of the command.
    pub fn describe(&self, dry_run: bool) -> String {
        let Self::Free { stopped, freed } = self else { return "not found, nothing to do".to_owned() };
        if stopped.is_empty() && *freed == 0 {
            return "nothing of Outrider holds it".to_owned();
        }
        let (would, would_have) = if dry_run { ("would be ", " (dry run)") } else { ("", "") };
        let mut words = String::new();
        if !stopped.is_empty() {
            // Writing to a String cannot fail.
            let versions = stopped.join(", ");
            let _ = if dry_run {
                write!(words, "{versions} would no longer be served, and nothing would be converted; ")
            } else {
                write!(words, "{versions} no longer served, and nothing converted; ")
            };
        }
        let objects = if *freed == 1 { "object" } else { "objects" };
        let _ = write!(words, "{freed} {objects} {would}freed of Outrider's finalizer{would_have}");
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    #[test]
    fn cronjobs_alone_are_converted_and_held_and_every_other_kind_needs_nothing() {
        let all: Vec<Retirement> = Kinds::all().iter().filter_map(Retirement::of).collect();
        let names: Vec<&str> = all.iter().map(|retirement| retirement.definition.as_str()).collect();
        assert_eq!(names, ["cronjobs.batch.outrider.dev"]);
        assert_eq!(all[0].objects.api_version, "batch.outrider.dev/v1");
    }

    #[test]
    fn only_what_is_served_and_not_stored_is_stopped() {
        let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage, "new": 1});
        let definition = |versions: &[Value]| json!({"spec": {"versions": versions, "other": 1}});
        let (patch, stopped) =
            stored_version_alone(&definition(&[version("v1", true, true), version("v2", true, false)]));
        assert_eq!(stopped, ["v2"]);
        let versions = [version("v1", true, true), version("v2", false, false)];
        let conversion = json!({"strategy": "None", "webhook": null});
        assert_eq!(patch, Some(json!({"spec": {"versions": versions, "conversion": conversion}})));
        assert_eq!(stored_version_alone(&definition(&versions)), (None, vec![]));
    }

    #[test]
    fn the_outcome_is_told_in_one_line() {
        let free = |stopped: &[&str], freed| RetireOutcome::Free {
            stopped: stopped.iter().map(ToString::to_string).collect(),
            freed,
        };
        for (outcome, dry_run, told) in [
            (RetireOutcome::Absent, false, "not found, nothing to do"),
            (free(&[], 0), false, "nothing of Outrider holds it"),
            (
                free(&["v2"], 1),
                false,
                "v2 no longer served, and nothing converted; 1 object freed of Outrider's finalizer",
            ),
            (free(&[], 2), false, "2 objects freed of Outrider's finalizer"),
            (
                free(&["v2"], 0),
                true,
                "v2 would no longer be served, and nothing would be converted; 0 objects would be freed of Outrider's \
                 finalizer (dry run)",
            ),
        ] {
            assert_eq!(outcome.describe(dry_run), told);
        }
    }
}
