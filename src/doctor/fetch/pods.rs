//! Pods of which a leader would not keep everything. They are read in pages, and nothing of them is kept.

use kube::api::ListParams;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt as _};

use super::{Error, list, note};
use crate::answers::next_page;
use crate::doctor::facts::Facts;
use crate::sidecarset::controller::record::{PodRecord, Wanted};
use crate::sidecarset::controller::watched_pod::WatchedPod;
use crate::watch::SidecarSetResource;
use engine::sidecarset::api::{GROUP, PLURAL};

/// Pods in one page: a user may make each as large as an object can be.
const PAGE: u32 = 50;

/// Pods that are named.
const NAMED: usize = 5;

/// Counts them.
pub async fn clipped(client: &Client, facts: &mut Facts) -> Result<(), Error> {
    if !facts.defines(&format!("{PLURAL}.{GROUP}")) {
        return Ok(());
    }
    let sets = Api::<PartialObjectMeta<SidecarSetResource>>::all(client.clone());
    let sets = list(sets, &ListParams::default(), false, &mut facts.not_checked).await?;
    let wanted = Wanted { sets: sets.iter().map(|set| set.name_any().into()).collect(), ..Wanted::default() };
    let pods = Api::<WatchedPod>::all(client.clone());
    let mut next = Some(ListParams::default().limit(PAGE));
    while let Some(params) = next {
        let page = match pods.list(&params).await {
            Ok(page) => page,
            Err(failure) => return note::<WatchedPod>(failure, false, &mut facts.not_checked),
        };
        next = next_page(params, &page.metadata);
        let clipped = &mut facts.clipped_pods;
        for pod in page.items {
            if PodRecord::of(&pod, &wanted).is_some_and(|record| record.some_left_out) {
                clipped.count += 1;
                if clipped.first.len() < NAMED {
                    clipped.first.push(format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()));
                }
            }
        }
    }
    Ok(())
}
