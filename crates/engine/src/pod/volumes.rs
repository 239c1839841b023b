//! The volumes of a pod by name, for one review.

use std::cell::Cell;

use serde_json::value::RawValue;

use crate::pod::positions::Positions;
use crate::pod::view::{NameOnly, is_named};

/// Up to this many volumes, of this many bytes together, are searched for a name.
const FEW: usize = 16;
const FEW_BYTES: usize = 16 * 1024;

/// So often. The text of each volume can be made to look like every name, and as many containers as sets have some may ask.
const SEARCHES: u8 = 8;

/// The volumes, by name.
#[derive(Debug, Default)]
pub struct Volumes<'p> {
    all: &'p [&'p RawValue],
    positions: Positions<'p>,
    searches: Cell<u8>,
    #[cfg(test)]
    names_read: Cell<usize>,
}

impl<'p> Volumes<'p> {
    /// Those of a pod.
    pub fn new(all: &'p [&'p RawValue]) -> Self {
        Self { all, ..Self::default() }
    }

    /// The first volume of that name. All look-ups together read each name a few times at most.
    pub fn find(&self, name: &str) -> Option<(usize, &'p RawValue)> {
        let index = if self.may_search() {
            self.all.iter().position(|raw| {
                self.count();
                is_named(raw, name)
            })?
        } else {
            let name_of = |raw: &'p &'p RawValue| {
                self.count();
                serde_json::from_str::<NameOnly<'p>>(raw.get()).map(|named| named.name.0).unwrap_or_default()
            };
            self.positions.find_sorted(self.all, name, name_of)?
        };
        Some((index, self.all.get(index)?))
    }

    fn may_search(&self) -> bool {
        let searches = self.searches.get();
        if searches >= SEARCHES || self.all.len() > FEW {
            return false;
        }
        self.searches.set(searches + 1);
        self.all.iter().map(|raw| raw.get().len()).sum::<usize>() <= FEW_BYTES
    }

    #[cfg_attr(not(test), allow(clippy::unused_self))]
    fn count(&self) {
        #[cfg(test)]
        self.names_read.set(self.names_read.get() + 1);
    }

    /// How many times a name was read.
    #[cfg(test)]
    pub const fn names_read(&self) -> usize {
        self.names_read.get()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_a_few_times_however_many_look_ups_there_are() {
        for (count, filler) in [(3, 0), (16, 0), (16, 2_000), (3_000, 0)] {
            // Each text holds a backslash, so that a search has to read it.
            let volumes: Vec<Box<RawValue>> = (0..count)
                .map(|at| format!(r#"{{"name":"\u0076{}","x":"{}"}}"#, at / 2, "x".repeat(filler)))
                .map(|json| RawValue::from_string(json).unwrap())
                .collect();
            let volumes: Vec<&RawValue> = volumes.iter().map(AsRef::as_ref).collect();
            let index = Volumes::new(&volumes);
            for at in (0..count).cycle().take(3_000) {
                assert_eq!(index.find(&format!("v{}", at / 2)).unwrap().0, at / 2 * 2);
                assert!(index.find("other").is_none());
            }
            assert!(index.names_read() <= (usize::from(SEARCHES) + 1) * count, "{}", index.names_read());
        }
    }
}
