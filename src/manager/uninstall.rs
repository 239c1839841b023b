//! Removes our webhook configurations, so that the API server calls no replica that is about to end.

use std::time::Duration;

use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};
use tokio::time::{sleep, timeout};

use super::configuration::Configuration;
use super::error;
use crate::answers::code;

const POLL: Duration = Duration::from_millis(200);

/// Why a configuration is still there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration could not be read or deleted.
    #[error("{}", .0.to_user("uninstall needs get and delete"))]
    Request(#[from] error::Error),
    /// It was deleted and stays.
    #[error("{name}: it is being deleted and still there after {} s; finalizers hold it: {finalizers}", grace_period.as_secs())]
    Held {
        /// Name of the configuration.
        name: &'static str,
        /// How long was waited.
        grace_period: Duration,
        /// Who holds it.
        finalizers: String,
    },
}

/// The outcome for a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// There was none.
    Absent,
    /// It is gone; with a dry run, it would be.
    Removed {
        /// Where the process is that registered itself, if one did.
        process: Option<String>,
    },
}

/// Removes a configuration and waits until it is gone, `grace_period` at most. With `dry_run` the API server checks the request and
/// removes nothing.
///
/// # Errors
/// [`Error`] when it is still there.
pub async fn remove<C: Configuration>(
    client: &Client,
    grace_period: Duration,
    dry_run: bool,
) -> Result<RemoveOutcome, Error> {
    let api = Api::<C>::all(client.clone());
    let Some(found) = get(&api).await? else { return Ok(RemoveOutcome::Absent) };
    let uid = found.meta().uid.clone();
    let process = found.entries().iter().find_map(|(_, config)| origin(config.url.as_deref()?));
    // One that was made meanwhile is another's.
    let preconditions = Some(Preconditions { uid: uid.clone(), resource_version: None });
    let params = DeleteParams { dry_run, preconditions, ..DeleteParams::default() };
    match api.delete(C::NAME, &params).await {
        Ok(_) => {}
        Err(error) if matches!(code(&error), Some(404 | 409)) => {}
        Err(error) => return Err(error::Error::api(C::NAME)(error).into()),
    }
    if dry_run {
        return Ok(RemoveOutcome::Removed { process });
    }
    let mut finalizers = Vec::new();
    let gone = async {
        loop {
            match get(&api).await? {
                Some(found) if found.meta().uid == uid => {
                    finalizers = found.meta().finalizers.clone().unwrap_or_default();
                }
                _ => return Ok(()),
            }
            sleep(POLL).await;
        }
    };
    match timeout(grace_period, gone).await {
        Ok(gone) => gone.map(|()| RemoveOutcome::Removed { process }),
        Err(_) => Err(Error::Held { name: C::NAME, grace_period, finalizers: finalizers.join(", ") }),
    }
}

/// Scheme, host and port of a URL.
fn origin(url: &str) -> Option<String> {
    let uri: http::Uri = url.parse().ok()?;
    Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?))
}

async fn get<C: Configuration>(api: &Api<C>) -> Result<Option<C>, Error> {
    Ok(api.get_opt(C::NAME).await.map_err(error::Error::api(C::NAME))?)
}
