//! Namespaces under `NamespaceLifecycle` and `PodSecurity`.

use std::sync::Arc;

use admission::patch::Present;
use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule, Scope};
use admission::review::UserInfo;
use admission::{Findings, Mutating, ObjectLimit, Operation, PatchWriter, Request, Unserved, Validating, Verdict};

use super::entries::Group;
use super::report::Report;
use super::scope::refuse_unread;
use crate::plugins::Plugin;
use crate::plugins::compiled::{CompiledPlugin, Settings};
use crate::plugins::namespace_facts::NamespaceFacts;
use crate::pod::decoded::Decoded;
use crate::pod::limits::{keeps, object_too_large};
use crate::reasons;
use crate::snapshot::Snapshot;

const NAMESPACES: &[Resource] = &[Resource { group: "", version: "v1", resource: "namespaces", kind: "Namespace" }];

/// Where kubelets have their leases.
const NODE_LEASES: &str = "kube-node-lease";

/// Annotations and finalizers are no matter, and must not depend on us.
const LABELS_CHANGE: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/labels-change"),
    expression: "request.operation != 'UPDATE' || has(object.metadata.labels) != has(oldObject.metadata.labels) || \
                 (has(object.metadata.labels) && object.metadata.labels != oldObject.metadata.labels)",
};

/// What is called when a namespace is deleted.
pub const LIFECYCLE: Rule = Rule {
    suffix: "namespacelifecycle",
    scope: Scope::Cluster,
    namespaces: Namespaces::All,
    on_demand: true,
    ..Rule::new(concat!("namespacelifecycle.policy.", api_domain!()), NAMESPACES, &[Operation::Delete])
};

/// What is called when a namespace is created.
pub const LABELLING: Rule = Rule {
    suffix: "podsecurity",
    scope: Scope::Cluster,
    namespaces: Namespaces::All,
    on_demand: true,
    ..Rule::new(concat!("podsecurity.policy.", api_domain!()), NAMESPACES, &[Operation::Create])
};

/// What is called when a namespace is to be stored.
pub const LABELLED: Rule =
    Rule { operations: &[Operation::Create, Operation::Update], match_conditions: &[LABELS_CHANGE], ..LABELLING };

/// The rules of objects with `failurePolicy: Ignore`, beside which there are others.
pub const LIFECYCLE_IGNORING: Rule = Rule {
    suffix: "namespacelifecycle-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("namespacelifecycle-ignore.policy.", api_domain!()),
    ..LIFECYCLE
};

/// The same of [`LABELLING`].
pub const LABELLING_IGNORING: Rule = Rule {
    suffix: "podsecurity-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("podsecurity-ignore.policy.", api_domain!()),
    ..LABELLING
};

/// The same of [`LABELLED`].
pub const LABELLED_IGNORING: Rule = Rule {
    suffix: LABELLING_IGNORING.suffix,
    failure_policy: FailurePolicy::Ignore,
    name: LABELLING_IGNORING.name,
    ..LABELLED
};

/// The plugins that a namespace itself concerns: it is selected by its own labels. It is excluded by its name alone: who may change a
/// namespace may label it, and would evade what protects it. One whose labels are not known is selected by all.
fn concerned<'s>(
    snapshot: &'s Snapshot,
    namespace: Option<&NamespaceFacts<'_>>,
    name: &str,
    user: &UserInfo<'_>,
    (plugin, group): (Plugin, Group),
) -> Vec<(&'s Arc<CompiledPlugin>, bool)> {
    // The API server itself protects the others that are always excluded, and no controller deletes this one.
    if name != NODE_LEASES && snapshot.exclusion.covers(name, None) {
        return Vec::new();
    }
    let selects = |one: &CompiledPlugin| match (&one.namespaces, namespace) {
        (Some(selector), Some(namespace)) => namespace.is_selected(selector),
        _ => true,
    };
    let chosen = |one: &CompiledPlugin| group.has(one, plugin, snapshot) && !one.excludes(name) && selects(one);
    let found = snapshot.plugins.iter().filter(|one| chosen(one));
    found.map(|one| (one, one.exempts(user))).collect()
}

/// Decides on deletions.
pub struct LifecycleValidation {
    /// The objects that decide.
    pub group: Group,
}

impl Validating<Snapshot> for LifecycleValidation {
    type Object<'a> = Decoded<NamespaceFacts<'a>>;

    /// What is read of a namespace is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<NamespaceFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        if request.operation != Operation::Delete {
            return Ok(());
        }
        let Some(old) = &request.old_object else {
            findings.lacks("oldObject", request);
            return Ok(());
        };
        // One that is being deleted already stays so.
        if old.even_if_cut().metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let name = old.even_if_cut().said_name(&request.name);
        let old = old.whole();
        let chosen = (Plugin::NamespaceLifecycle, self.group);
        let concerned = concerned(snapshot, old.ok(), name, &request.user_info, chosen);
        let old = match old {
            Ok(old) => old,
            Err(exceeded) => {
                refuse_unread(&concerned, object_too_large(exceeded), findings);
                return Ok(());
            }
        };
        let mut report = Report::default();
        report.judge(concerned, request, |plugin| match &plugin.settings {
            Settings::NamespaceLifecycle(settings) => Ok(settings.check(old, name)),
            _ => Ok(Ok(())),
        })?;
        report.finish(findings);
        Ok(())
    }
}

/// Labels new namespaces.
pub struct LabellingMutation {
    /// The objects that decide.
    pub group: Group,
}

impl Mutating<Snapshot> for LabellingMutation {
    type Object<'a> = Decoded<NamespaceFacts<'a>>;

    fn mutate<'a>(
        &self,
        request: &Request<'a, Decoded<NamespaceFacts<'a>>>,
        snapshot: &Snapshot,
    ) -> Result<Verdict, Unserved> {
        // One of which not all is read is refused when it is to be stored.
        let new = request.object.as_ref().filter(|_| request.operation == Operation::Create);
        let Some(new) = new.and_then(|new| new.whole().ok()) else { return Ok(Verdict::allow(reasons::NO_MATCH)) };
        let name = new.said_name(&request.name);
        let (mut report, mut added) = (Report::default(), Vec::<(String, String)>::new());
        for (plugin, is_exempt) in
            concerned(snapshot, Some(new), name, &request.user_info, (Plugin::PodSecurity, self.group))
        {
            let Settings::PodSecurity(settings) = &plugin.settings else { continue };
            let mut change = settings.change(new);
            // An earlier object has said what the label is.
            change.labels.retain(|(key, _)| added.iter().all(|(known, _)| known != key));
            if report.changes((plugin, is_exempt), &change) {
                added.extend(change.labels);
            }
        }
        let labels = new.metadata.labels.as_ref().map_or(Present::Absent, |labels| Present::Len(labels.len()));
        let mut writer = PatchWriter::default();
        let members = added.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        writer.set_texts("/metadata/labels", labels, members);
        Ok(report.into_verdict(reasons::NO_MATCH, writer))
    }
}

/// Judges the labels of namespaces.
pub struct LabelValidation {
    /// The objects that decide.
    pub group: Group,
}

impl Validating<Snapshot> for LabelValidation {
    type Object<'a> = Decoded<NamespaceFacts<'a>>;

    /// What is read of a namespace is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<NamespaceFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let Some((new, old)) = findings.stored(request) else { return Ok(()) };
        if old.is_some_and(|old| old.even_if_cut().metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        let name = new.even_if_cut().said_name(&request.name);
        let mut report = Report::default();
        let chosen = (Plugin::PodSecurity, self.group);
        let (new, old) = match (new.whole(), old.map(Decoded::whole).transpose()) {
            (Ok(new), Ok(old)) => (new, old),
            (Err(exceeded), _) | (_, Err(exceeded)) => {
                if old.is_none() || !keeps(request.body, &["metadata", "labels"]) {
                    let concerned = concerned(snapshot, None, name, &request.user_info, chosen);
                    refuse_unread(&concerned, object_too_large(exceeded), findings);
                }
                return Ok(());
            }
        };
        // By what it was: labels are what is to be judged.
        let concerned = concerned(snapshot, Some(old.unwrap_or(new)), name, &request.user_info, chosen);
        report.judge(concerned, request, |plugin| {
            let Settings::PodSecurity(settings) = &plugin.settings else { return Ok(Ok(())) };
            Ok(match old {
                Some(old) => settings.check_update(old, new, name),
                // What a mode that changes nothing would add is missing, and that was said.
                None if plugin.judges_changes() => settings.check(new, name),
                None => Ok(()),
            })
        })?;
        report.finish(findings);
        Ok(())
    }
}
