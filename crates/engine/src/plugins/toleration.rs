//! Tolerations: which covers which (`isSuperset` of k8s.io/kubernetes/pkg/util/tolerations).

mod cover;
mod merge;

use std::fmt::Write as _;

use admission::Text;
use admission::patch::push_quoted;
use admission::review::null_as_default;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use self::cover::Cover;
pub use self::merge::merged;
#[cfg(test)]
pub use self::merge::{merged_by_cover, merged_in_pairs};

/// The effect that ends pods that run.
pub const NO_EXECUTE: &str = "NoExecute";
/// The effect that keeps new pods away.
pub const NO_SCHEDULE: &str = "NoSchedule";
/// The operator of a toleration without a value.
pub const EXISTS: &str = "Exists";
const EQUAL: &str = "Equal";

/// A toleration as it is written in a configuration or an annotation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TolerationSpec {
    /// Key of the taint; empty for any.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `Exists` or `Equal`; empty means `Equal`.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Value of the taint.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Effect of the taint; empty for any.
    #[serde(deserialize_with = "null_as_default", skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// How long a `NoExecute` taint is tolerated, in seconds; for ever where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl TolerationSpec {
    /// The form that decides.
    pub fn compile(self) -> Toleration<'static> {
        let Self { key, operator, value, effect, toleration_seconds } = self;
        let text = |text: String| Text(text.into());
        let (key, operator, value, effect) = (text(key), text(operator), text(value), text(effect));
        Toleration { key, operator, value, effect, toleration_seconds }
    }
}

/// A toleration: of a pod, or of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(remote = "Self", rename_all = "camelCase", default)]
pub struct Toleration<'a> {
    /// Key of the taint; empty for any.
    #[serde(borrow)]
    pub key: Text<'a>,
    /// `Exists` or `Equal`; empty means `Equal`.
    #[serde(borrow)]
    pub operator: Text<'a>,
    /// Value of the taint.
    #[serde(borrow)]
    pub value: Text<'a>,
    /// Effect of the taint; empty for any.
    #[serde(borrow)]
    pub effect: Text<'a>,
    /// How long a `NoExecute` taint is tolerated, in seconds; for ever where absent.
    pub toleration_seconds: Option<i64>,
}

admission::only_objects!(Toleration<'a>);

impl<'a> Toleration<'a> {
    /// A toleration of a key, whatever its value.
    pub fn exists(key: impl Into<std::borrow::Cow<'a, str>>, effect: &'a str, seconds: Option<i64>) -> Self {
        Self {
            key: Text(key.into()),
            operator: Text(EXISTS.into()),
            value: Text::default(),
            effect: Text(effect.into()),
            toleration_seconds: seconds,
        }
    }

    /// As JSON, without what is empty.
    pub fn to_json(&self) -> String {
        let fields =
            [("key", &self.key), ("operator", &self.operator), ("value", &self.value), ("effect", &self.effect)];
        let mut json = String::with_capacity(128);
        for (field, text) in fields.into_iter().filter(|(_, text)| !text.is_empty()) {
            json.push_str(if json.is_empty() { "{\"" } else { ",\"" });
            json.push_str(field);
            json.push_str("\":");
            push_quoted(&mut json, text);
        }
        if let Some(seconds) = self.toleration_seconds {
            json.push_str(if json.is_empty() { "{" } else { "," });
            // Writing to a String cannot fail.
            let _ = write!(json, "\"tolerationSeconds\":{seconds}");
        }
        json.push_str(if json.is_empty() { "{}" } else { "}" });
        json
    }

    /// How long a taint is tolerated, and whether for ever; all that are for ever are alike.
    fn reach(&self) -> (bool, i64) {
        let seconds = self.toleration_seconds.filter(|_| self.effect.as_str() == NO_EXECUTE);
        (seconds.is_none(), seconds.unwrap_or(i64::MAX))
    }

    /// By what two of them are equal.
    fn identity(&self) -> (&str, &str, &str, &str, Option<i64>) {
        (&self.key, &self.operator, &self.value, &self.effect, self.toleration_seconds)
    }

    fn bucket(&self) -> Option<Bucket<'_>> {
        self.expects().map(|operator| (self.key.as_str(), self.effect.as_str(), operator))
    }

    fn expects(&self) -> Option<Operator<'_>> {
        match self.operator.as_str() {
            EXISTS => Some(None),
            "" | EQUAL => Some(Some(self.value.as_str())),
            // Newer operators cover nothing but what is identical.
            _ => None,
        }
    }
}

/// A toleration of a pod, with the text that it was read from: what a newer API has beside these fields is kept.
#[derive(Debug, Clone)]
pub struct Tolerated<'a> {
    /// The fields that plugins compare.
    pub toleration: Toleration<'a>,
    raw: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Tolerated<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?;
        let toleration = serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?;
        Ok(Self { toleration, raw: Some(raw) })
    }
}

impl<'a> From<Toleration<'a>> for Tolerated<'a> {
    fn from(toleration: Toleration<'a>) -> Self {
        Self { toleration, raw: None }
    }
}

impl Tolerated<'_> {
    /// The text that it was read from; of one that a plugin made, JSON of its fields.
    pub fn to_json(&self) -> String {
        self.raw.map_or_else(|| self.toleration.to_json(), |raw| raw.get().to_owned())
    }
}

/// Whether `wide` tolerates all that `toleration` does.
pub fn is_superset(wide: &Toleration<'_>, toleration: &Toleration<'_>) -> bool {
    if wide == toleration {
        return true;
    }
    let key = wide.key == toleration.key || (wide.key.is_empty() && wide.operator.as_str() == EXISTS);
    let effect = wide.effect == toleration.effect || wide.effect.is_empty();
    let seconds = wide.effect.as_str() != NO_EXECUTE
        || wide.toleration_seconds.is_none_or(|most| toleration.toleration_seconds.is_some_and(|some| some <= most));
    key && effect
        && seconds
        && match wide.expects() {
            Some(None) => true,
            Some(Some(value)) => toleration.operator.as_str() == EQUAL && toleration.value.as_str() == value,
            None => false,
        }
}

/// The value that is expected; none for any.
type Operator<'t> = Option<&'t str>;
/// Key, effect and operator.
type Bucket<'t> = (&'t str, &'t str, Operator<'t>);

/// The buckets of all that could cover it.
fn buckets_of<'t>(toleration: &'t Toleration<'_>) -> impl Iterator<Item = Bucket<'t>> {
    let (key, effect) = (toleration.key.as_str(), toleration.effect.as_str());
    let keys = [key, ""].into_iter().take(if key.is_empty() { 1 } else { 2 });
    let effects = [effect, ""].into_iter().take(if effect.is_empty() { 1 } else { 2 });
    keys.flat_map(move |key| effects.clone().map(move |effect| (key, effect)))
        .flat_map(|(key, effect)| [None, Some(toleration.value.as_str())].map(|operator| (key, effect, operator)))
}

/// Tolerations of a configuration or an annotation, by what they cover: sorted once, and read for every pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedTolerations {
    /// All of them.
    all: Vec<Toleration<'static>>,
    /// Of each bucket the two that differ and reach furthest.
    furthest: Vec<Toleration<'static>>,
}

impl AllowedTolerations {
    /// All of these.
    pub fn of(mut all: Vec<Toleration<'static>>) -> Self {
        all.sort_unstable_by(|one, other| one.identity().cmp(&other.identity()));
        all.dedup();
        let cover = Cover::of(&all);
        let mut furthest: Vec<Toleration<'static>> = cover.furthest().cloned().collect();
        furthest.sort_unstable_by(|one, other| (one.bucket(), one.identity()).cmp(&(other.bucket(), other.identity())));
        Self { all, furthest }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether one of them covers it.
    pub fn covers(&self, toleration: &Toleration<'_>) -> bool {
        let identity = toleration.identity();
        let found = self.all.binary_search_by(|one| {
            super::work::done(1);
            one.identity().cmp(&identity)
        });
        found.is_ok()
            || buckets_of(toleration).any(|bucket| {
                let start = self.furthest.partition_point(|one| {
                    super::work::done(1);
                    one.bucket() < Some(bucket)
                });
                let found = self.furthest.iter().skip(start).take_while(|one| one.bucket() == Some(bucket));
                found.into_iter().any(|wide| is_superset(wide, toleration))
            })
    }
}
