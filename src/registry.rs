//! Every webhook of this build, in one list: the server, the command line and the manifests read it.

use admission::Registry;

use crate::pod;
use crate::sidecarset::defaults::SidecarSetDefaults;
use crate::sidecarset::validation::SidecarSetValidation;
use crate::sidecarset::{mutating_rule, validating_rule};
use crate::workshop::Kinds;
use crate::world::Snapshot;

/// The endpoints of the product and of the kinds of the workshop that are on.
pub fn registry(kinds: &Kinds) -> Registry<Snapshot> {
    let product = pod::register(Registry::default())
        .defaulting(mutating_rule(), SidecarSetDefaults)
        .validating(validating_rule(), SidecarSetValidation);
    kinds.iter().fold(product, |registry, kind| (kind.webhooks)(registry))
}
