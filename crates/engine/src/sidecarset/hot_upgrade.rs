//! Pairs of containers for a hot upgrade, as in `OpenKruise`: of two containers, one works and the other waits with an image that
//! does nothing, until a new version is started in it and takes over.
//!
//! The annotations are `OpenKruise`'s with our domain in place of `kruise.io`. A new pod starts with version 1 in the first
//! container, or in the second where the pod brings the pair with the image in that one: whatever a pod brings of annotations says nothing.

use serde_json::{Value, json};

use crate::sidecarset::api::{RawObject, SidecarContainer, SidecarSetSpec};
use crate::sidecarset::metadata::{AnnotationPiece, PatchPolicy};
use crate::sidecarset::sameness::{CompiledAllowedChanges, is_image_of};
use crate::sidecarset::vocabulary::HOT_UPGRADE;

/// On a pod: JSON, the name of each container with a hot upgrade and that of the one of its two which works.
pub const WORKING_ANNOTATION: &str = concat!(api_domain!(), "/sidecarset-working-hotupgrade-container");

/// In front of the name of one of the two, a key of the pod's annotations: its version.
pub const VERSION_PREFIX: &str = concat!("version.sidecarset.", api_domain!(), "/");

/// In front of the name of one of the two, a key of the pod's annotations: the version of the other.
pub const VERSION_ALT_PREFIX: &str = concat!("versionalt.sidecarset.", api_domain!(), "/");

/// Variables of both, and the annotation that each is taken from.
pub const VARIABLES: [(&str, &str); 2] =
    [("SIDECARSET_VERSION", VERSION_PREFIX), ("SIDECARSET_VERSION_ALT", VERSION_ALT_PREFIX)];

/// A container of a set that is upgraded by a second one, and the images that the two have in a pod, one each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Its name in the set.
    pub name: Box<str>,
    /// Image of the one that works.
    pub image: Box<str>,
    /// Image of the one that waits.
    pub empty_image: Box<str>,
}

impl Pair {
    /// Whether these are the images of the two, in the order of their names or the other way round; of one alone while it
    /// `is_handed_over`, as the other one has an older image until the upgrade ends.
    pub fn has(&self, [first, second]: [&str; 2], is_handed_over: bool, allowed: &CompiledAllowedChanges) -> bool {
        let is = |found: &str, image: &str| is_image_of(image, found, allowed);
        let works = |one: &str, other: &str| is(one, &self.image) && (is_handed_over || is(other, &self.empty_image));
        works(first, second) || works(second, first)
    }
}

/// The pairs of a set, init containers first.
pub fn pairs(spec: &SidecarSetSpec) -> Box<[Pair]> {
    let hot = spec.all_containers().filter(|container| is_hot(&container.0) && !container.name().is_empty());
    let pair = |container: &SidecarContainer| Pair {
        name: container.name().into(),
        image: container.text("image").into(),
        empty_image: empty_image(&container.0).into(),
    };
    hot.map(pair).collect()
}

/// Whether an annotation of a pod says how far its pairs are: it is written when the pod is created, and by hot upgrades.
pub fn is_of_pairs(key: &str) -> bool {
    key == WORKING_ANNOTATION || key.starts_with(VERSION_PREFIX) || key.starts_with(VERSION_ALT_PREFIX)
}

/// Whether a container is upgraded by a second one.
pub fn is_hot(container: &RawObject) -> bool {
    let upgrade = container.get("upgradeStrategy").and_then(|strategy| strategy.get("upgradeType"));
    upgrade.is_some_and(|type_| type_ == HOT_UPGRADE)
}

/// Names of the two containers.
pub fn names(name: &str) -> [String; 2] {
    [format!("{name}-1"), format!("{name}-2")]
}

/// The pair that a container of a pod is one of the two of.
pub fn pair_of<'p>(pairs: &'p [Pair], name: &str) -> Option<&'p Pair> {
    let base = name.strip_suffix("-1").or_else(|| name.strip_suffix("-2"))?;
    pairs.iter().find(|pair| &*pair.name == base)
}

/// The names that a container of a set has in pods.
pub fn names_in_pod(container: &SidecarContainer) -> Vec<String> {
    let name = container.name();
    if is_hot(&container.0) && !name.is_empty() { names(name).into() } else { vec![name.to_owned()] }
}

/// The image of the container that waits; empty where missing or not a string.
pub fn empty_image(container: &RawObject) -> &str {
    let upgrade = container.get("upgradeStrategy");
    upgrade.and_then(|strategy| strategy.get("hotUpgradeEmptyImage")?.as_str()).unwrap_or_default()
}

/// The two containers in place of one, which is `object` in a pod; `None` for a container without a hot upgrade.
pub fn pair(container: &SidecarContainer, object: &RawObject) -> Option<[RawObject; 2]> {
    if !is_hot(&container.0) {
        return None;
    }
    let image = container.0.get("image").cloned().unwrap_or_default();
    let images = [image, empty_image(&container.0).into()];
    let mut pairs = names(container.name()).into_iter().zip(images);
    let mut next = || pairs.next().map(|(name, image)| one_of_two(object.clone(), name, image));
    Some([next()?, next()?])
}

fn one_of_two(mut object: RawObject, name: String, image: Value) -> RawObject {
    let variables = VARIABLES.map(|(variable, prefix)| {
        let path = format!("metadata.annotations['{prefix}{name}']");
        json!({"name": variable, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
    });
    if let Value::Array(env) = object.entry("env").or_insert_with(|| json!([])) {
        env.extend(variables);
    }
    object.insert("name".to_owned(), name.into());
    object.insert("image".to_owned(), image);
    object
}

/// What a new pod says about the pairs of a set.
pub fn annotations(spec: &SidecarSetSpec) -> Vec<AnnotationPiece> {
    let hot = spec.all_containers().filter(|container| is_hot(&container.0));
    of_new_pod(hot.map(|container| (container.name(), names(container.name()))))
}

/// The same of these pairs: of each its name, the container that works and the one that waits.
pub fn of_new_pod<'n>(pairs: impl Iterator<Item = (&'n str, [String; 2])>) -> Vec<AnnotationPiece> {
    let mut working = serde_json::Map::new();
    let mut annotations = Vec::new();
    for (pair, [works, waits]) in pairs {
        for (name, version, other) in [(&works, "1", "0"), (&waits, "0", "1")] {
            annotations.push(overwrite(format!("{VERSION_PREFIX}{name}"), version));
            annotations.push(overwrite(format!("{VERSION_ALT_PREFIX}{name}"), other));
        }
        working.insert(pair.to_owned(), works.into());
    }
    if !working.is_empty() {
        let patch = Value::Object(working);
        let key = WORKING_ANNOTATION.to_owned();
        annotations.push(AnnotationPiece { key, value: patch.to_string(), policy: PatchPolicy::Merge(patch) });
    }
    annotations
}

fn overwrite(key: String, value: &str) -> AnnotationPiece {
    AnnotationPiece { key, value: value.to_owned(), policy: PatchPolicy::Overwrite }
}
