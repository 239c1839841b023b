//! How much of a pod is decoded, and why so much.
//!
//! What is longer is cut while it is decoded, and a pod that a set, a plugin or a range concerns is then refused with code 422. Every
//! element costs more than to skip its bytes, so that a body of the shortest elements would cost a hundred times what an ordinary
//! one of its size does. The limits are far above what any pod needs that a kubelet can run, and small enough that a pod at all of
//! them at once is decided on in a few milliseconds.

use std::fmt;

use admission::bounded::first;
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use admission::limit::values;
use admission::reply::Cause;
use admission::{Denial, Review, raw};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::pod::borrowed_map::BorrowedMap;
use crate::pod::view::Spec;

/// Containers of each list. A step of a pipeline is one, and hundreds of them are known.
pub const CONTAINERS: usize = 1_000;
/// Ports of one container. There are no ranges of ports, so that pods list thousands; a number and a protocol take 10 bytes of the
/// 1.5 MiB that can be stored.
pub const PORTS: usize = 160_000;
/// Volumes: nodes mount some hundreds, the kubelet's own share included.
pub const VOLUMES: usize = 1_000;
/// Pull secrets, and resource claims.
pub const NAMES: usize = 1_000;
/// Tolerations, with those that plugins add: one for each taint that a cluster knows, of which it has dozens.
pub const TOLERATIONS: usize = 300;
/// Labels, and entries of the node selector, each.
pub const PAIRS: usize = 4_000;
/// More annotations than are stored of any object: no more different keys have 256 KiB, which is all that the API server allows.
pub const ANNOTATIONS: usize = 90_000;
/// More labels than are stored of any object: with the shortest keys that differ, each takes 9 bytes of etcd's 1.5 MiB.
pub const STORABLE_PAIRS: usize = 200_000;
/// Values in the resources of a container: names in requests and in limits, and claims.
pub const RESOURCES: usize = 250;
/// Variables, mounts or devices of one container, each. A pod with a container of more carries no set that reads them: what is behind
/// them would be hidden from the set, and more of the shortest variables can be stored.
pub const ELEMENTS: usize = 160_000;
/// Bytes that all sets together take from the containers of a pod and give to theirs. An API server stores no pod of that size:
/// etcd's limit is 1.5 MiB. Without a limit a long list of the pod's would be copied into as many containers as sets have.
pub const TAKEN_BYTES: usize = 3 * 1024 * 1024;
/// JSON values in that, as many as a set itself may hold. Each takes hundreds of bytes once it is decoded, and it is decoded for each
/// container that gets it.
pub const TAKEN_VALUES: usize = 20_000;
/// Sets that a pod's record may have beside those that select the pod, such as are gone. One of more is forged, and counts as none.
pub const OTHER_SETS: usize = 500;
/// Names of containers that are read of a record, each of which costs more than its few bytes: a pod has no more containers.
pub const RECORDED_NAMES: usize = 2 * CONTAINERS;

/// A limit of this module, or of the API server, that a pod does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The field of the pod.
    pub field: &'static str,
    limit: usize,
    unit: &'static str,
}

impl Exceeded {
    fn limit(&self) -> String {
        let Self { limit, unit, .. } = self;
        format!("holds more than {limit} {unit}")
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; make it smaller", self.field, self.limit())
    }
}

/// Whether the labels were cut, so that it is unknown which sets select the pod.
pub fn labels(labels: &BorrowedMap<'_>) -> Option<Exceeded> {
    labels.is_cut().then_some(Exceeded { field: "metadata.labels", limit: PAIRS, unit: "labels" })
}

/// Whether the labels of an object that has little else were cut.
pub fn labels_alone(labels: Option<&BorrowedMap<'_>>) -> Option<Exceeded> {
    let exceeded = Exceeded { field: "metadata.labels", limit: STORABLE_PAIRS, unit: "labels" };
    labels.is_some_and(BorrowedMap::is_cut).then_some(exceeded)
}

/// Whether the annotations are longer than the API server allows all of them together to be. They are not read then.
pub fn annotations(annotations: Option<&BorrowedMap<'_>>) -> Option<Exceeded> {
    let exceeded = Exceeded { field: "metadata.annotations", limit: ANNOTATIONS_MAX_BYTES, unit: "bytes" };
    annotations.is_some_and(BorrowedMap::is_cut).then_some(exceeded)
}

/// Whether the node selector was cut.
pub fn node_selector(labels: Option<&BorrowedMap<'_>>) -> Option<Exceeded> {
    let exceeded = Exceeded { field: "spec.nodeSelector", limit: PAIRS, unit: "labels" };
    labels.is_some_and(BorrowedMap::is_cut).then_some(exceeded)
}

/// Whether anything of the spec was cut.
pub fn spec(spec: &Spec<'_>) -> Option<Exceeded> {
    let length = |list: Option<usize>| list.unwrap_or_default();
    let lengths = [
        ("spec.containers", spec.containers().len(), CONTAINERS, "containers"),
        ("spec.initContainers", spec.init_containers().len(), CONTAINERS, "containers"),
        ("spec.volumes", length(spec.volumes.as_ref().map(Vec::len)), VOLUMES, "volumes"),
        ("spec.imagePullSecrets", length(spec.image_pull_secrets.as_ref().map(Vec::len)), NAMES, "secrets"),
        ("spec.resourceClaims", spec.resource_claims.len(), NAMES, "claims"),
    ];
    let cut = |(field, length, limit, unit)| cut(field, length, limit, unit);
    let cut = lengths.into_iter().find_map(cut).or_else(|| node_selector(Some(&spec.node_selector)));
    cut.or_else(|| of_whole("spec.resources", spec.resources)).or_else(|| {
        let all = [("spec.containers", spec.containers()), ("spec.initContainers", spec.init_containers())];
        all.into_iter().find_map(|(field, list)| resources(field, list.iter().map(|container| container.resources)))
    })
}

/// Whether there are too many containers in a field, or one has too much in its resources.
pub fn containers<'r>(
    field: &'static str,
    count: usize,
    all: impl Iterator<Item = Option<&'r RawValue>>,
) -> Option<Exceeded> {
    cut(field, count, CONTAINERS, "containers").or_else(|| resources(field, all))
}

/// Whether one of these resources of containers holds too much. The containers are in this field.
fn resources<'r>(field: &'static str, mut all: impl Iterator<Item = Option<&'r RawValue>>) -> Option<Exceeded> {
    all.any(|raw| raw.is_some_and(is_beyond)).then_some(Exceeded {
        field,
        limit: RESOURCES,
        unit: "values in the resources of a container",
    })
}

/// Whether such a list of requests or limits of an object as a whole holds too much.
pub fn of_whole(field: &'static str, list: Option<&RawValue>) -> Option<Exceeded> {
    list.is_some_and(is_beyond).then_some(Exceeded { field, limit: RESOURCES, unit: "values" })
}

/// Whether resources hold too many values.
fn is_beyond(resources: &RawValue) -> bool {
    let text = resources.get();
    // The shortest name and amount take four bytes.
    text.len() > 4 * RESOURCES && values(text, RESOURCES) > RESOURCES
}

/// A limit, where a list is longer.
pub const fn cut(field: &'static str, length: usize, limit: usize, unit: &'static str) -> Option<Exceeded> {
    if length > limit { Some(Exceeded { field, limit, unit }) } else { None }
}

/// Whether an update leaves the spec of a pod as it is stored: a pod that was stored when nothing limited it must stay changeable
/// otherwise.
pub fn keeps_spec(body: &str) -> bool {
    keeps(body, &["spec"])
}

/// Whether an update leaves what is at this path as it is stored, spelled as it was.
pub fn keeps(body: &str, path: &[&str]) -> bool {
    let Ok(review) = Review::<&RawValue>::parse(body.as_bytes()) else { return false };
    let (Some(new), Some(old)) = (review.request.object, review.request.old_object) else { return false };
    let at = |object| path.iter().try_fold(object, |object, field| raw::member(object, field)).map(RawValue::get);
    at(new) == at(old)
}

/// The refusal of such a pod.
pub fn too_large(exceeded: Exceeded) -> Denial {
    let cause = Cause {
        reason: "FieldValueTooLong".to_owned(),
        message: format!("{}; make it smaller", exceeded.limit()),
        field: exceeded.field.to_owned(),
    };
    Denial::too_large(format!("the pod is too large: {exceeded}")).with_causes([cause])
}

/// The refusal of another object.
pub fn object_too_large(exceeded: Exceeded) -> Denial {
    Denial::too_large(format!("the object is too large: {exceeded}"))
}

/// Decodes a list, or `null`, and builds at most one element more than `N`, by which one sees that it was cut.
///
/// # Errors
/// What the elements' own decoder reports.
pub fn at_most<'de, D, T, const N: usize>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    first(deserializer, N + 1)
}

/// As [`at_most`]; `null` is an empty list.
///
/// # Errors
/// As [`at_most`].
pub fn at_most_or_none<'de, D, T, const N: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(at_most::<D, T, N>(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::pod::view::PodView;

    #[test]
    fn a_list_is_cut_one_behind_its_limit_and_read_to_its_end() {
        #[derive(Deserialize)]
        struct Object {
            #[serde(deserialize_with = "at_most::<_, _, 3>")]
            list: Option<Vec<u8>>,
            last: u8,
        }
        for (json, expected) in [
            (r#"{"list":[1,2,3],"last":7}"#, Some(vec![1, 2, 3])),
            (r#"{"list":[1,2,3,4,5,6,"x",[[]]],"last":7}"#, Some(vec![1, 2, 3, 4])),
            (r#"{"list":null,"last":7}"#, None),
        ] {
            let object: Object = serde_json::from_str(json).unwrap();
            assert_eq!((object.list, object.last), (expected, 7), "{json}");
        }
    }

    #[test]
    fn a_pod_at_its_limits_is_within_them_and_one_more_of_anything_is_not() {
        let list = |length: usize, element: &str| format!("[{}]", vec![element; length].join(","));
        let table = [
            ("spec.containers", CONTAINERS, "{}"),
            ("spec.initContainers", CONTAINERS, "{}"),
            ("spec.volumes", VOLUMES, "0"),
            ("spec.imagePullSecrets", NAMES, "{}"),
            ("spec.resourceClaims", NAMES, "{}"),
        ];
        for (field, limit, element) in table {
            for (length, expected) in [(limit, None), (limit + 1, Some(field)), (2 * limit, Some(field))] {
                let name = field.rsplit('.').next().unwrap();
                let json = format!(r#"{{"spec":{{"{name}":{}}}}}"#, list(length, element));
                let pod: PodView<'_> = serde_json::from_str(&json).unwrap();
                assert_eq!(spec(&pod.spec).map(|exceeded| exceeded.field), expected, "{length}");
            }
        }
    }

    #[test]
    fn the_resources_of_one_container_are_limited() {
        for (names, expected) in [(RESOURCES - 2, None), (RESOURCES - 1, Some("spec.initContainers"))] {
            let requests: Vec<String> = (0..names).map(|at| format!(r#""x{at}":"1""#)).collect();
            let json = format!(
                r#"{{"spec":{{"initContainers":[{{}},{{"resources":{{"requests":{{{}}}}}}}]}}}}"#,
                requests.join(",")
            );
            let pod: PodView<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(spec(&pod.spec).map(|exceeded| exceeded.field), expected, "{names}");
        }
    }

    #[test]
    fn annotations_are_measured_all_together() {
        for (bytes, expected) in [(ANNOTATIONS_MAX_BYTES, false), (ANNOTATIONS_MAX_BYTES + 1, true)] {
            let json = format!(r#"{{"metadata":{{"annotations":{{"ab":"{}","c":""}}}}}}"#, "x".repeat(bytes - 3));
            let pod: PodView<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(annotations(pod.metadata.annotations.as_ref()).is_some(), expected);
        }
    }
}
