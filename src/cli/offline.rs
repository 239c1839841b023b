//! What the commands without a cluster share: the manifests that decide.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use admission::Registry;
use clap::Args;

use crate::registry::registry;
use crate::workshop::Kinds;
use crate::world::Snapshot;
use crate::world::snapshot::Exclusion;
use crate::world::standalone;

/// What decides instead of a cluster.
#[derive(Debug, Clone, Args)]
pub struct WorldArgs {
    /// File or folder with the sets and namespaces that decide (.yaml, .yml, .json); may be repeated
    #[arg(long, value_name = "PATH", required = true)]
    pub manifests: Vec<PathBuf>,
    /// Namespaces that are never touched, as a comma list; kube-system, kube-public, kube-node-lease and outrider-system are
    /// always among them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
}

/// The endpoints, and what they decide from.
pub struct World {
    /// The endpoints of the server.
    pub registry: Registry<Snapshot>,
    /// What the manifests say.
    pub snapshot: Snapshot,
}

/// The namespace of Outrider in a cluster, where nothing else is said.
const OWN_NAMESPACE: &str = "outrider-system";

impl World {
    /// Loads the manifests and tells on `stderr` what is wrong or noteworthy; `None` when they cannot be used.
    ///
    /// # Errors
    /// When `stderr` cannot be written.
    pub fn load(args: &WorldArgs, stderr: &mut dyn Write) -> io::Result<Option<Self>> {
        // Whoever has a review at hand names its kind: nothing needs to be on.
        let registry = registry(&Kinds::all());
        let exclusion = Arc::new(Exclusion::new(OWN_NAMESPACE, args.excluded_namespaces.iter().cloned()));
        match standalone::load(&args.manifests, &exclusion, &registry) {
            Ok(loaded) => {
                for warning in &loaded.warnings {
                    writeln!(stderr, "warning: {warning}")?;
                }
                Ok(Some(Self { registry, snapshot: loaded.snapshot }))
            }
            Err(errors) => {
                for error in &errors {
                    writeln!(stderr, "error: {error}")?;
                }
                Ok(None)
            }
        }
    }
}
