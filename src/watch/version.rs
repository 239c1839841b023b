//! Which Kubernetes the API server is.

use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use tokio::time::{sleep, timeout};

use crate::answers::REQUEST_TIMEOUT;

/// A control plane can be upgraded while this process runs; no watch reports it.
const AGAIN: Duration = Duration::from_secs(300);

/// Nothing waits for the answer, so the pause may be long.
const RETRY: Duration = Duration::from_secs(15);

/// The minor version of Kubernetes 1, read every five minutes; `None` when the answer does not contain it. Failures are only logged.
pub fn minor_versions(client: Client) -> impl Stream<Item = Option<u32>> {
    unfold((client, Duration::ZERO), |(client, mut pause)| async move {
        loop {
            sleep(pause).await;
            match timeout(REQUEST_TIMEOUT, client.apiserver_version()).await {
                Ok(Ok(info)) => return Some((minor(&info), (client, AGAIN))),
                Ok(Err(error)) => tracing::debug!(%error, "The API server returns no version, trying again"),
                Err(_) => tracing::debug!("The API server does not answer the request for its version, trying again"),
            }
            pause = RETRY;
        }
    })
}

/// The minor version whose rules the API server applies: it may be configured to behave as an older one.
fn minor(info: &Info) -> Option<u32> {
    let major = info.emulation_major.as_ref().unwrap_or(&info.major);
    let minor = info.emulation_minor.as_ref().unwrap_or(&info.minor);
    // Providers write `30+`.
    (major == "1").then(|| minor.trim_end_matches('+').parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_version_is_the_one_that_the_api_server_goes_by() {
        for (info, expected) in [
            (Info { major: "1".to_owned(), minor: "36".to_owned(), ..Info::default() }, Some(36)),
            (Info { major: "1".to_owned(), minor: "30+".to_owned(), ..Info::default() }, Some(30)),
            (
                Info {
                    major: "1".to_owned(),
                    minor: "36".to_owned(),
                    emulation_major: Some("1".to_owned()),
                    emulation_minor: Some("34".to_owned()),
                    ..Info::default()
                },
                Some(34),
            ),
            (Info { major: "2".to_owned(), minor: "1".to_owned(), ..Info::default() }, None),
            (Info::default(), None),
        ] {
            assert_eq!(minor(&info), expected, "{info:?}");
        }
    }
}
