//! What can lock a cluster, found in what was read from it. Pure: objects and the time in, findings out.

pub mod access;
pub mod certificates;
pub mod definition;
pub mod entries;
pub mod facts;
pub mod fetch;
pub mod guard;
mod mounted;
pub mod objects;
mod own;
pub mod pods;
mod reach;
mod replica;
pub mod report;
mod serving;

use jiff::Timestamp;

use self::entries::ConfigurationEntry;
use self::facts::Facts;
use self::reach::Reach;
use self::report::{Check, Finding, Report, Severity};

/// The API server's own default, and ours. One request may pass many webhooks, one after the other.
const LONG_TIMEOUT_SECONDS: i32 = 10;

/// Examines a cluster.
pub fn examine(facts: &Facts, now: Timestamp) -> Report {
    let entries = ConfigurationEntry::all(facts);
    let mut findings: Vec<Finding> = entries.iter().flat_map(|entry| examine_entry(entry, facts, now)).collect();
    let converters = ConfigurationEntry::converters(facts);
    findings.extend(converters.iter().flat_map(|entry| serving::examine(entry, &Reach::NOTHING, facts, now)));
    let outrider = facts.has_outrider();
    let uninstalled = facts.is_uninstalled();
    if outrider && !uninstalled {
        findings.extend(own::examine(facts, now));
        findings.extend(mounted::examine(facts, now));
        findings.extend(objects::examine(facts));
        findings.extend(pods::examine(facts));
        findings.extend(access::examine(&facts.rights));
        findings.extend(facts.guard.iter().flat_map(|guard| guard::examine(guard, &facts.namespace)));
    }
    findings.sort_by(|a, b| a.rank().cmp(&b.rank()));
    let configurations = facts.mutating.len() + facts.validating.len();
    let certificates = certificates::ages(&entries, facts, now);
    let webhooks = entries.len();
    let not_checked = facts.not_checked.clone();
    let converters = converters.len();
    Report { findings, certificates, configurations, webhooks, converters, outrider, uninstalled, not_checked }
}

fn examine_entry(entry: &ConfigurationEntry<'_>, facts: &Facts, now: Timestamp) -> Vec<Finding> {
    let reach = Reach::of(entry, facts);
    let mut findings = Vec::new();
    findings.extend(serving::examine(entry, &reach, facts, now));
    findings.extend(vital(entry, &reach));
    if reach.everything {
        findings.push(entry.finding(
            Severity::Warning,
            Check::MatchesEverything,
            "its rules match every resource of every group, so every write in the cluster waits for it",
            "list in its rules the resources that it needs",
        ));
    }
    if entry.timeout_seconds > LONG_TIMEOUT_SECONDS {
        let found = format!(
            "the API server waits up to {} s for it, and requests that pass several webhooks wait for each",
            entry.timeout_seconds
        );
        let remedy = format!("set timeoutSeconds to {LONG_TIMEOUT_SECONDS} or less");
        findings.push(entry.finding(Severity::Warning, Check::LongTimeout, &found, &remedy));
    }
    findings
}

/// What a cluster needs to come back to life, and what it may not do without this webhook.
fn vital(entry: &ConfigurationEntry<'_>, reach: &Reach) -> Option<Finding> {
    if !entry.fails_closed || reach.vital.is_empty() {
        return None;
    }
    let what = reach.vital.join(", ");
    let remedy = "exclude them in its namespaceSelector by kubernetes.io/metadata.name, or in its rules; or set failurePolicy \
                  to Ignore";
    let finding = if entry.has_match_conditions {
        let found = format!(
            "failurePolicy is Fail and its rules match {what}; its matchConditions may leave them out, which was not \
             checked"
        );
        entry.finding(Severity::Warning, Check::HoldsTheCluster, &found, remedy)
    } else {
        let found = format!(
            "failurePolicy is Fail and its rules match {what}: while it does not answer, the cluster cannot recover"
        );
        entry.finding(Severity::Critical, Check::HoldsTheCluster, &found, remedy)
    };
    Some(finding)
}
