//! `outrider uninstall`: the webhook configurations go before what answers them.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};

use super::cluster::{ClusterArgs, Told, run};
use super::streams::Outcome;
use crate::manager::client;
use crate::manager::uninstall::{self, remove};
use crate::manifests::webhooks::{MUTATING, VALIDATING};
use crate::server::deadline::parse_go_duration;

/// Arguments of `outrider uninstall`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct UninstallArgs {
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// How long to wait until a configuration is gone
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
    /// Have the API server check the request without removing anything
    #[arg(long)]
    pub dry_run: bool,
}

const EXAMPLES: &str = "\
Removes the webhook configurations outrider-mutating and outrider-validating and waits until they are gone. Run it before the pods \
of Outrider are removed: the chart does, as its pre-delete hook. While a configuration is there and nobody answers, the API server \
refuses pods. May be run twice; what is not there needs no removing.

Custom resource definitions and SidecarSets stay. To remove them too, and every set with them:
  kubectl delete crd sidecarsets.apps.outrider.dev

It needs get and delete on the two configurations:
  kubectl create clusterrole uninstall --verb=get,delete \\
    --resource=mutatingwebhookconfigurations,validatingwebhookconfigurations \\
    --resource-name=outrider-mutating --resource-name=outrider-validating

Examples:
  outrider uninstall --dry-run
  outrider uninstall --timeout 30s

Exit codes: 0 both are gone, 2 one is still there.";

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Client(#[from] client::Error),
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_go_duration(text).ok_or_else(|| "write a duration such as 10s, 1m30s or 500ms".to_owned())
}

/// Runs the command in the process.
pub fn execute(args: &UninstallArgs) -> ExitCode {
    run(async {
        let client = args.cluster.client().await?;
        let outcomes = [
            (MUTATING, remove::<MutatingWebhookConfiguration>(&client, args.timeout, args.dry_run).await),
            (VALIDATING, remove::<ValidatingWebhookConfiguration>(&client, args.timeout, args.dry_run).await),
        ];
        Ok::<_, Failure>(told(&outcomes, args.dry_run))
    })
}

/// One configuration that stays does not keep the other from being removed and told.
fn told(outcomes: &[(&str, Result<uninstall::Outcome, uninstall::Error>)], dry_run: bool) -> Told {
    let mut told = Told { result: String::new(), aside: String::new(), outcome: Outcome::Fine };
    for (name, outcome) in outcomes {
        let words = match outcome {
            Ok(uninstall::Outcome::Absent) => "it is not there, nothing to do",
            Ok(uninstall::Outcome::Removed) if dry_run => "would be removed (dry run)",
            Ok(uninstall::Outcome::Removed) => "removed",
            Err(error) => {
                // Writing to a String cannot fail.
                let _ = writeln!(told.aside, "outrider: {error}");
                told.outcome = Outcome::BadInput;
                continue;
            }
        };
        let _ = writeln!(told.result, "{name}: {words}");
    }
    told
}
