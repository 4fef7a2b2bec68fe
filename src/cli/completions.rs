//! `jobq completions`: for packagers and shells.

use clap::CommandFactory as _;

use super::args::{Cli, CompletionsArgs};
use super::output::Output;
use super::{Answer, Outcome};

pub(super) fn run(args: &CompletionsArgs, out: &mut Output) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "jobq", &mut script);
    out.raw(&script)?;
    Ok(Answer::Yes)
}
