//! What `--help` says.

use clap::CommandFactory;
use outrider::cli::Cli;

use crate::golden;

#[test]
fn help_is_as_recorded() {
    let mut outrider = Cli::command().term_width(100);
    outrider.build();
    for name in ["demo", "review", "render"] {
        let command = outrider.find_subcommand_mut(name).unwrap();
        golden::assert(&format!("help/{name}.txt"), &command.render_long_help().to_string());
    }
}
