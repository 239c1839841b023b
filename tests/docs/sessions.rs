//! A page that shows files and commands on them shows what the commands print.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::book::{pages, root};

/// The console blocks of a page that show files, each as its steps: a command, and what is shown below it.
fn sessions(page: &str) -> Vec<Vec<(String, String)>> {
    let blocks = page.split("\n```").filter_map(|block| block.strip_prefix("console\n"));
    let steps = |block: &str| {
        format!("\n{block}")
            .split("\n$ ")
            .skip(1)
            .map(|step| {
                let (command, shown) = step.split_once('\n').unwrap_or((step, ""));
                (command.to_owned(), shown.to_owned())
            })
            .collect()
    };
    blocks.filter(|block| block.starts_with("$ cat ")).map(steps).collect()
}

/// What a command on files in a folder writes to stderr, and then to stdout.
fn printed(command: &str, folder: &Path) -> String {
    let arguments = command.strip_prefix("outrider ").unwrap_or_else(|| panic!("{command} is no command of ours"));
    let mut run = Command::new(env!("CARGO_BIN_EXE_outrider"));
    let output = run.args(arguments.split(' ')).current_dir(folder).output().unwrap();
    String::from_utf8([output.stderr, output.stdout].concat()).unwrap()
}

#[test]
fn sessions_on_pages_show_what_the_commands_print() {
    let mut ran = 0;
    // The pages of plugins take samples of this repository, and are checked in `readme.rs`.
    for page in pages().into_iter().filter(|page| !page.starts_with("docs/plugins/")) {
        for steps in sessions(&fs::read_to_string(root().join(&page)).unwrap()) {
            let folder = tempfile::tempdir().unwrap();
            for (command, shown) in steps {
                if let Some(file) = command.strip_prefix("cat ") {
                    fs::write(folder.path().join(file), format!("{shown}\n")).unwrap();
                    continue;
                }
                assert_eq!(printed(&command, folder.path()).trim_end(), shown, "{page}: {command}");
                ran += 1;
            }
        }
    }
    assert!(ran >= 3, "{ran}");
}
