//! Documentation that is made from the code, and documentation that repeats other files, may not lag behind.
//! `make manifests` writes the first kind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use admission::Reason;
use clap::CommandFactory;
use outrider::cli::Cli;

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
fn list_of_reasons_is_up_to_date() {
    let mut page = String::from(
        "# Reason codes\n\n\
         Every skip, change and denial has one of these codes. The same word stands in the warning that `kubectl` prints, in the\n\
         audit annotation `reason`, in the server's log and in the metric `outrider_reviews_total{path,verdict,reason}`.\n\n\
         | code | meaning |\n|---|---|\n",
    );
    for reason in Reason::ALL {
        writeln!(page, "| `{reason}` | {} |", reason.meaning()).unwrap();
    }
    hold("docs/reasons.md", &page);
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
    }
    hold("docs/cli.md", &page);
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
fn page_of_the_workshop_shows_the_samples() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/workshop.md")).unwrap();
    for name in ["apps_v1_simpledeployment.yaml", "webapp_v1_welcome.yaml"] {
        let sample = fs::read_to_string(root.join("config/samples").join(name)).unwrap();
        let sample: Vec<&str> = sample.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(
            page.contains(&format!("```yaml\n{}\n```", sample.join("\n"))),
            "docs/workshop.md does not show {name}"
        );
    }
    for kind in &outrider::workshop::KINDS {
        assert!(
            page.to_lowercase().contains(&format!("| `{}` |", kind.name)),
            "docs/workshop.md does not list {}",
            kind.name
        );
    }
}

#[test]
fn links_of_the_documentation_lead_to_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("benches/README.md")];
    pages.extend(fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains("://") {
                let target = page.parent().unwrap().join(file);
                assert!(target.exists(), "{} links to {link}, which is not there", page.display());
            }
        }
    }
}
