//! The caBundles by which the API server trusts what we serve: in the webhook configurations, and in the definitions of kinds
//! that are converted.

mod conflict;
pub mod merge;
pub mod object;
pub mod observations;
pub mod publisher;

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use serde_json::json;

use self::conflict::BundleConflict;
use self::merge::{Duty, merge};
use self::object::{BundleLocation, Trust};
use super::trust_anchor::TrustAnchor;
use crate::answers::{NoAnswer, said};
use crate::names::{MUTATING, ON_DEMAND_MUTATING, ON_DEMAND_VALIDATING, VALIDATING};

/// Owner of every caBundle in managedFields: another than of our other fields, so that applying it gives up no other field.
pub const FIELD_MANAGER: &str = "outrider-ca-bundle";

/// Why the caBundles could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or could not be reached.
    #[error("{object}: {}", said(source))]
    Api {
        /// Kind and name.
        object: String,
        /// What happened.
        source: Box<kube::Error>,
    },
    /// No answer in time.
    #[error("the caBundles: {0}")]
    Timeout(#[from] NoAnswer),
}

/// All objects with caBundles of ours.
pub struct CaBundles {
    targets: Vec<Target>,
}

struct Target {
    api: Api<DynamicObject>,
    name: String,
    object: String,
    place: BundleLocation,
    conflict: BundleConflict,
    /// Nothing is lost while it is not there.
    is_optional: bool,
    /// The obstacle that was logged last.
    told: Option<Obstacle>,
}

/// Why a caBundle is not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Obstacle {
    Missing,
    Injected,
}

/// What was found, after it was brought in order as far as that was allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleState {
    /// Kind and name of the object.
    pub object: String,
    /// The authorities in its caBundle.
    pub trust: Trust,
    /// It belongs to cert-manager's injector.
    pub is_injected: bool,
}

impl CaBundles {
    /// Of our webhook configurations, and of these definitions.
    pub fn new(client: &Client, definitions: &[String]) -> Self {
        let mutating = ApiResource::erase::<MutatingWebhookConfiguration>(&());
        let validating = ApiResource::erase::<ValidatingWebhookConfiguration>(&());
        let definition = ApiResource::erase::<CustomResourceDefinition>(&());
        let target = |resource: &ApiResource, name: &str, place| Target {
            api: Api::all_with(client.clone(), resource),
            name: name.to_owned(),
            object: format!("{}/{name}", resource.kind.to_lowercase()),
            place,
            conflict: BundleConflict::default(),
            is_optional: false,
            told: None,
        };
        let mut targets = vec![
            target(&mutating, MUTATING, BundleLocation::Webhooks),
            target(&validating, VALIDATING, BundleLocation::Webhooks),
        ];
        // Without entries they hold nothing, and an installation of an earlier version has none.
        for (resource, name) in [(&mutating, ON_DEMAND_MUTATING), (&validating, ON_DEMAND_VALIDATING)] {
            targets.push(Target { is_optional: true, ..target(resource, name, BundleLocation::Webhooks) });
        }
        targets.extend(definitions.iter().map(|name| target(&definition, name, BundleLocation::Conversion)));
        Self { targets }
    }

    /// Reads every object that exists, and does `duty` for it.
    ///
    /// # Errors
    /// [`Error`], at the first object that cannot be read or written.
    pub async fn pass(
        &mut self,
        wanted: &[TrustAnchor],
        duty: Duty,
        check: Duration,
    ) -> Result<Vec<BundleState>, Error> {
        let mut found = Vec::new();
        for target in &mut self.targets {
            found.extend(target.pass(wanted, duty, check).await?);
        }
        Ok(found)
    }

    /// Whether all of them exist.
    pub fn are_complete(&self) -> bool {
        self.targets.iter().all(|target| target.told != Some(Obstacle::Missing))
    }
}

impl Target {
    async fn pass(
        &mut self,
        wanted: &[TrustAnchor],
        duty: Duty,
        check: Duration,
    ) -> Result<Option<BundleState>, Error> {
        let Some(found) = self.api.get_opt(&self.name).await.map_err(|error| self.failed(error))? else {
            self.report(Some(Obstacle::Missing).filter(|_| !self.is_optional), duty);
            return Ok(None);
        };
        let mut found = json!(found);
        let is_injected = object::is_injected(&found);
        self.report((is_injected && duty != Duty::Look).then_some(Obstacle::Injected), duty);
        let mut trust = Trust::of(&found, self.place);
        let bundle = merge(&trust, wanted, duty, Timestamp::now()).filter(|_| !is_injected);
        let lost = self.conflict.observe(&trust, Instant::now());
        if lost && let Some(pause) = self.conflict.pause(check) {
            let writer = object::other_writer(&found, FIELD_MANAGER).unwrap_or("unknown");
            tracing::warn!(
                object = self.object,
                writer,
                next_try_in = pause.as_secs_f64(),
                "Another client keeps replacing caBundle; configure that client to leave the field out"
            );
        }
        if let Some(bundle) = bundle.filter(|_| self.conflict.may_write(check, Instant::now())) {
            let patch = object::patch(&found, self.place, &bundle);
            let params = PatchParams::apply(FIELD_MANAGER).force();
            match self.api.patch(&self.name, &params, &Patch::Apply(&patch)).await {
                Ok(written) => found = json!(written),
                // Another client wrote it meanwhile; the next pass reads its version.
                Err(kube::Error::Api(status)) if status.code == 409 => return Ok(Some(self.found(trust, is_injected))),
                Err(error) => return Err(self.failed(error)),
            }
            trust = Trust::of(&found, self.place);
            self.conflict.written(&trust);
            let (trusted, retiring) = (trust.anchors().len(), trust.retiring.len());
            tracing::info!(object = self.object, trusted, retiring, "Wrote the caBundle");
        }
        Ok(Some(self.found(trust, is_injected)))
    }

    fn found(&self, trust: Trust, is_injected: bool) -> BundleState {
        BundleState { object: self.object.clone(), trust, is_injected }
    }

    fn failed(&self, source: kube::Error) -> Error {
        Error::Api { object: self.object.clone(), source: Box::new(source) }
    }

    /// Logs an obstacle once, if this process writes: one that registers itself creates what is missing.
    fn report(&mut self, obstacle: Option<Obstacle>, duty: Duty) {
        let news = obstacle.filter(|_| self.told != obstacle && duty != Duty::Look);
        self.told = obstacle;
        match (news, self.place) {
            (Some(Obstacle::Missing), BundleLocation::Webhooks) => tracing::warn!(
                object = self.object,
                "There is no such webhook configuration; apply what `outrider manifests webhooks` prints"
            ),
            (Some(Obstacle::Missing), BundleLocation::Conversion) => tracing::warn!(
                object = self.object,
                "There is no such definition; apply the chart, or `outrider manifests crds` with the same --enable-kinds"
            ),
            (Some(Obstacle::Injected), _) => tracing::warn!(
                object = self.object,
                "An annotation cert-manager.io/inject-… is there, so its caBundle is left alone; remove the annotation, or run with \
                 --certificates files and without --write-ca-bundle"
            ),
            (None, _) => {}
        }
    }
}
