//! `outrider uninstall`: the webhook configurations go before what answers them, and so does our hold on objects.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::Client;

use super::cluster::{ClusterArgs, CommandOutput, ConsentArgs, Intent, run_with_intent};
use super::streams::CommandOutcome;
use crate::go_duration::unsigned_duration;
use crate::kind::{Family, Kind};
use crate::kinds::Kinds;
use crate::manager::client;
use crate::manager::configuration::{Configuration, OnDemand};
use crate::manager::error;
use crate::manager::hook_job::{self, HookJob, Maker};
use crate::manager::retire::{self, Retirement};
use crate::manager::uninstall::{self, remove};

/// Arguments of `outrider uninstall`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct UninstallArgs {
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// How long to wait until a configuration is gone, or the objects of a kind are free
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = unsigned_duration)]
    pub timeout: Duration,
    /// Only release the objects of these kinds, for a kind that is turned off, and remove nothing
    #[arg(long, value_name = "KINDS", value_parser = |list: &str| list.parse::<Kinds>())]
    pub kind: Option<Kinds>,
    /// Have the API server check the request without removing anything
    #[arg(long)]
    pub dry_run: bool,
    /// The question
    #[command(flatten)]
    pub consent: ConsentArgs,
    /// Remove nothing unless this Job, whose pod runs the command, was made by a tool that runs Helm's hooks
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = hook_job::parse)]
    pub hook_job: Option<HookJob>,
}

const EXAMPLES: &str = "\
Removes the webhook configurations outrider-mutating and outrider-validating, and the on-demand ones, and waits until they are gone. \
Run it before the pods of Outrider are removed: the chart does, as its pre-delete hook. While a configuration exists and \
Outrider does not answer, the API server refuses pods. You can run it again: what is already gone is skipped.

It then prepares CronJobs of batch.outrider.dev, so that they can be read and deleted without Outrider: v2 is not served any more, \
nothing is converted, and the finalizer is removed. A CronJob with deletionPolicy WaitForActiveJobs no longer waits for its \
Jobs. To serve v2 again, apply the definitions with --server-side --force-conflicts. With --kind only this step is done, for a \
kind that is turned off while Outrider stays.

Policies on the service account (`outrider manifests policies`) stay too: they limit no other account, and are deleted with the \
chart.

The chart's hook passes --hook-job: if the chart is rendered with its hooks and applied, its Job is created as well, and must \
not remove anything. The Job's managedFields say which tool created it, so the Job needs get on itself.

Custom resource definitions and their objects stay. To remove them too:
  kubectl delete crd sidecarsets.apps.outrider.dev

It needs get and delete on the four configurations, and where CronJobs are on, get and patch on their definition and list and patch \
on them:
  kubectl create clusterrole uninstall --verb=get,delete \\
    --resource=mutatingwebhookconfigurations,validatingwebhookconfigurations \\
    --resource-name=outrider-mutating --resource-name=outrider-validating \\
    --resource-name=outrider-on-demand-mutating --resource-name=outrider-on-demand-validating
  kubectl create clusterrole uninstall-definitions --verb=get,patch \\
    --resource=customresourcedefinitions --resource-name=cronjobs.batch.outrider.dev
  kubectl create clusterrole uninstall-cronjobs --verb=list,patch \\
    --resource=cronjobs.batch.outrider.dev

Examples:
  outrider uninstall --dry-run
  outrider uninstall --timeout 30s
  outrider uninstall --kind cronjob
  outrider uninstall --context production --yes

Exit codes: 0 nothing is left that needs Outrider, 2 something is left.";

/// Runs the command in the process.
pub fn execute(args: &UninstallArgs) -> ExitCode {
    let what = match &args.kind {
        None => {
            "removing outrider-mutating, outrider-validating and the on-demand configurations, and Outrider's finalizers"
        }
        Some(_) => "removing Outrider's finalizers",
    };
    let intent = Intent { what, asks: !args.consent.yes && !args.dry_run };
    run_with_intent(&args.cluster, Some(intent), |client| async move {
        let mut told = CommandOutput { result: String::new(), aside: String::new(), outcome: CommandOutcome::Fine };
        if !is_uninstalled(&client, args.hook_job.as_ref(), &mut told).await {
            return Ok(told);
        }
        if args.kind.is_none() {
            remove_one::<MutatingWebhookConfiguration>(&client, args, &mut told).await;
            remove_one::<ValidatingWebhookConfiguration>(&client, args, &mut told).await;
            remove_one::<OnDemand<MutatingWebhookConfiguration>>(&client, args, &mut told).await;
            remove_one::<OnDemand<ValidatingWebhookConfiguration>>(&client, args, &mut told).await;
        }
        let is_meant = |kind: &&Kind| args.kind.is_none() || kind.family == Family::Workshop;
        for kind in args.kind.clone().unwrap_or_else(Kinds::all).iter().filter(is_meant) {
            let Some(retirement) = Retirement::of(kind) else {
                if args.kind.is_some() {
                    // Writing to a String cannot fail.
                    let _ = writeln!(
                        told.result,
                        "{}: objects of this kind do not need Outrider, nothing to do",
                        kind.name
                    );
                }
                continue;
            };
            let outcome = retirement.carry_out(&client, args.timeout, args.dry_run).await;
            report_retirement(&mut told, &retirement.definition, &outcome, args);
        }
        Ok::<_, client::Error>(told)
    })
}

/// Whether a release is being uninstalled, or a user runs the command.
async fn is_uninstalled(client: &Client, job: Option<&HookJob>, told: &mut CommandOutput) -> bool {
    let Some(job) = job else { return true };
    // Writing to a String cannot fail.
    let _ = match job.maker(client).await {
        Ok(Maker::RunsHooks) => return true,
        Ok(Maker::Others(by)) => {
            let by = if by.is_empty() { "an unknown client".to_owned() } else { by.join(", ") };
            writeln!(
                told.result,
                "nothing is removed: the Job {}/{} was made by {by}, not by Helm as the hook of an uninstall. Render the chart \
                 without hooks (`helm template --no-hooks`), and delete this Job",
                job.namespace, job.name
            )
        }
        Err(error) => stays(told, &error),
    };
    false
}

async fn remove_one<C: Configuration>(client: &Client, args: &UninstallArgs, told: &mut CommandOutput) {
    let removed = remove::<C>(client, args.timeout, args.dry_run).await;
    report_removal(told, C::NAME, &removed, args.dry_run);
}

/// One object that stays does not keep another from being removed and reported.
fn report_removal(
    told: &mut CommandOutput,
    name: &str,
    outcome: &Result<uninstall::RemoveOutcome, uninstall::Error>,
    dry_run: bool,
) {
    // Writing to a String cannot fail.
    let _ = match outcome {
        Ok(uninstall::RemoveOutcome::Removed { process: Some(process) }) if !dry_run => {
            let _ = writeln!(
                told.aside,
                "warning: {name}: the process at {process} registered it (--register-webhooks); while that runs, it does so \
                 again for every kind that has a definition"
            );
            writeln!(told.result, "{name}: removed")
        }
        Ok(uninstall::RemoveOutcome::Absent) => writeln!(told.result, "{name}: not found, nothing to do"),
        Ok(uninstall::RemoveOutcome::Removed { .. }) if dry_run => {
            writeln!(told.result, "{name}: would be removed (dry run)")
        }
        Ok(uninstall::RemoveOutcome::Removed { .. }) => writeln!(told.result, "{name}: removed"),
        Err(error) => stays(told, error),
    };
}

fn report_retirement(
    told: &mut CommandOutput,
    name: &str,
    outcome: &Result<retire::RetireOutcome, error::Error>,
    args: &UninstallArgs,
) {
    let _ = match outcome {
        // Where the kind is off, no account has rights on it.
        Ok(retire::RetireOutcome::Unknown(why)) if args.kind.is_none() => {
            writeln!(told.aside, "note: {name}: not checked, which is expected if CronJobs are off: {why}")
        }
        Ok(retire::RetireOutcome::Unknown(why)) => {
            told.outcome = CommandOutcome::BadInput;
            writeln!(told.aside, "error: {name}: {why}")
        }
        Ok(outcome) => writeln!(told.result, "{name}: {}", outcome.describe(args.dry_run)),
        Err(error) => stays(told, error),
    };
}

fn stays(told: &mut CommandOutput, error: &dyn std::error::Error) -> std::fmt::Result {
    told.outcome = CommandOutcome::BadInput;
    writeln!(told.aside, "error: {error}")
}
