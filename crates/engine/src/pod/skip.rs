//! What leaves a pod alone before any set is read.

use admission::{Operation, Reason, Request};

use crate::pod::decoded::Decoded;
use crate::pod::view::{MIRROR_ANNOTATION, PodView};
use crate::reasons;
use crate::snapshot::Snapshot;

/// Why the request is answered without looking at the sets, if it is.
///
/// A `deletionTimestamp` is no reason: nothing that is being created is being deleted. The API server wipes it from what is
/// posted (`WipeObjectMetaSystemFields` in `k8s.io/apiserver/pkg/registry/rest`), but not from what server-side apply creates.
pub fn skip(request: &Request<'_, Decoded<PodView<'_>>>, snapshot: &Snapshot) -> Option<Reason> {
    if request.operation != Operation::Create {
        return Some(reasons::NOT_CREATE);
    }
    if snapshot.excludes(&request.namespace) {
        return Some(reasons::NAMESPACE_EXCLUDED);
    }
    // A pod whose annotations were cut is no mirror pod here: it is judged.
    let pod = request.object.as_ref()?.even_if_cut();
    if pod.metadata.annotation(MIRROR_ANNOTATION).is_some() {
        return Some(reasons::MIRROR_POD);
    }
    // The API server refuses it, unless a set made it a pod of sidecars alone.
    if pod.spec.containers().is_empty() {
        return Some(Reason::INVALID);
    }
    None
}
