//! Whether the Job whose pod runs `outrider uninstall` was made by a tool that runs Helm's hooks. A chart that is rendered and applied
//! brings the hook of its uninstall along as an ordinary Job, which runs at once.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::Job;
use kube::api::ObjectMeta;
use kube::{Api, Client};

use crate::answers::to_user;

/// Field managers of tools that make a pre-delete hook's Job only when a release goes. Helm and what is built of it name themselves
/// with the name of their program (`GetFieldManager` in `helm.sh/helm/v3/pkg/kube`): `helm`, `helm-controller`,
/// `terraform-provider-helm_v3.0.2_x5`, Rancher's `fleetagent`. Argo CD writes as `argocd-controller` and runs such hooks when an
/// application is deleted, or not at all.
const RUN_HOOKS: [&str; 3] = ["helm", "argocd", "fleetagent"];

/// A Job by its namespace and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookJob {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Who made the Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Maker {
    /// A tool that runs Helm's hooks: a release is being uninstalled.
    RunsHooks,
    /// Other field managers, by their names in managedFields.
    Others(Vec<String>),
}

/// Why it is unknown which client made the Job.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, has no such Job, or could not be reached.
    #[error("who made the Job {} in the namespace {} cannot be read: {}", job.name, job.namespace, to_user(source, "uninstall --hook-job needs get"))]
    Api {
        /// Which Job.
        job: HookJob,
        /// What happened.
        source: Box<kube::Error>,
    },
}

/// Reads `NAMESPACE/NAME`.
///
/// # Errors
/// In words, when it is something else.
pub fn parse(text: &str) -> Result<HookJob, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(HookJob { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("expected NAMESPACE/NAME of a Job".to_owned()),
    }
}

impl HookJob {
    /// Who made it.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn maker(&self, client: &Client) -> Result<Maker, Error> {
        let jobs = Api::<Job>::namespaced(client.clone(), &self.namespace);
        let job = jobs.get_metadata(&self.name).await;
        let failed = |source| Error::Api { job: self.clone(), source: Box::new(source) };
        Ok(made(&job.map_err(failed)?.metadata))
    }
}

fn made(job: &ObjectMeta) -> Maker {
    // Its status is the Job controller's.
    let writers = job.managed_fields.iter().flatten().filter(|entry| entry.subresource.is_none());
    let names: BTreeSet<String> = writers.filter_map(|entry| entry.manager.clone()).collect();
    if names.iter().any(|name| RUN_HOOKS.iter().any(|tool| name.to_ascii_lowercase().contains(tool))) {
        return Maker::RunsHooks;
    }
    Maker::Others(names.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn by(managers: &[(&str, Option<&str>)]) -> Maker {
        let entries: Vec<_> = managers
            .iter()
            .map(
                |(manager, subresource)| json!({"manager": manager, "operation": "Update", "subresource": subresource}),
            )
            .collect();
        made(&serde_json::from_value(json!({"managedFields": entries})).unwrap())
    }

    #[test]
    fn only_who_runs_hooks_uninstalls() {
        for tool in
            ["helm", "Helm", "helm-controller", "terraform-provider-helm_v3.0.2_x5", "argocd-controller", "fleetagent"]
        {
            assert_eq!(by(&[(tool, None), ("kube-controller-manager", Some("status"))]), Maker::RunsHooks, "{tool}");
        }
        for tool in ["kubectl", "kubectl-client-side-apply", "kubectl-create", "unknown", "pulumi-kubernetes"] {
            let found = by(&[(tool, None), ("helm", Some("status"))]);
            assert_eq!(found, Maker::Others(vec![tool.to_owned()]), "{tool}");
        }
        assert_eq!(made(&ObjectMeta::default()), Maker::Others(Vec::new()));
    }

    #[test]
    fn a_job_is_named_with_its_namespace() {
        assert_eq!(parse("a/b"), Ok(HookJob { namespace: "a".to_owned(), name: "b".to_owned() }));
        for wrong in ["", "a", "/b", "a/", "a/b/c"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
