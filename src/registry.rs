//! Every webhook of this build, in one list: the server, the command line and the manifests read it.

use admission::Registry;

use crate::workshop::Kinds;
use engine::pod;
use engine::sidecarset::defaults::SidecarSetDefaults;
use engine::sidecarset::validation::SidecarSetValidation;
use engine::sidecarset::{mutating_rule, validating_rule};
use engine::snapshot::Snapshot;

/// The endpoints of the product and of the kinds of the workshop that are on, and the conversions of all. A definition may outlive
/// the kind that is turned off: were its objects not converted, they could not be listed, and their namespaces not be deleted.
pub fn registry(kinds: &Kinds) -> Registry<Snapshot> {
    let product = pod::register(Registry::default())
        .defaulting(mutating_rule(), SidecarSetDefaults)
        .validating(validating_rule(), SidecarSetValidation);
    let aware =
        kinds.off().iter().fold(product, |registry, kind| registry.aware_of((kind.webhooks)(Registry::default())));
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
