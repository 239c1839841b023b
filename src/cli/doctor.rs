//! `outrider doctor`: what can lock a live cluster.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::cluster::{ClusterArgs, CommandOutput, run};
use super::namespace::namespace;
use super::streams::CommandOutcome;
use crate::doctor::report::{ClusterHealth, Report};
use crate::doctor::{examine, fetch};

/// Arguments of `outrider doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Namespace that Outrider runs in
    #[arg(long, env = "POD_NAMESPACE", default_value = "outrider-system", value_parser = namespace)]
    pub namespace: String,
    /// Service account in --namespace whose rights are checked [default: that of Outrider's pods, else your own]
    #[arg(long, value_name = "NAME")]
    pub service_account: Option<String>,
    /// How the findings are printed
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value = "text")]
    pub output: DoctorFormat,
}

/// How findings are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// For a terminal
    Text,
    /// For programs: one object with findings, certificates and notChecked
    Json,
}

const EXAMPLES: &str = "\
Checks every webhook configuration of the cluster, also those of other products, and reports what can lock the cluster, worst \
first: webhooks with failurePolicy Fail whose rules match what a cluster needs to recover (kube-system, nodes, leases, their \
own pods), Services without ready endpoints, certificates that have expired or that caBundle does not trust, long time-outs, \
rules that match everything, and definitions whose conversion webhook does not answer or is not trusted. For Outrider itself it \
reports certificates and when they expire, versions, missing rights, break-glass in force, and policies that limit its service \
account.

It changes nothing. It needs to list webhook configurations and CustomResourceDefinitions, and to get namespaces, Services and \
EndpointSlices; anything else that it may not read is listed under \"not checked\". A serving certificate is checked if the \
webhook can be reached from this machine.

Examples:
  outrider doctor
  outrider doctor -o json | jq -r '.findings[] | select(.severity == \"critical\") | .object'
  outrider doctor --namespace sidecars --service-account outrider

Exit codes: 0 nothing found, 1 warnings, 2 not checked: the API server cannot be reached or refuses to answer, 3 critical \
findings.";

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Fetch(#[from] fetch::Error),
    #[error("the report cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Runs the command in the process.
pub fn execute(args: &DoctorArgs) -> ExitCode {
    run(&args.cluster, |client| async move {
        let facts = fetch::fetch(&client, &args.namespace, args.service_account.as_deref()).await?;
        output(&examine(&facts, Timestamp::now()), args.output)
    })
}

fn output(report: &Report, format: DoctorFormat) -> Result<CommandOutput, Error> {
    let result = match format {
        DoctorFormat::Text => report.text(),
        DoctorFormat::Json => format!("{}\n", serde_json::to_string_pretty(report)?),
    };
    let outcome = match report.verdict() {
        ClusterHealth::Healthy => CommandOutcome::Fine,
        ClusterHealth::Findings => CommandOutcome::Refused,
        ClusterHealth::CannotTell => CommandOutcome::BadInput,
        ClusterHealth::Critical => CommandOutcome::Critical,
    };
    Ok(CommandOutput { result, aside: String::new(), outcome })
}
