//! Documentation that is made from the code, and documentation that repeats other files, may not lag behind.
//! `make manifests` writes the first kind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod book;
mod chart;
mod dialect;
mod held;
mod limits;
mod packaging;
mod readme;
mod reasons;
mod schemas;
mod sessions;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use engine::plugins::Plugin;
use std::process::Command;

use clap::CommandFactory;
use outrider::cli::Cli;
use outrider::config;
use outrider::server::Limits;

/// Compares with the file, or writes it when `UPDATE_GOLDEN=1`.
fn hold(path: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, expected).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{} lags behind the code: run `make manifests`", path.display());
}

#[test]
fn command_line_reference_is_up_to_date() {
    let mut page = String::from("# Command line\n\nWhat `outrider COMMAND --help` prints.\n");
    let mut cli = Cli::command().term_width(100);
    cli.build();
    for command in cli.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        let (name, help) = (command.get_name().to_owned(), command.render_long_help().to_string());
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        write!(page, "\n## outrider {name}\n\n```text\n{}\n```\n", lines.join("\n")).unwrap();
        for nested in command.get_subcommands_mut().filter(|nested| nested.get_name() != "help") {
            let (nested_name, help) = (nested.get_name().to_owned(), nested.render_long_help().to_string());
            let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
            write!(page, "\n### outrider {name} {nested_name}\n\n```text\n{}\n```\n", lines.join("\n")).unwrap();
        }
    }
    hold("docs/cli.md", &page);
}

/// A value in a table; words stay words.
fn quoted(text: &str) -> String {
    if text.contains(' ') { text.to_owned() } else { format!("`{text}`") }
}

#[test]
fn list_of_configuration_fields_is_up_to_date() {
    let mut cli = Cli::command();
    cli.build();
    let serve = cli.find_subcommand("serve").unwrap();
    let default = |field: &config::ConfigField| {
        let argument = serve.get_arguments().find(|it| field.flag.is_some() && it.get_long() == field.flag);
        let of_flag = argument.and_then(|it| it.get_default_values().first()).map(|value| value.to_str().unwrap());
        Some(field.default).filter(|text| !text.is_empty()).or(of_flag).map(quoted).unwrap_or_default()
    };
    let mut rows = String::new();
    for field in &config::FIELDS {
        let flag = field.flag.map(|flag| format!("`--{flag}`")).unwrap_or_default();
        let (path, word, default, meaning) = (field.path, field.form.word(), default(field), field.meaning);
        writeln!(rows, "| `{path}` | {word} | {flag} | {default} | {meaning} |").unwrap();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sample = fs::read_to_string(root.join("config/samples/config_v2_projectconfig.yaml")).unwrap();
    // The path in the first line is one of this repository.
    let (_, sample) = sample.split_once('\n').unwrap();
    let page = include_str!("configuration.md").replace("{rows}\n", &rows).replace("{sample}\n", sample);
    hold("docs/configuration.md", &page);
}

/// Of each plugin that is served a test of its table, and one on a real API server if there is one.
const TESTS_OF_PLUGINS: [(&str, &[&str]); 24] = [
    (
        "TaintNodesByCondition",
        &["a_new_node_gets_its_taint_once_as_the_table_says", "nodes_are_tainted_as_by_the_plugin_of_the_api_server"],
    ),
    (
        "ServiceAccount",
        &[
            "pods_may_use_the_secrets_of_their_account_as_the_table_says",
            "pods_use_secrets_as_the_plugin_of_the_api_server_lets_them",
        ],
    ),
    (
        "NodeRestriction",
        &[
            "kubelets_change_their_own_node_and_pods_as_the_table_says",
            "kubelets_are_restricted_as_by_the_plugin_of_the_api_server",
        ],
    ),
    (
        "Priority",
        &[
            "pods_get_the_class_of_their_namespace_as_the_table_says",
            "a_priority_class_of_a_namespace_comes_out_as_one_that_the_pod_names",
        ],
    ),
    (
        "RuntimeClass",
        &[
            "pods_get_the_class_of_their_namespace_as_the_table_says",
            "a_runtime_class_of_a_namespace_comes_out_as_one_that_the_pod_names",
        ],
    ),
    (
        "StorageObjectInUseProtection",
        &[
            "each_object_of_storage_gets_its_finalizer_once_as_the_table_says",
            "objects_of_storage_are_protected_as_by_the_plugin_of_the_api_server",
        ],
    ),
    (
        "PersistentVolumeClaimResize",
        &["claims_grow_as_the_table_says", "claims_grow_where_the_plugin_of_the_api_server_lets_them"],
    ),
    (
        "PodTopologyLabels",
        &[
            "labels_of_the_node_go_to_its_pods_as_the_table_says",
            "pods_get_the_labels_of_their_nodes_as_from_the_plugin_of_the_api_server",
        ],
    ),
    (
        "DefaultStorageClass",
        &[
            "without_a_name_the_default_of_the_cluster_is_filled_in_as_the_table_says",
            "claims_get_the_class_that_the_plugin_of_the_api_server_gives_them",
        ],
    ),
    ("AlwaysPullImages", &["every_image_is_pulled", COMPARED]),
    (
        "DefaultTolerationSeconds",
        &["seconds_on_failing_nodes_are_those_of_the_configuration_as_the_table_says", COMPARED],
    ),
    ("DenyServiceExternalIPs", &["external_ips_are_denied_as_the_table_says", COMPARED]),
    (
        "EventRateLimit",
        &[
            "each_limit_takes_a_token_by_its_key_also_behind_one_that_refuses",
            "events_are_limited_as_by_the_plugin_of_the_api_server",
        ],
    ),
    ("ExtendedResourceToleration", &["extended_resources_are_tolerated_as_the_table_says", COMPARED]),
    (
        "ImagePolicyWebhook",
        &[
            "the_images_that_a_request_is_about_decide_as_the_table_says",
            "images_are_reviewed_as_by_the_plugin_of_the_api_server",
        ],
    ),
    ("LimitPodHardAntiAffinityTopology", &["required_anti_affinity_is_between_nodes_as_the_table_says", COMPARED]),
    (
        "LimitRanger",
        &[
            "pods_beyond_the_limits_are_refused_with_the_words_of_the_api_server",
            "a_cluster_limit_range_does_what_a_limit_range_does_and_nothing_more_beside_one",
        ],
    ),
    ("NamespaceLifecycle", &["protected_namespaces_are_not_deleted_alone_or_with_many", LABELLED]),
    (
        "OwnerReferencesPermissionEnforcement",
        &[
            "a_change_of_owners_needs_the_right_to_delete_as_the_table_says",
            "owner_references_are_judged_as_by_the_plugin_of_the_api_server",
        ],
    ),
    ("PodNodeSelector", &["pod_node_selector_does_what_the_table_says", COMPARED]),
    ("PodSecurity", &["a_new_namespace_gets_the_labels_that_it_lacks", LABELLED]),
    (
        "PodSecurityPolicy",
        &[
            "each_row_of_the_tables_comes_out_as_in_1_24_and_stays_so",
            "a_profile_counts_for_who_may_use_it_on_a_real_api_server",
        ],
    ),
    ("PodTolerationRestriction", &["pod_toleration_restriction_does_what_the_table_says", COMPARED]),
    (
        "ResourceQuota",
        &[
            "what_is_consumed_and_limited_needs_a_quota_that_names_it",
            "limited_resources_need_a_quota_as_in_the_plugin_of_the_api_server",
        ],
    ),
];

const COMPARED: &str = "pods_and_services_come_out_as_from_the_plugins_of_the_api_server";
const LABELLED: &str = "namespaces_are_labelled_and_protected_and_exemptions_hold_while_no_replica_answers";

#[test]
fn table_of_admission_plugins_is_up_to_date_and_names_tests_of_what_is_served() {
    use engine::plugins::catalog::{ALL, OF_OTHER_KINDS, Service};
    use outrider::cli::plugins::{HEADS, row};
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    for folder in ["src", "tests", "crates"] {
        read_sources(&root.join(folder), &mut sources);
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heads = HEADS.iter().chain(&["TESTS"]).map(|head| head.to_lowercase());
    let mut table = line(&heads.collect::<Vec<_>>()) + &"|---".repeat(HEADS.len() + 1) + "|\n";
    for entry in ALL {
        let tests = TESTS_OF_PLUGINS.iter().find(|(name, _)| *name == entry.name).map(|(_, tests)| *tests);
        assert_eq!(tests.is_some(), entry.service == Service::Served, "tests of {}", entry.name);
        let tests: Vec<&str> = tests.into_iter().flatten().copied().collect();
        for test in &tests {
            assert!(sources.contains(&format!("fn {test}(")), "{test}, of {}, is no test", entry.name);
        }
        let mut cells = row(entry).to_vec();
        cells[0] = format!("`{}`", cells[0]);
        cells.push(tests.iter().map(|test| format!("`{test}`")).collect::<Vec<_>>().join(", "));
        table.push_str(&line(&cells));
    }
    let listed = |plugin: Plugin| format!("- [{plugin}](plugins/{plugin}.md)\n");
    let of_kinds =
        OF_OTHER_KINDS.map(|(plugin, kind)| format!("- [{plugin}](plugins/{plugin}.md), by the kind {kind}\n"));
    let pages: String = Plugin::ALL.into_iter().map(listed).chain(of_kinds).collect();
    let named =
        include_str!("admission-plugins.md").split('`').skip(1).step_by(2).filter(|text| text.matches('_').count() > 3);
    for test in named {
        assert!(sources.contains(&format!("fn {test}(")), "{test} is no test");
    }
    let page = include_str!("admission-plugins.md").replace("{table}\n", &table).replace("{pages}\n", &pages);
    hold("docs/admission-plugins.md", &page);
}

#[test]
fn every_admission_plugin_has_a_page_with_its_sample() {
    use engine::plugins::catalog::{OF_OTHER_KINDS, find};
    use outrider::cli::plugins::{example_of, provided};
    let of_other_kinds = OF_OTHER_KINDS.map(|(plugin, _)| plugin);
    for plugin in Plugin::ALL.map(Plugin::name).into_iter().chain(of_other_kinds) {
        let template = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/docs/plugins/{plugin}.md"));
        let template = fs::read_to_string(&template).unwrap_or_else(|error| panic!("{}: {error}", template.display()));
        let entry = find(plugin).unwrap();
        let default = if entry.is_default { "on" } else { "off" };
        let [eks, aks, gke] = entry.providers.map(provided);
        let mut catalog = format!(
            "In the API server: {default} by default; EKS: {eks}, AKS: {aks}, GKE: {gke}. Outrider: {}.",
            entry.how()
        );
        if entry.how().contains("on-demand entr") {
            catalog.push_str(
                "\nAn *on-demand entry* is a webhook entry that the leader adds while an object needs it: without one, the API \
                 server does not call\nOutrider for such requests ([admission plugins](../admission-plugins.md#on-demand-entries)).",
            );
        }
        // The first line is for editors.
        let sample: Vec<&str> =
            example_of(entry).unwrap().lines().filter(|line| !line.contains("yaml-language-server")).collect();
        let sample = format!("```yaml\n{}\n```", sample.join("\n"));
        hold(
            &format!("docs/plugins/{plugin}.md"),
            &template.replace("{catalog}", &catalog).replace("{sample}", &sample),
        );
    }
}

#[test]
fn readme_shows_the_sample_set() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let sample = fs::read_to_string(root.join("config/samples/apps_v1alpha1_sidecarset.yaml")).unwrap();
    let sample: Vec<&str> = sample.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(
        readme.contains(&format!("```yaml\n{}\n```", sample.join("\n"))),
        "the README shows another set than config/samples"
    );
}

#[test]
fn pages_of_the_workshop_show_the_samples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |name: &str| fs::read_to_string(root.join("docs").join(name)).unwrap();
    for (name, file) in [
        ("apps_v1_simpledeployment.yaml", "workshop.md"),
        ("collector.ip_v1_collector.yaml", "collector.md"),
        ("webapp_v1_welcome.yaml", "workshop.md"),
    ] {
        let sample = fs::read_to_string(root.join("config/samples").join(name)).unwrap();
        let sample: Vec<&str> = sample.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(
            page(file).contains(&format!("```yaml\n{}\n```", sample.join("\n"))),
            "docs/{file} does not show {name}"
        );
    }
    let page = page("workshop.md");
    for kind in outrider::kinds::workshop() {
        assert!(
            page.to_lowercase().contains(&format!("| `{}` |", kind.name)),
            "docs/workshop.md does not list {}",
            kind.name
        );
    }
}

/// What the page on security says of limits is what the server goes by.
#[test]
fn limits_on_the_security_page_are_those_of_the_code() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/security.md")).unwrap();
    let limits = Limits::default();
    let with_the_charts = Limits::within(Some(256 << 20));
    let mebibytes = |bytes: usize| format!("{} MiB", bytes >> 20);
    for claim in [
        format!("bodies up to {}, ", mebibytes(limits.body)),
        format!("{} of bodies at one time", mebibytes(limits.body_memory)),
        format!("{} decisions at one time", limits.in_flight),
        format!("{},{:03} connections, ", limits.connections / 1000, limits.connections % 1000),
        format!("{} s for a handshake", limits.handshake.as_secs()),
        format!("{} s for the head of the first request", limits.first_request.as_secs()),
        format!("{} with the chart's 256 MiB", with_the_charts.connections),
    ] {
        assert!(page.contains(&claim), "docs/security.md does not say: {claim}");
    }
    assert_eq!(with_the_charts.body_memory, (256 << 20) / 4);
    let values = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/outrider/values.yaml")).unwrap();
    assert!(values.contains("    memory: 256Mi\n"));
}

/// Acceptance check 42, as far as it is about help.
#[test]
fn make_help_lists_every_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let targets: Vec<&str> =
        makefile.lines().filter_map(|line| line.strip_prefix(".PHONY: ")).flat_map(str::split_whitespace).collect();
    assert!(targets.contains(&"uninstall"), "{targets:?}");
    let mut make = Command::new("make");
    let make = make.args(["--no-print-directory", "help"]).current_dir(root).env_remove("MAKEFLAGS").output().unwrap();
    let help = String::from_utf8(make.stdout).unwrap();
    let listed: Vec<&str> = help
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("\u{1b}[36m")?.split_whitespace().next())
        .collect();
    for target in targets {
        assert!(listed.contains(&target), "make help does not list {target}:\n{help}");
    }
}

/// A row of the table names tests that are there.
#[test]
fn tests_that_hold_acceptance_checks_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("tests/acceptance.md")).unwrap();
    let mut sources = String::new();
    for folder in ["src", "tests", "crates"] {
        read_sources(&root.join(folder), &mut sources);
    }
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let names: Vec<&str> = rows
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .filter(|name| name.contains('_') && !name.contains(' '))
        .collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        assert!(sources.contains(&format!("fn {name}(")), "tests/acceptance.md names {name}, which is no test");
    }
}

#[test]
fn sets_that_can_select_the_same_pod_are_said_to_be_refused() {
    let pages: Vec<(String, String)> = book::pages()
        .into_iter()
        .map(|page| (page.clone(), fs::read_to_string(book::root().join(page)).unwrap()))
        .collect();
    assert!(pages.len() > 20, "{}", pages.len());
    let saying = |words: &str| -> Vec<&str> {
        let of_words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").contains(words);
        pages.iter().filter(|(_, text)| of_words(text)).map(|(page, _)| page.as_str()).collect()
    };
    assert!(saying("can select the same pod").iter().any(|page| page.ends_with("sidecarset.md")));
    for words in ["always collide", "always clash", "would collide"] {
        assert_eq!(saying(words), Vec::<&str>::new(), "{words}");
    }
}

pub(crate) fn list_sources(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            list_sources(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

fn read_sources(folder: &Path, sources: &mut String) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            read_sources(&entry.path(), sources);
        } else if entry.path().extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(entry.path()).unwrap());
        }
    }
}
