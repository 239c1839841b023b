//! Pairs for a hot upgrade in a pod that has them already: which of the two works changes with each upgrade.

use std::collections::BTreeMap;

use super::pieces;
use crate::pod::view::PodView;
use crate::sidecarset::compiled::CompiledSet;
use crate::sidecarset::hot_upgrade::{Pair, is_of_pairs, names, of_new_pod};
use crate::sidecarset::sameness::is_image_of;

/// Whether a new pod brings a pair of the set in which the second container has the image: a manifest or a backup of a pod in which
/// that one works.
pub(super) fn is_turned(set: &CompiledSet, pod: &PodView<'_>) -> bool {
    let images = images(pod);
    set.pairs.iter().any(|pair| {
        let [first, second] = names(&pair.name).map(|name| images.get(&*name).copied());
        let is = |found: Option<&str>, ours: &str| found.is_some_and(|found| is_image_of(ours, found, &set.allowed));
        is(second, &pair.image) && is(first, &pair.empty_image)
    })
}

/// Lets the pairs of a new pod begin with the container that has the image in the pod. Which one works follows from the images alone:
/// both containers are compared with the set, and the pod gets the annotations that fit, whatever it brings.
pub(super) fn turn_at_creation(set: &mut CompiledSet, pod: &PodView<'_>) {
    turn(set, pod, None);
    let settled: BTreeMap<&str, &str> = set.pieces().map(|piece| (piece.name.as_str(), piece.image.as_str())).collect();
    let order = |pair: &Pair| {
        let [first, second] = names(&pair.name);
        let is_first_idle = settled.get(&*first) == Some(&&*pair.empty_image) && pair.image != pair.empty_image;
        if is_first_idle { [second, first] } else { [first, second] }
    };
    let annotations = of_new_pod(set.pairs.iter().map(|pair| (&*pair.name, order(pair))));
    set.metadata.retain(|piece| !is_of_pairs(&piece.key));
    set.metadata.extend(annotations);
}

/// Gives the two containers of each pair the images with which the pod may have them: those of the one that works and of the one that
/// waits, in either order. While one of them is upgraded, the other keeps what it had `before`, if the pod was to carry the set then.
/// Where the pod has others, the pair stays as in a new pod.
pub(super) fn turn(set: &mut CompiledSet, pod: &PodView<'_>, before: Option<&PodView<'_>>) {
    let (now, before) = (images(pod), before.map(images));
    let written: BTreeMap<&str, &str> = set.pieces().map(|piece| (piece.name.as_str(), piece.image.as_str())).collect();
    let (mut turned, mut pairs) = (BTreeMap::new(), set.pairs.clone());
    for pair in &mut pairs {
        let [first, second] = names(&pair.name);
        let (Some(image), Some(empty)) = (written.get(&*first), written.get(&*second)) else { continue };
        // A pod may have asked for another tag.
        (pair.image, pair.empty_image) = ((*image).into(), (*empty).into());
        let (Some(one), Some(other)) = (now.get(&*first), now.get(&*second)) else { continue };
        let is = |found: &str, ours: &str| is_image_of(ours, found, &set.allowed);
        let is_kept = |name: &str| before.as_ref().is_some_and(|before| before.get(name) == now.get(name));
        let images = if is(one, image) && is(other, empty) {
            continue;
        } else if is(one, empty) && is(other, image) {
            [empty, image]
        } else if is(one, image) && is_kept(&second) {
            [image, other]
        } else if is(other, image) && is_kept(&first) {
            [one, image]
        } else {
            continue;
        };
        turned.extend([first, second].into_iter().zip(images.map(|image| (*image).to_owned())));
    }
    set.pairs = pairs;
    for (_, piece) in pieces(set) {
        if let Some(image) = turned.remove(&piece.name).filter(|image| *image != piece.image) {
            let mut object = piece.object();
            object.insert("image".to_owned(), image.into());
            *piece = piece.with(&object);
        }
    }
}

/// Images by container.
fn images<'v>(pod: &'v PodView<'_>) -> BTreeMap<&'v str, &'v str> {
    let all = pod.spec.containers().iter().chain(pod.spec.init_containers());
    all.map(|container| (container.name.as_str(), container.image.as_str())).collect()
}
