//! Events under `EventRateLimit`.

use admission::question::{Known, Question, Token};
use admission::registry::{FailurePolicy, MatchPolicy, Namespaces, Resource, Rule};
use admission::{Denial, Findings, ObjectLimit, Operation, Request, Unserved, Validating};

use super::report::Report;
use super::scope::concerned;
use crate::plugins::compiled::{CompiledPlugin, Mode, Settings};
use crate::plugins::event_rate_limit::{EventFacts, EventRateLimit, refusal};
use crate::reasons;
use crate::snapshot::Snapshot;

const EVENTS: &[Resource] = &[Resource { group: "", version: "v1", resource: "events", kind: "Event" }];
/// Group of the newer events, which the API server converts for an entry that wants to see equivalents.
const NEWER: &str = "events.k8s.io";

/// Events that are created or changed. If Outrider does not answer within a second, they pass.
pub const RULE: Rule = Rule {
    suffix: "eventratelimit",
    match_policy: MatchPolicy::Exact,
    failure_policy: FailurePolicy::Ignore,
    timeout_seconds: 1,
    namespaces: Namespaces::NotExcluded,
    on_demand: true,
    ..Rule::new(concat!("eventratelimit.policy.", api_domain!()), EVENTS, &[Operation::Create, Operation::Update])
};

/// The rule for these objects: newer events are sent only if one of them limits those.
pub fn rule(snapshot: &Snapshot) -> Rule {
    let covers = snapshot.plugins.iter().any(|one| settings(one).is_some_and(|settings| settings.covers_events_v1));
    Rule { match_policy: if covers { MatchPolicy::Equivalent } else { MatchPolicy::Exact }, ..RULE }
}

fn settings(plugin: &CompiledPlugin) -> Option<&EventRateLimit> {
    match &plugin.settings {
        Settings::EventRateLimit(settings) => Some(settings),
        _ => None,
    }
}

/// The endpoint.
pub struct EventValidation;

impl Validating<Snapshot> for EventValidation {
    type Object<'a> = EventFacts<'a>;

    /// What is read of an event is bounded by its type.
    const LIMIT: Option<ObjectLimit> = None;

    fn validate<'a>(
        &self,
        request: &Request<'a, EventFacts<'a>>,
        snapshot: &Snapshot,
        findings: &mut Findings,
    ) -> Result<(), Unserved> {
        findings.reason = reasons::NO_MATCH;
        // Nothing of a dry run is stored.
        if !matches!(request.operation, Operation::Create | Operation::Update) || request.dry_run {
            return Ok(());
        }
        let Some(event) = &request.object else {
            findings.lacks("object", request);
            return Ok(());
        };
        let is_newer = request.request_resource.as_ref().is_some_and(|sent| sent.group.as_str() == NEWER);
        let concerned = concerned(snapshot, &request.namespace, &request.user_info, |one| {
            settings(one).is_some_and(|settings| settings.covers_events_v1 || !is_newer)
        })?;
        findings.warnings.extend(concerned.warnings);
        let mut report = Report::default();
        // Who is exempt takes no token: what the event would have met is unknown, and nothing is said of it.
        let limited: Vec<_> = concerned
            .plugins
            .into_iter()
            .filter(|(_, is_exempt)| !is_exempt)
            .filter_map(|(plugin, _)| {
                let settings = settings(plugin)?;
                let tokens = settings.tokens(&plugin.name, event, &request.namespace, &request.user_info.username);
                Some((plugin, settings, tokens))
            })
            .collect();
        // The tokens of all are taken at one time.
        let wanted: Vec<Token> = limited.iter().flat_map(|(.., tokens)| tokens).cloned().collect();
        let mut taken: &[bool] = &[];
        if !wanted.is_empty() {
            let Known::Tokens(known) = request.ask(Question::Tokens(wanted))? else { return Err(Unserved::Fault) };
            taken = known;
        }
        let mut reasons = Vec::new();
        for (plugin, settings, tokens) in &limited {
            let (own, others) = taken.split_at_checked(tokens.len()).unwrap_or((taken, &[]));
            taken = others;
            let mut refusals: Vec<String> = settings.refusals(tokens, own).collect();
            if refusals.is_empty() {
                continue;
            }
            if plugin.mode == Mode::Enforce {
                // All of them are said at once.
                reasons.append(&mut refusals);
                refusals.clone_from(&reasons);
            }
            report.refuses_as(plugin, refusal(&refusals), |message| Denial::too_many_requests(request, message));
        }
        report.finish(findings);
        Ok(())
    }
}
