//! What a pod asks for its containers, as far as it can change while they run.

use admission::format::Quantity;
use serde::{Deserialize, Serialize};

/// Image, requests and limits of a container in a pod's spec.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requested<'p> {
    /// As the spec names it, not the runtime.
    pub image: &'p str,
    /// Requests and limits, if it has any.
    pub resources: Option<&'p Resources>,
}

impl Requested<'_> {
    /// Whether each amount that is asked for is the one that was found.
    pub fn is_met_by(self, found: &Resources) -> bool {
        let Some(asked) = self.resources else { return true };
        asked.amounts().zip(found.amounts()).all(|(asked, found)| match (asked, found) {
            (None, _) => true,
            (Some(asked), Some(found)) => asked == found || is_same(asked, found),
            (Some(_), None) => false,
        })
    }
}

/// Requests and limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Amounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Amounts>,
}

/// Amounts of what can be resized.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Amounts {
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<Box<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Box<str>>,
}

impl Resources {
    fn amounts(&self) -> impl Iterator<Item = Option<&str>> {
        [&self.limits, &self.requests].into_iter().flat_map(|amounts| {
            let amounts = amounts.as_ref();
            [amounts.and_then(|it| it.cpu.as_deref()), amounts.and_then(|it| it.memory.as_deref())]
        })
    }
}

fn is_same(one: &str, other: &str) -> bool {
    matches!((one.parse::<Quantity>(), other.parse::<Quantity>()), (Ok(one), Ok(other)) if one == other)
}
