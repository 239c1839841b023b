//! `outrider test`: objects in, and what is expected to become of them.

mod file;
pub(super) mod schema;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::Value;

use self::file::{Expected, TestFile, Verdict, files};
use super::findings::{self, Case, Finding, Severity, Summary, json, junit, sarif};
use super::offline::{OWN_NAMESPACE, OfflineModel};
use super::render::inject::{Failure, Rendered, Rules, render};
use super::report::{Report, ReportArgs};
use super::streams::{Outcome, Streams, with_process_streams};
use crate::input::{self, Manifest, identity};
use crate::kinds::Kinds;
use crate::registry::registry;
use crate::standalone::{self, Validate};
use engine::offline::admit::Questions;
use engine::snapshot::Exclusion;
use engine::yaml::steps;

/// Arguments of `outrider test`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct TestArgs {
    /// Test file, or folder with files named outrider-test.yaml at any depth; may be repeated
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    pub output: Format,
    /// How to report
    #[command(flatten)]
    pub report: ReportArgs,
}

/// What the results are printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A line for each case that failed
    Text,
    /// One object with what failed and the numbers
    Json,
    /// `JUnit` XML
    Junit,
    /// A SARIF 2.1.0 log of what failed
    Sarif,
}

const EXAMPLES: &str = "\
A test file names sets, resources, and the result that is expected for each resource. Paths are relative to the file.
`outrider manifests schemas` prints its JSON schema, for editors.

  apiVersion: cli.outrider.dev/v1alpha1
  kind: Test
  metadata: {name: sidecars}
  sets: [../sidecarsets/]
  resources: [deployment.yaml]
  namespace: shop                        # of objects without one
  results:
  - resource: web
    kind: Deployment                     # where several kinds have that name
    result: injected                     # or unchanged, or refused
    reason: Injected                     # a reason code: docs/reasons.md
    fields:
      spec.template.spec.containers[0].name: proxy
  - resource: legacy
    result: refused
    message: rename one of them          # part of the message

Examples:
  outrider test tests/
  outrider test tests/ -o junit > results.xml

Exit codes: 0 every case passed; 1 a case failed; 2 a file cannot be read or has an unknown field.";

/// Runs the command in the process.
pub fn execute(args: &TestArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &TestArgs, streams: &mut Streams<'_>) -> io::Result<Outcome> {
    let mut report = Report::new(&args.report);
    let (mut cases, mut is_readable) = (Vec::new(), true);
    let mut unreadable = |message: String, report: &mut Report<'_>| {
        report.read(Severity::Error, &message);
        is_readable = false;
    };
    for found in files(&args.paths) {
        match found.and_then(|path| TestFile::read(&path).map(|file| (path, file))) {
            Ok((path, file)) => match of_file(&path, &file) {
                Ok(results) => cases.extend(results),
                Err(messages) => messages.into_iter().for_each(|message| unreadable(message, &mut report)),
            },
            Err(messages) => messages.into_iter().for_each(|message| unreadable(message, &mut report)),
        }
    }
    for case in &cases {
        for findings::Failure { at, text } in &case.failures {
            let steps: Vec<&str> = at.iter().map(String::as_str).collect();
            let finding = Finding::of(Severity::Error, &case.source, format!("{}: {text}", case.name));
            report.add_at(finding, &steps);
        }
    }
    let failed = cases.iter().filter(|case| !case.failures.is_empty()).count();
    let summary = Summary(vec![("passed", cases.len() - failed), ("failed", failed)]);
    match args.output {
        Format::Text => {
            report.print_text(streams.stderr)?;
            report.sum_up(&summary, streams.stderr)?;
        }
        Format::Json => streams.stdout.write_all(json(&report.findings(), &summary).as_bytes())?,
        Format::Sarif => streams.stdout.write_all(sarif(&report.findings(), "test").as_bytes())?,
        Format::Junit => {
            streams.stdout.write_all(junit(&cases).as_bytes())?;
            if !is_readable {
                report.print_text(streams.stderr)?;
            }
        }
    }
    Ok(match (is_readable, failed) {
        (false, _) => Outcome::BadInput,
        (true, 0) => Outcome::Fine,
        (true, _) => Outcome::Refused,
    })
}

/// The cases of a file.
fn of_file(path: &Path, file: &TestFile) -> Result<Vec<Case>, Vec<String>> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let beside = |paths: &[PathBuf]| paths.iter().map(|path| folder.join(path)).collect::<Vec<_>>();
    let sets = beside(&file.sets);
    let registry = registry(&Kinds::all());
    let exclusion = Arc::new(Exclusion::new(OWN_NAMESPACE, file.excluded_namespaces.iter().cloned()));
    let loaded = standalone::load(&sets, &exclusion, &registry, Validate::Strict, None)
        .map_err(|unusable| unusable.errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    if let Some(no_set) = loaded.no_set {
        return Err(vec![format!("{}:1: {no_set}", path.display())]);
    }
    let world = OfflineModel { registry, snapshot: loaded.snapshot, no_set: None, questions: Questions::Open };
    let resources = input::load(&beside(&file.resources))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let rules = Rules { namespace: file.namespace.as_deref().unwrap_or("default"), validate: Validate::Warn };
    let case = |(index, expected): (usize, &Expected)| {
        let failed = |(steps, text): (Vec<&str>, String)| {
            let here = ["results".to_owned(), index.to_string()].into_iter();
            findings::Failure { at: here.chain(steps.into_iter().map(str::to_owned)).collect(), text }
        };
        let failures = failures(expected, &resources, rules, &world).into_iter().map(failed).collect();
        let source = format!("{}:{}", path.display(), file.line);
        Case { file: path.display().to_string(), source, name: expected.title(), failures }
    };
    Ok(file.results.iter().enumerate().map(case).collect())
}

/// What is not as expected, each with the steps to the expectation in the case.
type Failures<'e> = Vec<(Vec<&'e str>, String)>;

fn failures<'e>(
    expected: &'e Expected,
    resources: &[Manifest],
    rules: Rules<'_>,
    world: &OfflineModel,
) -> Failures<'e> {
    let is_meant = |manifest: &&Manifest| {
        identity(&manifest.value).is_ok_and(|identity| {
            identity.name == expected.resource
                && expected.kind.as_ref().is_none_or(|kind| *kind == identity.kind)
                && expected.namespace.as_ref().is_none_or(|namespace| identity.namespace.as_ref() == Some(namespace))
        })
    };
    let meant: Vec<&Manifest> = resources.iter().filter(is_meant).collect();
    let [manifest] = meant.as_slice() else {
        let text = format!("{} of the resources have that name and kind; it must be one", meant.len());
        return vec![(vec!["resource"], text)];
    };
    compared(expected, render((*manifest).clone(), rules, world))
}

fn compared(expected: &Expected, rendered: Result<Rendered, Box<Failure>>) -> Failures<'_> {
    let (verdict, reasons, messages, after) = match rendered {
        Ok(Rendered { patch, reasons, warnings, notes, after, .. }) => {
            let verdict = if patch.is_empty() { Verdict::Unchanged } else { Verdict::Injected };
            (verdict, reasons, [warnings, notes].concat(), Some(after))
        }
        Err(failure) => {
            let Failure { message, warnings, reasons, .. } = *failure;
            (Verdict::Refused, reasons, [vec![message], warnings].concat(), None)
        }
    };
    let mut failures = Vec::new();
    if verdict != expected.result {
        let said = messages.first().map(|message| format!(": {message}")).unwrap_or_default();
        failures.push((vec!["result"], format!("expected {}, and it is {verdict}{said}", expected.result)));
    }
    if let Some(reason) = &expected.reason
        && !reasons.iter().any(|found| found.as_str() == reason)
    {
        let found: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
        failures.push((vec!["reason"], format!("expected reason {reason}, found {}", found.join(", "))));
    }
    if let Some(message) = &expected.message
        && !messages.iter().any(|said| said.contains(message))
    {
        failures.push((vec!["message"], format!("nothing says {message:?}")));
    }
    for (path, wanted) in &expected.fields {
        let found = after.as_ref().and_then(|after| at(after, path)).unwrap_or(&Value::Null);
        if found != wanted {
            failures.push((vec!["fields", path.as_str()], format!("{path}: expected {wanted}, and it is {found}")));
        }
    }
    failures
}

/// The value at a field path.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    steps(path).try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}
