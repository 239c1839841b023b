//! `outrider migrate`: OpenKruise's `SidecarSet`s as ours. What cannot be carried over is an error, and nothing is dropped in silence.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use engine::offline::model::misspelt_set;
use engine::openkruise::{self, Converted, DEFINITION};
use engine::sidecarset::api::{GROUP, KIND};
use engine::sidecarset::compiled::is_canary;
use engine::snapshot::Exclusion;
use engine::snapshot::configuration::CONFIG_MAP;
use engine::snapshot::revisions::Revision;
use engine::yaml;
use serde_json::{Value, json};

use super::cluster::{ClusterArgs, of_openkruise};
use super::findings::{Diagnostic, Level, Summary};
use super::offline::OWN_NAMESPACE;
use super::report::{CommandReport, ReportArgs};
use super::streams::{CommandOutcome, Streams, with_process_streams};
use crate::input::{self, Identity, Manifest, identity};
use crate::kinds::Kinds;
use crate::registry::registry;
use crate::standalone::{self, Validate};

const CONFIG_MAP_KIND: &str = "ConfigMap";
const REVISION: &str = "ControllerRevision";

/// Arguments of `outrider migrate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct MigrateArgs {
    /// File or folder with OpenKruise's sets (.yaml, .yml, .json), - for stdin; may be repeated
    #[arg(value_name = "FILE", required_unless_present_any = ["files", "live"])]
    pub paths: Vec<PathBuf>,
    /// The same as FILE
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Read OpenKruise's sets, and its list of allowed annotations, from the live cluster
    #[arg(long = "cluster", id = "live")]
    pub live: bool,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = MigrateFormat::Yaml)]
    pub output: MigrateFormat,
    /// The live cluster
    #[command(flatten, next_help_heading = "Live cluster, with --cluster")]
    pub cluster: ClusterArgs,
    /// How to report
    #[command(flatten, next_help_heading = "Report")]
    pub report: ReportArgs,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MigrateFormat {
    /// Documents
    Yaml,
    /// One object, or one List
    Json,
}

/// What to write where arguments are missing.
pub const TIP: &str =
    "give files or folders with sets of OpenKruise, or --cluster to read those of the current cluster";

/// How the command is called.
pub const USAGE: &str = "outrider migrate [OPTIONS] <FILE>...\n       outrider migrate [OPTIONS] --cluster";

const EXAMPLES: &str = "\
Prints an apps.outrider.dev/v1alpha1 SidecarSet for each apps.kruise.io SidecarSet (v1alpha1 or v1beta1), and the ConfigMap \
outrider-configuration for OpenKruise's kruise-configuration. Fields that Outrider has and OpenKruise does not are written out with what \
comes closest to OpenKruise. A note on stderr names each field that is added, left out, or has another meaning; a warning, what has to be \
done first. The printed sets have passed the defaulting and the validating webhook, together, as by outrider lint; of injectionStrategy.revision only \
where the ControllerRevisions of Outrider's sets are given too. Without them a warning names each set whose revision has to be there first, and lint \
refuses that set until it is. Objects of other kinds are left out. docs/migration.md describes the steps with both installed.

Examples:
  outrider migrate sidecarsets/ > outrider.yaml
  outrider migrate --cluster > outrider.yaml
  outrider migrate --cluster --context prod -o json
  kubectl get sidecarsets.apps.kruise.io log-agent -o yaml | outrider migrate -

Against a cluster it needs list on sidecarsets.apps.kruise.io, and get on the ConfigMap kruise-configuration in kruise-system.

Exit codes: 0 everything was converted; 1 something cannot be carried over, and nothing was printed; 2 a file or the cluster cannot be \
read, or there is no set of OpenKruise.";

/// Runs the command in the process.
pub fn execute(args: &MigrateArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &MigrateArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let mut report = CommandReport::new(&args.report);
    let Some(found) = read(args, &mut report, streams.stdin) else {
        report.print_text(streams.stderr)?;
        return Ok(CommandOutcome::BadInput);
    };
    let converted = convert_all(&found, &mut report);
    if report.count(Level::Error) == 0 {
        check(&found, &converted, &mut report);
    }
    report.print_text(streams.stderr)?;
    let errors = report.count(Level::Error);
    let is_set = |manifest: &&Manifest| standalone::is_set(manifest);
    let sets = if errors == 0 { converted.iter().filter(is_set).count() } else { 0 };
    let words = ["sets converted", "errors", "warnings", "notes"];
    let counts = [sets, errors, report.count(Level::Warning), report.count(Level::Note)];
    report.sum_up(&Summary(words.into_iter().zip(counts).collect()), streams.stderr)?;
    if errors > 0 {
        return Ok(CommandOutcome::Refused);
    }
    let objects = converted.into_iter().map(|manifest| manifest.value).collect();
    streams.stdout.write_all(text(objects, args.output).as_bytes())?;
    Ok(CommandOutcome::Fine)
}

fn text(mut objects: Vec<Value>, format: MigrateFormat) -> String {
    match format {
        MigrateFormat::Yaml => yaml::write_documents(&objects),
        MigrateFormat::Json if objects.len() == 1 => format!("{:#}\n", objects.remove(0)),
        MigrateFormat::Json => format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": objects})),
    }
}

/// Everything that was given; `None` where it cannot be read, or holds no set of OpenKruise.
fn read(args: &MigrateArgs, report: &mut CommandReport<'_>, stdin: &mut dyn Read) -> Option<Vec<Manifest>> {
    if let Some(flag) = args.cluster.given().filter(|_| !args.live) {
        let text = format!("{flag} needs --cluster: without it no cluster is read");
        report.add(Diagnostic::bare(Level::Error, text));
        return None;
    }
    let paths: Vec<PathBuf> = args.paths.iter().chain(&args.files).cloned().collect();
    let mut found = match report.reading(stdin, |stdin| input::load_or_stdin(&paths, stdin)) {
        Ok(found) => found,
        Err(errors) => {
            report.errors(&errors);
            return None;
        }
    };
    if args.live {
        match of_openkruise(&args.cluster) {
            Ok(live) => found.extend(live),
            Err(error) => {
                report.add(Diagnostic::bare(Level::Error, error));
                return None;
            }
        }
    }
    let is_misspelt = report_misspelt(&found, report);
    note_ours(&found, report);
    if !found.iter().any(|manifest| openkruise::is_set(&manifest.value)) {
        if is_misspelt {
            return None;
        }
        let listed: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let place = if args.live { "the cluster".to_owned() } else { listed.join(", ") };
        report.add(Diagnostic::bare(Level::Error, format!("no {DEFINITION} object in {place}")));
        return None;
    }
    Some(found)
}

/// Reports what is a set but for a slip in its kind, which would be left out; whether there is any.
fn report_misspelt(found: &[Manifest], report: &mut CommandReport<'_>) -> bool {
    let misspelt = |Manifest { source, value, .. }: &Manifest| {
        let identity = identity(value).ok()?;
        let near = Some(misspelt_set(&identity)?);
        let Identity { api_version, kind, .. } = identity;
        Some(standalone::Error::NoSuchKind { origin: source.clone(), api_version, kind, near })
    };
    let errors: Vec<standalone::Error> = found.iter().filter_map(misspelt).collect();
    report.errors(&errors);
    !errors.is_empty()
}

/// Notes the sets that are Outrider's already: they are not printed.
fn note_ours(found: &[Manifest], report: &mut CommandReport<'_>) {
    for Manifest { source, value, .. } in found {
        let is_ours = |identity: Identity| identity.group() == GROUP && identity.kind == KIND;
        if identity(value).is_ok_and(is_ours) {
            let text = format!("{}: it is Outrider's already: it needs no migration, and is left out", title(value));
            report.add(Diagnostic::of(Level::Note, source, text));
        }
    }
}

/// Every object of OpenKruise, converted, the list of annotations first: sets are refused that give others. Canaries come last, as they
/// are refused where their base is not there yet.
fn convert_all(found: &[Manifest], report: &mut CommandReport<'_>) -> Vec<Manifest> {
    let (mut converted, mut noted) = (Vec::new(), Noted::default());
    for Manifest { source, value, .. } in found.iter().filter(|it| openkruise::is_configuration(&it.value)) {
        if let Some(map) = openkruise::configuration(value, OWN_NAMESPACE) {
            let place = format!(
                "printed as {CONFIG_MAP} in {OWN_NAMESPACE}; change the namespace if Outrider is in another one"
            );
            report.add(Diagnostic::of(Level::Note, source, format!("{}: metadata.name: {place}", title(value))));
            converted.push(noted.of(map, source, &title(value), report));
        }
    }
    for Manifest { source, value, .. } in found.iter().filter(|it| openkruise::is_set(&it.value)) {
        match openkruise::convert(value) {
            Ok(set) => converted.push(noted.of(set, source, &title(value), report)),
            Err(errors) => errors.iter().for_each(|error| {
                report.add(Diagnostic::of(Level::Error, source, format!("{}: {error}", title(value))));
            }),
        }
    }
    converted.sort_by_key(|manifest| is_canary(&manifest.value));
    converted
}

/// The notes so far, and which object each was about first. Most are about every set: they are printed once, and of further sets
/// their fields alone.
#[derive(Default)]
struct Noted(BTreeMap<String, String>);

impl Noted {
    fn of(&mut self, converted: Converted, source: &str, title: &str, report: &mut CommandReport<'_>) -> Manifest {
        let mut again: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for remark in converted.remarks {
            if remark.needs_action {
                report.add(Diagnostic::of(Level::Warning, source, format!("{title}: {remark}")));
            } else if let Some(first) = self.0.get(&remark.to_string()).filter(|first| *first != title) {
                again.entry(first.clone()).or_default().push(remark.field);
            } else {
                report.add(Diagnostic::of(Level::Note, source, format!("{title}: {remark}")));
                self.0.insert(remark.to_string(), title.to_owned());
            }
        }
        for (first, fields) in again {
            let text = format!("{title}: {}: as for {first}", fields.join(", "));
            report.add(Diagnostic::of(Level::Note, source, text));
        }
        Manifest { source: source.to_owned(), value: converted.object, is_stored: false }
    }
}

/// What an object is called in messages.
fn title(object: &Value) -> String {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    format!("{kind} {name:?}")
}

/// Puts the printed objects through the webhooks, as `outrider lint` does. Our own list of annotations and the revisions of our sets
/// may be given beside them; they are not printed.
fn check(found: &[Manifest], converted: &[Manifest], report: &mut CommandReport<'_>) {
    let is = |manifest: &Manifest, kind: &str| manifest.value.get("kind").is_some_and(|found| found == kind);
    let has_list = converted.iter().any(|manifest| is(manifest, CONFIG_MAP_KIND));
    let given = found.iter().filter(|it| is(it, REVISION) || (is(it, CONFIG_MAP_KIND) && !has_list));
    let mut manifests: Vec<Manifest> = given.chain(converted).cloned().collect();
    let revisions = found.iter().filter(|it| is(it, REVISION)).filter_map(|it| Revision::of(&it.value));
    let with_revisions: BTreeSet<Box<str>> = revisions.map(|revision| revision.set).collect();
    for Manifest { value, .. } in &mut manifests {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        // That the revision has to be there is a warning already.
        if !with_revisions.contains(name) {
            unpin(value);
        }
    }
    if !manifests.iter().any(|manifest| is(manifest, CONFIG_MAP_KIND)) {
        let has_annotations = |set: &&Manifest| set.value.pointer("/spec/patchPodMetadata").is_some();
        for set in converted.iter().filter(has_annotations) {
            let text = "give the list of allowed annotations too: OpenKruise's ConfigMap kruise-configuration, or one of your own \
                        (docs/migration.md)";
            report.add(Diagnostic::of(
                Level::Warning,
                &set.source,
                format!("{}: spec.patchPodMetadata: {text}", title(&set.value)),
            ));
        }
    }
    let exclusion = Arc::new(Exclusion::new(OWN_NAMESPACE, Vec::new()));
    match standalone::of(&manifests, &[], &exclusion, &registry(&Kinds::all()), Validate::Strict, None) {
        Ok(loaded) => loaded.warnings.iter().for_each(|warning| report.read(Level::Warning, warning)),
        Err(unusable) => report.unusable(&unusable),
    }
}

fn unpin(set: &mut Value) {
    if let Some(strategy) = set.pointer_mut("/spec/injectionStrategy").and_then(Value::as_object_mut) {
        strategy.remove("revision");
    }
}
