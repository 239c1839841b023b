//! `outrider manifests`: what a cluster needs to know of us, from this very build.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::cases::schema;
use crate::cli::fail_open::FailOpenArgs;
use crate::cli::kinds::KindArgs;
use crate::cli::namespace::namespace;
use crate::cli::streams::{CommandOutcome, Streams, with_process_streams};
use crate::kinds::Kinds;
use crate::manifests::chart;
use crate::manifests::guard::Guard;
use crate::manifests::rbac::Rbac;
use crate::manifests::schemas;
use crate::manifests::user_roles::user_roles;
use crate::manifests::webhooks::{
    PodFailurePolicy, Settings, WebhookEntry, WebhookTarget, mutating, on_demand, validating,
};
use crate::names::APP;
use crate::registry::registry;
use engine::snapshot::Exclusion;
use engine::yaml;

/// Arguments of `outrider manifests`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManifestsArgs {
    /// What to print; everything but the parts of the chart when left out
    #[arg(value_enum)]
    pub what: Option<ManifestGroup>,
    /// Namespace that Outrider runs in
    #[arg(long, env = "POD_NAMESPACE", hide_env_values = true, default_value = "outrider-system", value_parser = namespace)]
    pub namespace: String,
    /// Namespaces whose pods are never changed, comma-separated; kube-system, kube-public, kube-node-lease and its own
    /// are always included
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub excluded_namespaces: Vec<String>,
    /// Write files below this directory, as kubebuilder lays them out, in place of printing
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// The kinds
    #[command(flatten)]
    pub kinds: KindArgs,
    /// Scaled to zero
    #[command(flatten, next_help_heading = "Webhooks")]
    pub fail_open: FailOpenArgs,
}

/// A group of manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManifestGroup {
    /// Custom resource definitions
    Crds,
    /// Service account, its roles and their bindings; roles for users
    Rbac,
    /// Policies that limit what the service account may change, for Kubernetes 1.30 and newer
    Policies,
    /// Webhook configurations, without caBundle
    Webhooks,
    /// JSON schemas of every kind and version, and of test files, for editors
    Schemas,
    /// What the templates of the Helm chart read, of all kinds and for any namespace
    Chart,
}

const EXAMPLES: &str = "\
Examples:
  outrider manifests crds | kubectl apply --server-side -f -
  outrider manifests rbac --namespace outrider-system
  outrider manifests policies | kubectl apply --server-side -f -
  outrider manifests crds --enable-kinds welcome
  outrider manifests schemas --output-dir .
  outrider manifests --enable-kinds '*' --output-dir config
  outrider manifests chart --output-dir charts/outrider";

/// Prints or writes the manifests.
pub fn execute(args: &ManifestsArgs) -> ExitCode {
    with_process_streams(|streams| run(args, streams))
}

/// Runs the command on the streams given.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &ManifestsArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let files = match files(args) {
        Ok(files) => files,
        Err(error) => {
            writeln!(streams.stderr, "error: cannot write a manifest as JSON: {error}")?;
            return Ok(CommandOutcome::BadInput);
        }
    };
    let Some(dir) = &args.output_dir else {
        if args.what == Some(ManifestGroup::Schemas) {
            let schemas: serde_json::Map<String, Value> =
                files.into_iter().map(|(file, all)| (file, all.into_iter().next().unwrap_or_default())).collect();
            writeln!(streams.stdout, "{:#}", Value::from(schemas))?;
            return Ok(CommandOutcome::Fine);
        }
        let objects: Vec<Value> = files.into_iter().flat_map(|(_, objects)| objects).collect();
        streams.stdout.write_all(yaml::write_documents(&objects).as_bytes())?;
        return Ok(CommandOutcome::Fine);
    };
    let kustomization = kustomization(&files).map(|object| ("crd/kustomization.yaml".to_owned(), vec![object]));
    for (file, objects) in files.iter().chain(&kustomization) {
        let path = dir.join(file);
        if let Err(error) = write(&path, objects) {
            writeln!(streams.stderr, "error: cannot write {}: {error}", path.display())?;
            return Ok(CommandOutcome::BadInput);
        }
        writeln!(streams.stderr, "wrote {}", path.display())?;
    }
    Ok(CommandOutcome::Fine)
}

fn write(path: &Path, objects: &[Value]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let text = match (objects, path.extension()) {
        ([object], Some(extension)) if extension == "json" => format!("{object:#}\n"),
        _ => yaml::write_documents(objects),
    };
    fs::write(path, text)
}

/// Lists the definitions; cert-manager is to write the caBundle of those that are converted.
fn kustomization(files: &[(String, Vec<Value>)]) -> Option<Value> {
    let bases = || files.iter().filter_map(|(file, objects)| Some((file.strip_prefix("crd/")?, objects)));
    let converted = bases().flat_map(|(_, objects)| objects).filter(|crd| crd.pointer("/spec/conversion").is_some());
    let patch = |crd: &Value| {
        let target = json!({"kind": crd["kind"], "name": crd["metadata"]["name"]});
        json!({"path": "patches/ca_injection.yaml", "target": target})
    };
    let patches: Vec<Value> = converted.map(patch).collect();
    let resources: Vec<&str> = bases().map(|(file, _)| file).collect();
    (!resources.is_empty()).then(|| {
        json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "resources": resources, "patches": patches,
        })
    })
}

/// The manifests by the file that they belong in.
fn files(args: &ManifestsArgs) -> Result<Vec<(String, Vec<Value>)>, serde_json::Error> {
    if args.what == Some(ManifestGroup::Chart) {
        return Ok(chart::files().into_iter().map(|(file, part)| (file, vec![part])).collect());
    }
    let wanted = |what| args.what.is_none_or(|only| only == what);
    let kinds = &args.kinds.enable_kinds;
    let exclusion = Exclusion::new(&args.namespace, args.excluded_namespaces.iter().cloned());
    let settings = Settings {
        target: WebhookTarget::Service { namespace: args.namespace.clone() },
        ca_bundle: None,
        exclusion: &exclusion,
        pod_failure_policy: PodFailurePolicy::Fail,
    };
    let mut files = Vec::new();
    if wanted(ManifestGroup::Crds) {
        let converter = settings.converter();
        for crd in kinds.iter().map(|kind| (kind.crd)(&converter)) {
            let file = format!("crd/bases/{}_{}.yaml", crd.spec.group, crd.spec.names.plural);
            files.push((file, vec![object(&crd)?]));
        }
    }
    // Where everything is printed, schemas would be in the way: they are no objects of a cluster.
    if args.what == Some(ManifestGroup::Schemas) || (args.what.is_none() && args.output_dir.is_some()) {
        let converter = settings.converter();
        // An editor may have a file of any kind open.
        for crd in Kinds::all().iter().map(|kind| (kind.crd)(&converter)) {
            files.extend(schemas::of(&crd)?.into_iter().map(|(file, schema)| (file, vec![schema])));
        }
        let (file, schema) = schema::file();
        files.push((file, vec![schema]));
    }
    if wanted(ManifestGroup::Rbac) {
        let rbac = Rbac::of(&args.namespace, kinds, args.fail_open.deployment().as_deref());
        files.push(("rbac/service_account.yaml".to_owned(), vec![object(&rbac.account)?]));
        files.push(("rbac/role.yaml".to_owned(), vec![object(&rbac.cluster_role)?, object(&rbac.role)?]));
        let bindings = vec![object(&rbac.cluster_role_binding)?, object(&rbac.role_binding)?];
        files.push(("rbac/role_binding.yaml".to_owned(), bindings));
        let user_roles = user_roles(kinds).iter().map(object).collect::<Result<_, _>>()?;
        files.push(("rbac/user_roles.yaml".to_owned(), user_roles));
    }
    if wanted(ManifestGroup::Policies) {
        let mut policies = Vec::new();
        for guard in Guard::all(APP, &args.namespace, APP, &args.excluded_namespaces) {
            policies.extend([object(&guard.policy())?, object(&guard.binding())?]);
        }
        files.push(("guard/policies.yaml".to_owned(), policies));
    }
    if wanted(ManifestGroup::Webhooks) {
        let entries = WebhookEntry::all(&registry(kinds));
        let (mutating_on_demand, validating_on_demand) = on_demand();
        let webhooks = vec![
            object(&mutating(&entries, &settings))?,
            object(&validating(&entries, &settings))?,
            object(&mutating_on_demand)?,
            object(&validating_on_demand)?,
        ];
        files.push(("webhook/manifests.yaml".to_owned(), webhooks));
    }
    Ok(files)
}

/// An object as JSON; types of k8s-openapi write their apiVersion and kind themselves.
fn object(object: &impl Serialize) -> Result<Value, serde_json::Error> {
    serde_json::to_value(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{Kinds, workshop};

    fn printed(what: Option<ManifestGroup>) -> Vec<Value> {
        printed_with(what, &Kinds::default())
    }

    fn printed_with(what: Option<ManifestGroup>, kinds: &Kinds) -> Vec<Value> {
        let args = ManifestsArgs {
            what,
            namespace: "outrider-system".to_owned(),
            excluded_namespaces: vec!["cert-manager".to_owned()],
            kinds: KindArgs { enable_kinds: kinds.clone() },
            fail_open: FailOpenArgs { fail_open_when_scaled_to_zero: false, deployment_name: "outrider".to_owned() },
            output_dir: None,
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut streams = Streams { stdin: &mut io::empty(), stdout: &mut stdout, stderr: &mut stderr };
        assert_eq!(run(&args, &mut streams).unwrap(), CommandOutcome::Fine);
        assert!(stderr.is_empty());
        yaml::read(std::str::from_utf8(&stdout).unwrap()).unwrap().into_iter().map(|document| document.value).collect()
    }

    fn kinds(objects: &[Value]) -> Vec<&str> {
        objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
    }

    #[test]
    fn each_group_is_complete_and_every_object_says_what_it_is() {
        let of_the_process = ["ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding"];
        let rbac = [&of_the_process[..], &["ClusterRole"; 8]].concat();
        let webhooks = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"].repeat(2);
        assert_eq!(kinds(&printed(Some(ManifestGroup::Crds))), ["CustomResourceDefinition"; 4]);
        assert_eq!(kinds(&printed(Some(ManifestGroup::Rbac))), rbac);
        let policies = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"].repeat(3);
        assert_eq!(kinds(&printed(Some(ManifestGroup::Policies))), policies);
        assert_eq!(kinds(&printed(Some(ManifestGroup::Webhooks))), webhooks);
        let all = printed(None);
        assert_eq!(all.len(), 27);
        assert!(all.iter().all(|object| object["apiVersion"].is_string() && object["metadata"]["name"].is_string()));
    }

    #[test]
    fn every_path_of_the_registry_is_registered_and_no_file_holds_a_ca_bundle() {
        for kinds in [Kinds::default(), Kinds::all()] {
            let webhooks = printed_with(Some(ManifestGroup::Webhooks), &kinds);
            let text = serde_json::to_string(&webhooks).unwrap();
            for entry in registry(&kinds).entries().iter().filter(|entry| !entry.rule.on_demand) {
                assert!(text.contains(&format!("\"path\":\"{}\"", entry.path)), "{}", entry.path);
            }
            assert!(!text.contains("caBundle"));
            assert!(text.contains("cert-manager"));
        }
    }

    #[test]
    fn a_kind_that_is_off_leaves_nothing_and_one_that_is_on_is_everywhere() {
        for kind in workshop() {
            let crd = kind.definition();
            let (group, plural) = (crd.spec.group, crd.spec.names.plural);
            let mentioned = |kinds: &Kinds| -> Vec<String> {
                let objects = printed_with(None, kinds).into_iter().filter(|object| {
                    let text = object.to_string();
                    text.contains(&format!("\"{group}\"")) && text.contains(&format!("\"{plural}\""))
                });
                objects.map(|object| object["kind"].as_str().unwrap().to_owned()).collect()
            };
            assert!(mentioned(&Kinds::default()).is_empty(), "{}", kind.name);
            let on = mentioned(&kind.name.parse().unwrap());
            for object in ["CustomResourceDefinition", "ValidatingWebhookConfiguration"] {
                assert!(on.iter().any(|found| found == object), "{}: {object}", kind.name);
            }
            // Those of users; what no controller acts on needs no rights for us.
            let roles = 2 + usize::from(kind.controller.is_some());
            assert_eq!(on.iter().filter(|found| *found == "ClusterRole").count(), roles, "{}", kind.name);
        }
    }
}
