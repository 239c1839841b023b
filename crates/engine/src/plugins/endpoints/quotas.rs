//! Pods, claims and services under `ResourceQuota`.

use std::sync::Arc;

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule};
use admission::{Findings, ObjectLimit, Operation, Request, Unserved, Validating};

use super::entries::Group;
use super::report::Report;
use super::scope::{binds, cannot_tell, concerned, refuse_unread};
use crate::plugins::Plugin;
use crate::plugins::compiled::{CompiledPlugin, Settings};
use crate::plugins::resource_quota::{Consumed, QuotaFacts};
use crate::pod::decoded::Decoded;
use crate::pod::limits::{keeps, keeps_spec, object_too_large};
use crate::reasons;
use crate::snapshot::Snapshot;

const CONSUMERS: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "pods", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/resize", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "persistentvolumeclaims", kind: "PersistentVolumeClaim" },
    Resource { group: "", version: "v1", resource: "services", kind: "Service" },
];

/// A field of the spec that may be absent changes.
macro_rules! changes {
    ($field:literal) => {
        concat!(
            "(has(object.spec.",
            $field,
            ") ? [object.spec.",
            $field,
            "] : []) != (has(oldObject.spec.",
            $field,
            ") ? [oldObject.spec.",
            $field,
            "] : [])"
        )
    };
}

/// What an object consumes is changed by few updates: without us claims are bound and finalizers removed all the same.
const CONSUMES: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/consumption-changes"),
    expression: concat!(
        "request.operation == 'CREATE' || (!has(oldObject.metadata.deletionTimestamp) && \
         (request.resource.resource == 'pods' ? (has(request.subResource) && request.subResource == 'resize') : request.resource.resource == 'services' ? (",
        changes!("type"),
        " || ",
        changes!("ports"),
        " || ",
        changes!("allocateLoadBalancerNodePorts"),
        ") : (",
        changes!("resources"),
        " || ",
        changes!("storageClassName"),
        " || ",
        changes!("volumeAttributesClassName"),
        ")))"
    ),
};

/// Pods, claims and services that come to consume something.
pub const RULE: Rule = Rule {
    suffix: "resourcequota",
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[CONSUMES],
    ..Rule::new(concat!("resourcequota.policy.", api_domain!()), CONSUMERS, &[Operation::Create, Operation::Update])
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const IGNORING: Rule = Rule {
    suffix: "resourcequota-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("resourcequota-ignore.policy.", api_domain!()),
    ..RULE
};

/// The endpoint.
pub struct QuotaValidation {
    /// The objects that decide.
    pub group: Group,
}

impl Validating<Snapshot> for QuotaValidation {
    type Object<'a> = Decoded<QuotaFacts<'a>>;

    /// What is read of an object is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<QuotaFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let resource = resource(request);
        let is_resize = request.sub_resource.as_str() == "resize";
        if request.operation == Operation::Update && resource == "pods" && !is_resize {
            return Ok(());
        }
        let Some((new, old)) = findings.stored(request) else { return Ok(()) };
        if old.is_some_and(|old| old.even_if_cut().metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        let chosen = |one: &CompiledPlugin| {
            self.group.has(one, Plugin::ResourceQuota, snapshot)
                && matches!(&one.settings, Settings::ResourceQuota(settings) if settings.concerns(resource))
        };
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        findings.warnings.extend(concerned.warnings);
        if concerned.plugins.is_empty() {
            return Ok(());
        }
        if snapshot.namespaces_may_appear && !snapshot.quotas.is_complete {
            return unread(&concerned.plugins, findings);
        }
        let new = match new.whole() {
            Ok(new) => new,
            // It asks for what it asked for when nothing limited it, and controllers must be able to change the rest of it.
            Err(_) if old.is_some() && keeps_amounts(resource, request.body) => {
                findings.reason = reasons::ALLOWED;
                return Ok(());
            }
            Err(exceeded) => {
                refuse_unread(&concerned.plugins, object_too_large(exceeded), findings);
                return Ok(());
            }
        };
        // What was too large to be read counts as nothing, so that all that the object has now is more than before.
        let old = old.and_then(|old| old.whole().ok());
        let name = new.said_name(&request.name);
        let limiting = concerned.plugins.iter().filter_map(|(plugin, _)| match &plugin.settings {
            Settings::ResourceQuota(settings) => Some(settings),
            _ => None,
        });
        let object = Consumed::new(resource, name, (new, old), limiting);
        let mut report = Report::default();
        report.judge(concerned.plugins, request, |plugin| match &plugin.settings {
            Settings::ResourceQuota(settings) => {
                settings.check(&object, snapshot.quotas.of(&request.namespace), request.deadline)
            }
            _ => Ok(Ok(())),
        })?;
        report.finish(findings);
        Ok(())
    }
}

/// The answer while quotas have not been read: only what would be refused has to wait.
fn unread(plugins: &[(&Arc<CompiledPlugin>, bool)], findings: &mut Findings) -> Result<(), Unserved> {
    let why = "ResourceQuotas have not been read yet";
    if binds(plugins) {
        return Err(Unserved::NotReady(why.to_owned()));
    }
    findings.warnings.extend(cannot_tell(plugins, why));
    Ok(())
}

/// Whether an update leaves what the object asks for as it is stored.
fn keeps_amounts(resource: &str, body: &str) -> bool {
    let field = match resource {
        "services" => "ports",
        "persistentvolumeclaims" => "resources",
        _ => return keeps_spec(body),
    };
    keeps(body, &["spec", field])
}

/// The resource, by the kind where a review leaves it out.
fn resource<'r>(request: &'r Request<'_, Decoded<QuotaFacts<'_>>>) -> &'r str {
    match (request.resource.resource.as_str(), request.kind.kind.as_str()) {
        ("", "PersistentVolumeClaim") => "persistentvolumeclaims",
        ("", "Service") => "services",
        ("", _) => "pods",
        (resource, _) => resource,
    }
}
