//! Labels that take little more memory than their text.

use std::collections::BTreeMap;

use admission::format::selector::Labels;

/// The labels of an object, one behind the other in one piece of memory. In a map a short one takes ten times as much.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedLabels {
    text: Box<str>,
    /// Where keys and values end in the text, by turns.
    ends: Box<[u32]>,
}

impl PackedLabels {
    /// Every label, in the order of the object.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut begin = 0;
        let mut texts = self.ends.iter().map(move |end| {
            let end = usize::try_from(*end).unwrap_or(usize::MAX);
            self.text.get(std::mem::replace(&mut begin, end)..end).unwrap_or_default()
        });
        std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
    }

    /// The value of the label `key`, if the object has it.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().filter(|(known, _)| *known == key).last().map(|(_, value)| value)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The labels as a map.
    pub fn to_map(&self) -> BTreeMap<String, String> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }
}

impl Labels for PackedLabels {
    fn get(&self, key: &str) -> Option<&str> {
        Self::get(self, key)
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for PackedLabels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(labels: I) -> Self {
        let (mut text, mut ends) = (String::new(), Vec::new());
        for (key, value) in labels {
            for part in [key.as_ref(), value.as_ref()] {
                text.push_str(part);
                // No object has four gigabytes.
                ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX));
            }
        }
        Self { text: text.into(), ends: ends.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_they_were_and_of_a_repeated_key_the_last_counts() {
        let labels = [("a", "b"), ("", ""), ("c", ""), ("é", "ü"), ("a", "z")];
        let packed: PackedLabels = labels.into_iter().collect();
        assert_eq!(packed.iter().collect::<Vec<_>>(), labels);
        let got = ["a", "", "c", "é", "b"].map(|key| packed.get(key));
        assert_eq!(got, [Some("z"), Some(""), Some(""), Some("ü"), None]);
        assert_eq!(packed.to_map().len(), 4);
        assert!(PackedLabels::default().is_empty() && !packed.is_empty());
    }
}
