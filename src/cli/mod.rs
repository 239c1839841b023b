//! The command line. Results go to stdout, everything else to stderr.
//!
//! Exit codes: 0 fine or allowed, 1 refused or findings, 2 bad input or cannot tell, 3 critical findings. A command is a file: its arguments and a
//! function that returns an [`ExitCode`].

pub mod break_glass;
pub mod cases;
mod cluster;
pub mod color;
pub mod completion;
pub mod credential_plugin;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod fail_open;
mod findings;
pub mod kinds;
pub mod lint;
pub mod manifests;
pub mod migrate;
mod named;
mod namespace;
pub mod offline;
pub mod plugins;
pub mod render;
pub mod report;
pub mod review;
pub mod serve;
mod stray;
pub mod streams;
pub mod uninstall;
mod unmatched;
pub mod verify;
pub mod version;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::manager::credentials::RUN_PLUGIN;
use crate::visible::{Visible, is_hidden};

/// Exit code of bad input, and of anything that kept the command from doing its work. clap uses the same for wrong arguments.
pub const BAD_INPUT: u8 = 2;

/// The version, and in release builds the commit.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("OUTRIDER_COMMIT_NOTE"));

/// Adds sidecars to pods, and decides what else enters a Kubernetes cluster.
#[derive(Debug, Parser)]
#[command(name = "outrider", version = VERSION, propagate_version = true, after_help = EXAMPLES)]
pub struct Cli {
    /// When the severity of a line is printed in colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = color::Color::Auto)]
    pub color: color::Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the webhook server and the controllers
    Serve(Box<serve::ServeArgs>),
    /// See a pod being injected, without a cluster
    Demo(demo::DemoArgs),
    /// Answer one AdmissionReview from a file, as the server would
    Review(review::ReviewArgs),
    /// Print manifests with what the server would add to their pods
    Render(render::RenderArgs),
    /// Explain for each set why a pod gets it, or does not
    Explain(Box<explain::ExplainArgs>),
    /// Check SidecarSets, AdmissionPlugins, ClusterLimitRanges and PodSecurityProfiles as an API server would, without a workload
    Lint(lint::LintArgs),
    /// Run test cases: objects, and the decision that is expected for each
    Test(cases::TestArgs),
    /// Print what to apply to a cluster: CRDs, RBAC, webhook configurations
    Manifests(manifests::ManifestsArgs),
    /// Convert SidecarSets of OpenKruise, with every default written out that differs
    Migrate(migrate::MigrateArgs),
    /// List the admission plugins of Kubernetes: which are on by default, which Outrider serves, and why not
    Plugins(plugins::PluginsArgs),
    /// Find what can lock a live cluster: webhooks that do not answer, certificates, missing rights
    Doctor(doctor::DoctorArgs),
    /// Create a pod as a dry run, and check that it comes back injected
    Verify(verify::VerifyArgs),
    /// Let requests pass while Outrider does not answer: set its webhooks to Ignore, and back
    BreakGlass(break_glass::BreakGlassArgs),
    /// Remove the webhook configurations, before Outrider's pods are removed
    Uninstall(uninstall::UninstallArgs),
    /// Run a program that fetches credentials
    #[command(name = RUN_PLUGIN, hide = true)]
    RunCredentialPlugin(credential_plugin::PluginArgs),
    /// Print a script that completes commands and flags in a shell
    Completion(completion::CompletionArgs),
    /// Print the version, and what the binary was built from
    Version(version::VersionArgs),
}

const EXAMPLES: &str = "\
Examples:
  outrider demo                                          see what it does
  outrider serve                                         in a pod, or with the current kubeconfig
  outrider serve --standalone --manifests sidecarsets/   without a cluster
  outrider review --manifests sidecarsets/ review.json   how the server would answer
  outrider render --manifests sidecarsets/ -f app.yaml   what the pods of a manifest would become
  outrider explain --manifests sidecarsets/ -f app.yaml  why a pod gets a set, or does not
  outrider manifests crds | kubectl apply --server-side -f -
  outrider lint sidecarsets/                             what is wrong with sets and plugins
  outrider test tests/                                   run test cases
  outrider migrate --cluster > outrider.yaml             convert sets of OpenKruise
  outrider doctor                                        what can lock the current cluster
  outrider completion bash > /etc/bash_completion.d/outrider";

/// Reads the command line of the process and does what it says.
pub fn run() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return refuse(&with_tip(error)),
    };
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command()).exit());
    color::choose(cli.color);
    match cli.command {
        Command::Serve(args) => serve::execute(*args, matches.subcommand_matches("serve").unwrap_or(&matches)),
        Command::Demo(args) => demo::execute(&args),
        Command::Review(args) => review::execute(&args),
        Command::Render(args) => render::execute(&args),
        Command::Explain(args) => explain::execute(&args),
        Command::Lint(args) => lint::execute(&args),
        Command::Test(args) => cases::execute(&args),
        Command::Manifests(args) => manifests::execute(&args),
        Command::Migrate(args) => migrate::execute(&args),
        Command::Plugins(args) => plugins::execute(&args),
        Command::Doctor(args) => doctor::execute(&args),
        Command::Verify(args) => verify::execute(&args),
        Command::BreakGlass(args) => break_glass::execute(&args),
        Command::Uninstall(args) => uninstall::execute(&args),
        Command::RunCredentialPlugin(args) => credential_plugin::execute(&args),
        Command::Completion(args) => completion::execute(&args),
        Command::Version(args) => version::execute(&args),
    }
}

/// The command line, under the name by which the process was called: kubectl runs a plugin as `kubectl-outrider`.
fn command() -> clap::Command {
    let called = std::env::args_os().next().map(PathBuf::from);
    let is_plugin = called.as_deref().and_then(Path::file_stem).is_some_and(|name| name == "kubectl-outrider");
    if is_plugin { of_kubectl(Cli::command()) } else { Cli::command() }
}

/// The command line as kubectl runs it. A usage that is written out does not follow the name of the binary.
fn of_kubectl(command: clap::Command) -> clap::Command {
    let usages = [
        ("render", render::USAGE),
        ("review", review::USAGE),
        ("explain", explain::USAGE),
        ("lint", lint::USAGE),
        ("test", cases::USAGE),
        ("migrate", migrate::USAGE),
    ];
    usages.into_iter().fold(command.bin_name("kubectl outrider"), |command, (name, usage)| {
        let usage = usage.replace("outrider ", "kubectl outrider ");
        command.mut_subcommand(name, |command| command.override_usage(usage))
    })
}

/// What other programs call what a command does, and which one it is.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("inject", "outrider render prints workloads with what sets add to their pods"),
    ("kube-inject", "outrider render prints workloads with what sets add to their pods"),
    ("diff", "outrider render -o diff prints what sets change"),
    ("validate", "outrider lint checks sets and plugins as the webhooks do"),
    ("check", "outrider lint checks files, and outrider doctor the cluster"),
];

/// Adds to an error about a command of another name which one is meant, and to one about missing arguments which of them belong together:
/// clap lists one of several that would do.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(name))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
        && let Some((_, tip)) = OTHER_NAMES.into_iter().find(|(other, _)| other == name)
    {
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return error;
    }
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let tips = [("explain", explain::TIP), ("render", render::TIP), ("migrate", migrate::TIP), ("review", review::TIP)];
    let tip = tips.into_iter().find(|(name, _)| usage.contains(&format!("outrider {name} ")));
    if let (ErrorKind::MissingRequiredArgument, Some((_, tip))) = (error.kind(), tip) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Prints on stderr why a command could not do its work.
fn fail(error: &dyn std::error::Error) -> ExitCode {
    // If that fails, there is nowhere left to report it.
    let _ = writeln!(Visible::new(io::stderr()), "error: {error}");
    ExitCode::from(BAD_INPUT)
}

/// Prints what clap says: help, or what is wrong with the arguments, which may be names of files that a shell put there.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let _ =
        if text.chars().any(is_hidden) { Visible::new(io::stderr()).write_all(text.as_bytes()) } else { error.print() };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(BAD_INPUT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn missing_arguments_are_answered_with_what_to_give() {
        for (arguments, tip) in [
            (&["explain"][..], Some(explain::TIP)),
            (&["render", "-f", "a.yaml"], Some(render::TIP)),
            (&["migrate"], Some(migrate::TIP)),
            (&["review"], Some(review::TIP)),
            (&["review", "--manifests", "sets"], Some(review::TIP)),
            (&["lint"], None),
            (&["render", "--no-such-flag"], None),
        ] {
            let told = Cli::command().try_get_matches_from([&["outrider"], arguments].concat());
            let text = with_tip(told.unwrap_err()).render().to_string();
            assert_eq!(text.contains("tip: give"), tip.is_some(), "{text}");
            assert!(tip.is_none_or(|tip| text.contains(&format!("tip: {tip}\n"))), "{text}");
        }
    }

    #[test]
    fn what_other_programs_call_a_command_is_answered_with_its_name() {
        for (name, tip) in OTHER_NAMES {
            let told = Cli::command().try_get_matches_from(["outrider", name, "-f", "web.yaml"]);
            let text = with_tip(told.unwrap_err()).render().to_string();
            assert!(text.contains(&format!("unrecognized subcommand '{name}'\n")), "{text}");
            assert!(text.contains(&format!("tip: {tip}\n")), "{text}");
            assert!(!text.contains("similar"), "{text}");
        }
    }

    /// Each command names itself as kubectl calls it, in its help and where an argument is missing or wrong.
    #[test]
    fn every_usage_is_that_of_the_plugin_where_kubectl_runs_it() {
        for name in Cli::command().get_subcommands().map(|command| command.get_name().to_owned()) {
            for argument in ["--help", "--no-such-flag"] {
                let told = of_kubectl(Cli::command()).try_get_matches_from(["kubectl-outrider", &name, argument]);
                let text = told.unwrap_err().render().to_string();
                let usage: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Usage: ")).collect();
                assert!(usage[0].starts_with(&format!("Usage: kubectl outrider {name}")), "{text}");
                let more = usage.iter().skip(1).take_while(|line| !line.is_empty());
                assert!(more.clone().all(|line| !line.trim_start().starts_with("outrider ")), "{text}");
            }
        }
    }
}
