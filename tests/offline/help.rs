//! What `--help` says.

use std::io::Write as _;
use std::process::{Command, Stdio};

use clap::CommandFactory;
use outrider::cli::Cli;

use crate::golden;

#[test]
fn help_is_as_recorded() {
    let mut outrider = Cli::command().term_width(100);
    outrider.build();
    for name in ["demo", "review", "render", "explain", "migrate"] {
        let command = outrider.find_subcommand_mut(name).unwrap();
        golden::assert(&format!("help/{name}.txt"), &command.render_long_help().to_string());
    }
}

/// The examples at the end of a help text.
fn examples(help: &str) -> Vec<String> {
    let Some((_, examples)) = help.split_once("Examples:\n") else { return Vec::new() };
    examples.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn examples_of_every_command_can_be_pasted_into_a_shell_and_name_flags_that_exist() {
    let mut outrider = Cli::command();
    outrider.build();
    let mut seen = 0;
    for command in outrider.get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        for example in examples(&help) {
            seen += 1;
            let mut shell = Command::new("sh").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            shell.stdin.take().unwrap().write_all(example.as_bytes()).unwrap();
            assert!(shell.wait().unwrap().success(), "{}: {example}", command.get_name());
            if !example.starts_with("outrider ") || example.contains(['|', '<', '>', '$', '(']) {
                continue;
            }
            let words = example.split_whitespace();
            for flag in words.filter(|word| word.starts_with("--")).map(|word| word.split('=').next().unwrap()) {
                assert!(help.contains(flag), "{}: {example}: there is no flag {flag}", command.get_name());
            }
        }
    }
    assert!(seen > 10, "{seen} examples");
}
