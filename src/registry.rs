//! Every webhook of this build, in one list: the server, the command line and the manifests read it.

use admission::Registry;

use crate::kinds::Kinds;
use engine::pod;
use engine::snapshot::Snapshot;

/// The endpoints of the kinds that are on.
pub fn registry(kinds: &Kinds) -> Registry<Snapshot> {
    let pods = pod::register(Registry::default(), kinds.stages());
    kinds.iter().fold(pods, |registry, kind| (kind.webhooks)(registry))
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
}
