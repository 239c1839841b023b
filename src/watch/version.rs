//! Which Kubernetes the API server is, and whether it resizes pods.

use std::time::Duration;

use futures::Stream;
use futures::stream::unfold;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use tokio::time::sleep;

use crate::answers::{answer, code};

/// A control plane can be upgraded while this process runs; no watch reports it.
const AGAIN: Duration = Duration::from_secs(300);

/// Nothing waits for the answer, so the pause may be long.
const RETRY: Duration = Duration::from_secs(15);

/// The minor version of Kubernetes 1, `None` when the answer does not contain it, and whether there is `pods/resize`: read every five
/// minutes. Failures are only logged.
pub fn versions(client: Client) -> impl Stream<Item = (Option<u32>, bool)> {
    unfold((client, Duration::ZERO), |(client, mut pause)| async move {
        loop {
            sleep(pause).await;
            match answer(read(&client)).await {
                Ok(found) => return Some((found, (client, AGAIN))),
                Err(error) => tracing::debug!(%error, "The API server returns no version, trying again"),
            }
            pause = RETRY;
        }
    })
}

async fn read(client: &Client) -> Result<(Option<u32>, bool), kube::Error> {
    let minor = minor(&client.apiserver_version().await?);
    let resizes = match client.list_core_api_resources("v1").await {
        Ok(resources) => resizes_pods(&resources),
        // Where discovery is not for everybody, nothing is tried.
        Err(error) if code(&error) == Some(403) => false,
        Err(error) => return Err(error),
    };
    Ok((minor, resizes))
}

fn resizes_pods(resources: &APIResourceList) -> bool {
    resources.resources.iter().any(|it| it.name == "pods/resize" && it.verbs.iter().any(|verb| verb == "patch"))
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

    #[test]
    fn the_api_server_resizes_pods_where_it_says_so() {
        for (name, verbs, expected) in [
            ("pods/resize", &["get", "patch", "update"][..], true),
            ("pods/resize", &["get"], false),
            ("pods/status", &["patch"], false),
        ] {
            let list = serde_json::json!({"groupVersion": "v1", "resources": [
                {"name": name, "singularName": "", "namespaced": true, "kind": "Pod", "verbs": verbs},
            ]});
            assert_eq!(resizes_pods(&serde_json::from_value(list).unwrap()), expected, "{name} {verbs:?}");
        }
    }
}
