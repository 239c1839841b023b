//! `outrider completion`: scripts for shells.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Arguments of `outrider completion`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionArgs {
    /// The shell
    pub shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  outrider completion bash > /etc/bash_completion.d/outrider
  outrider completion zsh > \"${fpath[1]}/_outrider\"
  outrider completion fish > ~/.config/fish/completions/outrider.fish";

/// Prints the script.
pub fn execute(args: &CompletionArgs) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "outrider", &mut script);
    match io::stdout().write_all(&script) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => super::fail(&error),
    }
}
