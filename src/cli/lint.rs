//! `outrider lint`: validates sets, admission plugins and ranges as an API server would, without a workload.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::findings::{Level, Summary};
use super::offline::OWN_NAMESPACE;
use super::report::{CommandReport, FindingsFormat, ReportArgs};
use super::streams::{CommandOutcome, Streams, with_process_streams};
use super::unmatched;
use crate::input;
use crate::kinds::Kinds;
use crate::registry::registry;
use crate::standalone::{self, Validate};
use engine::snapshot::Exclusion;

/// Arguments of `outrider lint`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct LintArgs {
    /// File or folder with SidecarSets, AdmissionPlugins, ClusterLimitRanges and PodSecurityProfiles (.yaml, .yml, .json), - for stdin; may be repeated
    #[arg(value_name = "PATH", required_unless_present = "filenames")]
    pub paths: Vec<PathBuf>,
    /// The same as PATH, as in kubectl; `--manifests`, as other commands have it, too
    #[arg(short, long = "filename", alias = "manifests", value_name = "PATH")]
    pub filenames: Vec<PathBuf>,
    /// Namespaces that are never changed, comma-separated; kube-system, kube-public, kube-node-lease and
    /// outrider-system are always included
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// How to handle unknown fields, as in kubectl's flag of the same name
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Validate::Strict)]
    pub validate: Validate,
    /// Treat warnings as errors: exit code 1 in place of 0
    #[arg(long)]
    pub warnings_as_errors: bool,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = FindingsFormat::Text)]
    pub output: FindingsFormat,
    /// How to report
    #[command(flatten)]
    pub report: ReportArgs,
}

/// How the command is called.
pub const USAGE: &str = "outrider lint [OPTIONS] <PATH>...";

const EXAMPLES: &str = "\
Each SidecarSet, AdmissionPlugin, ClusterLimitRange and PodSecurityProfile goes through the webhooks of its kind, alone and beside the others, as in a \
cluster. Namespaces, and what else decisions read, are checked as far as they are read. Objects of other kinds are left out. Of workloads among the files, the names of the containers \
count: an entry of spec.appContainers whose containerNames are those of no container in the workloads that the set selects is a warning. \
A set whose selector matches the labels of no pod and no workload among the files is a note, which changes no exit code.

Examples:
  outrider lint sidecarsets/
  outrider lint sidecarsets/ -o sarif > outrider.sarif
  kubectl kustomize overlays/prod | outrider lint -

Exit codes: 0 fine; 1 an object is wrong, or there was a warning and --warnings-as-errors; 2 a file cannot be read, or there \
is no object to check.";

/// Runs the command in the process.
pub fn execute(args: &LintArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &LintArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let mut report = CommandReport::new(&args.report);
    let paths = [&args.paths[..], &args.filenames].concat();
    let (manifests, unreadable) = report.reading(streams.stdin, |stdin| input::load_readable_or_stdin(&paths, stdin));
    report.errors(&unreadable);
    let registry = registry(&Kinds::all());
    let exclusion = Arc::new(Exclusion::new(OWN_NAMESPACE, args.excluded_namespaces.iter().cloned()));
    let checked = manifests.iter().filter(|manifest| standalone::is_set(manifest)).count();
    match standalone::of(&manifests, &paths, &exclusion, &registry, args.validate, None) {
        Ok(loaded) => {
            let of_workloads = unmatched::warnings(&manifests, &loaded.snapshot);
            loaded.warnings.iter().chain(&of_workloads).for_each(|warning| report.read(Level::Warning, warning));
            for note in unmatched::unselected(&manifests, &loaded.snapshot) {
                report.read(Level::Note, &note);
            }
        }
        Err(unusable) => report.unusable(&unusable),
    }
    if checked == 0 && report.count(Level::Error) == 0 {
        report.read(Level::Error, &standalone::no_set(&paths));
    }
    let summary = Summary(vec![
        ("objects checked", checked),
        ("errors", report.count(Level::Error)),
        ("warnings", report.count(Level::Warning)),
    ]);
    report.print(args.output, "lint", &summary, streams.stdout, streams.stderr)?;
    Ok(if checked == 0 || !unreadable.is_empty() {
        CommandOutcome::BadInput
    } else {
        report.outcome(args.warnings_as_errors)
    })
}
