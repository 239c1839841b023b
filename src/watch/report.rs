//! What is wrong with a watch, in the log.

use kube::Resource;
use kube::runtime::watcher::{self, Event};

use crate::logging::throttle::LogThrottle;

/// Says what is wrong, and what to do where that is known; any event but `Init` shows that the watch works again. `Init` is made up
/// before the API server is asked.
pub fn report<K: Resource<DynamicType = ()>>(event: &Result<Event<K>, watcher::Error>, throttle: &mut LogThrottle) {
    match event {
        Ok(Event::Init) => {}
        Ok(_) => throttle.over(),
        Err(error) if throttle.is_news(error) => log::<K>(error),
        Err(_) => {}
    }
}

fn log<K: Resource<DynamicType = ()>>(error: &watcher::Error) {
    let kind = K::kind(&());
    match status_code(error) {
        // The usual 410 after a long interruption; the watcher lists again.
        Some(410) => tracing::debug!(%kind, %error, "Watch is too old, listing again"),
        Some(404) => tracing::error!(%kind, "The API server does not know this kind; apply `outrider manifests crds`"),
        Some(403) => {
            tracing::error!(%kind, %error, "Not allowed to watch; apply `outrider manifests rbac`");
        }
        _ => tracing::warn!(%kind, %error, "Watch failed, trying again"),
    }
}

pub(super) fn status_code(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::WatchError(status)
        | watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn a_trouble_is_over_when_the_watch_tells_of_something() {
        let failed = || watcher::Error::NoResourceVersion;
        for (event, is_over) in [
            (Ok(Event::Init), false),
            (Err(failed()), false),
            (Ok(Event::InitDone), true),
            (Ok(Event::Apply(ConfigMap::default())), true),
        ] {
            let mut throttle = LogThrottle::default();
            assert!(throttle.is_news(&failed()));
            report(&event, &mut throttle);
            assert_eq!(throttle.is_news(&failed()), is_over, "{event:?}");
        }
    }
}
