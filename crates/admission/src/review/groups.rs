//! The groups of a user, which are decoded only when they are read.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::review::Text;

/// The groups of a user, as they are in the body: a list may be as long as the body, and a decoded one takes several times that.
///
/// ```
/// use admission::Review;
/// let body = br#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
///     "request":{"uid":"a","operation":"DELETE","userInfo":{"groups":["dev","ops"]}}}"#;
/// let review: Review = Review::parse(body)?;
/// assert!(review.request.user_info.groups.contains("ops"));
/// # Ok::<(), admission::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(transparent)]
pub struct Groups<'a>(#[serde(borrow)] Option<&'a RawValue>);

impl<'a> Groups<'a> {
    /// Whether the user is in the group.
    pub fn contains(&self, group: &str) -> bool {
        let mut found = false;
        self.each(|name| found |= name.as_str() == group);
        found
    }

    /// The list as it is in the body.
    pub(super) const fn raw(&self) -> Option<&'a RawValue> {
        self.0
    }

    /// Calls `visit` with each group, in their order. What is no list of strings holds none.
    pub fn each(&self, visit: impl FnMut(Text<'a>)) {
        let Some(raw) = self.0 else { return };
        // Behind the first element that is no string there is nothing to read.
        let _ = serde_json::Deserializer::from_str(raw.get()).deserialize_seq(Each(visit));
    }
}

struct Each<F>(F);

impl<'de, F: FnMut(Text<'de>)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of groups")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut groups: A) -> Result<(), A::Error> {
        while let Some(group) = groups.next_element()? {
            (self.0)(group);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::mem::needs_drop;

    use super::*;

    fn all(json: &str) -> Vec<String> {
        let groups: Groups<'_> = serde_json::from_str(json).unwrap_or_default();
        let mut all = Vec::new();
        groups.each(|group| all.push(group.to_string()));
        all
    }

    #[test]
    fn groups_are_read_when_somebody_asks_and_not_before() {
        assert!(!needs_drop::<Groups<'_>>(), "nothing is decoded");
        for (json, expected) in [
            (r#"["dev","ops"]"#, &["dev", "ops"][..]),
            (r#"["\u0064ev",null]"#, &["dev", ""]),
            ("[]", &[]),
            ("null", &[]),
            (r#""dev""#, &[]),
            (r#"{"dev":"ops"}"#, &[]),
            (r#"["dev",1,"ops"]"#, &["dev"]),
        ] {
            assert_eq!(all(json), expected, "{json}");
            let groups: Groups<'_> = serde_json::from_str(json).unwrap_or_default();
            assert_eq!(groups.contains("dev"), expected.contains(&"dev"), "{json}");
            assert!(!groups.contains("de"), "{json}");
        }
    }
}
