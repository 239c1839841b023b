//! `outrider review`: answers one AdmissionReview from a file.

mod body;

use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use admission::{Answer, Decision, Reason, Unserved};
use clap::Args;
use engine::offline::admit::{self, Reply};
use engine::pod::PODS;
use engine::{reasons, yaml};
use serde_json::Value;

use self::body::{also_called, as_json, default_entry, lacks_object, nothing_serves, read, typing_of};
use super::findings::{Diagnostic, Level, Summary};
use super::offline::{OfflineModel, OfflineModelArgs};
use super::render::typing::Typing;
use super::report::{CommandReport, FindingsFormat, ReportArgs};
use super::streams::{CommandOutcome, Streams, with_process_streams};
use crate::validate::Validate;

/// Arguments of `outrider review`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
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
    pub model: OfflineModelArgs,
}

/// What to write where arguments are missing.
pub const TIP: &str = "give sets with --manifests or --from-cluster, and a file with one AdmissionReview: outrider review --manifests \
                       sidecarsets/ review.json";

/// How the command is called.
pub const USAGE: &str = "outrider review [OPTIONS] <--manifests <PATH>|--from-cluster> <FILE>";

const EXAMPLES: &str = "\
The reply goes to stdout, byte for byte as the server sends it. stderr has the warnings and the refusal as findings, each with the line \
of the field in FILE, and explains the reply in words. With -o json or -o sarif, stdout has the findings in place of the reply.

Examples:
  outrider review --manifests sidecarsets/ pod-review.json
  outrider review --manifests sidecarsets/ --path /validate--v1-pod - < pod-review.json
  outrider review --manifests sidecarsets/ pod-review.json | jq -r .response.patch | base64 -d
  outrider review --manifests sidecarsets/ -o sarif pod-review.json > outrider.sarif

Exit codes: 0 allowed; 1 refused, or there was a warning and --warnings-as-errors; 2 the review or the manifests cannot be \
read, the review lacks its object, a set is invalid, the review is for a pod and there is no set, or nothing serves the path.";

/// Runs the command in the process.
pub fn execute(args: &ReviewArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &ReviewArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let mut report = CommandReport::new(&args.report);
    let answered = OfflineModel::load(&args.model, &mut report, streams.stdin).and_then(|model| {
        let answered = answer(args, &model, streams.stdin, &mut report);
        answered.map_err(|error| report.read(Level::Error, &error)).ok()
    });
    let reply = answered.as_ref().and_then(|answered| Reply::read(&answered.answer.body).ok());
    let is_refused = matches!(&answered, Some(answered) if answered.answer.decision == Decision::Denied);
    if let (Some(answered), Some(reply)) = (&answered, &reply) {
        add_findings(answered, reply, args.model.of_workloads(), &mut report);
    }
    if args.output == FindingsFormat::Text {
        report.print_text(streams.stderr)?;
        if let Some(answered @ Answered { answer, .. }) = &answered {
            streams.stdout.write_all(&answer.body)?;
            streams.stdout.write_all(b"\n")?;
            if !args.report.quiet || is_refused {
                streams.stderr.write_all(summary(answered, reply.as_ref()).as_bytes())?;
            }
        }
    } else {
        let allowed = usize::from(answered.is_some() && !is_refused);
        let warnings = report.count(Level::Warning);
        let numbers = Summary(vec![("allowed", allowed), ("refused", is_refused.into()), ("warnings", warnings)]);
        report.print(args.output, "review", &numbers, streams.stdout, streams.stderr)?;
    }
    if answered.is_none() || report.count(Level::Error) > 0 {
        return Ok(CommandOutcome::BadInput);
    }
    let outcome = if is_refused { CommandOutcome::Refused } else { CommandOutcome::Fine };
    if report.count(Level::Warning) > 0 { args.model.warned(outcome, streams.stderr) } else { Ok(outcome) }
}

/// A review that was answered.
struct Answered {
    /// What messages call its file.
    file: String,
    /// Of the webhook.
    path: String,
    /// Whether the API server would have sent an object with it.
    lacks_object: bool,
    /// What is wrong with how the object is written.
    typing: Typing,
    /// Paths of entries that the API server calls too, where none was chosen.
    also_called: Vec<String>,
    /// Whether sets decide at the path whether they are added to the pod.
    is_of_sets: bool,
    answer: Answer,
}

/// The steps to the object in a review.
const OBJECT: [&str; 2] = ["request", "object"];

/// What the reply says, as findings about the file of the review.
fn add_findings(answered: &Answered, reply: &Reply, validate: Validate, report: &mut CommandReport<'_>) {
    let Answered { file, lacks_object, typing, also_called, answer, .. } = answered;
    let title = format!("{}{}", answer.summary.kind, object_name(answer));
    let mut add = |severity: Level, text: &str| {
        report.add_below(Diagnostic::of(severity, &format!("{file}:1"), format!("{title}: {text}")), &OBJECT);
    };
    if *lacks_object {
        let operation = answer.summary.operation;
        add(
            Level::Error,
            &format!(
                "request.object is missing: the API server sends it with every {operation}; the reply is what the server answers without it"
            ),
        );
    }
    let of_unknown = if validate == Validate::Strict { Level::Error } else { Level::Warning };
    for unknown in &typing.unknown {
        add(of_unknown, unknown);
    }
    for warning in typing.wrong_types.iter().chain(&typing.warnings).chain(&reply.warnings) {
        add(Level::Warning, warning);
    }
    let is_said = !typing.warnings.is_empty();
    if !is_said && answer.summary.kind == "Pod" && answer.reason == Reason::INVALID && reply.status.is_none() {
        add(Level::Warning, "spec.containers is empty: the API server refuses such a pod, so no set is added to it");
    }
    if !also_called.is_empty() {
        add(
            Level::Note,
            &format!("plugins decide on it under these paths too, each by --path: {}", also_called.join(", ")),
        );
    }
    let Some(status) = &reply.status else { return };
    let mut causes = status.details.causes.iter().filter(|cause| !cause.field.is_empty()).peekable();
    if causes.peek().is_none() {
        add(Level::Refused, &status.message);
    }
    for cause in causes {
        add(Level::Refused, &format!("{}: {}", cause.field, cause.message));
    }
}

fn answer(
    args: &ReviewArgs,
    model: &OfflineModel,
    stdin: &mut dyn Read,
    report: &mut CommandReport<'_>,
) -> Result<Answered, String> {
    let Some(file) = args.file.as_ref().or(args.filename.as_ref()) else {
        return Err("name a file with one AdmissionReview, or - for stdin".to_owned());
    };
    let (name, bytes) = read(file, stdin)?;
    if let Ok(text) = std::str::from_utf8(&bytes) {
        report.know(&name, text);
    }
    let body = as_json(&name, bytes)?;
    let entry = match &args.path {
        Some(path) => model.registry.find(path).ok_or_else(|| nothing_serves(path, &body, &model.registry))?,
        None => default_entry(&model.registry, &name, &body)?,
    };
    // Any other kind can be validated without a set.
    if let Some(no_set) = model.no_set.as_ref().filter(|_| entry.rule.resources == PODS) {
        return Err(no_set.clone());
    }
    match admit::answer(&*entry.endpoint, &body, &model.snapshot, model.questions) {
        Ok(answer) => {
            let (path, typing) = (entry.path.clone(), typing_of(&body));
            let is_chosen = args.path.is_some();
            let is_of_sets = entry.rule.resources == PODS && !entry.rule.on_demand;
            let kind = &answer.summary.kind;
            let also_called = if is_chosen { Vec::new() } else { also_called(&model.registry, entry, kind) };
            Ok(Answered {
                file: name,
                path,
                lacks_object: lacks_object(&body),
                typing,
                also_called,
                is_of_sets,
                answer,
            })
        }
        Err(unserved @ Unserved::Unanswered(_)) => {
            Err(format!("{name}:1: no decision: {unserved}; --allow-all-questions answers yes"))
        }
        Err(unserved) => Err(format!("{name}:1: the server would answer HTTP {}: {unserved}", unserved.status())),
    }
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
fn summary(Answered { path, answer, is_of_sets, .. }: &Answered, reply: Option<&Reply>) -> String {
    let of = &answer.summary;
    let dry_run = if of.dry_run { ", dry run" } else { "" };
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{path}: {} {}{}{dry_run}", of.operation, of.kind, object_name(answer));
    let _ = writeln!(text, "{}: {}", answer.decision.as_str(), answer.reason);
    if answer.reason == reasons::NO_MATCH && *is_of_sets {
        let _ = writeln!(text, "for each set why it does not select the pod: outrider explain");
    }
    let Some(reply) = reply else { return text };
    if let Some(status) = &reply.status {
        let _ = writeln!(text, "message ({} {}): {}", status.code, status.reason, status.message);
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
    use admission::{Mutating, Operation, Registry, Request, Unserved, Verdict};
    use clap::Parser as _;
    use engine::offline::admit::Questions;
    use engine::snapshot::Snapshot;

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
            let model = OfflineModel {
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
            let mut report = CommandReport::new(&args.report);
            answer(&args, &model, &mut review.as_bytes(), &mut report).map(|answered| answered.answer.reason)
        };
        let error = told(Questions::Open).unwrap_err();
        assert_eq!(
            error,
            "stdin:1: no decision: it is not known whether kim may run ; --allow-all-questions answers yes"
        );
        assert_eq!(told(Questions::Allowed), Ok(Reason::ALLOWED));
    }
}
