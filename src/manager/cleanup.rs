//! Cleaning up after a process outside the cluster that was killed: the API server would still call an address where no process
//! answers, and refuse the requests that it calls it for.

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::Client;
use tokio::time::sleep;

use super::configuration::{Configuration, OnDemand};
use super::conversion::{is_at_a_process, is_written_by_us, point};
use super::error::Error;
use super::registration::{RETRY, remove};
use crate::answers::in_time;
use crate::logging::throttle::LogThrottle;
use crate::manifests::webhooks::Target;
use crate::names::{MUTATING, VALIDATING};

/// What to check, for a process that does not register itself. One that does overwrites all of it.
#[derive(Debug, Clone)]
pub struct Leftovers {
    /// Names of the definitions whose objects are converted.
    pub converted: Vec<String>,
    /// Our own namespace.
    pub namespace: String,
}

impl Leftovers {
    /// Removes webhook configurations that such a process made, and has definitions as they are printed; tries until that is
    /// done, or not allowed.
    pub async fn put_right(&self, client: &Client) {
        let mut trouble = LogThrottle::default();
        loop {
            match in_time(self.try_to(client)).await {
                Ok(()) => return,
                Err(error) if error.code() == Some(403) => {
                    return tracing::error!(
                        %error,
                        "Webhooks of a process that was killed are still registered, and this one may not remove them: \
                         `kubectl delete mutatingwebhookconfiguration/{MUTATING} validatingwebhookconfiguration/{VALIDATING}`"
                    );
                }
                Err(error) if trouble.is_news(&error) => {
                    tracing::warn!(%error, "Cannot look for webhooks of a killed process, trying again");
                }
                Err(_) => {}
            }
            sleep(RETRY).await;
        }
    }

    async fn try_to(&self, client: &Client) -> Result<(), Error> {
        for definition in &self.converted {
            match self.point_back(client, definition).await {
                // One that is not there yet is printed with the Service.
                Ok(()) | Err(Error::NoDefinition(_)) => {}
                Err(error) => return Err(error),
            }
        }
        remove(client, is_of_a_process::<OnDemand<MutatingWebhookConfiguration>>).await?;
        remove(client, is_of_a_process::<OnDemand<ValidatingWebhookConfiguration>>).await?;
        remove(client, is_of_a_process::<MutatingWebhookConfiguration>).await?;
        remove(client, is_of_a_process::<ValidatingWebhookConfiguration>).await
    }

    async fn point_back(&self, client: &Client, definition: &str) -> Result<(), Error> {
        if !is_at_a_process(client, definition).await? {
            return Ok(());
        }
        let printed = Target::Service { namespace: self.namespace.clone() }.converter(None);
        point(client, definition, &printed).await.map(drop)
    }
}

fn is_of_a_process<C: Configuration>(found: &C) -> bool {
    is_written_by_us(found) && found.entries().iter().all(|(_, config)| config.url.is_some())
}
