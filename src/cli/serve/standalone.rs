//! Without a cluster: the snapshot comes from manifests, and follows them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use serde_json::{Value, json};

use super::{CertificateSource, Process, ServeArgs, ServeError, run_and_report};
use crate::cli::findings::Level;
use crate::cli::report::located;
use crate::doctor::report::counted;
use crate::metrics::Freshness;
use crate::readiness::Gate;
use crate::registry::registry;
use crate::server::questions::AllowAll;
use crate::standalone::{Loaded, Standalone, Unusable};
use engine::snapshot::Exclusion;
use engine::snapshot::Snapshot;

/// How often the files are checked. Their names, times and sizes are read, not their content.
const POLL: Duration = Duration::from_secs(1);

/// Serves from the manifests, and logs how to send a request.
pub async fn serve(args: &ServeArgs, mut process: Process) -> Result<(), ServeError> {
    if args.standalone.allow_all_questions {
        process.asker = Some(Arc::new(AllowAll));
    }
    let snapshot = Arc::default();
    let registry = || registry(&args.kinds.enable_kinds);
    let exclusion = Exclusion::new(&args.namespace, args.excluded_namespaces.iter().cloned());
    let paths = args.standalone.manifests.clone();
    follow_manifests(Standalone::new(paths, exclusion, registry(), args.validate), &snapshot, &process)?;
    let review = sample_review(&snapshot.load());
    run_and_report(args, process, registry(), snapshot, |addresses| {
        if let Some(address) = addresses.webhook {
            tracing::info!("Try it: {}", curl(args, address.port(), &review));
        }
    })
    .await
}

/// A line for the shell that posts `review`.
fn curl(args: &ServeArgs, port: u16, review: &Value) -> String {
    let trust = match args.certificate_source() {
        CertificateSource::Own => format!("--cacert {}", args.ca_file().display()),
        CertificateSource::Files => format!("--cacert {}/ca.crt", args.certificates.cert_dir.display()),
    };
    // Nothing in the review has a quote of the shell in it: names and values of labels cannot.
    format!("curl -s {trust} -H 'Content-Type: application/json' -d '{review}' https://localhost:{port}/mutate--v1-pod")
}

/// A new pod that the first set selects, as far as its selector is a list of labels.
fn sample_review(snapshot: &Snapshot) -> Value {
    let spec = snapshot.sets.iter().next().map(|set| set.spec()).unwrap_or_default();
    let labels = spec.selector.map(|selector| selector.match_labels);
    let namespace = spec.namespace.unwrap_or_else(|| "default".to_owned());
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": "CREATE",
            "namespace": namespace,
            "object": {
                "metadata": {"name": "web", "labels": labels.unwrap_or_default()},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    })
}

/// Reads the manifests into `snapshot`, opens the gate `manifests`, and goes on to read them whenever they change. Must be called
/// within a runtime.
///
/// A state of the files that cannot be used is logged and shown under the gate; the last good one stays.
///
/// # Errors
/// [`ServeError::Manifests`] when there is no good state to begin with.
pub fn follow_manifests(
    mut manifests: Standalone,
    snapshot: &Arc<ArcSwap<Snapshot>>,
    process: &Process,
) -> Result<(), ServeError> {
    let gate = process.readiness.gate("manifests");
    let follower = ManifestFollower { snapshot: Arc::clone(snapshot), freshness: process.freshness.clone(), gate };
    if let Some(read) = manifests.reload() {
        follower.use_state(read.map_err(ServeError::Manifests)?);
    }
    tokio::spawn(follower.follow(manifests));
    Ok(())
}

struct ManifestFollower {
    snapshot: Arc<ArcSwap<Snapshot>>,
    freshness: Freshness,
    gate: Gate,
}

impl ManifestFollower {
    fn use_state(&self, Loaded { snapshot, warnings, no_set }: Loaded) {
        for finding in located(&Unusable { errors: Vec::new(), warnings }) {
            tracing::warn!("{}", finding.without_severity());
        }
        if let Some(no_set) = no_set {
            tracing::warn!("{no_set}");
        }
        tracing::info!(generation = snapshot.generation, sidecar_sets = snapshot.sets.len(), "Manifests read");
        self.freshness.replaced(snapshot.generation);
        self.snapshot.store(Arc::new(snapshot));
        self.gate.open();
    }

    fn keep_last(&self, unusable: &Unusable) {
        let mut errors = 0;
        for finding in located(unusable) {
            if finding.severity == Level::Warning {
                tracing::warn!("{}", finding.without_severity());
            } else {
                errors += 1;
                tracing::error!("{}", finding.without_severity());
            }
        }
        tracing::error!(errors, "Manifests not usable; the last good state stays");
        let errors = counted(errors, "error");
        self.gate.note(format!("the newest files are not usable, {errors}; the last good state stays"));
    }

    async fn follow(self, mut manifests: Standalone) {
        loop {
            tokio::time::sleep(POLL).await;
            let looked = tokio::task::spawn_blocking(move || {
                let read = manifests.reload();
                (manifests, read)
            });
            let Ok((back, read)) = looked.await else {
                // Only a panic ends the task, and the hook has logged it.
                return self.gate.note("changes of the manifests are no longer read, see the log");
            };
            manifests = back;
            match read {
                Some(Ok(loaded)) => self.use_state(loaded),
                Some(Err(unusable)) => self.keep_last(&unusable),
                None => {}
            }
        }
    }
}
