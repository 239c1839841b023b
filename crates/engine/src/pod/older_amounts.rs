//! Requests and limits that a container of a running pod has from an older form of its set, and that the current form leaves open.
//!
//! What a set leaves open others may fill in, as a `LimitRange` does: the pod does not show whose an amount is, but the revision of its
//! form does. Where that is not kept any more, an amount counts as filled in.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::sidecarset::compiled::{CompiledSet, revision_name};
use crate::sidecarset::hot_upgrade::names;
use crate::sidecarset::injection::List;
use crate::sidecarset::pin::RevisionRef;
use crate::snapshot::Snapshot;

/// What a revision says of amounts.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OlderRevision {
    containers: Option<Vec<RevisionContainer>>,
    init_containers: Option<Vec<RevisionContainer>>,
    resource_defaults: Option<RevisionAmounts>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RevisionContainer {
    name: Option<String>,
    resources: Option<RevisionAmounts>,
    resources_policy: Option<RevisionPolicy>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RevisionPolicy {
    resources_expr: Option<RevisionAmounts>,
}

/// Amounts, or expressions for them, by resource.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RevisionAmounts {
    limits: Option<BTreeMap<String, Value>>,
    requests: Option<BTreeMap<String, Value>>,
}

impl RevisionAmounts {
    /// Each that is given, by its list and resource.
    fn given(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("limits", &self.limits), ("requests", &self.requests)].into_iter().flat_map(|(list, amounts)| {
            let given = amounts.iter().flatten().filter(|(_, amount)| !amount.is_null() && *amount != "");
            given.map(move |(resource, _)| (list, resource.as_str()))
        })
    }
}

impl RevisionContainer {
    fn amounts<'a>(&'a self, defaults: Option<&'a RevisionAmounts>) -> impl Iterator<Item = (&'static str, &'a str)> {
        let by_policy = self.resources_policy.as_ref().and_then(|policy| policy.resources_expr.as_ref());
        [self.resources.as_ref(), by_policy, defaults].into_iter().flatten().flat_map(RevisionAmounts::given)
    }
}

/// The first request or limit that the form of this hash gave to a container of the set, that the pod has, and that the set, as the pod
/// gets it, does not give any more.
pub(super) fn left_over(pod: &Value, set: &CompiledSet, hash: &str, snapshot: &Snapshot) -> Option<String> {
    if set.allowed.field("resources") {
        return None;
    }
    let named = RevisionRef::Name(revision_name(&set.name, hash).into());
    let content = snapshot.revisions.find(&set.name, "", &named)?.content.as_deref()?;
    let OlderRevision { containers, init_containers, resource_defaults } = serde_json::from_str(content).ok()?;
    // Those of a pod that is to end are in another list than in the set.
    let older: BTreeMap<String, RevisionContainer> = containers
        .into_iter()
        .chain(init_containers)
        .flatten()
        .filter_map(|mut container| Some((container.name.take()?, container)))
        .collect();
    // A container with a hot upgrade is there twice.
    let in_set = set.pairs.iter().flat_map(|pair| names(&pair.name).map(|name| (name, &*pair.name)));
    let in_set: BTreeMap<String, &str> = in_set.collect();
    [List::InitContainers, List::Containers].into_iter().find_map(|list| {
        let in_pod = by_name(pod, list);
        set.pieces_of(list).iter().find_map(|piece| {
            let older = older.get(&piece.name).or_else(|| older.get(*in_set.get(&piece.name)?))?;
            let found = in_pod.get(piece.name.as_str())?.get("resources")?;
            let ours = piece.object();
            let mut given = older.amounts(resource_defaults.as_ref());
            let (part, resource) = given.find(|(part, resource)| {
                let has = |resources: Option<&Value>| resources.and_then(|it| it.get(part)?.get(resource)).is_some();
                has(Some(found)) && !has(ours.get("resources"))
            })?;
            Some(format!("container {:?} differs in resources.{part}[{resource}]", piece.name))
        })
    })
}

fn by_name<'p>(pod: &'p Value, list: List) -> BTreeMap<&'p str, &'p Value> {
    let containers = pod.get("spec").and_then(|spec| spec.get(list.field())?.as_array());
    let named = |container: &'p Value| Some((container.get("name")?.as_str()?, container));
    containers.into_iter().flatten().filter_map(named).collect()
}
