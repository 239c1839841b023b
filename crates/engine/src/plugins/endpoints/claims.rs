//! Claims under `DefaultStorageClass`.

use admission::patch::quoted;
use admission::registry::{FailurePolicy, Namespaces, Resource, Rule};
use admission::{Mutating, Operation, PatchWriter, Request, Unserved, Verdict};

use super::entries::Group;
use super::report::Report;
use super::scope::{binds, concerned, unread};
use crate::plugins::Plugin;
use crate::plugins::compiled::{CompiledPlugin, Mode, Settings};
use crate::plugins::default_storage_class::{ClaimFacts, Claimed};
use crate::pod::decoded::Decoded;
use crate::pod::limits::object_too_large;
use crate::reasons;
use crate::snapshot::Snapshot;

const CLAIMS: &[Resource] =
    &[Resource { group: "", version: "v1", resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim" }];

/// New claims in namespaces that are not excluded.
pub const RULE: Rule = Rule {
    suffix: "defaultstorageclass",
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    ..Rule::new(concat!("defaultstorageclass.policy.", api_domain!()), CLAIMS, &[Operation::Create])
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const IGNORING: Rule = Rule {
    suffix: "defaultstorageclass-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("defaultstorageclass-ignore.policy.", api_domain!()),
    ..RULE
};

/// The endpoint.
pub struct ClaimMutation {
    /// The objects that decide.
    pub group: Group,
}

impl Mutating<Snapshot> for ClaimMutation {
    type Object<'a> = Decoded<ClaimFacts<'a>>;

    fn mutate<'a>(
        &self,
        request: &Request<'a, Decoded<ClaimFacts<'a>>>,
        snapshot: &Snapshot,
    ) -> Result<Verdict, Unserved> {
        let Some(claim) = request.object.as_ref().filter(|_| request.operation == Operation::Create) else {
            return Ok(Verdict::allow(reasons::NO_MATCH));
        };
        let chosen = |one: &CompiledPlugin| self.group.has(one, Plugin::DefaultStorageClass, snapshot);
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        let claim = match claim.whole().map_err(object_too_large) {
            Ok(claim) => claim,
            Err(denial) => return Ok(unread(&concerned, denial)),
        };
        let mut report = Report::with(concerned.warnings);
        // The class that an earlier object set.
        let mut set: Option<String> = None;
        for (plugin, is_exempt) in concerned.plugins {
            let Settings::DefaultStorageClass(settings) = &plugin.settings else { continue };
            let claimed = set.as_deref().map_or_else(|| claim.claimed(), Claimed::Class);
            if let Some(why) = snapshot.storage_classes.unknown(snapshot.namespaces_may_appear)
                && settings.reads_classes(&claimed)
            {
                // Who is exempt, or only reports, keeps no claim waiting.
                if snapshot.namespaces_may_appear && binds(&[(plugin, is_exempt)]) {
                    return Err(Unserved::NotReady(why.to_owned()));
                }
                if plugin.mode != Mode::Audit && !is_exempt {
                    let (name, of) = (&plugin.name, plugin.plugin);
                    report
                        .warnings
                        .push(format!("AdmissionPlugin {name:?} ({of}) cannot say which class the claim gets: {why}"));
                }
                continue;
            }
            let change = settings.change(&claimed, &snapshot.storage_classes);
            if claim.has_spec() && report.changes((plugin, is_exempt), &change) {
                set = change.storage_class;
            }
        }
        let mut patch = PatchWriter::default();
        if let Some(class) = set {
            patch.add("/spec/storageClassName", &quoted(&class));
        }
        Ok(report.into_verdict(reasons::NO_MATCH, patch))
    }
}
