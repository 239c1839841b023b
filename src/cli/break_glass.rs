//! `outrider break-glass`: lets requests pass while no replica answers.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::Client;

use super::cluster::{ClusterArgs, CommandOutput, ConsentArgs, Intent, run_with_intent};
use super::streams::CommandOutcome;
use crate::manager::break_glass::{Error, Order, PolicyChange, PolicyStep, carry_out, since, who, whole_seconds};
use crate::manager::client;
use crate::manager::configuration::{Configuration, OnDemand};

/// Arguments of `outrider break-glass`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct BreakGlassArgs {
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Put the policies back as they were
    #[arg(long)]
    pub undo: bool,
    /// Have the API server check the change without storing it
    #[arg(long)]
    pub dry_run: bool,
    /// The question
    #[command(flatten)]
    pub consent: ConsentArgs,
}

const EXAMPLES: &str = "\
Sets failurePolicy of every webhook in outrider-mutating and outrider-validating to Ignore: while Outrider does not answer, pods \
are created without their sets. While it answers, nothing changes. It needs only the API server, no running Outrider. Who did \
it, when, and the policies before are kept in the annotation outrider.dev/break-glass of each configuration; while it is there, \
Outrider itself leaves failurePolicy alone. Helm, kustomize and GitOps tools are not aware of it: an upgrade may set Fail again.

You can run both again: the second time changes nothing.

It needs get and patch on the four configurations:
  kubectl create clusterrole break-glass --verb=get,patch \\
    --resource=mutatingwebhookconfigurations,validatingwebhookconfigurations \\
    --resource-name=outrider-mutating --resource-name=outrider-validating \\
    --resource-name=outrider-on-demand-mutating --resource-name=outrider-on-demand-validating

Examples:
  outrider break-glass --dry-run
  outrider break-glass
  outrider break-glass --context production --yes
  outrider break-glass --undo

Exit codes: 0 done, or nothing to do, 2 not done.";

/// Runs the command in the process.
pub fn execute(args: &BreakGlassArgs) -> ExitCode {
    let what = if args.undo {
        "putting failurePolicy of outrider-mutating, outrider-validating and the on-demand configurations back as it was"
    } else {
        "setting failurePolicy of outrider-mutating, outrider-validating and the on-demand configurations to Ignore"
    };
    let intent = Intent { what, asks: !args.consent.yes && !args.dry_run };
    run_with_intent(&args.cluster, Some(intent), |client| async move {
        let order = if args.undo {
            Order::Undo
        } else {
            // The way out does not depend on the API server knowing a name.
            let by = who(&client).await.unwrap_or_else(|_| "unknown".to_owned());
            Order::Break { by, at: whole_seconds(Timestamp::now()) }
        };
        let steps = [
            step::<MutatingWebhookConfiguration>(&client, &order, args.dry_run).await,
            step::<ValidatingWebhookConfiguration>(&client, &order, args.dry_run).await,
            step::<OnDemand<MutatingWebhookConfiguration>>(&client, &order, args.dry_run).await,
            step::<OnDemand<ValidatingWebhookConfiguration>>(&client, &order, args.dry_run).await,
        ];
        Ok::<_, client::Error>(output(&steps, args))
    })
}

/// The name of a configuration, and what came of it.
async fn step<C: Configuration>(
    client: &Client,
    order: &Order,
    dry_run: bool,
) -> (&'static str, Result<PolicyStep, Error>) {
    (C::NAME, carry_out::<C>(client, order, dry_run).await)
}

/// One configuration that cannot be written does not keep the other from being reported.
fn output(steps: &[(&str, Result<PolicyStep, Error>)], args: &BreakGlassArgs) -> CommandOutput {
    let (mut result, mut aside) = (String::new(), String::new());
    let mut outcome = CommandOutcome::Fine;
    for (name, step) in steps {
        match step {
            Ok(step) => result.push_str(&words(name, step, args)),
            Err(error) => {
                // Writing to a String cannot fail.
                let _ = writeln!(aside, "error: {error}");
                outcome = CommandOutcome::BadInput;
            }
        }
    }
    let changed = steps.iter().any(|(_, step)| matches!(step, Ok(PolicyStep::Change(_))));
    if changed && !args.undo && !args.dry_run {
        aside.push_str("When Outrider answers again: outrider break-glass --undo\n");
    }
    CommandOutput { result, aside, outcome }
}

fn words(name: &str, step: &PolicyStep, args: &BreakGlassArgs) -> String {
    let dry = if args.dry_run { " (dry run)" } else { "" };
    match step {
        PolicyStep::Absent => format!("{name}: not found, nothing to do\n"),
        PolicyStep::Nothing(Some(record)) => {
            format!("{name}: already in force since {}, by {}\n", since(&record.at), record.by)
        }
        PolicyStep::Nothing(None) => format!("{name}: break-glass is not in force, nothing to do\n"),
        PolicyStep::Change(changes) if changes.is_empty() => {
            let done = if args.undo { "removed" } else { "written" };
            format!("{name}: no policy to change, the record is {done}{dry}\n")
        }
        PolicyStep::Change(changes) => {
            let line =
                |change: &PolicyChange| format!("{name}: {}: {} -> {}{dry}\n", change.entry, change.from, change.to);
            changes.iter().map(line).collect::<Vec<_>>().concat()
        }
    }
}
