//! `TaintNodesByCondition`: a new node gets the taint of nodes that are not ready, until a controller finds that it is
//! (k8s.io/kubernetes/plugin/pkg/admission/nodetaint).

use admission::raw::{elements, member, string};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::change::PodChange;

/// Key of the taint.
pub const KEY: &str = "node.kubernetes.io/not-ready";
/// Effect of the taint: pods that do not tolerate it are not placed on the node.
pub const EFFECT: &str = "NoSchedule";

/// What is read of a node.
#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
pub struct NewNodeFacts<'a> {
    #[serde(borrow)]
    spec: Option<Spec<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(remote = "Self", default)]
struct Spec<'a> {
    #[serde(borrow)]
    taints: Option<&'a RawValue>,
}

admission::only_objects!(NewNodeFacts<'a>, Spec<'a>);

impl NewNodeFacts<'_> {
    /// Whether it has a spec, as every node that an API server sends.
    pub const fn has_spec(&self) -> bool {
        self.spec.is_some()
    }

    /// Whether it has taints, in a list that may be empty.
    pub fn has_taints(&self) -> bool {
        self.spec.as_ref().is_some_and(|spec| spec.taints.is_some())
    }

    /// Whether it has the taint, with whatever value (`MatchTaint` of k8s.io/kubernetes/pkg/apis/core).
    fn is_tainted(&self) -> bool {
        let Some(taints) = self.spec.as_ref().and_then(|spec| spec.taints) else { return false };
        let is = |taint, field, expected| {
            member(taint, field).and_then(string).is_some_and(|text| text.as_ref() == expected)
        };
        // An error ends the walk at what is searched.
        elements(taints, |one| if is(one, "key", KEY) && is(one, "effect", EFFECT) { Err(()) } else { Ok(()) }).is_err()
    }
}

/// What a new node gets.
pub fn change(node: &NewNodeFacts<'_>) -> PodChange<'static> {
    PodChange { is_tainted: !node.is_tainted(), ..PodChange::default() }
}
