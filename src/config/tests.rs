use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;

/// Kubebuilder's `controller_manager_config.yaml` with our group.
const SCAFFOLD: &str = "\
apiVersion: config.outrider.dev/v2
kind: ProjectConfig
health:
  healthProbeBindAddress: :8081
metrics:
  bindAddress: 127.0.0.1:8080
webhook:
  port: 9443
leaderElection:
  leaderElect: true
  resourceName: dc61ccc6.outrider.dev
clusterName: example-test
";

const SAMPLE: &str = include_str!("../../config/samples/config_v2_projectconfig.yaml");

fn with(fields: &str) -> String {
    format!("apiVersion: {API_VERSION}\nkind: {KIND}\n{fields}")
}

fn error(text: &str) -> String {
    read(text, "/etc/outrider.yaml").unwrap_err().to_string()
}

/// A value for every field, none of them a default.
fn every_field() -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "clusterName": "east",
        "syncPeriod": "1h0m0s",
        "cacheNamespace": "shop",
        "gracefulShutDown": "12s",
        "controller": {"groupKindConcurrency": {"SidecarSet.apps.outrider.dev": 7}, "cacheSyncTimeout": 5_000_000_000_u64},
        "metrics": {"bindAddress": "127.0.0.1:9"},
        "health": {"healthProbeBindAddress": ":10", "readinessEndpointName": "/ready", "livenessEndpointName": "/alive"},
        "webhook": {"port": 11, "host": "127.0.0.2", "certDir": "/certs"},
        "leaderElection": {
            "leaderElect": true, "resourceName": "lock", "resourceNamespace": "locks", "resourceLock": "leases",
            "leaseDuration": "30s", "renewDeadline": "20s", "retryPeriod": "5s",
        },
        "spec": {"foo": "bar"},
    })
}

fn paths_of(object: &Value) -> BTreeSet<String> {
    fn walk(value: &Value, prefix: &str, paths: &mut BTreeSet<String>) {
        match value.as_object() {
            Some(fields) if !FIELDS.iter().any(|field| field.path == prefix) => {
                for (key, value) in fields {
                    walk(value, &if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") }, paths);
                }
            }
            _ => drop(paths.insert(prefix.to_owned())),
        }
    }
    let mut paths = BTreeSet::new();
    walk(object, "", &mut paths);
    paths.retain(|path| path != "apiVersion" && path != "kind");
    paths
}

#[test]
fn the_list_of_fields_is_the_type() {
    let listed: BTreeSet<String> = FIELDS.iter().map(|field| field.path.to_owned()).collect();
    let object = every_field();
    assert_eq!(paths_of(&object), listed);
    assert_eq!(check(&object), Checked::default());
    let config: ProjectConfig = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(config.to_object(), object, "the type has every field");
}

#[test]
fn the_file_of_the_scaffold_and_the_sample_can_be_used() {
    for text in [SCAFFOLD, SAMPLE] {
        let LoadedConfig { config, warnings } = read(text, "file").unwrap();
        assert_eq!(warnings, [""; 0]);
        assert_eq!(config.cluster_name.as_deref(), Some("example-test"));
        assert_eq!(config.metrics.bind_address.as_deref(), Some("127.0.0.1:8080"));
        assert_eq!((config.webhook.port, config.leader_election.leader_elect), (Some(9443), Some(true)));
    }
}

#[test]
fn nothing_needs_to_be_given_and_null_is_nothing() {
    let nulls =
        "clusterName: null\ngracefulShutDown: ~\nmetrics:\nwebhook: {port: null}\nspec: {}\nmetadata: {name: a}\n";
    for fields in ["", nulls] {
        let loaded = read(&with(fields), "file").unwrap();
        assert_eq!(loaded, LoadedConfig { config: ProjectConfig::default(), warnings: Vec::new() }, "{fields}");
    }
}

#[test]
fn unknown_fields_are_told_with_what_is_known_there() {
    let fields = "metrics: {bindAdress: ':1'}\ncontroler: {}\nwebhook: {port: 1, tls: {min: 1}}\nspec: {bar: 1}\n";
    let mut warnings = read(&with(fields), "file").unwrap().warnings;
    warnings.sort();
    assert_eq!(
        warnings,
        [
            "unknown field \"controler\"; known here: clusterName, syncPeriod, cacheNamespace, gracefulShutDown, \
             controller, metrics, health, webhook, leaderElection, spec",
            "unknown field \"metrics.bindAdress\"; known here: bindAddress",
            "unknown field \"spec.bar\"; known here: foo",
            "unknown field \"webhook.tls\"; known here: port, host, certDir",
        ]
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = load(Path::new("/nowhere/outrider.yaml")).unwrap_err().to_string();
    let wanted = "unable to load the config file: could not read file at /nowhere/outrider.yaml: ";
    assert!(error.starts_with(wanted) && error.len() > wanted.len(), "{error}");
}

#[test]
fn what_is_not_one_object_of_the_kind_is_refused_with_what_it_is() {
    let must = "it must be one object with apiVersion: config.outrider.dev/v2 and kind: ProjectConfig";
    for (text, found) in [
        ("apiVersion: v1\nkind: Pod\n", "apiVersion: \"v1\" and kind: \"Pod\""),
        (
            "apiVersion: config.outrider.dev/v1\nkind: ProjectConfig\n",
            "apiVersion: \"config.outrider.dev/v1\" and kind: \"ProjectConfig\"",
        ),
        ("kind: ProjectConfig\n", "no apiVersion and kind: \"ProjectConfig\""),
        ("a text\n", "no object"),
        ("# nothing\n", "nothing"),
        (&format!("{SCAFFOLD}---\n{SCAFFOLD}"), "2 documents"),
    ] {
        let wanted = format!(
            "unable to load the config file: could not decode file into runtime.Object: /etc/outrider.yaml: \
             it holds {found}; {must}"
        );
        assert_eq!(error(text), wanted);
    }
    assert_eq!(
        error("clusterName: a\nclusterName: b\n"),
        "unable to load the config file: could not decode file into runtime.Object: /etc/outrider.yaml: \
         line 2, column 1: duplicate key \"clusterName\", first given on line 1"
    );
}

#[test]
fn every_fault_is_told_at_once_with_its_field() {
    let fields = "webhook: {port: 0}\nsyncPeriod: often\ncontroller: 3\nleaderElection: {retryPeriod: 0s}\n";
    assert_eq!(
        error(&with(fields)),
        "unable to load the config file: /etc/outrider.yaml cannot be used:\n  \
         controller: Invalid value: 3: must be an object\n  \
         syncPeriod: Invalid value: \"often\": write a duration such as 10s, 1m30s or 500ms\n  \
         webhook.port: Invalid value: 0: must be between 1 and 65535, inclusive\n  \
         leaderElection.retryPeriod: Invalid value: \"0s\": must be greater than 0"
    );
}

#[test]
fn each_form_refuses_what_it_cannot_use() {
    for (fields, fault) in [
        ("clusterName: 1", "clusterName: Invalid value: 1: must be text"),
        ("syncPeriod: 10ms", "syncPeriod: Invalid value: \"10ms\": must be at least 1s, or 0 to turn it off"),
        ("syncPeriod: 10", "syncPeriod: Invalid value: 10: must be text"),
        (
            "cacheNamespace: Shop",
            "cacheNamespace: Invalid value: \"Shop\": a lowercase RFC 1123 label must consist of lower case alphanumeric \
             characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
             used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
        (
            "gracefulShutDown: soon",
            "gracefulShutDown: Invalid value: \"soon\": write a duration such as 10s, 1m30s or 500ms; negative is without limit",
        ),
        (
            "controller: {groupKindConcurrency: {Pod: 0}}",
            "controller.groupKindConcurrency[Pod]: Invalid value: 0: must be between 1 and 1000, inclusive",
        ),
        (
            "controller: {groupKindConcurrency: {Pod: many}}",
            "controller.groupKindConcurrency[Pod]: Invalid value: \"many\": must be a whole number",
        ),
        (
            "controller: {groupKindConcurrency: 3}",
            "controller.groupKindConcurrency: Invalid value: 3: must be a map of Kind.group to a number",
        ),
        (
            "controller: {cacheSyncTimeout: 2m}",
            "controller.cacheSyncTimeout: Invalid value: \"2m\": must be a whole number of nanoseconds: 120000000000 is two minutes",
        ),
        ("controller: {cacheSyncTimeout: 0}", "controller.cacheSyncTimeout: Invalid value: 0: must be greater than 0"),
        (
            "metrics: {bindAddress: '8080'}",
            "metrics.bindAddress: Invalid value: \"8080\": write :PORT for all interfaces, IP:PORT for one, or 0 for none",
        ),
        (
            "health: {readinessEndpointName: /a b}",
            "health.readinessEndpointName: Invalid value: \"/a b\": write a path such as /readyz, of letters, digits and any of -._~/",
        ),
        (
            "health: {livenessEndpointName: readyz}",
            "health.readinessEndpointName: Invalid value: \"readyz\": must not be the path of the liveness probe",
        ),
        ("webhook: {port: 65536}", "webhook.port: Invalid value: 65536: must be between 1 and 65535, inclusive"),
        ("webhook: {port: '9443'}", "webhook.port: Invalid value: \"9443\": must be a whole number"),
        (
            "webhook: {host: example.com}",
            "webhook.host: Invalid value: \"example.com\": write an IP address, localhost, or nothing for every interface",
        ),
        (
            "leaderElection: {leaderElect: 'yes'}",
            "leaderElection.leaderElect: Invalid value: \"yes\": must be true or false",
        ),
        (
            "leaderElection: {resourceLock: configmaps}",
            "leaderElection.resourceLock: Unsupported value: \"configmaps\": supported values: \"leases\"",
        ),
        (
            "leaderElection: {leaseDuration: -1s}",
            "leaderElection.leaseDuration: Invalid value: \"-1s\": write a duration such as 10s, 1m30s or 500ms",
        ),
        (
            "leaderElection: {leaseDuration: 1ms}",
            "leaderElection.leaseDuration: Invalid value: \"1ms\": must be at least 1s",
        ),
        (
            "leaderElection: {retryPeriod: 0s}",
            "leaderElection.retryPeriod: Invalid value: \"0s\": must be greater than 0",
        ),
        (
            "leaderElection: {leaseDuration: 10s, renewDeadline: 10s}",
            "leaderElection.renewDeadline: Invalid value: \"10s\": must be shorter than leaseDuration (10s)",
        ),
        (
            "leaderElection: {renewDeadline: 6s, retryPeriod: 5s}",
            "leaderElection.retryPeriod: Invalid value: \"5s\": 1.2 times this must be shorter than renewDeadline (6s)",
        ),
    ] {
        let faults = check(&yaml::read(&with(fields)).unwrap().pop().unwrap().value).faults;
        assert_eq!(faults.iter().map(ToString::to_string).collect::<Vec<_>>(), [fault], "{fields}");
    }
}

#[test]
fn each_form_takes_what_upstream_takes() {
    for fields in [
        "syncPeriod: 0s",
        "gracefulShutDown: -1s",
        "gracefulShutDown: '0'",
        "metrics: {bindAddress: '0'}",
        "metrics: {bindAddress: ''}",
        "health: {healthProbeBindAddress: ''}",
        "health: {readinessEndpointName: ready}",
        "health: {readinessEndpointName: /a/b-c_d.e~f}",
        "webhook: {host: ''}",
        "webhook: {host: '::1'}",
        "webhook: {host: localhost}",
        "controller: {groupKindConcurrency: {CronJob.batch.outrider.dev: 1000, Pod: 1}}",
        "leaderElection: {resourceLock: ''}",
        "status: {phase: anything}",
    ] {
        let loaded = read(&with(fields), "file").unwrap();
        assert_eq!(loaded.warnings, [""; 0], "{fields}");
    }
    let unlimited = read(&with("gracefulShutDown: -5m"), "file").unwrap().config.graceful_shut_down;
    assert_eq!(unlimited, Some(StopBudget::Unlimited));
    let period = read(&with("syncPeriod: 1h30m"), "file").unwrap().config.sync_period;
    assert_eq!(period, Some(GoDuration(Duration::from_secs(5400))));
}
