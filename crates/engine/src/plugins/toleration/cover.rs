//! Tolerations by what they cover, for long lists.
//!
//! Each toleration is looked up under up to eight keys that share its texts. Every text is hashed once, by the keyed hash of the
//! standard library, and what a key hashes to is put together from that: a pod's author can neither choose nor predict it.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher, RandomState};

use super::{Bucket, Toleration, buckets_of, is_superset};

/// Tolerations, by what they cover.
#[derive(Debug, Default)]
pub struct Cover<'t, 'a> {
    hashes: Hashes,
    identical: HashSet<Hashed<&'t Toleration<'a>>, Prehashed>,
    /// The two of each bucket that differ and reach furthest: of these one covers, or none does.
    buckets: HashMap<Hashed<Bucket<'t>>, [Option<&'t Toleration<'a>>; 2], Prehashed>,
    /// Buckets of no toleration here are not looked up.
    kinds: BucketKinds,
}

/// Which kinds of buckets there are.
#[derive(Debug, Clone, Copy, Default)]
#[allow(clippy::struct_excessive_bools)] // facts that do not depend on each other
struct BucketKinds {
    any_key: bool,
    any_effect: bool,
    any_value: bool,
    one_value: bool,
}

impl BucketKinds {
    const fn add(&mut self, bucket: Bucket<'_>) {
        let (key, effect, operator) = bucket;
        self.any_key |= key.is_empty();
        self.any_effect |= effect.is_empty();
        self.any_value |= operator.is_none();
        self.one_value |= operator.is_some();
    }

    /// Whether there may be one like this.
    const fn may_have(self, bucket: Bucket<'_>) -> bool {
        let (key, effect, operator) = bucket;
        (self.any_key || !key.is_empty())
            && (self.any_effect || !effect.is_empty())
            && (if operator.is_none() { self.any_value } else { self.one_value })
    }
}

impl<'t, 'a> Cover<'t, 'a> {
    /// All of these.
    pub fn of(tolerations: impl IntoIterator<Item = &'t Toleration<'a>>) -> Self {
        let mut cover = Self::default();
        for toleration in tolerations {
            let parts = cover.hashes.of(toleration);
            cover.insert(toleration, &parts);
        }
        cover
    }

    /// None yet. What is added is hashed by these.
    pub(super) fn with(hashes: &Hashes) -> Self {
        Self { hashes: hashes.clone(), ..Self::default() }
    }

    /// Those of each bucket that differ and reach furthest.
    pub(super) fn furthest(&self) -> impl Iterator<Item = &Toleration<'a>> {
        self.buckets.values().flatten().flatten().copied()
    }

    /// Adds one.
    pub(super) fn insert(&mut self, toleration: &'t Toleration<'a>, parts: &Parts) {
        if !self.identical.insert(Hashed { hash: parts.identity(), value: toleration }) {
            return;
        }
        let Some(bucket) = toleration.bucket() else { return };
        self.kinds.add(bucket);
        let [first, second] = self.buckets.entry(parts.hashed(bucket)).or_default();
        let beats = |other: Option<&Toleration<'_>>| other.is_none_or(|other| toleration.reach() > other.reach());
        if beats(*first) {
            *second = first.replace(toleration);
        } else if beats(*second) {
            *second = Some(toleration);
        }
    }

    /// Whether one of them covers it.
    pub fn covers(&self, toleration: &'t Toleration<'a>) -> bool {
        self.covers_hashed(toleration, &self.hashes.of(toleration))
    }

    /// As [`Self::covers`].
    pub(super) fn covers_hashed(&self, toleration: &'t Toleration<'a>, parts: &Parts) -> bool {
        self.identical.contains(&Hashed { hash: parts.identity(), value: toleration })
            || self.covers_otherwise(toleration, parts)
    }

    /// Whether one that is not identical covers it.
    pub(super) fn covers_otherwise(&self, toleration: &'t Toleration<'a>, parts: &Parts) -> bool {
        buckets_of(toleration).filter(|bucket| self.kinds.may_have(*bucket)).any(|bucket| {
            crate::plugins::work::done(1);
            let found = self.buckets.get(&parts.hashed(bucket)).into_iter().flatten().flatten();
            found.into_iter().any(|wide| *wide != toleration && is_superset(wide, toleration))
        })
    }
}

/// Hashes the texts of tolerations.
#[derive(Debug, Clone)]
pub(super) struct Hashes {
    state: RandomState,
    /// Of an empty text, which most have several of.
    empty: u64,
}

impl Default for Hashes {
    fn default() -> Self {
        let state = RandomState::new();
        Self { empty: state.hash_one(""), state }
    }
}

impl Hashes {
    /// The hashes of what a toleration consists of.
    pub(super) fn of(&self, toleration: &Toleration<'_>) -> Parts {
        let hash = |text: &str| if text.is_empty() { self.empty } else { self.state.hash_one(text) };
        Parts {
            key: hash(&toleration.key),
            effect: hash(&toleration.effect),
            value: hash(&toleration.value),
            rest: self.state.hash_one((toleration.operator.as_str(), toleration.toleration_seconds)),
            empty: self.empty,
        }
    }
}

/// The hashes of what a toleration consists of.
#[derive(Debug)]
pub(super) struct Parts {
    key: u64,
    effect: u64,
    value: u64,
    /// Of operator and seconds.
    rest: u64,
    /// Of an empty text.
    empty: u64,
}

impl Parts {
    const fn identity(&self) -> u64 {
        together(self.key, self.effect, self.value) ^ self.rest.rotate_left(7)
    }

    /// One of the toleration's own buckets, or of those that could cover it.
    fn hashed<'t>(&self, bucket: Bucket<'t>) -> Hashed<Bucket<'t>> {
        let (key, effect, operator) = bucket;
        let or_empty = |text: &str, hash| if text.is_empty() { self.empty } else { hash };
        // Any value hashes as no other does.
        let operator = operator.map_or(!self.empty, |_| self.value);
        Hashed { hash: together(or_empty(key, self.key), or_empty(effect, self.effect), operator), value: bucket }
    }
}

/// Rotated, so that the same text in two places does not cancel out.
const fn together(key: u64, effect: u64, operator: u64) -> u64 {
    key ^ effect.rotate_left(21) ^ operator.rotate_left(42)
}

/// A value whose hash is known.
#[derive(Debug, PartialEq, Eq)]
struct Hashed<T> {
    hash: u64,
    value: T,
}

impl<T> Hash for Hashed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

type Prehashed = BuildHasherDefault<Known>;

/// Takes a hash as it is.
#[derive(Debug, Default)]
struct Known(u64);

impl Hasher for Known {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
