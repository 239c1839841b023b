//! `outrider review`: answers one AdmissionReview from a file.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use admission::registry::{Entry, Phase};
use admission::{Answer, Decision, Registry, Unserved};
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::findings::{Finding, Severity, Summary};
use super::offline::{OfflineModel, OfflineModelArgs};
use super::report::{FindingsFormat, Report, ReportArgs};
use super::streams::{Outcome, Streams, with_process_streams};
use engine::offline::admit::{self, Reply, find};
use engine::pod::PODS;
use engine::reasons;
use engine::snapshot::Snapshot;
use engine::yaml;

/// Arguments of `outrider review`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = "outrider review [OPTIONS] --manifests <PATH> <FILE>")]
pub struct ReviewArgs {
    /// File with one AdmissionReview, in JSON or YAML; - for stdin
    #[arg(value_name = "FILE", required_unless_present = "filename")]
    pub file: Option<PathBuf>,
    /// The same as FILE, as in kubectl
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    pub filename: Option<PathBuf>,
    /// Webhook path to ask [default: the mutating one of the request's kind]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// What to print; as text, the reply goes to stdout, and stderr explains it in words
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = FindingsFormat::Text)]
    pub output: FindingsFormat,
    /// How to report
    #[command(flatten)]
    pub report: ReportArgs,
    /// What decides
    #[command(flatten)]
    pub world: OfflineModelArgs,
}

const EXAMPLES: &str = "\
The reply goes to stdout, byte for byte as the server sends it; stderr explains it in words. With -o json or -o sarif, \
stdout has the warnings and the refusal as findings, in place of the reply.

Examples:
  outrider review --manifests sidecarsets/ pod-review.json
  outrider review --manifests sidecarsets/ --path /validate--v1-pod - < pod-review.json
  outrider review --manifests sidecarsets/ pod-review.json | jq -r .response.patch | base64 -d
  outrider review --manifests sidecarsets/ -o sarif pod-review.json > outrider.sarif

Exit codes: 0 allowed; 1 refused, or there was a warning and --warnings-as-errors; 2 the review or the manifests cannot be \
read, a set is invalid, the review is for a pod and there is no set, or nothing serves the path.";

/// Runs the command in the process.
pub fn execute(args: &ReviewArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &ReviewArgs, streams: &mut Streams<'_>) -> io::Result<Outcome> {
    let mut report = Report::new(&args.report);
    let answered = OfflineModel::load(&args.world, &mut report, streams.stdin).and_then(|world| {
        let answered = answer(args, &world, streams.stdin);
        answered.map_err(|error| report.add(Finding::bare(Severity::Error, error))).ok()
    });
    let reply = answered.as_ref().and_then(|(_, answer)| Reply::read(&answer.body).ok());
    let is_refused = matches!(&answered, Some((_, answer)) if answer.decision == Decision::Denied);
    if args.output == FindingsFormat::Text {
        report.print_text(streams.stderr)?;
        if let Some((path, answer)) = &answered {
            streams.stdout.write_all(&answer.body)?;
            streams.stdout.write_all(b"\n")?;
            if !args.report.quiet || is_refused {
                streams.stderr.write_all(summary(path, answer, reply.as_ref()).as_bytes())?;
            }
        }
    } else {
        if let (Some((_, answer)), Some(reply)) = (&answered, &reply) {
            add_findings(args, answer, reply, &mut report);
        }
        let allowed = usize::from(answered.is_some() && !is_refused);
        let warnings = report.count(Severity::Warning);
        let numbers = Summary(vec![("allowed", allowed), ("refused", is_refused.into()), ("warnings", warnings)]);
        report.print(args.output, "review", &numbers, streams.stdout, streams.stderr)?;
    }
    if answered.is_none() {
        return Ok(Outcome::BadInput);
    }
    let outcome = if is_refused { Outcome::Refused } else { Outcome::Fine };
    let has_warned = report.count(Severity::Warning) > 0 || reply.is_some_and(|reply| !reply.warnings.is_empty());
    if has_warned { args.world.warned(outcome, streams.stderr) } else { Ok(outcome) }
}

/// What the reply says, as findings about the file of the review.
fn add_findings(args: &ReviewArgs, answer: &Answer, reply: &Reply, report: &mut Report<'_>) {
    let file = args.file.as_ref().or(args.filename.as_ref()).filter(|file| file.as_os_str() != "-");
    let place = file.map_or_else(String::new, |file| format!("{}:1: ", file.display()));
    let title = format!("{}{}", answer.summary.kind, object_name(answer));
    for warning in &reply.warnings {
        report.read(Severity::Warning, &format!("{place}{title}: {warning}"));
    }
    let Some(status) = &reply.status else { return };
    let mut causes = status.details.causes.iter().filter(|cause| !cause.field.is_empty()).peekable();
    if causes.peek().is_none() {
        report.read(Severity::Refused, &format!("{place}{title}: {}", status.message));
    }
    for cause in causes {
        report.read(Severity::Refused, &format!("{place}{title}: {}: {}", cause.field, cause.message));
    }
}

fn answer(args: &ReviewArgs, world: &OfflineModel, stdin: &mut dyn Read) -> Result<(String, Answer), String> {
    let Some(file) = args.file.as_ref().or(args.filename.as_ref()) else {
        return Err("name a file with one AdmissionReview, or - for stdin".to_owned());
    };
    let (name, bytes) = read(file, stdin)?;
    let body = as_json(&name, bytes)?;
    let entry = match &args.path {
        Some(path) => {
            world.registry.find(path).ok_or_else(|| format!("nothing serves {path}\n{}", served(&world.registry)))?
        }
        None => default_entry(&world.registry, &name, &body)?,
    };
    // Any other kind can be validated without a set.
    if let Some(no_set) = world.no_set.as_ref().filter(|_| entry.rule.resources == PODS) {
        return Err(no_set.clone());
    }
    match admit::answer(&*entry.endpoint, &body, &world.snapshot, world.questions) {
        Ok(answer) => Ok((entry.path.clone(), answer)),
        Err(unserved @ Unserved::Unanswered(_)) => {
            Err(format!("{name}: no decision: {unserved}; --allow-all-questions answers yes"))
        }
        Err(unserved) => Err(format!("{name}: the server would answer HTTP {}: {unserved}", unserved.status())),
    }
}

fn read(file: &Path, stdin: &mut dyn Read) -> Result<(String, Vec<u8>), String> {
    if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        stdin.read_to_end(&mut bytes).map_err(|error| format!("stdin: {error}"))?;
        return Ok(("stdin".to_owned(), bytes));
    }
    let name = file.display().to_string();
    let bytes = fs::read(file).map_err(|error| format!("{name}: {error}"))?;
    Ok((name, bytes))
}

/// JSON stays as it is, to the byte, so that the answer is the server's; anything else is read as YAML.
fn as_json(name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok() {
        return Ok(bytes);
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{name}: the file is not UTF-8 text"))?;
    let documents =
        yaml::read(&text).map_err(|error| format!("{name}:{}:{}: {}", error.line, error.column, error.detail()))?;
    match documents.as_slice() {
        [document] => Ok(document.value.to_string().into_bytes()),
        [] => Err(format!("{name}: it is empty, expected one AdmissionReview in JSON or YAML")),
        other => Err(format!("{name}: one AdmissionReview is expected, found {} documents", other.len())),
    }
}

#[derive(Deserialize)]
#[serde(expecting = "an AdmissionReview")]
struct Kinded {
    #[serde(default)]
    kind: String,
    request: Option<RequestKind>,
}

#[derive(Deserialize)]
#[serde(expecting = "the request of an AdmissionReview")]
struct RequestKind {
    kind: Option<GroupVersionKind>,
}

#[derive(Deserialize)]
#[serde(expecting = "group, version and kind")]
struct GroupVersionKind {
    #[serde(default)]
    group: String,
    version: String,
    kind: String,
}

fn default_entry<'r>(registry: &'r Registry<Snapshot>, name: &str, body: &[u8]) -> Result<&'r Entry<Snapshot>, String> {
    let review: Kinded =
        serde_json::from_slice(body).map_err(|error| format!("{name}: not an AdmissionReview: {error}"))?;
    let request = match review {
        Kinded { request: Some(request), .. } => request,
        Kinded { kind, .. } if kind == "AdmissionReview" => return Err(format!("{name}: request is missing")),
        Kinded { kind, .. } if kind.is_empty() => {
            return Err(format!("{name}: kind is missing, expected \"AdmissionReview\""));
        }
        Kinded { kind, .. } => {
            let help = "for manifests use `outrider render`";
            return Err(format!("{name}: kind is {kind:?}, expected \"AdmissionReview\"; {help}"));
        }
    };
    let Some(GroupVersionKind { group, version, kind }) = request.kind else {
        return Err(format!(
            "{name}: request.kind is missing, by which the webhook is found; choose a path with --path"
        ));
    };
    find(registry, Phase::Mutating, &group, &version, &kind).ok_or_else(|| {
        let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
        format!(
            "{name}: no mutating webhook serves {api_version} {kind}; choose a path with --path\n{}",
            served(registry)
        )
    })
}

fn served(registry: &Registry<Snapshot>) -> String {
    let paths: Vec<&str> = registry.entries().iter().map(|entry| entry.path.as_str()).collect();
    format!("served paths:\n  {}", paths.join("\n  "))
}

/// The name of the object, with a space in front; empty where it has none.
fn object_name(answer: &Answer) -> String {
    let of = &answer.summary;
    match (of.namespace.as_str(), of.name.as_str()) {
        ("", "") => String::new(),
        (namespace, "") => format!(" in namespace {namespace}"),
        ("", name) => format!(" {name}"),
        (namespace, name) => format!(" {namespace}/{name}"),
    }
}

/// The reply in words.
fn summary(path: &str, answer: &Answer, reply: Option<&Reply>) -> String {
    let of = &answer.summary;
    let dry_run = if of.dry_run { ", dry run" } else { "" };
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{path}: {} {}{}{dry_run}", of.operation, of.kind, object_name(answer));
    let _ = writeln!(text, "{}: {}", answer.decision.as_str(), answer.reason);
    if answer.reason == reasons::NO_MATCH && of.kind == "Pod" {
        let _ = writeln!(text, "for each set why it does not select the pod: outrider explain");
    }
    let Some(reply) = reply else { return text };
    // In kubectl's order, the warnings first: an unknown field often explains the other errors.
    for warning in &reply.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    if let Some(status) = &reply.status {
        let _ = writeln!(text, "message ({} {}): {}", status.code, status.reason, status.message);
        for cause in status.details.causes.iter().filter(|cause| !cause.field.is_empty()) {
            let _ = writeln!(text, "  {}: {}", cause.field, cause.message);
        }
    }
    for (key, value) in &reply.audit {
        let _ = writeln!(text, "audit {key}: {value}");
    }
    if let Some(patch) = &reply.patch {
        let _ = writeln!(text, "patch:");
        let _ = write!(text, "{}", indented(&yaml::write(&Value::from(patch.operations.clone()))));
    }
    text
}

fn indented(text: &str) -> String {
    text.split_inclusive('\n').flat_map(|line| ["  ", line]).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use admission::question::{Access, Question};
    use admission::registry::{Resource, Rule};
    use admission::{Mutating, Operation, Reason, Request, Unserved, Verdict};
    use clap::Parser as _;
    use engine::offline::admit::Questions;

    use super::*;

    #[derive(clap::Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: ReviewArgs,
    }

    struct Asks;

    impl Mutating<Snapshot> for Asks {
        type Object<'a> = serde::de::IgnoredAny;

        fn mutate<'a>(&self, request: &Request<'a, Self::Object<'a>>, _: &Snapshot) -> Result<Verdict, Unserved> {
            let access = Access { user: "kim".to_owned(), verb: "run".to_owned(), ..Access::default() };
            let allowed = request.ask(Question::Access(access))?.is_yes();
            Ok(Verdict::allow(if allowed { Reason::ALLOWED } else { Reason::INVALID }))
        }
    }

    #[test]
    fn a_decision_that_asks_cannot_be_told_unless_all_questions_are_allowed() {
        const TOYS: &[Resource] =
            &[Resource { group: "toy.example.com", version: "v1", resource: "toys", kind: "Toy" }];
        let review = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE",
            "kind":{"group":"toy.example.com","version":"v1","kind":"Toy"}}}"#;
        let told = |questions| {
            let world = OfflineModel {
                registry: Registry::default().mutating(Rule::new("toy.example.com", TOYS, &[Operation::Create]), Asks),
                snapshot: Snapshot::default(),
                no_set: None,
                questions,
            };
            let line = match questions {
                Questions::Allowed => &["review", "-", "--manifests", "sets", "--allow-all-questions"][..],
                Questions::Open => &["review", "-", "--manifests", "sets"],
            };
            let CommandLine { args } = CommandLine::try_parse_from(line).unwrap();
            answer(&args, &world, &mut review.as_bytes()).map(|(_, answer)| answer.reason)
        };
        let error = told(Questions::Open).unwrap_err();
        assert_eq!(
            error,
            "stdin: no decision: it is not known whether kim may run ; --allow-all-questions answers yes"
        );
        assert_eq!(told(Questions::Allowed), Ok(Reason::ALLOWED));
    }
}
