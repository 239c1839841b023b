//! `outrider test`: objects in, and what is expected to become of them.

mod file;
mod named_files;
pub(super) mod schema;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use admission::Reason;
use admission::field::quote;
use clap::{Args, ValueEnum};
use serde_json::Value;

use self::file::{Expected, TestFile, Verdict, files};
use self::named_files::NamedFiles;
use super::explain::explanations;
use super::findings::{self, Case, Diagnostic, Level, Summary, json, junit, sarif};
use super::offline::{OWN_NAMESPACE, OfflineModel};
use super::render::inject::{RenderRules, render};
use super::render::rendered::{Note, Rendered, Unprintable};
use super::render::{namespaces, warn_of_typing};
use super::report::{CommandReport, ReportArgs};
use super::streams::{CommandOutcome, Streams, with_process_streams};
use crate::input::{Identity, Manifest, identity};
use crate::kinds::Kinds;
use crate::registry::registry;
use crate::standalone::{self, Validate};
use engine::offline::admit::Questions;
use engine::reasons;
use engine::snapshot::Exclusion;
use engine::suggest::suggest;
use engine::yaml::{steps, unquoted};

/// Arguments of `outrider test`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct TestArgs {
    /// Test file, or folder with files named outrider-test.yaml at any depth; may be repeated
    #[arg(value_name = "PATH", required_unless_present = "filenames")]
    pub paths: Vec<PathBuf>,
    /// The same as PATH, as in kubectl
    #[arg(short, long = "filename", value_name = "PATH")]
    pub filenames: Vec<PathBuf>,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = CasesFormat::Text)]
    pub output: CasesFormat,
    /// How to report
    #[command(flatten)]
    pub report: ReportArgs,
}

/// What the results are printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CasesFormat {
    /// A line for each case that failed
    Text,
    /// One object with what failed and the numbers
    Json,
    /// `JUnit` XML
    Junit,
    /// A SARIF 2.1.0 log of what failed
    Sarif,
}

/// How the command is called.
pub const USAGE: &str = "outrider test [OPTIONS] <PATH>...";

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
    fields:                              # after the injection; null where there is to be nothing
      spec.template.spec.containers[0].name: proxy
      spec.template.spec.containers[name=proxy].image: registry.example/proxy:2
      spec.template.metadata.labels[example.com/team]: shop
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
pub fn run(args: &TestArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let mut report = CommandReport::new(&args.report);
    let (mut cases, mut is_readable) = (Vec::new(), true);
    for found in files(&[&args.paths[..], &args.filenames].concat()) {
        let read = found.and_then(|path| TestFile::read(&path).map(|file| (path, file)));
        let read = read.map_err(|messages| report.errors(&messages)).ok();
        match read.and_then(|(path, file)| of_file(&path, &file, &mut report)) {
            Some(results) => cases.extend(results),
            None => is_readable = false,
        }
    }
    if args.output == CasesFormat::Junit {
        // It has the cases alone.
        report.print_text(streams.stderr)?;
    }
    let errors = report.count(Level::Error);
    for of_file in cases.chunk_by(|one, other| one.file == other.file) {
        report_failures(of_file, &mut report);
    }
    let failed = cases.iter().filter(|case| !case.failures.is_empty()).count();
    let summary = Summary(vec![("passed", cases.len() - failed), ("failed", failed), ("errors", errors)]);
    match args.output {
        CasesFormat::Text => {
            report.print_text(streams.stderr)?;
            report.sum_up(&summary, streams.stderr)?;
        }
        CasesFormat::Json => streams.stdout.write_all(json(&report.findings(), &summary).as_bytes())?,
        CasesFormat::Sarif => streams.stdout.write_all(sarif(&report.findings(), "test").as_bytes())?,
        CasesFormat::Junit => streams.stdout.write_all(junit(&cases).as_bytes())?,
    }
    Ok(match (is_readable, failed) {
        (false, _) => CommandOutcome::BadInput,
        (true, 0) => CommandOutcome::Fine,
        (true, _) => CommandOutcome::Refused,
    })
}

/// Reports the failures in a file, in the order of its lines.
fn report_failures(cases: &[Case], report: &mut CommandReport<'_>) {
    let before = report.listed();
    for case in cases {
        for findings::CaseFailure { at, text } in &case.failures {
            let steps: Vec<&str> = at.iter().map(String::as_str).collect();
            let finding = Diagnostic::of(Level::Error, &case.source, format!("{}: {text}", case.name));
            report.add_at(finding, &steps);
        }
    }
    report.sort_by_line(before);
}

/// So many objects are listed that a case may mean.
const LISTED: usize = 5;

/// An object of the resources.
struct Resource {
    identity: Option<Identity>,
    /// Its own, or that of objects without one.
    namespace: String,
    rendered: Result<Rendered, Box<Unprintable>>,
    /// The codes that `outrider explain` prints for the sets that select its pods.
    of_sets: Vec<Reason>,
}

impl Resource {
    fn name(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.name.as_str())
    }

    fn kind(&self) -> &str {
        self.identity.as_ref().map(|identity| identity.kind.as_str()).unwrap_or_default()
    }
}

/// The cases of a file; `None` when it cannot be used, which the report says.
fn of_file(path: &Path, file: &TestFile, report: &mut CommandReport<'_>) -> Option<Vec<Case>> {
    let of_field = |field, written| NamedFiles::of(field, written, path, file.line);
    let (sets, resources) = (of_field("sets", &file.sets), of_field("resources", &file.resources));
    let registry = registry(&Kinds::all());
    let exclusion = Arc::new(Exclusion::new(OWN_NAMESPACE, file.excluded_namespaces.iter().cloned()));
    let deciding = sets.read(report)?;
    let loaded = standalone::of(&deciding, &sets.paths, &exclusion, &registry, Validate::Strict, None)
        .map_err(|found| report.unusable(&found))
        .ok()?;
    if let Some(no_set) = loaded.no_set {
        sets.wrong(&no_set, report);
        return None;
    }
    for warning in &loaded.warnings {
        report.read(Level::Warning, warning);
    }
    let mut model = OfflineModel { registry, snapshot: loaded.snapshot, no_set: None, questions: Questions::Open };
    let manifests = resources.read(report)?;
    namespaces::learn(&mut model, &manifests, Validate::Strict, report)?;
    let rules = RenderRules { namespace: file.namespace.as_deref().unwrap_or("default"), validate: Validate::Warn };
    let resources: Vec<Resource> = manifests.into_iter().map(|manifest| resource(manifest, rules, &model)).collect();
    for resource in &resources {
        warn_of_typing(&resource.rendered, report);
    }
    let case = |(index, expected): (usize, &Expected)| {
        let failed = |(steps, text): (Vec<&str>, String)| {
            let here = ["results".to_owned(), index.to_string()].into_iter();
            findings::CaseFailure { at: here.chain(steps.into_iter().map(str::to_owned)).collect(), text }
        };
        let failures = failures(expected, &resources).into_iter().map(failed).collect();
        let source = format!("{}:{}", path.display(), file.line);
        Case { file: path.display().to_string(), source, name: expected.title(), failures }
    };
    Some(file.results.iter().enumerate().map(case).collect())
}

fn resource(manifest: Manifest, rules: RenderRules<'_>, model: &OfflineModel) -> Resource {
    let identity = identity(&manifest.value).ok();
    let namespace = identity.as_ref().and_then(|identity| identity.namespace.clone());
    let namespace = namespace.unwrap_or_else(|| rules.namespace.to_owned());
    let of_sets = identity.as_ref().map(|identity| reasons_of_sets(identity, &namespace, &manifest, model));
    Resource { identity, namespace, rendered: render(manifest, rules, model), of_sets: of_sets.unwrap_or_default() }
}

fn reasons_of_sets(identity: &Identity, namespace: &str, manifest: &Manifest, model: &OfflineModel) -> Vec<Reason> {
    let explained = explanations(identity, namespace, &manifest.value, &model.snapshot);
    // What cannot be read is reported by rendering it.
    let sets = explained.into_iter().filter_map(|(_, explanation)| explanation.ok()).flat_map(|pod| pod.sets);
    sets.map(|set| set.why.reason).filter(|reason| *reason != reasons::NO_MATCH).collect()
}

/// What is not as expected, each with the steps to the expectation in the case.
type Failures<'e> = Vec<(Vec<&'e str>, String)>;

fn failures<'e>(expected: &'e Expected, resources: &'e [Resource]) -> Failures<'e> {
    let is_meant = |resource: &&Resource| {
        resource.identity.as_ref().is_some_and(|identity| {
            identity.name == expected.resource
                && expected.kind.as_ref().is_none_or(|kind| *kind == identity.kind)
                && expected.namespace.as_ref().is_none_or(|namespace| resource.namespace == *namespace)
        })
    };
    let meant: Vec<&Resource> = resources.iter().filter(is_meant).collect();
    let [resource] = meant.as_slice() else {
        return vec![(vec!["resource"], not_one(expected, &meant, resources))];
    };
    compared(expected, resource)
}

/// Why the object of a case is not known, and what to write.
fn not_one(expected: &Expected, meant: &[&Resource], resources: &[Resource]) -> String {
    let kind = expected.kind.as_deref().unwrap_or("resource");
    let place = expected.namespace.as_ref().map(|name| format!(" in namespace {}", quote(name))).unwrap_or_default();
    let called = format!("{kind} named {}{place}", quote(&expected.resource));
    if !meant.is_empty() {
        return ambiguous(&called, meant);
    }
    let is_namesake = |resource: &&Resource| resource.name() == Some(expected.resource.as_str());
    let namesakes: Vec<&Resource> = resources.iter().filter(is_namesake).collect();
    if !namesakes.is_empty() {
        return format!("there is no {called}; of that name there is {}", listed(&namesakes));
    }
    let meant = suggest(&expected.resource, resources.iter().filter_map(Resource::name));
    let hint = meant.map(|name| format!(" (did you mean {}?)", quote(name))).unwrap_or_default();
    format!("there is no {called}{hint}")
}

/// Says of several objects which there are, and by which fields of the case one of them is meant.
fn ambiguous(called: &str, meant: &[&Resource]) -> String {
    let text = format!("{} resources match {called}: {}", meant.len(), listed(meant));
    let kinds: BTreeSet<&str> = meant.iter().map(|resource| resource.kind()).collect();
    let namespaces: BTreeSet<&str> = meant.iter().map(|resource| resource.namespace.as_str()).collect();
    let Some(first) = meant.first() else { return text };
    let fields = [("kind", first.kind(), kinds.len()), ("namespace", first.namespace.as_str(), namespaces.len())];
    let fields: Vec<String> =
        fields.iter().filter(|(.., values)| *values > 1).map(|(field, value, _)| format!("{field}: {value}")).collect();
    if fields.is_empty() {
        return format!("{text}; they are one object for a cluster: leave all but one out of resources");
    }
    format!("{text}; add to the case which one is meant, such as {}", fields.join(" and "))
}

/// Objects, each with its place; the first of many.
fn listed(resources: &[&Resource]) -> String {
    let one = |resource: &&Resource| {
        let (title, source) = match &resource.rendered {
            Ok(rendered) => (&rendered.title, &rendered.source),
            Err(failure) => (&failure.title, &failure.source),
        };
        format!("{title} ({source})")
    };
    let mut words: Vec<String> = resources.iter().take(LISTED).map(one).collect();
    if let Some(left_out @ 1..) = resources.len().checked_sub(LISTED) {
        words.push(format!("and {left_out} more"));
    }
    words.join(", ")
}

fn compared<'e>(expected: &'e Expected, resource: &'e Resource) -> Failures<'e> {
    let (verdict, reasons, messages, after): (_, _, Vec<&str>, _) = match &resource.rendered {
        Ok(Rendered { patch, reasons, warnings, typing, notes, after, .. }) => {
            let verdict = if patch.is_empty() { Verdict::Unchanged } else { Verdict::Injected };
            let warned = |texts: &'e [String]| texts.iter().map(String::as_str);
            let messages = warned(warnings).chain(notes.iter().map(Note::text)).chain(warned(typing));
            (verdict, reasons, messages.collect(), Some(after))
        }
        Err(failure) => {
            let Unprintable { message, warnings, typing, reasons, .. } = failure.as_ref();
            let messages = std::iter::once(message).chain(warnings).chain(typing);
            (Verdict::Refused, reasons, messages.map(String::as_str).collect(), None)
        }
    };
    let mut failures = Vec::new();
    if verdict != expected.result {
        let said = messages.first().map(|message| format!(": {message}")).unwrap_or_default();
        failures.push((vec!["result"], format!("expected {}, and it is {verdict}{said}", expected.result)));
    }
    if let Some(reason) = &expected.reason
        && let found = codes(reasons.iter().chain(&resource.of_sets))
        && !found.contains(&reason.as_str())
    {
        failures.push((vec!["reason"], format!("expected reason {reason}, found {}", found.join(", "))));
    }
    if let Some(message) = &expected.message
        && !messages.iter().any(|said| said.contains(message))
    {
        failures.push((vec!["message"], format!("no message contains {message:?}: {}", quoted(&messages))));
    }
    for (path, wanted) in &expected.fields {
        let found = after.and_then(|after| at(after, path)).unwrap_or(&Value::Null);
        if found != wanted {
            let found = match after {
                Some(_) => format!("it is {}", in_words(found)),
                None => "the object is refused".to_owned(),
            };
            let text = format!("{path}: expected {}, and {found}", in_words(wanted));
            failures.push((vec!["fields", path.as_str()], text));
        }
    }
    failures
}

/// Each code once.
fn codes<'r>(reasons: impl Iterator<Item = &'r Reason>) -> Vec<&'static str> {
    let mut found = Vec::new();
    for code in reasons.map(|reason| reason.as_str()) {
        if !found.contains(&code) {
            found.push(code);
        }
    }
    found
}

/// The messages that there are; the first of many.
fn quoted(messages: &[&str]) -> String {
    if messages.is_empty() {
        return "there is none".to_owned();
    }
    let mut words: Vec<String> = messages.iter().take(LISTED).map(|message| quote(message)).collect();
    if let Some(left_out @ 1..) = messages.len().checked_sub(LISTED) {
        words.push(format!("and {left_out} more"));
    }
    format!("found {}", words.join(", "))
}

/// A value in a message.
fn in_words(value: &Value) -> String {
    if value.is_null() { "absent".to_owned() } else { value.to_string() }
}

/// The value at a field path. An item of a list is found by its position, or by a field as in `containers[name=web]`.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    steps(path).try_fold(value, |value, step| match value {
        Value::Array(items) => match step.split_once('=') {
            Some((field, wanted)) => {
                items.iter().find(|item| item.get(field).and_then(Value::as_str) == Some(unquoted(wanted)))
            }
            None => items.get(step.parse::<usize>().ok()?),
        },
        other => other.get(step),
    })
}
