//! What the commands without a cluster share: the manifests that decide.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use admission::Registry;
use clap::Args;

use super::cluster::{ClusterArgs, deciding};
use super::findings::{Diagnostic, Level};
use super::report::CommandReport;
use super::streams::CommandOutcome;
use crate::kinds::Kinds;
use crate::registry::registry;
use crate::standalone::{self, Validate};
use engine::offline::admit::Questions;
use engine::snapshot::Exclusion;
use engine::snapshot::Snapshot;

/// What decides instead of a cluster.
#[derive(Debug, Clone, Args)]
pub struct OfflineModelArgs {
    /// File or folder with sets and namespaces (.yaml, .yml, .json), - for stdin; may be repeated
    #[arg(long, value_name = "PATH", required_unless_present = "from_cluster")]
    pub manifests: Vec<PathBuf>,
    /// Use the sets and namespaces of a live cluster, in addition to those of --manifests
    #[arg(long)]
    pub from_cluster: bool,
    /// Namespaces that are never changed, comma-separated; kube-system, kube-public, kube-node-lease and
    /// outrider-system are always included
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// How to handle unknown fields, as in kubectl's flag of the same name [default: strict for sets and namespaces,
    /// warn for pods and what makes them]
    #[arg(long, value_enum, value_name = "HOW")]
    pub validate: Option<Validate>,
    /// Answer yes to what decisions would request from the cluster: whether a user may do something, whether an image may run.
    /// Without it the outcome of such a decision is unknown, exit code 2
    #[arg(long)]
    pub allow_all_questions: bool,
    /// Version of Kubernetes that the pods are meant for, such as 1.34 [default: the newest]
    #[arg(long, value_name = "VERSION", value_parser = minor_version)]
    pub kube_version: Option<u32>,
    /// Treat warnings as errors: exit code 1 in place of 0
    #[arg(long)]
    pub warnings_as_errors: bool,
    /// The live cluster
    #[command(flatten, next_help_heading = "Live cluster, with --from-cluster")]
    pub cluster: ClusterArgs,
    /// The one namespace that is read where namespaces may not be listed.
    #[arg(skip)]
    pub namespace: Option<String>,
}

/// The minor version of `1.34`, `v1.34.2` or `1.34.2+k3s1`.
pub(super) fn minor_version(text: &str) -> Result<u32, String> {
    let version = text.strip_prefix('v').unwrap_or(text);
    let minor = version.strip_prefix("1.").and_then(|rest| {
        let (minor, patch) = rest.split_once('.').unwrap_or((rest, "0"));
        let is_patch = patch.starts_with(|first: char| first.is_ascii_digit());
        minor.parse().ok().filter(|_| is_patch)
    });
    minor.ok_or_else(|| "write a version of Kubernetes such as 1.34 or v1.34.2".to_owned())
}

impl OfflineModelArgs {
    /// What is done about unknown fields of what decides.
    pub fn of_sets(&self) -> Validate {
        self.validate.unwrap_or_default()
    }

    /// How unknown fields of workloads are treated: they are refused only if that is asked for.
    pub fn of_workloads(&self) -> Validate {
        self.validate.unwrap_or(Validate::Warn)
    }

    /// How a command ends that ended so, but for warnings.
    ///
    /// # Errors
    /// When `stderr` cannot be written.
    pub fn warned(&self, outcome: CommandOutcome, stderr: &mut dyn Write) -> io::Result<CommandOutcome> {
        if !self.warnings_as_errors || outcome != CommandOutcome::Fine {
            return Ok(outcome);
        }
        writeln!(stderr, "error: there were warnings, and --warnings-as-errors")?;
        Ok(CommandOutcome::Refused)
    }
}

/// The endpoints, and what they decide from.
pub struct OfflineModel {
    /// The endpoints of the server.
    pub registry: Registry<Snapshot>,
    /// What the manifests say.
    pub snapshot: Snapshot,
    /// Says so where they hold no set.
    pub no_set: Option<String>,
    /// What is answered to questions of decisions.
    pub questions: Questions,
}

impl OfflineModel {
    /// Takes in a namespace with its labels and annotations, in place of one that is known by that name.
    pub fn learn(&mut self, name: String, labels: BTreeMap<String, String>, annotations: BTreeMap<String, String>) {
        Arc::make_mut(&mut self.snapshot.namespaces).insert_annotated(name, labels, annotations);
    }
}

/// The namespace of Outrider in a cluster, where nothing else is said.
pub const OWN_NAMESPACE: &str = "outrider-system";

impl OfflineModel {
    /// Loads the manifests and adds what is wrong or noteworthy to the report; `None` when they cannot be used.
    pub fn load(args: &OfflineModelArgs, report: &mut CommandReport<'_>, stdin: &mut dyn Read) -> Option<Self> {
        // A review names its kind: nothing needs to be on.
        let registry = registry(&Kinds::all());
        let exclusion = Arc::new(Exclusion::new(OWN_NAMESPACE, args.excluded_namespaces.iter().cloned()));
        let mut live = Vec::new();
        if let Some(flag) = args.cluster.given().filter(|_| !args.from_cluster) {
            report.add(Diagnostic::bare(
                Level::Error,
                format!("{flag} needs --from-cluster: without it no cluster is read"),
            ));
            return None;
        }
        if args.from_cluster {
            match deciding(&args.cluster, args.namespace.as_deref()) {
                Ok(found) => live = found,
                Err(error) => {
                    report.add(Diagnostic::bare(Level::Error, error));
                    return None;
                }
            }
        }
        let validate = args.of_sets();
        let loaded = report.reading(stdin, |stdin| {
            standalone::load_or_stdin(&args.manifests, stdin, live, &exclusion, &registry, validate, args.kube_version)
        });
        match loaded {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    report.read(Level::Warning, warning);
                }
                let questions = if args.allow_all_questions { Questions::Allowed } else { Questions::Open };
                Some(Self { registry, snapshot: loaded.snapshot, no_set: loaded.no_set, questions })
            }
            Err(unusable) => {
                report.unusable(&unusable);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::minor_version;

    #[test]
    fn versions_are_read_as_people_and_kubernetes_write_them() {
        for (text, expected) in [
            ("1.34", Some(34)),
            ("v1.28", Some(28)),
            ("1.34.2", Some(34)),
            ("v1.30.4+k3s1", Some(30)),
            ("1.33.1-gke.100", Some(33)),
            ("34", None),
            ("2.0", None),
            ("1.", None),
            ("1.x", None),
            ("1.30.", None),
            ("", None),
        ] {
            assert_eq!(minor_version(text).ok(), expected, "{text}");
        }
    }
}
