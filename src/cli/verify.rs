//! `outrider verify`: whether a pod that is created now is injected.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::cluster::{ClusterArgs, CommandOutput, run};
use super::namespace::namespace;
use super::streams::CommandOutcome;
use crate::go_duration::unsigned_duration;
use crate::manager::client;
use crate::manager::verify::verify;

/// Arguments of `outrider verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct VerifyArgs {
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Namespace in which the pod is created as a dry run; it must not be excluded
    #[arg(short, long, default_value = "default", value_parser = namespace)]
    pub namespace: String,
    /// How long to try
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = unsigned_duration)]
    pub timeout: Duration,
}

const EXAMPLES: &str = "\
Creates a SidecarSet that selects only a test pod, creates that pod as a dry run until it comes back with the sidecar, and \
deletes the set. A dry run goes through authentication, authorization and admission like any other request, but the pod is not \
stored, so no image is pulled and nothing is scheduled. `helm test` runs this command.

It needs create and delete on SidecarSets, and create on pods in the namespace.

Examples:
  outrider verify
  outrider verify --namespace shop --timeout 10s

Exit codes: 0 injected, 1 not injected, 2 not checked: the API server cannot be reached.";

/// For while a webhook does not answer.
const WAY_OUT: &str =
    "`outrider doctor` finds why Outrider does not answer; `outrider break-glass` lets pods pass until it does\n";

/// Runs the command in the process.
pub fn execute(args: &VerifyArgs) -> ExitCode {
    run(&args.cluster, |client| async move {
        let suffix = format!("{:x}", Timestamp::now().as_nanosecond());
        let namespace = &args.namespace;
        let mut told = CommandOutput { result: String::new(), aside: String::new(), outcome: CommandOutcome::Fine };
        match verify(&client, namespace, &suffix, args.timeout).await {
            Ok(set) => {
                told.result = format!("a pod in the namespace {namespace} came back with the sidecar of {set}\n");
            }
            Err(error) => {
                told.aside = format!("error: {error}\n");
                if error.is_webhook_dead() {
                    told.aside.push_str(WAY_OUT);
                }
                told.outcome = if error.is_unreachable() { CommandOutcome::BadInput } else { CommandOutcome::Refused };
            }
        }
        Ok::<_, client::Error>(told)
    })
}
