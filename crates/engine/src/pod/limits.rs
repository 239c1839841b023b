//! How much of a pod is decoded, and why so much.
//!
//! What is longer is cut while it is decoded, and a pod that a set selects is then refused with code 422. Every number is above
//! what can be stored: etcd's request limit is 1.5 MiB by default, and the API server stores pods as protobuf, in which the
//! smallest element of each list takes the bytes that are named here. So no pod is refused that the API server could keep.

use std::fmt;

use admission::bounded::first;
use admission::format::metadata::ANNOTATIONS_MAX_BYTES;
use admission::reply::Cause;
use admission::{Denial, Request};
use serde::{Deserialize, Deserializer};

use crate::pod::view::PodView;

/// Containers, and init containers: name, image and the defaults that the API server fills in take 50 bytes.
pub const CONTAINERS: usize = 40_000;
/// Ports of one container: a number and a protocol take 10 bytes.
pub const PORTS: usize = 160_000;
/// Volumes: a name and a source take 12 bytes.
pub const VOLUMES: usize = 135_000;
/// Pull secrets, and resource claims: a name takes 7 bytes where all differ, and 16 bytes here.
pub const NAMES: usize = 230_000;
/// Labels, annotations and entries of the node selector: all keys differ, so a pair takes 9 bytes.
pub const PAIRS: usize = 175_000;

/// A limit of this module, or of the API server, that a pod does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The field of the pod.
    pub field: &'static str,
    limit: usize,
    unit: &'static str,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, limit, unit } = self;
        write!(f, "{field} holds more than {limit} {unit}, which no API server stores; make it smaller")
    }
}

/// Whether the labels were cut, so that it is unknown which sets select the pod.
pub fn labels(pod: &PodView<'_>) -> Option<Exceeded> {
    cut("metadata.labels", pod.metadata.labels.len(), PAIRS, "labels")
}

/// Whether the annotations are longer than the API server allows all of them together to be. They are not read then.
pub fn annotations(pod: &PodView<'_>) -> Option<Exceeded> {
    let pairs = pod.metadata.annotations.as_ref()?;
    let bytes: usize = pairs.iter().map(|(key, value)| key.len() + value.len()).sum();
    let exceeded = Exceeded { field: "metadata.annotations", limit: ANNOTATIONS_MAX_BYTES, unit: "bytes" };
    if bytes > ANNOTATIONS_MAX_BYTES { Some(exceeded) } else { cut(exceeded.field, pairs.len(), PAIRS, "annotations") }
}

/// Whether anything else was cut.
pub fn spec(pod: &PodView<'_>) -> Option<Exceeded> {
    let spec = &pod.spec;
    let length = |list: Option<usize>| list.unwrap_or_default();
    [
        ("spec.containers", spec.containers().len(), CONTAINERS, "containers"),
        ("spec.initContainers", spec.init_containers().len(), CONTAINERS, "containers"),
        ("spec.volumes", length(spec.volumes.as_ref().map(Vec::len)), VOLUMES, "volumes"),
        ("spec.imagePullSecrets", length(spec.image_pull_secrets.as_ref().map(Vec::len)), NAMES, "secrets"),
        ("spec.resourceClaims", spec.resource_claims.len(), NAMES, "claims"),
        ("spec.nodeSelector", spec.node_selector.len(), PAIRS, "labels"),
    ]
    .into_iter()
    .find_map(|(field, length, limit, unit)| cut(field, length, limit, unit))
}

const fn cut(field: &'static str, length: usize, limit: usize, unit: &'static str) -> Option<Exceeded> {
    if length > limit { Some(Exceeded { field, limit, unit }) } else { None }
}

/// The refusal of such a pod.
pub fn too_large(request: &Request<'_, PodView<'_>>, exceeded: Exceeded) -> Denial {
    let cause = Cause {
        reason: "FieldValueTooLong".to_owned(),
        message: exceeded.to_string(),
        field: exceeded.field.to_owned(),
    };
    Denial::too_large(&request.name, format!("the pod is too large: {exceeded}")).with_causes([cause])
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
                assert_eq!(spec(&pod).map(|exceeded| exceeded.field), expected, "{length}");
            }
        }
    }

    #[test]
    fn annotations_are_measured_all_together() {
        for (bytes, expected) in [(ANNOTATIONS_MAX_BYTES, false), (ANNOTATIONS_MAX_BYTES + 1, true)] {
            let json = format!(r#"{{"metadata":{{"annotations":{{"ab":"{}","c":""}}}}}}"#, "x".repeat(bytes - 3));
            let pod: PodView<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(annotations(&pod).is_some(), expected);
        }
    }
}
