//! Every webhook of this build, in one list: the server, the command line and the manifests read it.

use admission::Registry;

use crate::pod;
use crate::world::Snapshot;

/// The endpoints of every kind.
pub fn registry() -> Registry<Snapshot> {
    pod::register(Registry::default())
}
