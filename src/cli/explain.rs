//! `outrider explain`: which sets a pod gets, and why it does not get the others.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::cluster::{ClusterArgs, pod_of_cluster};
use super::findings::{Diagnostic, Level};
use super::named;
use super::namespace::namespace;
use super::offline::{OfflineModel, OfflineModelArgs, minor_version};
use super::render::inject::{RenderRules, pod, render};
use super::render::rendered::title;
use super::render::templates::{FoundTemplate, FoundTemplates};
use super::render::{namespaces, typing, warn_of_typing};
use super::report::{CommandReport, ReportArgs};
use super::streams::{CommandOutcome, Streams, with_process_streams};
use crate::input::{self, Identity, Manifest, identity};
use crate::validate::Validate;
use engine::offline::admit::review;
use engine::pod::PODS;
use engine::pod::explain::{Explanation, Fate, SetExplanation, explain};
use engine::snapshot::Snapshot;

/// Arguments of `outrider explain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct ExplainArgs {
    /// `pod` and the name of a pod of the live cluster, whose sets and namespaces then decide
    #[arg(value_names = ["KIND", "NAME"], num_args = 1..=2, required_unless_present = "files")]
    pub object: Vec<String>,
    /// File or folder with pods and what makes pods (.yaml, .yml, .json), - for stdin; may be repeated. Namespaces among them count
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Namespace of the pod, and of objects without one
    #[arg(short, long, value_name = "NAMESPACE", default_value = "default", value_parser = namespace)]
    pub namespace: String,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
    /// File or folder with sets and namespaces (.yaml, .yml, .json), - for stdin; may be repeated
    #[arg(long, value_name = "PATH", required_unless_present_any = ["from_cluster", "object"])]
    pub manifests: Vec<PathBuf>,
    /// Use the sets and namespaces of a live cluster, in addition to those of --manifests
    #[arg(long)]
    pub from_cluster: bool,
    /// Namespaces that are never changed, comma-separated; kube-system, kube-public, kube-node-lease and
    /// outrider-system are always included
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// Version of Kubernetes that the pods are meant for, such as 1.34 [default: the newest]
    #[arg(long, value_name = "VERSION", value_parser = minor_version)]
    pub kube_version: Option<u32>,
    /// How to report
    #[command(flatten)]
    pub report: ReportArgs,
    /// The live cluster
    #[command(flatten, next_help_heading = "Live cluster")]
    pub cluster: ClusterArgs,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// A line for each set: the reason code, the set, whether it is injected, and why
    Text,
    /// One object with all of it
    Json,
}

/// What to write where arguments are missing.
pub const TIP: &str = "give sets with --manifests or --from-cluster, and what has pods with -f; or name a pod of the current cluster: \
                       explain pod NAME";

/// How the command is called.
pub const USAGE: &str = "outrider explain [OPTIONS] <--manifests <PATH>|--from-cluster> -f <FILE>\n       outrider explain [OPTIONS] pod <NAME>";

const EXAMPLES: &str = "\
Prints for each set whether the webhook would inject it into the pod, and why: the term of the selector that the pod does not match, the \
label that its namespace lacks, that the set is paused, that the pod opted out, what clashes. Warnings are those that the webhook would return, and one for each entry of spec.appContainers whose containerNames are those \
of no container of the pod. The webhook's own code decides. docs/reasons.md \
explains the reason codes. A pod that exists is explained as if it were created again as it is now. Typing errors in workloads are \
warnings, as those of `outrider render`; in sets they are errors.

What becomes of a set is one of: injected, the pod has it, from now on or already; outdated, the pod has an older form of it, which is \
left as it is, where `outrider render` replaces it; not injected, the pod goes without it; refused, the pod is refused because of it.

Examples:
  outrider explain --manifests sidecarsets/ -f deployment.yaml
  outrider explain --manifests sidecarsets/ -f pod.yaml -n shop -o json
  outrider explain --from-cluster -f deployment.yaml -n shop
  outrider explain pod web-0 -n shop

Against a cluster it needs get on pods and on their namespace, as the role view gives it in a namespace, and list on SidecarSets, \
AdmissionPlugins, ClusterLimitRanges and PodSecurityProfiles, as the ClusterRoles outrider-sidecarset-viewer, \
outrider-admissionplugin-viewer, outrider-clusterlimitrange-viewer and outrider-podsecurityprofile-viewer give it. They are cluster-scoped: bind \
these roles with a ClusterRoleBinding, or set rbac.viewers in the chart. Where a set names an older revision for new pods, it needs list on \
ControllerRevisions in Outrider's namespace too.

Exit codes: 0 explained; 1 a pod would be refused; 2 a file, the pod or the cluster cannot be read, a set is invalid, or there \
is no set or no pod.";

/// A pod that was explained.
struct Explained {
    source: String,
    title: String,
    explanation: Explanation,
}

/// Runs the command in the process.
pub fn execute(args: &ExplainArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &ExplainArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    if let Err(error) = args.pod_name() {
        writeln!(streams.stderr, "error: {error}")?;
        return Ok(CommandOutcome::BadInput);
    }
    let mut report = CommandReport::new(&args.report);
    let explained = explain_input(args, &mut report, streams.stdin);
    report.print_text(streams.stderr)?;
    let Some(explained) = explained else { return Ok(CommandOutcome::BadInput) };
    let text = match args.output {
        ExplainFormat::Text => text(&explained, args.report.quiet),
        ExplainFormat::Json => format!("{:#}\n", json_of(&explained)),
    };
    streams.stdout.write_all(text.as_bytes())?;
    let is_refused = explained.iter().any(|pod| pod.explanation.is_refused());
    Ok(if is_refused { CommandOutcome::Refused } else { CommandOutcome::Fine })
}

/// Every pod of the input; `None` when it cannot be used, which the report says.
fn explain_input(args: &ExplainArgs, report: &mut CommandReport<'_>, stdin: &mut dyn Read) -> Option<Vec<Explained>> {
    let of_model = args.model();
    let mut model = OfflineModel::load(&of_model, report, stdin)?;
    let objects = match &model.no_set {
        Some(no_set) => Err(vec![no_set.clone()]),
        None => report.reading(stdin, |stdin| args.objects(stdin)),
    };
    let objects = objects.map_err(|errors| report.errors(&errors)).ok()?;
    namespaces::learn(&mut model, &objects, of_model.of_sets(), report)?;
    if args.object.is_empty() {
        let rules = RenderRules { namespace: &args.namespace, validate: Validate::Warn };
        for object in &objects {
            warn_of_typing(&render(object.clone(), rules, &model), report);
            note_templates(object, &args.namespace, report);
        }
    }
    explain_all(objects, args, &model).map_err(|errors| report.errors(&errors)).ok()
}

/// Notes where the pods of an object were found that its kind does not say, as `outrider render` does.
fn note_templates(Manifest { source, value, .. }: &Manifest, namespace: &str, report: &mut CommandReport<'_>) {
    let Ok(identity) = identity(value) else { return };
    let found = FoundTemplates::of(&identity, value);
    for note in found.elsewhere.iter().cloned().chain(typing::by_shape(&identity, &found)) {
        let namespace = identity.namespace.as_deref().unwrap_or(namespace);
        let title = title(&identity, Some(namespace), value);
        report.add(Diagnostic::of(Level::Note, source, format!("{title}: {note}")));
    }
}

impl ExplainArgs {
    fn model(&self) -> OfflineModelArgs {
        OfflineModelArgs {
            manifests: self.manifests.clone(),
            from_cluster: self.from_cluster || !self.object.is_empty(),
            excluded_namespaces: self.excluded_namespaces.clone(),
            validate: None,
            // Sets ask none, and what plugins ask is no question of how a manifest is written.
            allow_all_questions: true,
            kube_version: self.kube_version,
            warnings_as_errors: false,
            cluster: self.cluster.clone(),
            namespace: Some(self.namespace.clone()),
        }
    }

    /// The name of the pod of the cluster that is named in place of files.
    ///
    /// # Errors
    /// What to write instead.
    fn pod_name(&self) -> Result<Option<&str>, String> {
        let words: Vec<&str> = self.object.iter().map(String::as_str).collect();
        let Some(name) = named::pod_name(&words, &self.namespace)? else { return Ok(None) };
        if self.files.is_empty() {
            return Ok(Some(name));
        }
        Err("a pod of the cluster and -f are both named: leave one of them out".to_owned())
    }

    fn objects(&self, stdin: &mut dyn Read) -> Result<Vec<Manifest>, Vec<String>> {
        match self.pod_name() {
            Ok(Some(name)) => {
                pod_of_cluster(&self.cluster, &self.namespace, name).map(|pod| vec![pod]).map_err(|error| vec![error])
            }
            Ok(None) => input::load_or_stdin(&self.files, stdin)
                .map_err(|errors| errors.iter().map(ToString::to_string).collect()),
            Err(error) => Err(vec![error]),
        }
    }
}

fn explain_all(
    objects: Vec<Manifest>,
    args: &ExplainArgs,
    model: &OfflineModel,
) -> Result<Vec<Explained>, Vec<String>> {
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for Manifest { source, value, .. } in objects {
        let explained = identity(&value)
            .map_err(|error| error.to_string())
            .and_then(|identity| explain_object(&identity, &value, args, model));
        match explained {
            Ok(pods) => all.extend(pods.into_iter().map(|(title, explanation)| Explained {
                source: source.clone(),
                title,
                explanation,
            })),
            Err(error) => errors.push(format!("{source}: {error}")),
        }
    }
    if all.is_empty() && errors.is_empty() {
        let named: Vec<String> = args.files.iter().map(|path| input::name(path)).collect();
        errors.push(format!("there is no pod, and nothing that makes pods, in {}", named.join(", ")));
    }
    if errors.is_empty() { Ok(all) } else { Err(errors) }
}

/// The pods of an object, each with what it is called.
fn explain_object(
    identity: &Identity,
    value: &Value,
    args: &ExplainArgs,
    model: &OfflineModel,
) -> Result<Vec<(String, Explanation)>, String> {
    let found = FoundTemplates::of(identity, value);
    let namespace = identity.namespace.as_deref().unwrap_or(&args.namespace);
    let explained = |(title, explanation): (String, Result<Explanation, String>)| {
        let explanation = explanation.map_err(|error| {
            // What cannot be read is better named with its field.
            let wrong = typing::check(identity, value, value, &found, Validate::Warn).wrong_types;
            if wrong.is_empty() { error } else { wrong.join(", ") }
        })?;
        Ok((title, offline(explanation, args)))
    };
    explanations(identity, namespace, value, &model.snapshot).into_iter().map(explained).collect()
}

/// The pods of an object, each with what it is called and what becomes of it, or why that is unknown.
pub fn explanations(
    identity: &Identity,
    namespace: &str,
    value: &Value,
    snapshot: &Snapshot,
) -> Vec<(String, Result<Explanation, String>)> {
    let found = FoundTemplates::of(identity, value);
    let explained = |template: &FoundTemplate| {
        let mut title = title(identity, Some(namespace), value);
        if let Some(path) = template.path.as_ref().filter(|_| found.templates.len() > 1) {
            let _ = write!(title, ", {path}");
        }
        let explanation = pod(value, template, identity, namespace).and_then(|pod| {
            let [resource] = PODS else { return Err("there is more than one resource of pods".to_owned()) };
            let body = review(*resource, namespace, &pod);
            explain(&body, snapshot).map_err(|error| error.to_string())
        });
        (title, explanation)
    };
    let is_there = |template: &&FoundTemplate| value.pointer(&template.pointer).is_some();
    found.templates.iter().filter(is_there).map(explained).collect()
}

/// Adds what the server does not do: a manifest with an older form can be rendered again.
fn offline(mut explanation: Explanation, args: &ExplainArgs) -> Explanation {
    let outdated = explanation.sets.iter_mut().filter(|set| set.fate == Fate::Outdated && args.object.is_empty());
    for set in outdated {
        set.why.text.push_str("; `outrider render` replaces it, as far as the record in the pod names its containers");
    }
    explanation
}

fn text(explained: &[Explained], is_quiet: bool) -> String {
    let mut text = String::new();
    for (position, Explained { title, explanation, .. }) in explained.iter().enumerate() {
        let separator = if position == 0 { "" } else { "\n" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{separator}{title}");
        if let Some(why) = &explanation.pod {
            let _ = writeln!(text, "  {}: {}", why.reason, why.text);
        }
        for set in &explanation.sets {
            let _ = writeln!(text, "  {}: {}: {}: {}", set.why.reason, set.set, set.fate.as_str(), set.why.text);
        }
        for warning in explanation.warnings.iter().filter(|_| !is_quiet) {
            let _ = writeln!(text, "  warning: {warning}");
        }
        if explanation.is_refused() {
            text.push_str("  The pod is refused, so it gets none of the sets.\n");
        }
    }
    text
}

fn json_of_set(set: &SetExplanation) -> Value {
    let to_app = set
        .app_containers
        .iter()
        .map(|addition| json!({"container": addition.container, "env": addition.env, "volumeMounts": addition.mounts}));
    json!({
        "reason": set.why.reason.as_str(),
        "set": set.set,
        "result": set.fate.as_str(),
        "text": set.why.text,
        "appContainers": to_app.collect::<Vec<_>>(),
    })
}

fn json_of(explained: &[Explained]) -> Value {
    let pods: Vec<Value> = explained
        .iter()
        .map(|Explained { source, title, explanation }| {
            let sets: Vec<Value> = explanation.sets.iter().map(json_of_set).collect();
            let why = explanation.pod.as_ref();
            json!({
                "object": title,
                "source": source,
                "refused": explanation.is_refused(),
                "reason": why.map(|why| why.reason.as_str()),
                "text": why.map(|why| why.text.as_str()),
                "sets": sets,
                "warnings": explanation.warnings,
            })
        })
        .collect();
    json!({"pods": pods})
}
