//! `MergeTolerations` of k8s.io/kubernetes/pkg/util/tolerations, in time linear in the lists.

use super::cover::{Cover, Hashes, Parts};
use super::{Toleration, is_superset};

/// Up to this many tolerations, to compare all pairs beats every index.
const FEW: usize = 16;

/// Which of these tolerations are kept: not what an earlier one covers, and not what a later one covers that differs.
pub fn merged(all: &[&Toleration<'_>]) -> Vec<bool> {
    if all.len() <= FEW { merged_in_pairs(all) } else { merged_by_cover(all) }
}

/// As `MergeTolerations` does it.
pub fn merged_in_pairs(all: &[&Toleration<'_>]) -> Vec<bool> {
    let mut kept: Vec<bool> = Vec::with_capacity(all.len());
    for (index, one) in all.iter().enumerate() {
        let (earlier, rest) = all.split_at(index);
        let mut earlier = earlier.iter().zip(&kept).filter(|(_, kept)| **kept);
        let is_covered = earlier.any(|(earlier, _)| is_superset(earlier, one))
            || rest.iter().any(|later| later != one && is_superset(later, one));
        kept.push(!is_covered);
    }
    kept
}

/// The same in linear time.
pub fn merged_by_cover(all: &[&Toleration<'_>]) -> Vec<bool> {
    let hashes = Hashes::default();
    let all: Vec<(&Toleration<'_>, Parts)> = all.iter().map(|&one| (one, hashes.of(one))).collect();
    let mut later = Cover::with(&hashes);
    let mut is_covered: Vec<bool> = Vec::with_capacity(all.len());
    for (toleration, parts) in all.iter().rev() {
        is_covered.push(later.covers_otherwise(toleration, parts));
        later.insert(toleration, parts);
    }
    let mut kept = Cover::with(&hashes);
    let mut kept_flags = Vec::with_capacity(all.len());
    for ((toleration, parts), is_covered) in all.iter().zip(is_covered.into_iter().rev()) {
        let is_kept = !is_covered && !kept.covers_hashed(toleration, parts);
        if is_kept {
            kept.insert(toleration, parts);
        }
        kept_flags.push(is_kept);
    }
    kept_flags
}
