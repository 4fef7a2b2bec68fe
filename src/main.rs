//! The `jobq` program: parse, run, and map the answer to an exit code.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
