use std::path::PathBuf;

use clap::{CommandFactory as _, FromArgMatches as _};
use serde_json::{Value, json};

use super::*;
use crate::cli::{Cli, Command};
use crate::config;

fn configured(arguments: &[&str], fields: &str) -> ServeArgs {
    let words = ["outrider", "serve", "--namespace", "outrider-system"];
    let matches = Cli::command().get_matches_from(words.iter().chain(arguments));
    let Command::Serve(mut args) = Cli::from_arg_matches(&matches).unwrap().command else { panic!("serve") };
    let text = format!("apiVersion: {}\nkind: {}\n{fields}\n", config::API_VERSION, config::KIND);
    let loaded = config::read(&text, "file").unwrap();
    args.configure(loaded.config, Given(matches.subcommand_matches("serve").unwrap()));
    *args
}

fn effective(arguments: &[&str], fields: &str, path: &str) -> Value {
    let object = configured(arguments, fields).effective().to_object();
    object.pointer(&format!("/{}", path.replace('.', "/"))).cloned().unwrap_or_default()
}

#[test]
fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
    let table: [(&str, &str, &str, Value, Value, Value); 11] = [
        (
            "metrics.bindAddress",
            "127.0.0.1:1",
            "--metrics-bind-address=:9090",
            json!(":8080"),
            json!("127.0.0.1:1"),
            json!(":9090"),
        ),
        ("metrics.bindAddress", "'0'", "--metrics-bind-address=:8080", json!(":8080"), json!("0"), json!(":8080")),
        (
            "health.healthProbeBindAddress",
            ":2",
            "--health-probe-bind-address=0",
            json!(":8081"),
            json!(":2"),
            json!("0"),
        ),
        ("webhook.port", "3", "--webhook-bind-address=:4", json!(9443), json!(3), json!(4)),
        (
            "webhook.host",
            "127.0.0.1",
            "--webhook-bind-address=127.0.0.2:4",
            json!(""),
            json!("127.0.0.1"),
            json!("127.0.0.2"),
        ),
        (
            "webhook.certDir",
            "/a",
            "--cert-dir=/b",
            json!("/tmp/k8s-webhook-server/serving-certs"),
            json!("/a"),
            json!("/b"),
        ),
        ("leaderElection.leaderElect", "true", "--leader-elect=false", json!(false), json!(true), json!(false)),
        (
            "leaderElection.resourceName",
            "a",
            "--leader-elect-resource-name=b",
            json!("outrider.outrider.dev"),
            json!("a"),
            json!("b"),
        ),
        (
            "leaderElection.leaseDuration",
            "20s",
            "--leader-elect-lease-duration=30s",
            json!("15s"),
            json!("20s"),
            json!("30s"),
        ),
        (
            "leaderElection.renewDeadline",
            "9s",
            "--leader-elect-renew-deadline=8s",
            json!("10s"),
            json!("9s"),
            json!("8s"),
        ),
        ("leaderElection.retryPeriod", "3s", "--leader-elect-retry-period=4s", json!("2s"), json!("3s"), json!("4s")),
    ];
    for (path, file, flag, by_default, by_file, by_flag) in table {
        let (parent, field) = path.split_once('.').unwrap();
        let fields = format!("{parent}: {{{field}: {file}}}");
        assert_eq!(effective(&[], "", path), by_default, "{path} by default");
        assert_eq!(effective(&[], &fields, path), by_file, "{path} from the file");
        assert_eq!(effective(&[flag], &fields, path), by_flag, "{path} with {flag}");
    }
}

/// Acceptance check 27: `--leader-elect=false`.
#[test]
fn a_flag_that_repeats_its_default_still_wins() {
    assert_eq!(
        effective(&["--leader-elect=false"], "leaderElection: {leaderElect: true}", "leaderElection.leaderElect"),
        false
    );
    let (flag, fields) = ("--metrics-bind-address=:8080", "metrics: {bindAddress: ':1'}");
    assert_eq!(effective(&[flag], fields, "metrics.bindAddress"), ":8080");
}

#[test]
fn the_flag_of_every_field_exists() {
    let mut cli = Cli::command();
    cli.build();
    let serve = cli.find_subcommand("serve").unwrap();
    for field in config::FIELDS {
        let known = |flag: &str| serve.get_arguments().any(|argument| argument.get_long() == Some(flag));
        assert!(field.flag.is_none_or(known), "{}", field.path);
    }
}

#[test]
fn the_namespace_of_the_lease_is_our_own_unless_asked_otherwise() {
    let field = "leaderElection: {resourceNamespace: locks}";
    let path = "leaderElection.resourceNamespace";
    assert_eq!(effective(&[], "", path), "outrider-system");
    assert_eq!(effective(&[], field, path), "locks");
    assert_eq!(effective(&["--leader-elect-resource-namespace=mine"], field, path), "mine");
}

#[test]
fn host_and_port_make_up_one_address() {
    for (fields, address) in [
        ("", ":9443"),
        ("webhook: {port: 1}", ":1"),
        ("webhook: {host: '', port: 1}", ":1"),
        ("webhook: {host: localhost}", "127.0.0.1:9443"),
        ("webhook: {host: '::1', port: 1}", "[::1]:1"),
    ] {
        assert_eq!(configured(&[], fields).server_options().webhook.to_string(), address, "{fields}");
    }
    let off = configured(&["--enable-webhooks=false"], "webhook: {port: 1}");
    assert_eq!(off.server_options().webhook, BindAddress::Off);
}

#[test]
fn empty_texts_are_go_zero_values() {
    let fields = "cacheNamespace: ''\nmetrics: {bindAddress: ''}\nhealth: {healthProbeBindAddress: '', readinessEndpointName: ''}\n\
        webhook: {certDir: ''}\nleaderElection: {resourceName: '', resourceNamespace: ''}";
    let args = configured(&[], fields);
    let options = args.server_options();
    assert_eq!(options.metrics.to_string(), ":8080");
    assert_eq!(options.health, BindAddress::Off, "as controller-runtime has it");
    assert_eq!(options.probes, ProbePaths::default());
    assert_eq!(args.certificates.cert_dir, PathBuf::from("/tmp/k8s-webhook-server/serving-certs"));
    assert_eq!((args.lease_namespace(), args.controller_options().namespace), ("outrider-system", None));
}

#[test]
fn the_budget_for_stopping_covers_the_drain_delay() {
    let seconds = Duration::from_secs;
    let table: [(&[&str], &str, Duration, Duration); 7] = [
        (&[], "", seconds(10), seconds(15)),
        (&[], "gracefulShutDown: 30s", seconds(10), seconds(20)),
        (&["--drain-delay=1s"], "gracefulShutDown: 30s", seconds(1), seconds(29)),
        (&["--drain-delay=9s"], "gracefulShutDown: 4s", seconds(4), seconds(0)),
        (&[], "gracefulShutDown: 4s", seconds(4), seconds(0)),
        (&[], "gracefulShutDown: 0s", seconds(0), seconds(0)),
        (&[], "gracefulShutDown: -1s", seconds(10), Duration::MAX),
    ];
    for (arguments, fields, drain_delay, finish) in table {
        let args = configured(arguments, fields);
        let interrupted_drain_delay = if arguments.is_empty() { Duration::ZERO } else { drain_delay };
        let ending = Ending { drain_delay, interrupted_drain_delay, finish };
        assert_eq!(args.ending(), ending, "{arguments:?} {fields}");
        assert_eq!(args.server_options().limits.finish, finish);
    }
}

#[test]
fn without_a_cluster_there_is_a_drain_delay_only_if_it_is_given() {
    for (arguments, seconds) in
        [(&["--standalone"][..], 0), (&["--standalone", "--drain-delay=3s"], 3), (&["--drain-delay=3s"], 3), (&[], 10)]
    {
        assert_eq!(configured(arguments, "").ending().drain_delay, Duration::from_secs(seconds), "{arguments:?}");
    }
}

#[test]
fn the_file_says_how_controllers_run() {
    let fields = "cacheNamespace: shop\nsyncPeriod: 1h\n\
        controller: {cacheSyncTimeout: 5000000000, groupKindConcurrency: {SidecarSet.apps.outrider.dev: 7}}";
    let options = configured(&[], fields).controller_options();
    assert_eq!(options.namespace.as_deref(), Some("shop"));
    assert_eq!(options.sync_period, Duration::from_secs(3600));
    assert_eq!(options.cache_sync_timeout, Some(Duration::from_secs(5)));
    assert_eq!(
        (options.workers("SidecarSet", "apps.outrider.dev"), options.workers("Welcome", "webapp.outrider.dev")),
        (7, 3)
    );
    assert_eq!(configured(&[], "").controller_options(), ControllerOptions::default());
}

#[test]
fn probes_move_with_or_without_a_slash() {
    for name in ["ready", "/ready"] {
        let args = configured(&[], &format!("health: {{readinessEndpointName: {name}, livenessEndpointName: /a/b}}"));
        let paths = ProbePaths { readiness: "/ready".to_owned(), liveness: "/a/b".to_owned() };
        assert_eq!(args.server_options().probes, paths, "{name}");
    }
}

#[test]
fn the_effective_configuration_can_be_used_as_a_file() {
    for fields in ["", "gracefulShutDown: -1s\nwebhook: {host: '::1'}\nclusterName: a\nspec: {foo: b}"] {
        let effective = configured(&["--leader-elect"], fields).effective();
        let text = effective.to_object().to_string();
        let loaded = config::read(&text, "file").unwrap();
        assert_eq!((loaded.config, loaded.warnings), (effective, vec![]));
    }
}
