use clap::{Command as ClapCommand, CommandFactory as _};

use super::Cli;

fn help_of(command: &ClapCommand) -> String {
    command.get_after_help().map(ToString::to_string).unwrap_or_default()
}

/// The words of a line as a shell sees them, up to the end of the command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
            '|' | '>' | '&' if !quoted => break,
            c => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[test]
fn every_command_has_an_example_of_itself_and_every_example_can_be_typed() {
    Cli::command().debug_assert();
    for command in Cli::command().get_subcommands() {
        let (name, help) = (command.get_name(), help_of(command));
        let own = format!("jobq {name}");
        let examples: Vec<&str> = help.lines().filter_map(|line| line.find("jobq ").map(|at| &line[at..])).collect();
        assert!(help.contains("Example") && examples.iter().any(|line| line.starts_with(&own)), "{name}: {help}");
        assert!(command.get_about().is_some(), "{name} says what it does");
        // Prose names commands within `…`.
        for line in examples.iter().filter(|line| !line.contains('`')) {
            let typed = Cli::command().try_get_matches_from(words(line));
            assert!(typed.is_ok(), "{line}: {}", typed.err().unwrap());
        }
    }
}

#[test]
fn every_argument_says_what_it_is() {
    for command in Cli::command().get_subcommands() {
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{} of {}", argument.get_id(), command.get_name());
        }
    }
}
