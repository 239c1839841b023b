//! `outrider plugins`: every admission plugin of Kubernetes, and what Outrider does about it.

pub mod convert;

use std::io;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use engine::plugins::Plugin;
use engine::plugins::catalog::{ALL, Entry, Service};
use engine::suggest::suggest;
use serde_json::{Value, json};

use super::streams::{CommandOutcome, Streams, with_process_streams};

/// Arguments of `outrider plugins`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct PluginsArgs {
    /// What else to do.
    #[command(subcommand)]
    pub command: Option<PluginsCommand>,
    /// Print an example object of this plugin, or why Outrider does not serve it
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// What to print
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = PluginsFormat::Text)]
    pub output: PluginsFormat,
}

/// What to do beside listing.
#[derive(Debug, Clone, Subcommand)]
pub enum PluginsCommand {
    /// Print AdmissionPlugin objects for the configuration of an API server
    Convert(convert::ConvertArgs),
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PluginsFormat {
    /// A table, or an object in YAML
    Text,
    /// A list of all plugins, or one of them
    Json,
}

const EXAMPLES: &str = "\
Examples:
  outrider plugins
  outrider plugins PodNodeSelector | kubectl apply -f -
  outrider plugins convert admission.yaml --enable-admission-plugins PodNodeSelector
  outrider plugins -o json | jq -r '.[] | select(.served) | .name'

Exit codes: 0 fine; 1 Outrider does not serve the plugin; 2 there is no such plugin.";

/// Runs the command in the process.
pub fn execute(args: &PluginsArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &PluginsArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    if let Some(PluginsCommand::Convert(args)) = &args.command {
        return convert::run(args, streams);
    }
    let Some(name) = &args.name else {
        match args.output {
            PluginsFormat::Text => table(streams)?,
            PluginsFormat::Json => {
                let all: Vec<Value> = ALL.iter().map(object).collect();
                writeln!(streams.stdout, "{:#}", Value::from(all))?;
            }
        }
        return Ok(CommandOutcome::Fine);
    };
    let Some(entry) = ALL.iter().find(|entry| entry.name.eq_ignore_ascii_case(name)) else {
        let meant = suggest(name, ALL.iter().map(|entry| entry.name));
        let meant = meant.map(|meant| format!("did you mean {meant}? ")).unwrap_or_default();
        writeln!(
            streams.stderr,
            "error: Kubernetes has no admission plugin {name:?}; {meant}`outrider plugins` lists them"
        )?;
        return Ok(CommandOutcome::BadInput);
    };
    let example = example_of(entry);
    match (args.output, example) {
        (PluginsFormat::Json, _) => writeln!(streams.stdout, "{:#}", object(entry))?,
        (PluginsFormat::Text, Some(example)) => streams.stdout.write_all(without_schema(example).as_bytes())?,
        (PluginsFormat::Text, None) => {}
    }
    if example.is_none() {
        writeln!(streams.stderr, "Outrider does not serve {}: {}", entry.name, entry.how())?;
        return Ok(CommandOutcome::Refused);
    }
    Ok(CommandOutcome::Fine)
}

/// The example of a plugin that is served, by whatever kind.
pub fn example_of(entry: &Entry) -> Option<&'static str> {
    let of_kind = || {
        Some(match entry.name {
            "LimitRanger" => include_str!("../../config/samples/policy_v1alpha1_clusterlimitrange.yaml"),
            "PodSecurityPolicy" => include_str!("../../config/samples/policy_v1alpha1_podsecurityprofile.yaml"),
            _ => return None,
        })
    };
    Plugin::named(entry.name).map(example).or_else(of_kind)
}

/// An example without the line that names its schema: the path is that of the samples' folder.
fn without_schema(example: &str) -> &str {
    let rest = example.split_once('\n').filter(|(line, _)| line.starts_with("# yaml-language-server:"));
    rest.map_or(example, |(_, rest)| rest)
}

/// The example of a plugin that is served: the sample.
pub const fn example(plugin: Plugin) -> &'static str {
    macro_rules! sample {
        ($name:literal) => {
            include_str!(concat!("../../config/samples/policy_v1alpha1_", $name, ".yaml"))
        };
    }
    match plugin {
        Plugin::AlwaysPullImages => sample!("alwayspullimages"),
        Plugin::PodNodeSelector => sample!("podnodeselector"),
        Plugin::DefaultTolerationSeconds => sample!("defaulttolerationseconds"),
        Plugin::PodTolerationRestriction => sample!("podtolerationrestriction"),
        Plugin::ExtendedResourceToleration => sample!("extendedresourcetoleration"),
        Plugin::LimitPodHardAntiAffinityTopology => sample!("limitpodhardantiaffinitytopology"),
        Plugin::DenyServiceExternalIPs => sample!("denyserviceexternalips"),
        Plugin::NamespaceLifecycle => sample!("namespacelifecycle"),
        Plugin::PodSecurity => sample!("podsecurity"),
        Plugin::OwnerReferencesPermissionEnforcement => sample!("ownerreferencespermissionenforcement"),
        Plugin::EventRateLimit => sample!("eventratelimit"),
        Plugin::ResourceQuota => sample!("resourcequota"),
        Plugin::ImagePolicyWebhook => sample!("imagepolicywebhook"),
        Plugin::DefaultStorageClass => sample!("defaultstorageclass"),
        Plugin::PodTopologyLabels => sample!("podtopologylabels"),
        Plugin::Priority => sample!("priority"),
        Plugin::RuntimeClass => sample!("runtimeclass"),
        Plugin::StorageObjectInUseProtection => sample!("storageobjectinuseprotection"),
        Plugin::PersistentVolumeClaimResize => sample!("persistentvolumeclaimresize"),
        Plugin::TaintNodesByCondition => sample!("taintnodesbycondition"),
        Plugin::ServiceAccount => sample!("serviceaccount"),
        Plugin::NodeRestriction => sample!("noderestriction"),
    }
}

/// Whether a provider runs a plugin, in a word.
pub const fn provided(provided: Option<bool>) -> &'static str {
    match provided {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    }
}

const NAMES: [&str; 3] = ["EKS", "AKS", "GKE"];

fn object(entry: &Entry) -> Value {
    let providers: serde_json::Map<String, Value> =
        NAMES.iter().zip(entry.providers).map(|(name, runs)| (name.to_lowercase(), json!(runs))).collect();
    json!({
        "name": entry.name,
        "default": entry.is_default,
        "providers": providers,
        "served": entry.service == Service::Served,
        "service": entry.service.name(),
        "how": entry.how(),
    })
}

/// The columns of a plugin.
pub fn row(entry: &Entry) -> [String; 7] {
    let [eks, aks, gke] = entry.providers.map(|runs| provided(runs).to_owned());
    let default = if entry.is_default { "on" } else { "off" };
    [entry.name.to_owned(), default.to_owned(), eks, aks, gke, entry.service.name().to_owned(), entry.how().to_owned()]
}

/// The heads of the columns.
pub const HEADS: [&str; 7] = ["NAME", "DEFAULT", "EKS", "AKS", "GKE", "OUTRIDER", "HOW, OR WHY NOT"];

fn table(streams: &mut Streams<'_>) -> io::Result<()> {
    let rows: Vec<[String; 7]> = std::iter::once(HEADS.map(str::to_owned)).chain(ALL.iter().map(row)).collect();
    let longest = rows.iter().map(|[name, ..]| name.len()).max().unwrap_or_default();
    for [name, default, eks, aks, gke, service, how] in rows {
        writeln!(streams.stdout, "{name:longest$}  {default:7}  {eks:3}  {aks:3}  {gke:3}  {service:8}  {how}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(name: Option<&str>, output: PluginsFormat) -> (CommandOutcome, String, String) {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut streams = Streams { stdin: &mut io::empty(), stdout: &mut stdout, stderr: &mut stderr };
        let args = PluginsArgs { command: None, name: name.map(str::to_owned), output };
        let outcome = run(&args, &mut streams).unwrap();
        (outcome, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    #[test]
    fn every_plugin_has_a_line_and_one_that_is_served_an_example_that_is_accepted() {
        let (outcome, table, _) = ran(None, PluginsFormat::Text);
        assert_eq!((outcome, table.lines().count()), (CommandOutcome::Fine, 43));
        let (_, list, _) = ran(None, PluginsFormat::Json);
        assert_eq!(serde_json::from_str::<Vec<Value>>(&list).unwrap().len(), 42);
        for plugin in Plugin::ALL {
            let (outcome, text, _) = ran(Some(&plugin.name().to_lowercase()), PluginsFormat::Text);
            assert_eq!(outcome, CommandOutcome::Fine);
            assert!(!text.contains("$schema"), "{text}");
            let document = engine::yaml::read(&text).unwrap().remove(0);
            let compiled = engine::plugins::validation::compile(&document.value).unwrap();
            assert_eq!(compiled.plugin, plugin);
        }
        let (outcome, text, _) = ran(Some("LimitRanger"), PluginsFormat::Text);
        assert_eq!(outcome, CommandOutcome::Fine);
        let document = engine::yaml::read(&text).unwrap().remove(0);
        assert_eq!(document.value["kind"], "ClusterLimitRange");
        engine::limitrange::validation::compile(&document.value).unwrap();
        let (outcome, text, _) = ran(Some("PodSecurityPolicy"), PluginsFormat::Text);
        assert_eq!(outcome, CommandOutcome::Fine);
        let document = engine::yaml::read(&text).unwrap().remove(0);
        assert_eq!(document.value["kind"], "PodSecurityProfile");
        engine::podsecurityprofile::validation::compile(&document.value).unwrap();
    }

    #[test]
    fn why_a_plugin_is_not_served_is_told_and_a_name_that_is_none_is_bad_input() {
        let (outcome, stdout, stderr) = ran(Some("NamespaceAutoProvision"), PluginsFormat::Text);
        assert_eq!((outcome, stdout.as_str()), (CommandOutcome::Refused, ""));
        assert!(stderr.contains("before any webhook is called"), "{stderr}");
        assert_eq!(ran(Some("AlwaysPullsImages"), PluginsFormat::Text).0, CommandOutcome::BadInput);
    }
}
