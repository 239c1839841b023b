//! What `spec.affinity` of a pod says about the operating system, decided while it is read: its lists may be as long as the body,
//! and nothing of them is kept.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, SeqAccess, Visitor};

use crate::sidecarset::platform::{OS_LABELS, Platform, WINDOWS_BUILD};

/// `spec.affinity` of a pod, as far as it names the operating system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinity {
    required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelector {
    node_selector_terms: List<TermSummary>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeSelectorTerm {
    match_expressions: List<Expressions>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
struct MatchExpression {
    key: Key,
    operator: Operator,
    values: List<Values>,
}

impl Affinity {
    /// Reads the affinity of a pod from JSON. What cannot be read binds nothing.
    pub fn read(json: &str) -> Option<Self> {
        // Most affinities are about other things, and a search is cheaper than reading. Escapes can spell a key in many ways.
        let may_tell = OS_LABELS.iter().any(|key| json.contains(key)) || json.contains(WINDOWS_BUILD);
        if may_tell || json.contains('\\') { serde_json::from_str(json).ok() } else { None }
    }

    /// The one operating system on which the pod can run, if there is one. One of the terms is enough to place the pod, so all of
    /// them have to ask for it.
    pub(super) fn binds_to(self) -> Option<Platform> {
        let List(terms) = self.node_affinity?.required_during_scheduling_ignored_during_execution?.node_selector_terms;
        match terms {
            TermSummary { some: true, some_without_windows: false, .. } => Some(Platform::Windows),
            TermSummary { some: true, some_with_windows: false, .. } => Some(Platform::Linux),
            _ => None,
        }
    }
}

/// What the elements of a list come to.
trait Summary: Default {
    type Element: DeserializeOwned;

    fn count(&mut self, element: Self::Element);
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TermSummary {
    some: bool,
    some_without_windows: bool,
    some_with_windows: bool,
}

impl Summary for TermSummary {
    type Element = NodeSelectorTerm;

    fn count(&mut self, NodeSelectorTerm { match_expressions: List(expressions) }: NodeSelectorTerm) {
        self.some = true;
        self.some_without_windows |= !expressions.require_windows;
        self.some_with_windows |= !expressions.exclude_windows;
    }
}

/// A node has to meet all expressions of a term, so one that asks for an operating system is enough.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Expressions {
    require_windows: bool,
    exclude_windows: bool,
}

impl Summary for Expressions {
    type Element = MatchExpression;

    fn count(&mut self, MatchExpression { key, operator, values: List(values) }: MatchExpression) {
        match (key, operator) {
            (Key::WindowsBuild, Operator::In | Operator::Exists | Operator::Compares) => self.require_windows = true,
            (Key::Os | Key::OldOs, Operator::In) => {
                self.require_windows |= values.windows && !values.linux && !values.others;
                self.exclude_windows |= !values.windows && (values.linux || values.others);
            }
            // Every kubelet puts the label on its node, and there are no other systems.
            (Key::Os, Operator::NotIn) => {
                self.require_windows |= values.linux;
                self.exclude_windows |= values.windows;
            }
            _ => {}
        }
    }
}

/// Which values are in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Values {
    windows: bool,
    linux: bool,
    others: bool,
}

impl Summary for Values {
    type Element = System;

    fn count(&mut self, system: System) {
        match system {
            System::Windows => self.windows = true,
            System::Linux => self.linux = true,
            System::Other => self.others = true,
        }
    }
}

/// A list that is read to its end, and of which only the tally is kept. `null` is an empty one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct List<T>(T);

impl<'de, T: Summary> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Summary> Visitor<'de> for ListVisitor<T> {
            type Value = List<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut tally = T::default();
                while let Some(element) = seq.next_element::<T::Element>()? {
                    tally.count(element);
                }
                Ok(List(tally))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(List(T::default()))
            }
        }
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// An enum of the words that matter, read from a string of any length.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident: $word:pat,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        enum $name {
            $($variant,)+
            #[default]
            Other,
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct WordVisitor;
                impl Visitor<'_> for WordVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a string")
                    }
                    fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
                        Ok(match word {
                            $($word => $name::$variant,)+
                            _ => $name::Other,
                        })
                    }
                }
                deserializer.deserialize_str(WordVisitor)
            }
        }
    };
}

const OS: &str = OS_LABELS[0];
const OLD_OS: &str = OS_LABELS[1];

words!(
    /// A label of nodes.
    Key { Os: OS, OldOs: OLD_OS, WindowsBuild: WINDOWS_BUILD, }
);
words!(
    /// An operator of a node selector.
    Operator { In: "In", NotIn: "NotIn", Exists: "Exists", Compares: "Gt" | "Lt", }
);
words!(
    /// A value of an operating system's label.
    System { Windows: "windows", Linux: "linux", }
);

#[cfg(test)]
mod tests {
    use std::mem::needs_drop;

    use super::*;

    #[test]
    fn nothing_of_a_list_is_kept_however_long_it_is() {
        assert!(!needs_drop::<Affinity>() && !needs_drop::<NodeSelectorTerm>() && !needs_drop::<MatchExpression>());
        assert!(size_of::<Affinity>() <= 8);
        for (list, expected) in [
            (r#"{"matchExpressions":[{},EXPRESSIONS]}"#, None),
            (
                r#"{"matchExpressions":[EXPRESSIONS,{"key":"kubernetes.io/os","operator":"In","values":["windows"]}]}"#,
                Some(Platform::Windows),
            ),
            (
                r#"{"matchExpressions":[{"key":"kubernetes.io/os","operator":"NotIn","values":[VALUES,"windows"]}]}"#,
                Some(Platform::Linux),
            ),
            (r#"{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["windows",VALUES]}]}"#, None),
        ] {
            let list = list.replace("EXPRESSIONS", &vec!["{}"; 10_000].join(","));
            let list = list.replace("VALUES", &vec![r#""""#; 10_000].join(","));
            let json = format!(
                r#"{{"nodeAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":[{list}]}}}}}}"#
            );
            assert_eq!(Affinity::read(&json).and_then(Affinity::binds_to), expected, "{}", &json[..200]);
        }
    }
}
