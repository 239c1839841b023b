//! `outrider render`: manifests in, the same manifests with injected pods out.

mod file_diff;
mod inject;
mod namespaces;
mod output;
mod templates;
mod typing;
mod unchanged;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use self::inject::{Rendered, Rules, render};
use super::namespace::namespace;
use super::offline::{World, WorldArgs};
use super::streams::{Outcome, Streams, with_process_streams};
use crate::manifest::{self, Manifest};

/// Arguments of `outrider render`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct RenderArgs {
    /// File or folder with manifests to inject (.yaml, .yml, .json), - for stdin; may be repeated
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Namespace of objects that name none
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", value_parser = namespace)]
    pub namespace: String,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    pub output: Format,
    /// What decides
    #[command(flatten)]
    pub world: WorldArgs,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// All objects, one document each
    Yaml,
    /// The object, or one List of all objects
    Json,
    /// What changes, as a unified diff that `patch -p0` applies; where a file is laid out otherwise, of the objects as printed
    Diff,
    /// What changes, as `patches` of a kustomization: a JSON patch for each changed object
    Patch,
}

const EXAMPLES: &str = "\
Pods and pod templates get what the server would give their pods. Templates of Kubernetes' own kinds are known; in any other kind \
they are found by their shape, and a note names them. What looks like containers and is in no template is a warning; \
docs/render.md lists what cannot be known. Namespaces among the files count as those in --manifests. Every other object passes \
through with the same content. Objects are printed anew: comments and the layout of the input are lost, and a List comes out as \
single objects. Rendering the output again changes nothing, unless a set has changed: then its containers are replaced, as far as \
the record in the pod names them.

Errors of typing in pods and templates are warnings, since the sidecar would hide them; --validate=strict refuses unknown fields of \
Kubernetes' own kinds, as kubectl does.

Apply what is rendered only to clusters without Outrider, or where pods have to be injected while it is away: a pod template that \
has its sidecars in it keeps them as they are when the set changes, until it is rendered again. Elsewhere render to review, and \
apply what was not rendered.

Examples:
  outrider render --manifests sidecarsets/ -f deployment.yaml
  outrider render --manifests sidecarsets/ -f app/ -n shop -o diff
  helm template web ./chart | outrider render --manifests sidecarsets/ -f - -o diff

Exit codes: 0 fine; 1 a pod is refused, or there was a warning and --warnings-as-errors; 2 a file cannot be read, a set is not \
as an API server would take it, or there is no set or no object. With 1 and 2 nothing is printed.";

/// Runs the command in the process.
pub fn execute(args: &RenderArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &RenderArgs, streams: &mut Streams<'_>) -> io::Result<Outcome> {
    let Some(mut world) = World::load(&args.world, streams.stderr)? else { return Ok(Outcome::BadInput) };
    if let Some(no_set) = &world.no_set {
        writeln!(streams.stderr, "error: {no_set}")?;
        return Ok(Outcome::BadInput);
    }
    let Some(manifests) = load(&args.files, streams)? else { return Ok(Outcome::BadInput) };
    let Some(warned) = namespaces::learn(&mut world, &manifests, args.world.of_sets(), streams.stderr)? else {
        return Ok(Outcome::BadInput);
    };
    let (mut outcome, mut has_warned) = (Outcome::Fine, world.has_warned || warned);
    let mut all = Vec::new();
    let rules = Rules { namespace: &args.namespace, validate: args.world.of_workloads() };
    for manifest in manifests {
        match render(manifest, rules, &world) {
            Ok(rendered) => {
                tell(&rendered, streams.stderr)?;
                has_warned |= !rendered.warnings.is_empty();
                all.push(rendered);
            }
            Err(failure) => {
                for warning in &failure.warnings {
                    writeln!(streams.stderr, "{}: warning: {}: {warning}", failure.source, failure.title)?;
                }
                let verdict = if failure.outcome == Outcome::Refused { "refused" } else { "error" };
                writeln!(streams.stderr, "{}: {verdict}: {}: {}", failure.source, failure.title, failure.message)?;
                outcome = outcome.max(failure.outcome);
            }
        }
    }
    if outcome == Outcome::Fine && !all.iter().any(|rendered| rendered.has_pods) {
        writeln!(streams.stderr, "note: nothing is a pod or has a pod template, so everything stays as it is")?;
    }
    if args.output == Format::Diff && outcome == Outcome::Fine {
        for file in output::laid_out_otherwise(&all) {
            writeln!(
                streams.stderr,
                "note: {file} is laid out otherwise than what is printed, so that patch does not apply this diff to it"
            )?;
        }
    }
    if args.output == Format::Patch {
        for rendered in all.iter().filter(|rendered| !output::has_target(rendered)) {
            let (source, title) = (&rendered.source, &rendered.title);
            writeln!(
                streams.stderr,
                "{source}: warning: {title}: kustomize finds no object without a name, so that it cannot take this patch"
            )?;
            has_warned = true;
        }
    }
    if has_warned {
        outcome = args.world.warned(outcome, streams.stderr)?;
    }
    if outcome == Outcome::Fine {
        streams.stdout.write_all(output::print(&all, args.output).as_bytes())?;
    }
    Ok(outcome)
}

/// Loads what is to be rendered, or tells why that cannot be; kubectl has no objects for an error too.
fn load(files: &[PathBuf], streams: &mut Streams<'_>) -> io::Result<Option<Vec<Manifest>>> {
    match manifest::load_or_stdin(files, streams.stdin) {
        Ok(manifests) if manifests.is_empty() => {
            let name =
                |file: &PathBuf| if file.as_os_str() == "-" { "stdin".to_owned() } else { file.display().to_string() };
            let named: Vec<String> = files.iter().map(name).collect();
            writeln!(streams.stderr, "error: no object in {}: there is nothing to render", named.join(", "))?;
            Ok(None)
        }
        Ok(manifests) => Ok(Some(manifests)),
        Err(errors) => {
            for error in errors {
                writeln!(streams.stderr, "error: {error}")?;
            }
            Ok(None)
        }
    }
}

fn tell(rendered: &Rendered, stderr: &mut dyn Write) -> io::Result<()> {
    for warning in &rendered.warnings {
        writeln!(stderr, "{}: warning: {}: {warning}", rendered.source, rendered.title)?;
    }
    for note in &rendered.notes {
        writeln!(stderr, "{}: note: {}{note}", rendered.source, rendered.title)?;
    }
    Ok(())
}
