//! `jobq man`: the manual page, commands included.

use clap::CommandFactory as _;

use super::args::Cli;
use super::output::Output;
use super::{Answer, Outcome};

pub(super) fn run(out: &mut Output) -> Outcome {
    let mut page = Vec::new();
    let command = Cli::command();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for sub in command.get_subcommands() {
        let name = format!("jobq {}", sub.get_name());
        let man = clap_mangen::Man::new(sub.clone().name(name));
        man.render_synopsis_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    out.raw(&page)?;
    Ok(Answer::Yes)
}
