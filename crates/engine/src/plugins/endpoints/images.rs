//! Pods and ephemeral containers under `ImagePolicyWebhook`.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::question::{Known, Question};
use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule};
use admission::{Findings, ObjectLimit, Operation, Request, Unserved, Validating};

use super::AUDIT;
use super::entries::Group;
use super::pods::staying;
use super::report::Report;
use super::scope::{concerned, refuse_unread};
use crate::plugins::Plugin;
use crate::plugins::compiled::{CompiledPlugin, Settings};
use crate::plugins::image_policy::{FAILED_OPEN, ImagePolicy, Reviewed, images};
use crate::plugins::pod_facts::PodFacts;
use crate::pod::decoded::Decoded;
use crate::pod::limits::{keeps_spec, too_large};
use crate::snapshot::Snapshot;

const EPHEMERAL: &str = "ephemeralcontainers";
const PODS: &[Resource] = &[
    Resource { group: "", version: "v1", resource: "pods", kind: "Pod" },
    Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" },
];
/// Backends that are asked at one time about one pod.
const AT_ONCE: usize = 16;

/// Keys of audit annotations that no backend may use, because they are ours.
const RESERVED: [&str; 5] = [FAILED_OPEN, "reason", "sets", "skipped", AUDIT];

/// A pod that is being deleted must be able to lose its finalizers, whatever a backend says.
const STAYS: MatchCondition = MatchCondition {
    name: concat!(api_domain!(), "/stays"),
    expression: "request.operation == 'CREATE' || !has(oldObject.metadata.deletionTimestamp)",
};

/// New pods, and changes of pods that are not being deleted.
pub const RULE: Rule = Rule {
    suffix: "imagepolicywebhook",
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    match_conditions: &[STAYS],
    ..Rule::new(concat!("imagepolicywebhook.policy.", api_domain!()), PODS, &[Operation::Create, Operation::Update])
};

/// The rule of objects with `failurePolicy: Ignore`, beside which there are others.
pub const IGNORING: Rule = Rule {
    suffix: "imagepolicywebhook-ignore",
    failure_policy: FailurePolicy::Ignore,
    name: concat!("imagepolicywebhook-ignore.policy.", api_domain!()),
    ..RULE
};

/// The endpoint.
pub struct ImageValidation {
    /// The objects that decide.
    pub group: Group,
}

fn settings(plugin: &CompiledPlugin) -> Option<&ImagePolicy> {
    match &plugin.settings {
        Settings::ImagePolicy(settings) => Some(settings),
        _ => None,
    }
}

fn reviewed(known: &Known) -> Result<Reviewed<'_>, Unserved> {
    match known {
        Known::Images(verdict) => Ok(Reviewed::Verdict(verdict)),
        Known::Allowed(true, _) => Ok(Reviewed::Allowed),
        Known::Failed(why) => Ok(Reviewed::Failed(why)),
        _ => Err(Unserved::Fault),
    }
}

impl Validating<Snapshot> for ImageValidation {
    type Object<'a> = Decoded<PodFacts<'a>>;

    /// What is read of a pod is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        let Some((new, _)) = staying(request, findings) else { return Ok(()) };
        let chosen = |one: &CompiledPlugin| self.group.has(one, Plugin::ImagePolicyWebhook, snapshot);
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
        findings.warnings.extend(concerned.warnings);
        let plugins = concerned.plugins;
        if plugins.is_empty() {
            return Ok(());
        }
        let new = match new.whole() {
            Ok(new) => new,
            Err(_) if request.operation == Operation::Update && keeps_spec(request.body) => return Ok(()),
            Err(exceeded) => {
                refuse_unread(&plugins, too_large(exceeded), findings);
                return Ok(());
            }
        };
        let Some(spec) = &new.spec else { return Ok(()) };
        let is_ephemeral = request.sub_resource.as_str() == EPHEMERAL;
        let question = |settings: &ImagePolicy| {
            Question::Images(Arc::new(images(&settings.backend, new, spec, &request.namespace, is_ephemeral)))
        };
        // For who is exempt there is nothing to ask.
        let bound = || plugins.iter().filter(|(_, is_exempt)| !is_exempt);
        let mut asked: Vec<Question> = bound().filter_map(|(plugin, _)| settings(plugin)).map(question).collect();
        asked.sort_unstable();
        asked.dedup();
        for some in asked.chunks(AT_ONCE) {
            request.ask_all(some.to_vec())?;
        }
        let mut audit: BTreeMap<String, String> = BTreeMap::new();
        let mut report = Report::default();
        let name = new.metadata.said_name(&request.name);
        let bound: Vec<_> = plugins.iter().filter(|(_, is_exempt)| !is_exempt).copied().collect();
        report.judge(bound, request, |plugin| {
            let Some(settings) = settings(plugin) else { return Ok(Ok(())) };
            let reviewed = reviewed(request.ask(question(settings))?)?;
            for (key, value) in settings.audit(&reviewed) {
                if matches!(reviewed, Reviewed::Failed(_)) || !RESERVED.contains(&key.as_str()) {
                    audit.entry(key).or_insert(value);
                }
            }
            Ok(settings.check(&reviewed, name))
        })?;
        findings.audit.extend(audit.into_iter().map(|(key, value)| (key.into(), value)));
        report.finish(findings);
        Ok(())
    }
}
