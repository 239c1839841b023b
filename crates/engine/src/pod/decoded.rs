//! Objects of which what is too long was cut while they were decoded.

use std::cell::OnceCell;

use serde::{Deserialize, Deserializer};

use crate::pod::limits::Exceeded;

/// An object that may be cut.
pub trait Limited {
    /// The limit that it does not keep, if anything of it was cut, or costs too much to read.
    fn exceeds(&self) -> Option<Exceeded>;
}

/// An object as it was decoded. A list or map that was cut looks like a whole one that ends there, so that who reads it must know that
/// it is whole: otherwise what is behind the cut would evade what is decided by it.
#[derive(Debug, Default)]
pub struct Decoded<T> {
    object: T,
    exceeds: OnceCell<Option<Exceeded>>,
}

impl<T> Decoded<T> {
    /// An object of which parts may be cut.
    pub const fn new(object: T) -> Self {
        Self { object, exceeds: OnceCell::new() }
    }

    /// The object, for fields that are never cut, and for questions whose answer may only be too strict where something is missing.
    pub const fn even_if_cut(&self) -> &T {
        &self.object
    }
}

impl<T: Limited> Decoded<T> {
    /// The object, which is whole.
    ///
    /// # Errors
    /// The limit that it does not keep.
    pub fn whole(&self) -> Result<&T, Exceeded> {
        self.exceeds.get_or_init(|| self.object.exceeds()).map_or(Ok(&self.object), Err)
    }

    /// The same, by value.
    ///
    /// # Errors
    /// As [`Self::whole`].
    pub fn into_whole(self) -> Result<T, Exceeded> {
        self.whole()?;
        Ok(self.object)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Decoded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}
