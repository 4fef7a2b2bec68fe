//! The `jobq` program: parse, run, and map the answer to an exit code.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: in the process that is to supervise programs this does not return.
    let supervisor = jobq::Supervisor::of_this_program();
    cli::main(supervisor)
}
