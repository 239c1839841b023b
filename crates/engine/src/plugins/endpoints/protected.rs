//! New claims, volumes and classes of attributes under `StorageObjectInUseProtection`.

use admission::patch::quoted;
use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule, Scope};
use admission::{Mutating, Operation, PatchWriter, Request, Unserved, Verdict};

use super::entries::Group;
use super::report::Report;
use super::scope::concerned_anywhere;
use crate::plugins::Plugin;
use crate::plugins::compiled::CompiledPlugin;
use crate::plugins::storage_object_in_use_protection::{ProtectedFacts, change};
use crate::reasons;
use crate::snapshot::Snapshot;

const PROTECTED: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim" },
    Resource { group: "", version: "v1", resource: "persistentvolumes", kind: "PersistentVolume" },
    Resource {
        group: "storage.k8s.io",
        version: "v1",
        resource: "volumeattributesclasses",
        kind: "VolumeAttributesClass",
    },
];

/// Where the API server has the plugin on, each object has its finalizer before a webhook is called.
const UNPROTECTED: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/unprotected"),
    expression: "!has(object.metadata.finalizers) || !({'persistentvolumeclaims': 'kubernetes.io/pvc-protection', \
                 'persistentvolumes': 'kubernetes.io/pv-protection', 'volumeattributesclasses': \
                 'kubernetes.io/vac-protection'}[request.resource.resource] in object.metadata.finalizers)",
};

/// New objects that lack the finalizer which protects them while they are in use.
pub const RULE: Rule = Rule {
    suffix: "storageobjectinuseprotection",
    scope: Scope::Any,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[UNPROTECTED],
    ..Rule::new(concat!("storageobjectinuseprotection.policy.", api_domain!()), PROTECTED, &[Operation::Create])
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const IGNORING: Rule = Rule {
    suffix: "storageobjectinuseprotection-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("storageobjectinuseprotection-ignore.policy.", api_domain!()),
    ..RULE
};

/// The endpoint.
pub struct ProtectedMutation {
    /// The objects that decide.
    pub group: Group,
}

impl Mutating<Snapshot> for ProtectedMutation {
    type Object<'a> = ProtectedFacts<'a>;

    fn mutate<'a>(&self, request: &Request<'a, ProtectedFacts<'a>>, snapshot: &Snapshot) -> Result<Verdict, Unserved> {
        let is_new = request.operation == Operation::Create && request.sub_resource.is_empty();
        let Some(object) = request.object.as_ref().filter(|_| is_new) else {
            return Ok(Verdict::allow(reasons::NO_MATCH));
        };
        let chosen = |one: &CompiledPlugin| self.group.has(one, Plugin::StorageObjectInUseProtection, snapshot);
        let concerned = concerned_anywhere(snapshot, &request.namespace, &request.user_info, chosen)?;
        let mut report = Report::with(concerned.warnings);
        let mut added = None;
        for (plugin, is_exempt) in concerned.plugins {
            let change = change(&request.resource.resource, &request.kind.kind, object);
            // All objects add the same.
            if report.changes((plugin, is_exempt), &change) {
                added = change.finalizer;
                break;
            }
        }
        let mut patch = PatchWriter::default();
        match added.map(quoted) {
            Some(finalizer) if object.has_finalizers() => patch.add("/metadata/finalizers/-", &finalizer),
            Some(finalizer) => patch.add("/metadata/finalizers", &format!("[{finalizer}]")),
            None => {}
        }
        Ok(report.into_verdict(reasons::NO_MATCH, patch))
    }
}
