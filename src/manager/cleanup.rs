//! Cleaning up after a process outside the cluster that was killed: the API server would still call an address where no process
//! answers, and refuse the requests that it calls it for.
//!
//! A process that still answers keeps its webhooks: without them, pods would be stored that no set is injected into.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::{Api, Client};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::configuration::{Configuration, OnDemand};
use super::conversion::{is_written_by_us, point, url_of_a_process};
use super::error::Error;
use super::registration::{RETRY, remove};
use crate::answers::in_time;
use crate::logging::throttle::LogThrottle;
use crate::manifests::webhooks::WebhookTarget;
use crate::names::{MUTATING, VALIDATING};

/// What to check, for a process that does not register itself. One that does overwrites all of it.
#[derive(Debug, Clone)]
pub struct Cleanup {
    /// Names of the definitions whose objects are converted.
    pub converted: Vec<String>,
    /// Our own namespace.
    pub namespace: String,
    /// The port of this process: at a loopback address, no other process answers there.
    pub port: Option<u16>,
}

/// How long a process may take to accept a connection.
const ACCEPTED: Duration = Duration::from_secs(2);
/// Between two attempts to find out whether a process still answers.
const PAUSE_WHILE_SERVED: Duration = Duration::from_secs(10);

impl Cleanup {
    /// Removes webhook configurations that such a process made, and has definitions as they are printed; tries until that is
    /// done, or not allowed.
    pub async fn put_right(&self, client: &Client) {
        let mut throttle = LogThrottle::default();
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
                Err(error) => {
                    if throttle.is_news(&error) {
                        tracing::warn!(%error, "Cannot remove the webhooks of a killed process, trying again");
                    }
                    let is_served = matches!(error, Error::Served { .. });
                    sleep(if is_served { PAUSE_WHILE_SERVED } else { RETRY }).await;
                }
            }
        }
    }

    async fn try_to(&self, client: &Client) -> Result<(), Error> {
        for url in self.urls(client).await? {
            if self.answers(&url).await {
                return Err(Error::Served { url });
            }
        }
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

    /// Where processes outside the cluster are called.
    async fn urls(&self, client: &Client) -> Result<Vec<String>, Error> {
        let mut urls = urls_in::<MutatingWebhookConfiguration>(client).await?;
        urls.extend(urls_in::<ValidatingWebhookConfiguration>(client).await?);
        for definition in &self.converted {
            match url_of_a_process(client, definition).await {
                Ok(url) => urls.extend(url),
                Err(Error::NoDefinition(_)) => {}
                Err(error) => return Err(error),
            }
        }
        // Each process has one address, and a path for each entry.
        let mut addresses: Vec<String> = urls.iter().filter_map(|url| address(url)).collect();
        addresses.sort();
        addresses.dedup();
        Ok(addresses)
    }

    /// Whether another process accepts connections there. From a pod, an address of a developer's machine cannot be reached: such a
    /// process is taken for one that was killed.
    async fn answers(&self, address: &str) -> bool {
        if let Some((host, port)) = address.rsplit_once(':') {
            let host = host.trim_matches(['[', ']']);
            let is_loopback = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
            if is_loopback && self.port.is_some_and(|own| port == own.to_string()) {
                return false;
            }
        }
        matches!(timeout(ACCEPTED, TcpStream::connect(address)).await, Ok(Ok(_)))
    }

    async fn point_back(&self, client: &Client, definition: &str) -> Result<(), Error> {
        if url_of_a_process(client, definition).await?.is_none() {
            return Ok(());
        }
        let printed = WebhookTarget::Service { namespace: self.namespace.clone() }.converter(None);
        point(client, definition, &printed).await.map(drop)
    }
}

fn is_of_a_process<C: Configuration>(found: &C) -> bool {
    is_written_by_us(found) && found.entries().iter().all(|(_, config)| config.url.is_some())
}

async fn urls_in<C: Configuration>(client: &Client) -> Result<Vec<String>, Error> {
    let found = Api::<C>::all(client.clone()).get_opt(C::NAME).await.map_err(Error::api(C::NAME))?;
    let found = found.filter(is_of_a_process);
    Ok(found.iter().flat_map(Configuration::entries).filter_map(|(_, config)| config.url.clone()).collect())
}

/// Host and port of a URL.
fn address(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    Some(format!("{}:{}", uri.host()?, uri.port_u16().unwrap_or(443)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_answers_that_accepts_connections_and_is_not_this_one() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cleanup = |port| Cleanup { converted: Vec::new(), namespace: String::new(), port };
        let there = address(&format!("https://127.0.0.1:{port}/convert")).unwrap();
        assert!(cleanup(None).answers(&there).await);
        assert!(cleanup(Some(1)).answers(&there).await);
        assert!(!cleanup(Some(port)).answers(&there).await, "this process");
        drop(listener);
        assert!(!cleanup(None).answers(&there).await);
    }
}
