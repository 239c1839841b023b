//! Services under `DenyServiceExternalIPs`.

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule};
use admission::{Findings, ObjectLimit, Operation, Request, Unserved, Validating};

use super::entries::Group;
use super::report::Report;
use super::scope::concerned;
use crate::plugins::compiled::{CompiledPlugin, Settings};
use crate::plugins::deny_service_external_ips::ServiceFacts;
use crate::plugins::{Plugin, said_name};
use crate::reasons;
use crate::snapshot::Snapshot;

const SERVICES: &[Resource] = &[Resource { group: "", version: "v1", resource: "services", kind: "Service" }];

/// A service without external IPs is always allowed.
const HAS_SOME: MatchCondition =
    MatchCondition { name: concat!(api_domain!(), "/external-ips"), expression: "has(object.spec.externalIPs)" };

/// Services that have external IPs when they are created or changed.
pub const RULE: Rule = Rule {
    suffix: "denyserviceexternalips",
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[HAS_SOME],
    ..Rule::new(
        concat!("denyserviceexternalips.policy.", api_domain!()),
        SERVICES,
        &[Operation::Create, Operation::Update],
    )
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const IGNORING: Rule = Rule {
    suffix: "denyserviceexternalips-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("denyserviceexternalips-ignore.policy.", api_domain!()),
    ..RULE
};

/// The endpoint.
pub struct ServiceValidation {
    /// The objects that decide.
    pub group: Group,
}

impl Validating<Snapshot> for ServiceValidation {
    type Object<'a> = ServiceFacts<'a>;

    /// What is read of a service is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, ServiceFacts<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        let Some((new, old)) = findings.stored(request) else { return Ok(()) };
        if old.is_some_and(|old| old.metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        let chosen = |one: &CompiledPlugin| self.group.has(one, Plugin::DenyServiceExternalIPs, snapshot);
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        if concerned.plugins.is_empty() {
            findings.warnings.extend(concerned.warnings);
            return Ok(());
        }
        let mut report = Report::with(concerned.warnings);
        let name = said_name([&request.name, &new.metadata.name, &new.metadata.generate_name]);
        report.judge(concerned.plugins, request, |plugin| match &plugin.settings {
            Settings::DenyServiceExternalIps(settings) => Ok(settings.check(new, old, name)),
            _ => Ok(Ok(())),
        })?;
        report.finish(findings);
        Ok(())
    }
}
