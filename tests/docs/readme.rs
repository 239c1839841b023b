//! What the README shows is what commands print, and every page installs in the same way.

use std::fs;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_outrider")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Of the README's blocks behind the first place with this text, the first that shows output.
fn shown_after(text: &str) -> String {
    let readme = read("README.md");
    let (_, behind) = readme.split_once(text).unwrap_or_else(|| panic!("the README lacks {text:?}"));
    let mut pieces = behind.split("\n```");
    let block = pieces.find_map(|block| block.strip_prefix("text\n").or_else(|| block.strip_prefix("diff\n")));
    block.unwrap_or_else(|| panic!("the README shows nothing after {text:?}")).to_owned()
}

/// Whether all that is shown is in what is printed, in this order; an ellipsis means what is left out.
fn assert_printed(shown: &str, printed: &str) {
    let mut rest = printed;
    for part in shown.split('…').map(|part| part.trim_matches('\n')) {
        let (_, behind) = rest.split_once(part).unwrap_or_else(|| panic!("the README shows\n{part}\nnot in\n{rest}"));
        rest = behind;
    }
}

#[test]
fn readme_shows_what_the_commands_print() {
    assert_printed(&shown_after("make demo"), &read("tests/offline/golden/demo.txt"));
    let render =
        "render --manifests config/samples/apps_v1alpha1_sidecarset.yaml -f config/samples/web-deployment.yaml -o diff";
    assert_printed(&shown_after(render), &printed(&render.split(' ').collect::<Vec<_>>()));
    let explain =
        "explain --manifests config/samples/apps_v1alpha1_sidecarset.yaml -f config/samples/web-deployment.yaml";
    assert_printed(&shown_after(explain), &printed(&explain.split(' ').collect::<Vec<_>>()));
    // The server answers with the same bytes.
    let answer = printed(&["review", "--manifests", "config/samples", "tests/fixtures/README-pod.json"]);
    assert_printed(&shown_after("--data @tests/fixtures/README-pod.json"), &answer);
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let patch = STANDARD.decode(answer["response"]["patch"].as_str().unwrap()).unwrap();
    assert_printed(&shown_after("jq -r .response.patch"), &String::from_utf8(patch).unwrap());
}

/// While no replica answers, new pods are refused; so an installation that fails must not stay.
#[test]
fn every_page_has_an_installation_that_fails_taken_away_again() {
    const INSTALL: &str = "helm install outrider charts/outrider ";
    let mut pages = vec!["README.md".to_owned(), "README.zh-CN.md".to_owned(), "tests/node/src/main.rs".to_owned()];
    pages.push("charts/outrider/README.md".to_owned());
    pages.extend(crate::book::pages());
    let mut found = 0;
    for page in pages {
        for behind in read(&page).split(INSTALL).skip(1) {
            found += 1;
            let command = behind.split("\n\n").next().unwrap();
            assert!(command.contains(" --atomic --no-hooks ") && !command.contains(" --wait"), "{page}: {command}");
        }
    }
    assert!(found >= 8, "{found}");
}

/// What a page shows of a command on files that it shows.
#[test]
fn the_page_of_default_storage_class_shows_what_the_command_prints() {
    let page = read("docs/plugins/DefaultStorageClass.md");
    let block = |start: &str| {
        let (_, behind) = page.split_once(start).unwrap_or_else(|| panic!("the page shows no {start:?}"));
        behind.split("\n```").next().unwrap().to_owned()
    };
    let (claim, printed) =
        block("$ cat claim.yaml\n").split_once("\n$ ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let (command, shown) = printed.split_once('\n').unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("claim.yaml"), format!("{claim}\n")).unwrap();
    std::fs::copy(
        root().join("config/samples/policy_v1alpha1_defaultstorageclass.yaml"),
        folder.path().join("storage.yaml"),
    )
    .unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_outrider"));
    let output = run.args(command.split(' ').skip(1)).current_dir(folder.path()).output().unwrap();
    let both = [output.stderr, output.stdout].concat();
    assert_eq!(String::from_utf8(both).unwrap(), format!("{shown}\n"));
}
