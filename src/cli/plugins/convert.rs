//! `outrider plugins convert`: the configuration of an API server as `AdmissionPlugin` objects, and its PodSecurityPolicies as
//! `PodSecurityProfile`s. What cannot be carried over is an error.

mod image_policy;
mod security_policy;
mod spec;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use clap::Args;
use engine::plugins::Plugin;
use engine::plugins::api::{API_VERSION, KIND};
use engine::plugins::catalog::{Service, find};
use engine::plugins::validation::compile;
use engine::yaml;
use serde_json::{Value, json};

use self::spec::{converted, only};
use super::super::streams::{CommandOutcome, Streams};

/// Arguments of `outrider plugins convert`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertArgs {
    /// File with an AdmissionConfiguration (apiserver.config.k8s.io), as --admission-control-config-file takes it, or with
    /// PodSecurityPolicies (policy/v1beta1); - for stdin
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Plugins that the API server enables in addition to its defaults, as in its flag of the same name
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub enable_admission_plugins: Vec<String>,
}

const EXAMPLES: &str = "\
Examples:
  outrider plugins convert admission.yaml | kubectl apply -f -
  outrider plugins convert policies.yaml > profiles.yaml

Exit codes: 0 everything was converted; 1 something cannot be carried over, and nothing was printed; 2 the file cannot be read.";

/// Runs the command.
///
/// # Errors
/// When a stream cannot be written.
pub fn run(args: &ConvertArgs, streams: &mut Streams<'_>) -> io::Result<CommandOutcome> {
    let text = match read(&args.file, streams.stdin) {
        Ok(text) => text,
        Err(error) => {
            writeln!(streams.stderr, "error: {error}")?;
            return Ok(CommandOutcome::BadInput);
        }
    };
    let documents = yaml::read(&text).unwrap_or_default().into_iter().map(|document| document.value).collect();
    if let Some(policies) = security_policy::policies(documents) {
        return security_policy::run(&policies, streams);
    }
    let configured = match plugins(&text, &args.file) {
        Ok(configured) => configured,
        Err(error) => {
            writeln!(streams.stderr, "error: {error}")?;
            return Ok(CommandOutcome::BadInput);
        }
    };
    let (mut objects, mut errors) = (BTreeMap::new(), Vec::new());
    let enabled: BTreeSet<&str> =
        args.enable_admission_plugins.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    for (name, configuration) in &configured {
        if let Some(note) = note(name, &enabled) {
            writeln!(streams.stderr, "note: {note}")?;
        }
        add(name, configuration, &mut objects, &mut errors);
        // Nothing is dropped, and nothing is switched on.
        if !enabled.is_empty()
            && !enabled.contains(name.as_str())
            && !is_default(name)
            && let Some(object) = objects.get_mut(name)
        {
            object["spec"]["mode"] = "Off".into();
        }
    }
    for name in enabled.iter().filter(|name| !configured.contains_key(**name)) {
        if let Some(note) = add_unconfigured(name, &mut objects, &mut errors) {
            writeln!(streams.stderr, "note: {note}")?;
        }
    }
    let images = Plugin::ImagePolicyWebhook.name();
    if configured.contains_key(images) || enabled.contains(images) {
        match image_policy::secret(configured.get(images).unwrap_or(&Value::Null), &args.file) {
            Ok(secret) => {
                writeln!(streams.stderr, "note: {}", image_policy::NOTE)?;
                objects.insert(format!("{images}/Secret"), secret);
            }
            Err(error) => errors.push(format!("{images}: {error}")),
        }
    }
    for error in &errors {
        writeln!(streams.stderr, "error: {error}")?;
    }
    if !errors.is_empty() {
        return Ok(CommandOutcome::Refused);
    }
    for (index, object) in objects.values().enumerate() {
        let separator = if index > 0 { "---\n" } else { "" };
        write!(streams.stdout, "{separator}{}", yaml::write(object))?;
    }
    Ok(CommandOutcome::Fine)
}

/// Whether the plugin is on unless a flag says otherwise. One that Kubernetes does not have is an error of its own.
fn is_default(name: &str) -> bool {
    find(name).is_none_or(|entry| entry.is_default)
}

/// What a configuration does not say, or what its object does not do.
fn note(name: &str, enabled: &BTreeSet<&str>) -> Option<String> {
    if name == Plugin::PodSecurity.name() {
        return Some(
            "PodSecurity: only namespaces that are created from now on get the labels; label those that there are, which lose the \
             defaults of the configuration"
                .to_owned(),
        );
    }
    if is_default(name) || enabled.contains(name) {
        return None;
    }
    Some(if enabled.is_empty() {
        format!(
            "{name}: an API server runs it only if --enable-admission-plugins names it; give that list to have what is off converted with mode: Off"
        )
    } else {
        format!(
            "{name}: it gets mode: Off, because --enable-admission-plugins does not name it: that API server does not run it"
        )
    })
}

/// Makes the object of a plugin that is enabled and has no configuration. Returns why there is none to make where that is no error.
fn add_unconfigured(name: &str, objects: &mut BTreeMap<String, Value>, errors: &mut Vec<String>) -> Option<String> {
    let on_everywhere = [
        Plugin::NamespaceLifecycle,
        Plugin::PodSecurity,
        Plugin::DefaultTolerationSeconds,
        Plugin::ResourceQuota,
        Plugin::DefaultStorageClass,
        Plugin::PodTopologyLabels,
        Plugin::Priority,
        Plugin::RuntimeClass,
        Plugin::StorageObjectInUseProtection,
        Plugin::PersistentVolumeClaimResize,
        Plugin::TaintNodesByCondition,
        Plugin::ServiceAccount,
    ];
    match (Plugin::named(name), find(name)) {
        (Some(plugin), _) if on_everywhere.contains(&plugin) => {
            return Some(format!("{plugin} is on in every cluster; without a configuration there is nothing to do"));
        }
        (Some(Plugin::NodeRestriction), _) => {
            return Some(format!(
                "{name}: no object is made: a webhook can do less of it than an API server that runs it, and restricts nothing while it does \
                 not answer; `outrider plugins {name}` says more"
            ));
        }
        (Some(_), _) => add(name, &Value::Null, objects, errors),
        (None, Some(entry)) if entry.service == Service::OnEverywhere || entry.is_default => {
            return Some(format!("{name} is on in every cluster"));
        }
        (None, Some(entry)) => errors.push(format!("{name}: Outrider does not serve it: {}", entry.how())),
        (None, None) => errors.push(format!("{name}: Kubernetes has no such admission plugin")),
    }
    None
}

/// Makes the object, and checks it as an API server would.
fn add(name: &str, configuration: &Value, objects: &mut BTreeMap<String, Value>, errors: &mut Vec<String>) {
    let made = converted(name, configuration).and_then(|spec| {
        let object = json!({
            "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name.to_lowercase()}, "spec": spec,
        });
        compile(&object).map(|_| object).map_err(|faults| faults.to_string())
    });
    match made {
        Ok(object) => drop(objects.insert(name.to_owned(), object)),
        Err(error) => errors.push(format!("{name}: {error}")),
    }
}

fn read(file: &Path, stdin: &mut dyn io::Read) -> Result<String, String> {
    let mut text = String::new();
    let read = if file.as_os_str() == "-" {
        stdin.read_to_string(&mut text).map(drop)
    } else {
        fs::File::open(file).and_then(|mut opened| opened.read_to_string(&mut text)).map(drop)
    };
    read.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text)
}

fn one_document(text: &str, file: &Path) -> Result<Value, String> {
    let name = file.display();
    let documents =
        yaml::read(text).map_err(|error| format!("{name}:{}:{}: {}", error.line, error.column, error.detail()))?;
    let mut documents = documents.into_iter();
    match (documents.next(), documents.next()) {
        (Some(document), None) => Ok(document.value),
        _ => Err(format!("{name}: one document is expected")),
    }
}

/// The configuration of each plugin, by its name; `null` for one that has none.
fn plugins(text: &str, file: &Path) -> Result<BTreeMap<String, Value>, String> {
    let document = one_document(text, file)?;
    let is = |field: &str, expected: &str| {
        document.get(field).and_then(Value::as_str).is_some_and(|found| found.starts_with(expected))
    };
    if !is("kind", "AdmissionConfiguration") || !is("apiVersion", "apiserver.config.k8s.io/") {
        return Err(format!(
            "{}: expected an AdmissionConfiguration of apiserver.config.k8s.io, the file that the API server's flag --admission-control-config-file names, or PodSecurityPolicies",
            file.display()
        ));
    }
    let unknown = |fields: &Value, known: &[&str]| {
        fields
            .as_object()
            .and_then(|fields| only(fields, known).err())
            .map(|error| format!("{}: {error}", file.display()))
    };
    if let Some(error) = unknown(&document, &["apiVersion", "kind", "metadata", "plugins"]) {
        return Err(error);
    }
    if document.get("plugins").is_some_and(|listed| !listed.is_null() && !listed.is_array()) {
        return Err(format!("{}: plugins is no list", file.display()));
    }
    let mut found = BTreeMap::new();
    for plugin in document.get("plugins").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = plugin.get("name").and_then(Value::as_str) else {
            return Err(format!("{}: a plugin has no name", file.display()));
        };
        if let Some(error) = unknown(plugin, &["name", "path", "configuration"]) {
            return Err(error);
        }
        let inline = plugin.get("configuration").filter(|value| !value.is_null());
        let path = plugin.get("path").and_then(Value::as_str).filter(|path| !path.is_empty());
        let configuration = match (inline, path) {
            (Some(inline), _) => inline.clone(),
            (None, Some(path)) => {
                // As the API server does: beside the file that names it.
                let path = file.parent().unwrap_or_else(|| Path::new("")).join(path);
                one_document(&read(&path, &mut io::empty())?, &path)?
            }
            (None, None) => Value::Null,
        };
        if found.insert(name.to_owned(), configuration).is_some() {
            return Err(format!("{}: plugin {name} is defined twice", file.display()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(text: &str, enabled: &[&str]) -> (CommandOutcome, String, String) {
        let (mut stdout, mut stderr, mut stdin) = (Vec::new(), Vec::new(), text.as_bytes());
        let mut streams = Streams { stdin: &mut stdin, stdout: &mut stdout, stderr: &mut stderr };
        let enable_admission_plugins = enabled.iter().map(|&name| name.to_owned()).collect();
        let outcome = run(&ConvertArgs { file: "-".into(), enable_admission_plugins }, &mut streams).unwrap();
        (outcome, String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    fn configuration(plugins: &Value) -> String {
        json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins})
            .to_string()
    }

    #[test]
    fn configurations_and_enabled_plugins_become_objects() {
        let text = configuration(&json!([
            {"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "a=b", "ns": "a=b,c=d"}}},
            {"name": "EventRateLimit", "configuration": {"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1",
                "kind": "Configuration", "limits": [{"type": "Namespace", "qps": 50, "burst": 100, "cacheSize": 2000}]}},
            {"name": "ResourceQuota", "configuration": {"apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "ResourceQuotaConfiguration", "limitedResources": [{"apiGroup": "", "resource": "pods",
                "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}]}},
            {"name": "PodTolerationRestriction", "configuration": {"default": [{"key": "a", "operator": "Exists"}]}},
            {"name": "PodSecurity", "configuration": {"defaults": {"enforce": "baseline"},
                "exemptions": {"usernames": [], "namespaces": ["free"]}}},
        ]));
        let enabled = ["AlwaysPullImages", "LimitRanger", "PodNodeSelector", "NodeRestriction"];
        let (outcome, stdout, stderr) = ran(&text, &enabled);
        assert_eq!(outcome, CommandOutcome::Fine, "{stderr}");
        let objects: Vec<Value> = yaml::read(&stdout).unwrap().into_iter().map(|document| document.value).collect();
        let specs: Vec<&Value> = objects.iter().map(|object| &object["spec"]).collect();
        assert_eq!(
            json!(specs),
            json!([
                {"plugin": "AlwaysPullImages"},
                {"plugin": "EventRateLimit", "mode": "Off", "eventRateLimit": {"limits": [
                    {"type": "Namespace", "qps": 50, "burst": 100, "cacheSize": 2000}]}},
                {"plugin": "PodNodeSelector", "podNodeSelector": {"clusterDefaultNodeSelector": "a=b", "namespaceAllowLists": {"ns": "a=b,c=d"}}},
                {"plugin": "PodSecurity", "podSecurity": {"defaults": {"enforce": "baseline"}}, "match": {"excludeNamespaces": ["free"]}},
                {"plugin": "PodTolerationRestriction", "mode": "Off", "podTolerationRestriction": {
                    "default": [{"key": "a", "operator": "Exists"}], "whitelist": [], "alwaysAllowBuiltin": false}},
                {"plugin": "ResourceQuota", "resourceQuota": {"limitedResources": [{"apiGroup": "", "resource": "pods",
                    "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}]}},
            ])
        );
        assert!(stderr.contains("note: LimitRanger is on in every cluster"), "{stderr}");
        assert!(stderr.contains("note: NodeRestriction: no object is made"), "{stderr}");
    }

    #[test]
    fn a_plugin_that_the_api_server_does_not_run_is_not_switched_on() {
        let text = configuration(&json!([
            {"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "a=b"}}},
            {"name": "PodSecurity", "configuration": {"defaults": {"enforce": "baseline"}}},
        ]));
        let (outcome, stdout, stderr) = ran(&text, &["AlwaysPullImages"]);
        assert_eq!(outcome, CommandOutcome::Fine);
        assert!(stdout.contains("podsecurity") && stdout.matches("Off").count() == 1, "{stdout}");
        assert!(stderr.contains("note: PodNodeSelector: it gets mode: Off"), "{stderr}");
        assert!(stderr.contains("note: PodSecurity: only namespaces that are created from now on"), "{stderr}");
        let (_, stdout, stderr) = ran(&text, &[]);
        assert!(!stdout.contains("mode") && stderr.contains("runs it only if"), "{stderr}");
    }

    #[test]
    fn an_unknown_field_is_an_error_wherever_it_is() {
        let mut file: Value = serde_json::from_str(&configuration(&json!([]))).unwrap();
        file["plugin"] = json!([]);
        for text in [file.to_string(), configuration(&json!([{"name": "AlwaysPullImages", "config": {}}]))] {
            let (outcome, _, stderr) = ran(&text, &[]);
            assert!(outcome == CommandOutcome::BadInput && stderr.contains("cannot be carried over"), "{stderr}");
        }
    }

    #[test]
    fn tolerations_that_kubernetes_adds_are_not_allowed_where_the_original_does_not() {
        for (text, enabled) in [
            (configuration(&json!([])), &["PodTolerationRestriction"][..]),
            (configuration(&json!([{"name": "PodTolerationRestriction", "configuration": {}}])), &[]),
        ] {
            assert!(ran(&text, enabled).1.contains("alwaysAllowBuiltin: false"));
        }
    }

    #[test]
    fn what_cannot_be_carried_over_is_named_and_nothing_is_printed() {
        let runtime = json!({"defaults": {"enforce": "baseline"}, "exemptions": {"runtimeClasses": ["gvisor"]}});
        for (plugins, enabled, expected) in [
            (
                json!([{"name": "ImagePolicyWebhook", "configuration": {"imagePolicy": {"allowTTL": 1801}}}]),
                "ImagePolicyWebhook",
                "spec.imagePolicyWebhook.allowTTL: Invalid value: 1801: must be between 1 and 1800 seconds",
            ),
            (
                json!([{"name": "EventRateLimit", "configuration": {"limits": []}}]),
                "",
                "EventRateLimit: spec.eventRateLimit.limits: Required value",
            ),
            (
                json!([{"name": "PodSecurity", "configuration": runtime}]),
                "",
                "exemptions.runtimeClasses cannot be carried over",
            ),
            (
                json!([{"name": "PodNodeSelector", "configuration": {"podNodeSelectorPluginConfig": {"ns": "a"}}}]),
                "",
                "namespaceAllowLists[ns]",
            ),
            (
                json!([{"name": "PodTolerationRestriction", "configuration": {"more": 1}}]),
                "",
                "field \"more\" cannot be carried over",
            ),
            (json!([]), "ImagePolicyWebhook", "ImagePolicyWebhook: imagePolicy.kubeConfigFile is missing"),
            (json!([]), "NamespaceExists", "NamespaceExists: Outrider does not serve it"),
            (json!([]), "Nothing", "Nothing: Kubernetes has no such admission plugin"),
        ] {
            let (outcome, stdout, stderr) = ran(&configuration(&plugins), &[enabled]);
            assert_eq!((outcome, stdout.as_str()), (CommandOutcome::Refused, ""), "{stderr}");
            assert!(stderr.contains(expected), "{stderr}");
        }
        assert_eq!(ran("kind: Pod", &[]).0, CommandOutcome::BadInput);
    }
}
