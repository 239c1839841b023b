//! Positions in a list of the pod by name.
//!
//! Pods hold few of everything, and scanning a short list is the cheapest look-up. A long list is sorted, once: the author
//! of a pod must not make the look-ups of all sets cost as much as the pod is long.

use std::borrow::Cow;
use std::cell::OnceCell;

/// Up to this many elements are looked through.
const FEW: usize = 8;

/// The positions, sorted by name when they are first needed.
#[derive(Debug, Default)]
pub struct Positions<'p> {
    sorted: OnceCell<Vec<(Cow<'p, str>, usize)>>,
}

impl<'p> Positions<'p> {
    /// The first position of the name in `list`, which is the same list at every call. `name_of` reads an element's name, `is`
    /// compares it, which may be cheaper.
    pub fn find<T>(
        &self,
        list: &'p [T],
        name: &str,
        name_of: impl Fn(&'p T) -> Cow<'p, str>,
        is: impl Fn(&T) -> bool,
    ) -> Option<usize> {
        if list.len() <= FEW {
            return list.iter().position(is);
        }
        self.find_sorted(list, name, name_of)
    }

    /// As [`Self::find`], for lists whose elements are long.
    pub fn find_sorted<T>(&self, list: &'p [T], name: &str, name_of: impl Fn(&'p T) -> Cow<'p, str>) -> Option<usize> {
        let sorted = self.sorted.get_or_init(|| {
            let mut sorted: Vec<_> = list.iter().enumerate().map(|(position, it)| (name_of(it), position)).collect();
            sorted.sort_unstable();
            sorted
        });
        let first = sorted.partition_point(|(other, _)| other.as_ref() < name);
        sorted.get(first).filter(|(other, _)| other == name).map(|(_, position)| *position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_name_is_found_in_short_and_long_lists() {
        for length in [3, FEW, FEW + 1, 1000] {
            let names: Vec<String> = (0..length).map(|number| format!("n{}", number / 2)).collect();
            let positions = Positions::default();
            let find = |name: &str| positions.find(&names, name, |it| it.as_str().into(), |it| it == name);
            for number in 0..length {
                assert_eq!(find(&format!("n{}", number / 2)), Some(number / 2 * 2), "{length}");
            }
            assert_eq!(find("other"), None);
            assert_eq!(find(""), None);
        }
    }
}
