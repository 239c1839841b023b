//! `outrider render`: manifests in, the same manifests with injected pods out.

mod file_diff;
pub(super) mod inject;
mod missing;
pub mod namespaces;
mod output;
pub(super) mod rendered;
pub(super) mod templates;
pub(super) mod typing;
mod unchanged;

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use self::inject::{RenderRules, render};
use self::rendered::{Fate, Rendered, Unprintable};
use super::findings::{Diagnostic, Level, Summary};
use super::namespace::namespace;
use super::offline::{OfflineModel, OfflineModelArgs};
use super::report::{CommandReport, FindingsFormat, ReportArgs};
use super::stray::stray;
use super::streams::{CommandOutcome, Streams, with_process_streams};
use crate::input::{self, Manifest};

/// Arguments of `outrider render`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = USAGE
)]
pub struct RenderArgs {
    /// What is named without a flag.
    #[arg(value_name = "FILE", hide = true, value_parser = stray)]
    pub stray: Vec<String>,
    /// File or folder with manifests to inject (.yaml, .yml, .json), - for stdin; may be repeated
    #[arg(short, long = "filename", value_name = "FILE", required_unless_present = "kustomize", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Folder with a kustomization, whose objects to inject, as kubectl builds them; may be repeated
    #[arg(short, long, value_name = "DIR")]
    pub kustomize: Vec<PathBuf>,
    /// Namespace of objects without one
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", value_parser = namespace)]
    pub namespace: String,
    /// Print in front the Namespaces of the objects that are neither among them nor in --manifests or the cluster; with -o yaml or json
    #[arg(long)]
    pub create_namespaces: bool,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = RenderFormat::Yaml)]
    pub output: RenderFormat,
    /// How to report
    #[command(flatten)]
    pub report: ReportArgs,
    /// What decides
    #[command(flatten)]
    pub model: OfflineModelArgs,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RenderFormat {
    /// All objects, one document each
    Yaml,
    /// The object, or one List of all objects
    Json,
    /// What changes, as a unified diff that `patch -p0` applies
    Diff,
    /// What changes, as `patches` of a kustomization: a JSON patch for each changed object
    Patch,
    /// What is found, in place of the objects: one JSON object, as `-o json` of lint, review and test prints
    Findings,
    /// What is found, in place of the objects: a SARIF 2.1.0 log, for code scanning
    Sarif,
}

impl RenderFormat {
    /// What the findings are printed as where they are printed in place of the objects.
    const fn findings(self) -> Option<FindingsFormat> {
        match self {
            Self::Findings => Some(FindingsFormat::Json),
            Self::Sarif => Some(FindingsFormat::Sarif),
            Self::Yaml | Self::Json | Self::Diff | Self::Patch => None,
        }
    }
}

/// What to write where arguments are missing.
pub const TIP: &str =
    "give sets with --manifests or --from-cluster, and what has pods with -f, or a kustomization with -k";

/// How the command is called.
pub const USAGE: &str = "outrider render [OPTIONS] <--manifests <PATH>|--from-cluster> <-f <FILE>|-k <DIR>>";

const EXAMPLES: &str = "\
Pods and pod templates get what the server would add to their pods. Templates of Kubernetes' own kinds are known; in any other kind they are found \
by their shape, and a note names them. What looks like containers and is in no template is a warning; \
docs/render.md lists what cannot be known. Namespaces among the files count as those in --manifests. Every other object passes \
through with the same content. Objects are printed anew: comments and the layout of the input are lost, and a List comes out as \
single objects. Rendering the output again changes nothing, unless a set has changed: then render replaces its containers, as far as \
the record in the pod names them, and counts the object as replaced. The server does not: it leaves an older form in a new pod.

Typing errors in pods and templates are warnings, because the sidecar would hide them; --validate=strict refuses unknown fields \
of Kubernetes' own kinds, as kubectl does.

Apply rendered manifests only to clusters without Outrider, or if pods must be injected while Outrider is down: a pod template \
that contains the sidecars keeps them as they are when the set changes, until you render it again. Otherwise use render to \
review the result, and apply the original manifests.

Warnings, notes and refusals go to stderr. As data they are printed by -o findings (JSON) and -o sarif, in place of the objects; \
-o json prints the objects.

Examples:
  outrider render --manifests sidecarsets/ -f deployment.yaml
  outrider render --manifests sidecarsets/ -f app/ -n shop -o diff
  outrider render --from-cluster -k overlays/prod -o diff
  outrider render --manifests sidecarsets/ -f app/ --create-namespaces | kubectl apply -f -
  helm template web ./chart | outrider render --manifests sidecarsets/ -f - -o diff
  outrider render --manifests sidecarsets/ -f app/ -o sarif > outrider.sarif

Exit codes: 0 fine; 1 a pod is refused, or there was a warning and --warnings-as-errors; 2 a file cannot be read, a set is \
invalid, or there is no set or no object. With 1 and 2 no object is printed.";

/// Runs the command in the process.
pub fn execute(args: &RenderArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &RenderArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    if [&args.model.manifests, &args.files].iter().all(|paths| paths.iter().any(|path| path.as_os_str() == "-")) {
        writeln!(streams.stderr, "error: --manifests and -f cannot both be stdin")?;
        return Ok(CommandOutcome::BadInput);
    }
    if args.create_namespaces && !matches!(args.output, RenderFormat::Yaml | RenderFormat::Json) {
        writeln!(
            streams.stderr,
            "error: --create-namespaces prints objects, which -o yaml and -o json do; leave it out, or use one of these"
        )?;
        return Ok(CommandOutcome::BadInput);
    }
    let mut report = CommandReport::new(&args.report);
    let rendered = render_files(args, streams.stdin, &mut report);
    let numbers = rendered.as_ref().map(|(all, _, failed)| numbers(all, *failed)).unwrap_or_default();
    let printed = rendered.as_ref().filter(|(_, outcome, _)| *outcome == CommandOutcome::Fine).map(|(all, ..)| {
        let (text, notes) = output::print(all, args.output);
        note_what_is_odd(all, args.output, notes, &mut report);
        text
    });
    match args.output.findings() {
        Some(format) => report.print(format, "render", &numbers, streams.stdout, streams.stderr)?,
        None => report.print_text(streams.stderr)?,
    }
    let Some((_, mut outcome, _)) = rendered else { return Ok(CommandOutcome::BadInput) };
    if report.count(Level::Warning) > 0 {
        outcome = args.model.warned(outcome, streams.stderr)?;
    }
    if args.output.findings().is_none() {
        report.sum_up(&numbers, streams.stderr)?;
        if let Some(text) = printed.filter(|_| outcome == CommandOutcome::Fine) {
            streams.stdout.write_all(text.as_bytes())?;
        }
    }
    Ok(outcome)
}

/// Objects that keep anything from being printed.
#[derive(Debug, Clone, Copy, Default)]
struct FailedObjects {
    refused: usize,
    with_errors: usize,
}

/// How many objects had which fate.
fn numbers(all: &[Rendered], failed: FailedObjects) -> Summary {
    let count = |fate: Fate| all.iter().filter(|rendered| rendered.fate() == fate).count();
    Summary(vec![
        ("injected", count(Fate::Injected)),
        ("replaced", count(Fate::Replaced)),
        ("outdated", count(Fate::Outdated)),
        ("changed by plugins", count(Fate::ChangedByPlugins)),
        ("unchanged", count(Fate::Unchanged)),
        ("refused", failed.refused),
        ("with errors", failed.with_errors),
    ])
}

/// Every object of the files, how the command ends with them, and how many failed; `None` when the input cannot be used,
/// which the report says.
fn render_files(
    args: &RenderArgs,
    stdin: &mut dyn Read,
    report: &mut CommandReport<'_>,
) -> Option<(Vec<Rendered>, CommandOutcome, FailedObjects)> {
    let mut model = OfflineModel::load(&args.model, report, stdin)?;
    if let Some(no_set) = &model.no_set {
        report.add(Diagnostic::bare(Level::Error, no_set.as_str()));
        return None;
    }
    let mut manifests = load(args, stdin, report)?;
    if args.create_namespaces {
        // Pods and claims are decided on as in a cluster that has them.
        let created = missing::missing(&manifests, &args.namespace, &model, report);
        manifests.splice(..0, created);
    }
    namespaces::learn(&mut model, &manifests, args.model.of_sets(), report)?;
    let rules = RenderRules { namespace: &args.namespace, validate: args.model.of_workloads() };
    Some(render_all(manifests, rules, &model, report))
}

/// Every object, how the command ends with them, and how many failed.
fn render_all(
    manifests: Vec<Manifest>,
    rules: RenderRules<'_>,
    model: &OfflineModel,
    report: &mut CommandReport<'_>,
) -> (Vec<Rendered>, CommandOutcome, FailedObjects) {
    let (mut all, mut outcome, mut failed) = (Vec::new(), CommandOutcome::Fine, FailedObjects::default());
    for manifest in manifests {
        match render(manifest, rules, model) {
            Ok(rendered) => {
                let Rendered { source, title, warnings, typing, notes, .. } = &rendered;
                warn(source, title, warnings, report);
                warn(source, title, typing, report);
                for note in notes {
                    report.add(Diagnostic::of(Level::Note, source, note.about(title)));
                }
                all.push(rendered);
            }
            Err(failure) => {
                warn(&failure.source, &failure.title, &failure.warnings, report);
                warn(&failure.source, &failure.title, &failure.typing, report);
                let is_refused = failure.outcome == CommandOutcome::Refused;
                *(if is_refused { &mut failed.refused } else { &mut failed.with_errors }) += 1;
                let severity = if is_refused { Level::Refused } else { Level::Error };
                let text = format!("{}: {}", failure.title, failure.message);
                let finding = Diagnostic::of(severity, &failure.source, text);
                let steps: Vec<&str> = failure.field.iter().map(String::as_str).collect();
                if steps.is_empty() {
                    report.add(finding);
                } else {
                    report.add_at(finding, &steps);
                }
                outcome = outcome.max(failure.outcome);
            }
        }
    }
    (all, outcome, failed)
}

/// Reports warnings about an object.
fn warn(source: &str, title: &str, warnings: &[String], report: &mut CommandReport<'_>) {
    for warning in warnings {
        report.add(Diagnostic::of(Level::Warning, source, format!("{title}: {warning}")));
    }
}

/// Reports how an object is written.
pub(super) fn warn_of_typing(rendered: &Result<Rendered, Box<Unprintable>>, report: &mut CommandReport<'_>) {
    let (source, title, typing) = match rendered {
        Ok(rendered) => (&rendered.source, &rendered.title, &rendered.typing),
        Err(failure) => (&failure.source, &failure.title, &failure.typing),
    };
    warn(source, title, typing, report);
}

/// What the output does not say for itself.
fn note_what_is_odd(all: &[Rendered], format: RenderFormat, of_output: Vec<String>, report: &mut CommandReport<'_>) {
    if !all.iter().any(|rendered| rendered.has_pods || rendered.is_changed()) {
        let text = "no object is a pod or has a pod template, and no admission plugin changes one, so nothing changes";
        report.add(Diagnostic::bare(Level::Note, text));
    }
    for note in of_output {
        report.add(Diagnostic::bare(Level::Note, note));
    }
    if format == RenderFormat::Patch {
        for rendered in all.iter().filter(|rendered| !output::has_target(rendered)) {
            let warning =
                "it has no name, by which a patch of a kustomization selects it: its patch is left out".to_owned();
            warn(&rendered.source, &rendered.title, &[warning], report);
        }
    }
}

/// Loads what is to be rendered, or reports why that cannot be; for kubectl, no objects are an error too.
fn load(args: &RenderArgs, stdin: &mut dyn Read, report: &mut CommandReport<'_>) -> Option<Vec<Manifest>> {
    let of_files = report.reading(stdin, |stdin| input::load_or_stdin(&args.files, stdin));
    let of_folders = args.kustomize.iter().map(|folder| input::kustomize(folder));
    let (mut manifests, mut errors) = (Vec::new(), Vec::new());
    for loaded in std::iter::once(of_files).chain(of_folders) {
        match loaded {
            Ok(loaded) => manifests.extend(loaded),
            Err(unreadable) => errors.extend(unreadable),
        }
    }
    report.errors(&errors);
    if manifests.is_empty() && errors.is_empty() {
        let named: Vec<String> = args.files.iter().chain(&args.kustomize).map(|path| input::name(path)).collect();
        let text = format!("no object in {}: there is nothing to render", named.join(", "));
        report.add(Diagnostic::bare(Level::Error, text));
        return None;
    }
    errors.is_empty().then_some(manifests)
}
