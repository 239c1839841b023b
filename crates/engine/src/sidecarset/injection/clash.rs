//! Why a pod cannot carry a set, in words that name both sides.

use admission::Reason;
use admission::bounded::ellipsis;
use serde_json::value::RawValue;

use crate::pod::view::Container;
use crate::reasons;
use crate::sidecarset::compiled::{CompiledSet, Piece, VolumePiece};
use crate::sidecarset::hot_upgrade::WORKING_ANNOTATION;
use crate::sidecarset::injection::List;
use crate::sidecarset::overrides::OVERRIDES_ANNOTATION;

/// Longest part of a pod's own JSON that a message repeats, in characters.
const QUOTED_MAX: usize = 120;
/// Longest name of an object, and more than registries allow for an image's.
const NAME_MAX: usize = 253;
/// Which pods may carry a must in another form than the current one.
const OLDER_FORMS: &str = "an older form is accepted only where spec.injectionStrategy.revision gives it to new pods";

/// Why a pod cannot carry a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clash {
    /// The kind of clash.
    pub reason: Reason,
    /// Where in the pod.
    pub field: String,
    /// One sentence that names both sides.
    pub text: String,
}

impl Clash {
    /// The revision that new pods get cannot be injected.
    pub(crate) fn no_revision(why: &str) -> Self {
        Self { reason: reasons::EVALUATION_FAILED, field: String::new(), text: why.to_owned() }
    }

    /// A container of the pod's own. `field` is the first field in which it differs, where it is in the same list.
    pub(super) fn container(
        set: &CompiledSet,
        piece: &Piece,
        found: &Container<'_>,
        list: List,
        index: usize,
        field: Option<&str>,
    ) -> Self {
        // That the images differ can be seen.
        let differs = field.filter(|_| piece.image == *found.image);
        let differs = differs.map(|field| format!(", which differs in {field}")).unwrap_or_default();
        Self {
            reason: reasons::CONTAINER_CLASH,
            field: format!("spec.{}[{index}].name", list.field()),
            text: format!(
                "container {:?} (image {:?}) of SidecarSet {:?} has the name of the pod's own container {:?} (image {:?}){differs}; \
                 rename one of them",
                piece.name,
                piece.image,
                set.name,
                ellipsis(&found.name, NAME_MAX),
                ellipsis(&found.image, NAME_MAX)
            ),
        }
    }

    pub(super) fn forged(
        set: &CompiledSet,
        piece: &Piece,
        field: &str,
        found: &Container<'_>,
        list: List,
        index: usize,
    ) -> Self {
        Self {
            reason: reasons::CONTAINER_CLASH,
            field: format!("spec.{}[{index}]", list.field()),
            text: format!(
                "container {:?} (image {:?}) has the name of a container of SidecarSet {:?}, which no pod may opt out of, but differs \
                 from what the set injects (image {:?}) in {field}; remove it from the pod, or allow the change in the set's \
                 spec.allowedChanges; {OLDER_FORMS}",
                piece.name,
                ellipsis(&found.image, NAME_MAX),
                set.name,
                piece.image,
            ),
        }
    }

    pub(super) fn outdated(set: &CompiledSet, differing: &str) -> Self {
        Self {
            reason: reasons::CONTAINER_CLASH,
            field: "spec.containers".to_owned(),
            text: format!(
                "the pod carries another form of SidecarSet {:?} than the current one, and no pod may opt out of the set: \
                 {differing}; {OLDER_FORMS}; remove the set's containers from the pod, or render its manifest again",
                set.name
            ),
        }
    }

    pub(super) fn volume(set: &CompiledSet, volume: &VolumePiece, found: &RawValue, index: usize) -> Self {
        Self {
            reason: reasons::VOLUME_CLASH,
            field: format!("spec.volumes[{index}]"),
            text: format!(
                "volume {:?} of SidecarSet {:?} ({}) has the name of the pod's own volume ({}); \
                 rename one of them, or give both the same source",
                volume.name,
                set.name,
                shortened(&volume.json),
                shortened(found.get())
            ),
        }
    }

    pub(super) fn port(
        set: &CompiledSet,
        piece: &Piece,
        what: &str,
        found: &Container<'_>,
        list: List,
        index: usize,
    ) -> Self {
        Self {
            reason: reasons::PORT_CLASH,
            field: format!("spec.{}[{index}].ports", list.field()),
            text: format!(
                "{what} of container {:?} of SidecarSet {:?} is taken by the pod's container {:?}",
                piece.name,
                set.name,
                ellipsis(&found.name, NAME_MAX)
            ),
        }
    }

    pub(super) fn own_port(set: &CompiledSet, owner: &str, piece: &Piece, port: &str) -> Self {
        Self {
            reason: reasons::PORT_CLASH,
            field: "spec.hostNetwork".to_owned(),
            text: format!(
                "containers {owner:?} and {:?} of SidecarSet {:?} both take host port {port}",
                piece.name, set.name
            ),
        }
    }

    /// An annotation that a set merges JSON into is no JSON.
    pub(super) fn no_json(set: &CompiledSet, key: &str, value: &str) -> Self {
        let (name, value) = (&set.name, shortened(value));
        let text = if key == WORKING_ANNOTATION {
            format!(
                "annotation {key:?} of the pod is no JSON: {value:?}; with SidecarSet {name:?} it names the container that works of each \
                 pair for a hot upgrade: remove it from the pod, which gets it anew"
            )
        } else {
            format!(
                "SidecarSet {name:?} merges JSON into annotation {key:?} of the pod, whose value is no JSON: {value:?}"
            )
        };
        Self { reason: reasons::EVALUATION_FAILED, field: format!("metadata.annotations[{key}]"), text }
    }

    /// A must for Windows selects a pod that may run on Windows, or not.
    pub(crate) fn unbound(set: &CompiledSet) -> Self {
        Self {
            reason: reasons::PLATFORM_UNKNOWN,
            field: "spec.os.name".to_owned(),
            text: format!(
                "the containers of SidecarSet {:?} run on {:?}, and the pod does not say on which operating system it runs; set \
                 spec.os.name to \"windows\", or to \"linux\" for a pod that runs on Linux and goes without the set",
                set.name, set.platform
            ),
        }
    }

    pub(super) fn overriding(set: &CompiledSet, container: &str, field: &str, why: &str) -> Self {
        let place = if field.is_empty() { container.to_owned() } else { format!("{container}.{field}") };
        Self {
            reason: reasons::OVERRIDE_CLASH,
            field: format!("metadata.annotations[{OVERRIDES_ANNOTATION}]"),
            text: format!(
                "the pod's annotation {OVERRIDES_ANNOTATION} changes {place} of SidecarSet {:?}, which it may not: {why}",
                set.name
            ),
        }
    }

    pub(super) fn of_job(why: String) -> Self {
        Self { reason: reasons::JOB_SKIPPED, field: "spec.restartPolicy".to_owned(), text: why }
    }

    pub(super) fn evaluation(set: &CompiledSet, piece: &Piece, why: &str) -> Self {
        Self {
            reason: reasons::EVALUATION_FAILED,
            field: "spec.containers".to_owned(),
            text: format!(
                "the resources of container {:?} of SidecarSet {:?} cannot be computed: {why}",
                piece.name, set.name
            ),
        }
    }

    pub(super) fn between_sets(set: &CompiledSet, owner: &str, what: &str) -> Self {
        Self {
            reason: reasons::SET_CONFLICT,
            field: String::new(),
            text: format!(
                "SidecarSet {:?} and SidecarSet {owner:?} both add {what}; the pod carries {owner:?}",
                set.name,
                owner = ellipsis(owner, NAME_MAX)
            ),
        }
    }

    /// A container of the pod has more variables, mounts or devices than are read.
    pub(super) fn too_long(set: &CompiledSet) -> Self {
        Self {
            reason: Reason::TOO_LARGE,
            field: "spec.containers".to_owned(),
            text: format!(
                "SidecarSet {:?} takes something from the pod's containers or adds something to them, and one of these has more than \
                 160,000 variables, mounts or devices; make its lists smaller",
                set.name
            ),
        }
    }

    pub(super) fn illegal(set: &CompiledSet, field: &str, text: &str) -> Self {
        Self {
            reason: reasons::RESULT_ILLEGAL,
            field: field.to_owned(),
            text: format!("with SidecarSet {:?} the API server would refuse the pod: {text}", set.name),
        }
    }
}

/// The beginning of what the pod's author wrote: it may be megabytes, and every set repeats it.
pub(super) fn shortened(json: &str) -> String {
    ellipsis(json, QUOTED_MAX)
}
