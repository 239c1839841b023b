//! Events under `EventRateLimit`.

use std::sync::Arc;

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

/// The rule.
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
        let tokens = taken(request, event, &concerned.plugins)?;
        let mut reasons = Vec::new();
        for ((plugin, is_exempt), tokens) in concerned.plugins.into_iter().zip(tokens) {
            let Some(settings) = settings(plugin) else { continue };
            let refusals: Vec<String> = settings.refusals(&tokens.0, &tokens.1).collect();
            // What an exempt event would have met is unknown: it takes no token, and nothing is said of it.
            if is_exempt {
                continue;
            }
            if plugin.mode == Mode::Enforce && !refusals.is_empty() {
                // All of them are said at once.
                reasons.extend(refusals);
                report.refuses_as(plugin, refusal(&reasons), |message| Denial::too_many_requests(request, message));
            } else if !refusals.is_empty() {
                report.refuses(plugin, refusal(&refusals), request);
            }
        }
        report.finish(findings);
        Ok(())
    }
}

/// The tokens of a plugin, and which of them there were.
type Taken = (Vec<Token>, Vec<bool>);

/// Takes the tokens of all plugins at one time. Who is exempt takes none.
fn taken<'a>(
    request: &Request<'a, EventFacts<'a>>,
    event: &EventFacts<'a>,
    plugins: &[(&Arc<CompiledPlugin>, bool)],
) -> Result<Vec<Taken>, Unserved> {
    let of = |(plugin, is_exempt): &(&Arc<CompiledPlugin>, bool)| {
        let settings = settings(plugin).filter(|_| !is_exempt);
        let tokens =
            settings.map(|one| one.tokens(&plugin.name, event, &request.namespace, &request.user_info.username));
        tokens.unwrap_or_default()
    };
    let wanted: Vec<Vec<Token>> = plugins.iter().map(of).collect();
    let all = wanted.concat();
    if all.is_empty() {
        return Ok(wanted.into_iter().map(|tokens| (tokens, Vec::new())).collect());
    }
    let Known::Tokens(known) = request.ask(Question::Tokens(all))? else { return Err(Unserved::Fault) };
    let mut known = known.iter().copied();
    Ok(wanted
        .into_iter()
        .map(|tokens| {
            let taken = known.by_ref().take(tokens.len()).collect();
            (tokens, taken)
        })
        .collect())
}
