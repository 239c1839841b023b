//! How many pods were not ready at one time, as a watch of its own saw it: every state of every pod, whatever a list would have missed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A watch of the pods of an app in the namespace default.
pub struct UnavailablePods {
    most: Arc<AtomicUsize>,
    seen: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl UnavailablePods {
    /// Begins to watch, on this runtime.
    pub fn watch(runtime: &Handle, client: Client, app: &str) -> Self {
        let (most, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (of_most, of_seen) = (Arc::clone(&most), Arc::clone(&seen));
        let labels = format!("app={app}");
        let task = runtime.spawn(async move {
            let pods: Api<Pod> = Api::namespaced(client, "default");
            let mut down = BTreeSet::new();
            let mut events = watcher::watcher(pods, watcher::Config::default().labels(&labels)).boxed();
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::Apply(pod) | Event::InitApply(pod)) if !is_ready(&pod) => down.insert(pod.name_any()),
                    Ok(Event::Apply(pod) | Event::InitApply(pod) | Event::Delete(pod)) => down.remove(&pod.name_any()),
                    _ => continue,
                };
                of_most.fetch_max(down.len(), Ordering::Relaxed);
                of_seen.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { most, seen, task }
    }

    /// States of pods that it has seen.
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::Relaxed)
    }

    /// Ends the watch; returns the greatest number of pods that were not ready at one time.
    pub fn most(self) -> usize {
        assert!(!self.task.is_finished(), "the watch has ended by itself");
        self.task.abort();
        self.most.load(Ordering::Relaxed)
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|it| it.type_ == "Ready" && it.status == "True")
}
