//! `jobq completions`: for packagers and shells.

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory as _};
use clap_complete::Shell;

use super::args::{Cli, CompletionsArgs};
use super::output::Output;
use super::{Answer, Outcome};

pub(super) fn run(args: &CompletionsArgs, out: &mut Output) -> Outcome {
    let mut script = Vec::new();
    let mut command = Cli::command();
    clap_complete::generate(args.shell, &mut command, "jobq", &mut script);
    if args.shell == Shell::Fish {
        script.extend(arguments_for_fish(&command).bytes());
    }
    out.raw(&script)?;
    Ok(Answer::Yes)
}

/// Arguments that have few values, which for fish are left out by who makes the script.
fn arguments_for_fish(command: &Command) -> String {
    let arguments =
        command.get_subcommands().flat_map(|command| command.get_positionals().map(move |one| (command, one)));
    let line = |(command, argument): (&Command, &Arg)| {
        let values = argument.get_possible_values();
        let values: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
        let (name, values) = (command.get_name(), values.join(" "));
        let line = || format!("complete -c jobq -n \"__fish_jobq_using_subcommand {name}\" -f -a \"{values}\"\n");
        (!values.is_empty()).then(line)
    };
    arguments.filter_map(line).collect()
}
