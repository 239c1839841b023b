//! Pods that are changed, and ephemeral containers: entries of their own, which exist only while a plugin needs them.
//!
//! A pod's spec can hardly be changed. So tolerations are only added, and a pull policy that would have to change is a refusal.

use admission::registry::{FailurePolicy, MatchCondition, Namespaces, Resource, Rule};
use admission::{Findings, Mutating, ObjectLimit, Operation, Reason, Request, Unserved, Validating, Verdict};

use super::pods::{at, is_mirror};
use super::report::Report;
use super::scope::{concerned, refuse_unread, unread};
use crate::plugins::Plugin;
use crate::plugins::change::PodChange;
use crate::plugins::compiled::{At, CompiledPlugin, Settings};
use crate::plugins::extended_resource_toleration;
use crate::plugins::pod_facts::{PodFacts, Spec};
use crate::plugins::pod_toleration_restriction::PodTolerationRestriction;
use crate::pod::decoded::Decoded;
use crate::pod::limits::too_large;
use crate::reasons;
use crate::snapshot::Snapshot;

const PODS: &[Resource] = &[Resource { group: "", version: "v1", resource: "pods", kind: "Pod" }];
const EPHEMERAL_CONTAINERS: &[Resource] =
    &[Resource { group: "", version: "v1", resource: "pods/ephemeralcontainers", kind: "Pod" }];

/// Labels, annotations and finalizers are no matter, and must not depend on us.
const SPEC_CHANGES: MatchCondition =
    MatchCondition { name: concat!(api_domain!(), "/spec-changes"), expression: "object.spec != oldObject.spec" };

const fn rule(name: &'static str, suffix: &'static str, resources: &'static [Resource]) -> Rule {
    Rule {
        suffix,
        failure_policy: FailurePolicy::Chosen,
        namespaces: Namespaces::NotExcluded,
        on_demand: true,
        match_conditions: &[SPEC_CHANGES],
        ..Rule::new(name, resources, &[Operation::Update])
    }
}

const TOLERATION_RESTRICTION: Rule =
    rule(concat!("podtolerationrestriction.policy.", api_domain!()), "podtolerationrestriction", PODS);
const EXTENDED_RESOURCES: Rule =
    rule(concat!("extendedresourcetoleration.policy.", api_domain!()), "extendedresourcetoleration", PODS);
const TOPOLOGY: Rule =
    rule(concat!("limitpodhardantiaffinitytopology.policy.", api_domain!()), "limitpodhardantiaffinitytopology", PODS);
const PULLED: Rule = rule(concat!("alwayspullimages.policy.", api_domain!()), "alwayspullimages", PODS);

/// Ephemeral containers under `AlwaysPullImages`.
pub const EPHEMERAL: Rule = rule(
    concat!("alwayspullimages-ephemeralcontainers.policy.", api_domain!()),
    "alwayspullimages",
    EPHEMERAL_CONTAINERS,
);

/// The plugins that change pods which are changed.
pub const MUTATING: [(Plugin, Rule); 2] = [
    (Plugin::PodTolerationRestriction, TOLERATION_RESTRICTION),
    (Plugin::ExtendedResourceToleration, EXTENDED_RESOURCES),
];

/// The plugins that judge pods which are changed.
pub const VALIDATING: [(Plugin, Rule); 3] = [
    (Plugin::AlwaysPullImages, PULLED),
    (Plugin::PodTolerationRestriction, TOLERATION_RESTRICTION),
    (Plugin::LimitPodHardAntiAffinityTopology, TOPOLOGY),
];

/// What is decided on: the pod as it is to be, and as it was.
type Pods<'r, 'a> = (&'r PodFacts<'a>, &'r Spec<'a>, &'r PodFacts<'a>);

/// The pods of an update that concerns anybody. What is missing of the old one is judged as if it were new.
fn pods<'r, 'a>(
    request: &'r Request<'a, Decoded<PodFacts<'a>>>,
) -> Option<(&'r Decoded<PodFacts<'a>>, &'r PodFacts<'a>)> {
    let (new, old) = (request.object.as_ref()?, request.old_object.as_ref()?.even_if_cut());
    let concerns = request.operation == Operation::Update
        && old.metadata.deletion_timestamp.is_none()
        && !is_mirror(old.metadata.annotations.as_ref(), &request.user_info);
    (concerns && new.even_if_cut().spec.is_some()).then_some((new, old))
}

/// Decides what each plugin would change, and makes it one patch.
fn mutate<'a>(
    request: &Request<'a, Decoded<PodFacts<'a>>>,
    snapshot: &Snapshot,
    chosen: impl Fn(&CompiledPlugin) -> bool,
    change: impl Fn(&CompiledPlugin, &Spec<'a>, &PodFacts<'a>) -> PodChange<'a>,
) -> Result<Verdict, Unserved> {
    let Some((new, old)) = pods(request) else { return Ok(Verdict::allow(reasons::NO_MATCH)) };
    let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
    if concerned.plugins.is_empty() {
        let mut verdict = Verdict::allow(reasons::NO_MATCH);
        verdict.warnings = concerned.warnings;
        return Ok(verdict);
    }
    let fresh = match new.whole().map_err(too_large) {
        Ok(new) => new.spec.as_ref(),
        Err(denial) => return Ok(unread(&concerned, denial)),
    };
    let Some(fresh) = fresh else { return Ok(Verdict::allow(reasons::NO_MATCH)) };
    let mut report = Report::with(concerned.warnings);
    let mut changed: Option<Spec<'a>> = None;
    for (plugin, is_exempt) in concerned.plugins {
        request.deadline.check()?;
        let change = change(plugin, changed.as_ref().unwrap_or(fresh), old);
        if report.changes((plugin, is_exempt), &change) {
            changed.get_or_insert_with(|| fresh.clone()).apply(change);
        }
    }
    if let Some(exceeded) = changed.as_ref().and_then(Spec::too_many_tolerations) {
        return Ok(Verdict::deny(Reason::TOO_LARGE, too_large(exceeded)));
    }
    let patch = changed.map(|spec| spec.patch(fresh.count_of_tolerations())).unwrap_or_default();
    Ok(report.into_verdict(reasons::ALLOWED, patch))
}

/// Judges what is to be stored.
fn validate<'a>(
    request: &Request<'a, Decoded<PodFacts<'a>>>,
    snapshot: &Snapshot,
    findings: &mut Findings,
    chosen: impl Fn(&CompiledPlugin) -> bool,
    check: impl Fn(&CompiledPlugin, Pods<'_, 'a>, &At<'_>) -> Result<(), String>,
) -> Result<(), Unserved> {
    if request.operation == Operation::Update && (request.object.is_none() || request.old_object.is_none()) {
        findings.lacks(if request.object.is_none() { "object" } else { "oldObject" }, request);
        return Ok(());
    }
    findings.reason = reasons::NO_MATCH;
    let Some((new, old)) = pods(request) else { return Ok(()) };
    let concerned = concerned(snapshot, &request.namespace, &request.user_info, chosen)?;
    if concerned.plugins.is_empty() {
        findings.warnings.extend(concerned.warnings);
        return Ok(());
    }
    let new = match new.whole() {
        Ok(new) => new,
        Err(exceeded) => {
            findings.warnings.extend(concerned.warnings);
            refuse_unread(&concerned.plugins, too_large(exceeded), findings);
            return Ok(());
        }
    };
    let Some(spec) = &new.spec else { return Ok(()) };
    let pods: Pods<'_, 'a> = (new, spec, old);
    let mut report = Report::with(concerned.warnings);
    let at = at(request, new.metadata.said_name(&request.name), concerned.placement);
    report.judge(concerned.plugins, request, |plugin| Ok(check(plugin, pods, &at)))?;
    report.finish(findings);
    Ok(())
}

/// Changes pods that are changed.
pub struct PodUpdateMutation {
    /// The plugin of the entry.
    pub plugin: Plugin,
}

impl Mutating<Snapshot> for PodUpdateMutation {
    type Object<'a> = Decoded<PodFacts<'a>>;

    fn mutate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
    ) -> Result<Verdict, Unserved> {
        mutate(
            request,
            snapshot,
            |one| one.plugin == self.plugin,
            |one, spec, _| match &one.settings {
                Settings::PodTolerationRestriction(_) => PodTolerationRestriction::change_update(spec),
                Settings::ExtendedResourceToleration => extended_resource_toleration::change(spec),
                _ => PodChange::default(),
            },
        )
    }
}

/// Judges pods that are changed.
pub struct PluginUpdateValidation {
    /// The plugin of the entry.
    pub plugin: Plugin,
}

impl Validating<Snapshot> for PluginUpdateValidation {
    type Object<'a> = Decoded<PodFacts<'a>>;

    /// What is read of a pod is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        let check = |one: &CompiledPlugin, (_, new, old): Pods<'_, 'a>, at: &At<'_>| match &one.settings {
            Settings::AlwaysPullImages(settings) => settings.check_update(old, new, at.name),
            _ => one.check(new, at),
        };
        validate(request, snapshot, findings, |one| one.plugin == self.plugin, check)
    }
}

/// Whether the plugin decides on ephemeral containers.
pub fn covers_ephemeral(one: &CompiledPlugin) -> bool {
    matches!(&one.settings, Settings::AlwaysPullImages(settings) if settings.ephemeral)
}

/// Changes ephemeral containers.
pub struct EphemeralMutation;

impl Mutating<Snapshot> for EphemeralMutation {
    type Object<'a> = Decoded<PodFacts<'a>>;

    fn mutate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
    ) -> Result<Verdict, Unserved> {
        mutate(request, snapshot, covers_ephemeral, |one, spec, old| match &one.settings {
            Settings::AlwaysPullImages(settings) => settings.change_ephemeral(old, spec),
            _ => PodChange::default(),
        })
    }
}

/// Judges ephemeral containers.
pub struct EphemeralValidation;

impl Validating<Snapshot> for EphemeralValidation {
    type Object<'a> = Decoded<PodFacts<'a>>;

    /// What is read of a pod is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, Decoded<PodFacts<'a>>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        let enforced = |one: &CompiledPlugin| covers_ephemeral(one) && one.judges_changes();
        let check = |one: &CompiledPlugin, (_, new, old): Pods<'_, 'a>, at: &At<'_>| match &one.settings {
            Settings::AlwaysPullImages(settings) => settings.check_ephemeral(old, new, at.name),
            _ => Ok(()),
        };
        validate(request, snapshot, findings, enforced, check)
    }
}
