//! Changes that others make to what is kept in order, as they happen.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll, select_all};
use futures::{FutureExt as _, Stream, StreamExt as _};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use tokio::time::sleep;

use crate::names::{MUTATING, VALIDATING};
use crate::watch::backoff::WatchBackoff;
use crate::watch::read_model::watch_config;

/// Who applies manifests changes several objects, and some of them twice.
const GATHERING: Duration = Duration::from_millis(500);

/// Notifies that one of the objects has changed.
pub struct Changes {
    told: SelectAll<BoxStream<'static, ()>>,
    /// How often we have written since it was quiet: two processes that each want their own address must not make the API server
    /// busy.
    written: u32,
}

impl Changes {
    /// Of the two webhook configurations, and of these definitions. A process that may not watch them gets no notice.
    pub fn of(client: &Client, definitions: &BTreeSet<String>) -> Self {
        let mut told = vec![
            watch::<MutatingWebhookConfiguration>(client, MUTATING),
            watch::<ValidatingWebhookConfiguration>(client, VALIDATING),
        ];
        told.extend(definitions.iter().map(|name| watch::<CustomResourceDefinition>(client, name)));
        Self { told: select_all(told), written: 0 }
    }

    /// Waits for a change, and until no other follows at once.
    pub async fn next(&mut self, longest: Duration) {
        if self.told.next().await.is_none() {
            return std::future::pending().await;
        }
        sleep(pause(self.written).min(longest)).await;
        while Pin::new(&mut self.told).next().now_or_never().flatten().is_some() {}
    }

    /// We have written.
    pub const fn wrote(&mut self) {
        self.written = self.written.saturating_add(1);
    }

    /// No client has changed anything for long.
    pub const fn quiet(&mut self) {
        self.written = 0;
    }
}

/// How long to gather after so many writes.
const fn pause(written: u32) -> Duration {
    GATHERING.saturating_mul(2_u32.saturating_pow(written.saturating_sub(1)))
}

fn watch<K: Resource<DynamicType = ()>>(client: &Client, name: &str) -> BoxStream<'static, ()> {
    let config = watch_config().fields(&format!("metadata.name={name}"));
    let name = name.to_owned();
    // Of any kind: the code of a watch is large, and is made for each type.
    let kind = ApiResource::erase::<K>(&());
    let objects = Api::<PartialObjectMeta<DynamicObject>>::all_with(client.clone(), &kind);
    changes(watcher(objects, config).backoff(WatchBackoff::default()), name)
}

fn changes(
    events: impl Stream<Item = Result<Event<PartialObjectMeta<DynamicObject>>, watcher::Error>> + Send + 'static,
    name: String,
) -> BoxStream<'static, ()> {
    let changes = events.filter_map(move |event| {
        let is_change = match &event {
            Ok(event) => {
                let is_change = matches!(event, Event::Apply(_) | Event::Delete(_));
                if is_change {
                    tracing::debug!(object = name, "Changed; checking it");
                }
                // What happened while nothing was watched is not reported.
                is_change || matches!(event, Event::InitDone)
            }
            Err(error) => {
                tracing::debug!(object = name, %error, "Cannot watch; changes are found by periodic checks");
                false
            }
        };
        std::future::ready(is_change.then_some(()))
    });
    changes.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_comes_soon_and_those_to_somebody_who_answers_back_ever_later() {
        let pauses: Vec<u128> = [0, 1, 2, 3, 6, u32::MAX].map(|written| pause(written).as_millis()).to_vec();
        assert_eq!(pauses[..5], [500, 500, 1000, 2000, 16000]);
        assert!(pauses[5] > 16000);
    }
}
