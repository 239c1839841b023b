//! The `outrider` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    outrider::cli::run()
}
