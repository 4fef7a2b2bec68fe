//! One manual page, made of what `--help` says, in the sections that such a page has.

use clap::{Arg, Command};
use roff::{Inline, Roff, bold, italic, roman};

use super::help::Help;

/// How the commands are told of on the page of all of them.
#[derive(Clone, Copy)]
pub(super) enum Commands {
    /// By name: they have pages of their own.
    Elsewhere,
    /// With their options.
    Here,
}

/// The page of `jobq` itself. The command is built.
pub(super) fn of_all(command: &Command, commands: Commands) -> Vec<u8> {
    let help = Help::of(command);
    let mut page = begin(command, &help);
    page.control("SH", ["COMMANDS"]);
    for sub in command.get_subcommands() {
        match commands {
            Commands::Elsewhere => {
                page.control("TP", []);
                page.text([bold(name(sub)), roman("(1)")]);
                page.text([roman(about(sub))]);
            }
            Commands::Here => section_of(&mut page, sub),
        }
    }
    page.control("SH", ["OPTIONS"]);
    options(&mut page, command.get_arguments());
    end(&mut page, &help, &help);
    page.control("SH", ["ENVIRONMENT"]);
    for (name, text) in [
        ("JOBQ_DB", "The database file, where --db is not given."),
        (
            "JOBQ_LOG",
            "What is logged on standard error, where neither -v nor -q is given: error, warn, info, debug, trace.",
        ),
        ("NO_COLOR", "No colours if it is set; so with CLICOLOR=0. CLICOLOR_FORCE=1: always."),
    ] {
        item(&mut page, vec![bold(name)], text);
    }
    page.control("SH", ["FILES"]);
    for (name, text) in [
        (".jobq/jobq.db", "The queue, found from the current folder upwards."),
        (".jobq/config.toml", "The settings, each explained where it stands."),
        (".jobq/handlers/", "Programs that handle jobs, named like the type."),
    ] {
        item(&mut page, vec![italic(name)], text);
    }
    written(&page)
}

/// The page of one command of it.
pub(super) fn of_one(command: &Command, of_all: &Help) -> Vec<u8> {
    let help = Help::of(command);
    let mut page = begin(command, &help);
    page.control("SH", ["OPTIONS"]);
    let (own, every) = arguments(command);
    options(&mut page, own.into_iter());
    page.control("SH", ["OPTIONS OF EVERY COMMAND"]);
    options(&mut page, every.into_iter());
    end(&mut page, &help, of_all);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("jobq"), roman("(1)")]);
    written(&page)
}

pub(super) fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn begin(command: &Command, help: &Help) -> Roff {
    let mut page = Roff::new();
    let title = name(command).to_uppercase();
    let source = concat!("jobq ", env!("CARGO_PKG_VERSION"));
    page.control("TH", [&title, "1", "\"\"", source, "jobq manual"]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{} - {}", name(command), about(command)))]);
    page.control("SH", ["SYNOPSIS"]);
    page.text(synopsis(command));
    page.control("SH", ["DESCRIPTION"]);
    let long = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    for paragraph in long.split("\n\n").chain(help.prose.iter().map(String::as_str)) {
        page.control("PP", []);
        prose(&mut page, paragraph);
    }
    page
}

fn end(page: &mut Roff, help: &Help, of_all: &Help) {
    page.control("SH", ["EXAMPLES"]);
    literal(page, help.examples.iter().map(String::as_str));
    page.control("SH", ["EXIT STATUS"]);
    for (code, text) in &of_all.exit_codes {
        item(page, vec![bold(code)], text);
    }
}

/// A command on the page of all.
fn section_of(page: &mut Roff, command: &Command) {
    page.control("SS", [command.get_bin_name().unwrap_or_else(|| command.get_name())]);
    page.text(synopsis(command));
    page.control("PP", []);
    page.text([roman(about(command))]);
    let (own, _) = arguments(command);
    options(page, own.into_iter().filter(|arg| arg.get_id() != "help"));
}

fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

fn synopsis(command: &Command) -> Vec<Inline> {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    vec![bold(name), roman(usage.strip_prefix(name).unwrap_or(usage))]
}

/// Its own, and those that every command has.
fn arguments(command: &Command) -> (Vec<&Arg>, Vec<&Arg>) {
    command.get_arguments().partition(|arg| arg.get_help_heading().is_none())
}

/// What is named by its place first.
fn options<'a>(page: &mut Roff, arguments: impl Iterator<Item = &'a Arg>) {
    let (places, named): (Vec<&Arg>, Vec<&Arg>) = arguments.partition(|arg| arg.is_positional());
    for argument in places.into_iter().chain(named) {
        let values = argument.get_possible_values();
        let values: Vec<&str> = values.iter().map(clap::builder::PossibleValue::get_name).collect();
        let mut text = argument.get_help().map(ToString::to_string).unwrap_or_default();
        if argument.get_id() == "help" {
            // Clap also says how `-h` and `--help` differ, which differs by the page.
            "Print help".clone_into(&mut text);
        }
        if !values.is_empty() && argument.get_action().takes_values() {
            text = format!("{text} (one of {})", values.join(", "));
        }
        let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if !defaults.is_empty() && argument.get_action().takes_values() {
            text = format!("{text} [default: {}]", defaults.join(","));
        }
        item(page, typed(argument), &text);
    }
}

/// An argument as it is typed.
fn typed(argument: &Arg) -> Vec<Inline> {
    let mut typed = Vec::new();
    if let Some(short) = argument.get_short() {
        typed.extend([bold(format!("-{short}")), roman(", ")]);
    }
    if let Some(long) = argument.get_long() {
        typed.push(bold(format!("--{long}")));
    }
    if argument.get_action().takes_values() {
        let name = argument.get_value_names().and_then(|names| names.first()).map_or("", |name| name.as_str());
        typed.extend((!typed.is_empty()).then(|| roman(" ")));
        typed.push(italic(name));
    }
    typed
}

fn item(page: &mut Roff, head: Vec<Inline>, text: &str) {
    page.control("TP", []);
    page.text(head);
    page.text([roman(text.replace('\n', " "))]);
}

/// Lines that are indented stay as they are.
fn prose(page: &mut Roff, paragraph: &str) {
    let lines: Vec<&str> = paragraph.lines().collect();
    for part in lines.chunk_by(|a, b| a.starts_with(' ') == b.starts_with(' ')) {
        if part[0].starts_with(' ') {
            literal(page, part.iter().copied());
        } else {
            page.text([roman(part.join(" "))]);
        }
    }
}

fn literal<'a>(page: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    page.control("RS", ["4"]);
    page.control("nf", []);
    for line in lines {
        page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    page.control("fi", []);
    page.control("RE", []);
}

fn written(page: &Roff) -> Vec<u8> {
    page.render().into_bytes()
}
