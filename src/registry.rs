//! Every webhook of this build, in one list: the server, the command line and the manifests read it.

use admission::Registry;

use crate::kinds::Kinds;
use engine::pod;
use engine::snapshot::Snapshot;

/// The endpoints of the kinds that are on, and the conversions of all. A definition may outlive the kind that is turned off: were its
/// objects not converted, they could not be listed, and their namespaces not be deleted.
pub fn registry(kinds: &Kinds) -> Registry<Snapshot> {
    let pods = pod::register(Registry::default(), kinds.stages());
    let aware = kinds.off().iter().fold(pods, |registry, kind| registry.aware_of((kind.webhooks)(Registry::default())));
    kinds.iter().fold(aware, |registry, kind| (kind.webhooks)(registry))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_webhooks_of_a_kind_that_is_off_are_not_served() {
        let paths = |kinds: &Kinds| -> HashSet<String> {
            registry(kinds).entries().iter().map(|entry| entry.path.clone()).collect()
        };
        let (none, all) = (paths(&Kinds::default()), paths(&Kinds::all()));
        assert!(none.is_subset(&all) && none.len() < all.len());
        assert!(!none.iter().any(|path| path.contains("welcome")));
    }

    #[test]
    fn objects_of_a_kind_that_is_off_are_converted() {
        let kinds = |kinds: &Kinds| -> Vec<String> {
            registry(kinds).conversions().iter().map(|conversion| conversion.kind().to_owned()).collect()
        };
        assert_eq!(kinds(&Kinds::default()), ["CronJob"]);
        assert_eq!(kinds(&Kinds::all()), ["CronJob"]);
    }
}
