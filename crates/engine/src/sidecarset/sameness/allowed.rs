//! `spec.allowedChanges`: what of a set's containers and volumes may be another in the pod.

use std::collections::BTreeSet;

use super::paths;
use crate::sidecarset::api::AllowedChanges as Written;
use crate::sidecarset::mark;
use crate::sidecarset::vocabulary::IMAGE_DIGEST;

/// The changes that a set allows, in a form that can be compared with.
#[derive(Debug, Clone, Default)]
pub struct CompiledAllowedChanges(Option<Box<Allowed>>);

#[derive(Debug, Clone, Default)]
struct Allowed {
    env: Vec<FieldGlob>,
    mount_paths: Vec<FieldGlob>,
    volumes: BTreeSet<String>,
    fields: BTreeSet<String>,
}

impl CompiledAllowedChanges {
    /// Those of a set.
    pub fn of(written: Option<&Written>) -> Self {
        let Some(written) = written else { return Self::default() };
        let globs = |list: &Option<Vec<String>>| list.iter().flatten().map(|pattern| FieldGlob::new(pattern)).collect();
        Self(Some(Box::new(Allowed {
            env: globs(&written.env),
            mount_paths: globs(&written.mount_paths),
            volumes: written.volumes.iter().flatten().cloned().collect(),
            fields: written.fields.iter().flatten().cloned().collect(),
        })))
    }

    /// Whether a variable of this name may be added, changed or missing. The one that marks injected containers never may: without it
    /// a container of a set counts as the pod's own.
    pub(super) fn variable(&self, name: &str) -> bool {
        name != mark::NAME && self.0.iter().flat_map(|allowed| &allowed.env).any(|glob| glob.matches(name))
    }

    /// Whether a mount at this path may be added, changed or missing. What resolves to another path than it reads is not allowed:
    /// `/etc/ssl/../../usr/bin` begins like `/etc/ssl/*`.
    pub(super) fn mount_path(&self, path: &str) -> bool {
        let Some(allowed) = &self.0 else { return false };
        paths::clean(path).is_some_and(|path| allowed.mount_paths.iter().any(|glob| glob.matches(path)))
    }

    /// Whether the volume of this name may have another source.
    pub fn volume(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|allowed| allowed.volumes.contains(name))
    }

    /// Whether the field may have any value.
    pub(crate) fn field(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|allowed| allowed.fields.contains(name))
    }

    /// Whether a digest may follow the image.
    pub(super) fn image_digest(&self) -> bool {
        self.field(IMAGE_DIGEST)
    }
}

/// A pattern in which `*` matches any characters, also none.
#[derive(Debug, Clone)]
pub struct FieldGlob {
    first: String,
    // Bytes of all parts.
    length: usize,
    // What follows each asterisk. The last one is empty where nothing follows; the others are not.
    rest: Vec<String>,
}

impl FieldGlob {
    /// Reads a pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        let mut parts = pattern.split('*').map(str::to_owned);
        let (first, mut rest) = (parts.next().unwrap_or_default(), parts.collect::<Vec<_>>());
        // Two asterisks in a row match what one does.
        if let Some(last) = rest.pop() {
            rest.retain(|part| !part.is_empty());
            rest.push(last);
        }
        let length = first.len() + rest.iter().map(String::len).sum::<usize>();
        Self { first, length, rest }
    }

    /// Whether the pattern matches the whole text. The time follows the length of the text, whatever the pattern.
    pub fn matches(&self, text: &str) -> bool {
        // A search prepares by the length of what it searches for.
        if text.len() < self.length {
            return false;
        }
        let Some((last, between)) = self.rest.split_last() else { return text == self.first };
        let Some(mut text) = text.strip_prefix(&*self.first).and_then(|text| text.strip_suffix(&**last)) else {
            return false;
        };
        // The leftmost place is as good as any: what follows has the most room then.
        for part in between {
            let Some((_, after)) = text.split_once(&**part) else { return false };
            text = after;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::FieldGlob;

    #[test]
    fn an_asterisk_stands_for_any_characters() {
        for (pattern, matching, others) in [
            ("DD_*", &["DD_", "DD_ENV"][..], &["DD", "XDD_ENV", "dd_env"][..]),
            ("A", &["A"], &["", "AA", "B"]),
            ("", &[""], &["A"]),
            ("*", &["", "A"], &[]),
            ("a*b*c", &["abc", "aXbYc", "abbcc"], &["ab", "ac", "abcd", "acb"]),
            ("aa*aa", &["aaaa", "aaXaa"], &["aa", "aaa"]),
            ("*ab*ab*", &["abab", "xabyabz"], &["ab", "abb"]),
            ("**", &["", "A"], &[]),
            ("a**b***", &["ab", "aXbY"], &["a", "Xab"]),
        ] {
            for text in matching {
                assert!(FieldGlob::new(pattern).matches(text), "{pattern} {text}");
            }
            for text in others {
                assert!(!FieldGlob::new(pattern).matches(text), "{pattern} {text}");
            }
        }
    }

    /// A set may have a pattern of a megabyte, and a pod thousands of names that are compared with it.
    #[test]
    fn asterisks_in_a_row_are_compared_as_one() {
        let glob = FieldGlob::new(&format!("A{}B{}", "*".repeat(10_000), "*".repeat(10_000)));
        assert_eq!((glob.rest.len(), glob.matches("A_B_"), glob.matches("A_")), (2, true, false));
        assert_eq!((glob.length, glob.matches("AB"), glob.matches("B")), (2, true, false));
    }
}
