//! The command line. One file per command; the words are those of the library.

mod args;
mod blame;
mod cancel;
mod commit;
mod completions;
mod config;
mod doctor;
mod enqueue;
mod events;
mod extract;
mod gone;
mod handlers;
mod ids;
mod init;
mod known_types;
mod lifecycle;
mod list;
mod locate;
mod man;
mod output;
mod parents;
mod progress;
mod prune;
mod reclaim;
mod reconcile;
mod retry;
mod show;
mod site;
mod stats;
mod table;
mod text;
mod top;
mod trust;
mod watch;
mod worker;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::Parser as _;
use jobq::{ErrorKind, Supervisor};
use tracing_subscriber::filter::LevelFilter;

use self::args::{Cli, Command, Global, SiteCommand};
use self::config::{How, Source};
use self::locate::Place;
use self::output::Output;

/// How a command ended, other than by an error of the queue.
pub(crate) enum Failure {
    Queue(jobq::Error),
    /// The reader of our output has gone, and that was all there was to do; nothing is wrong.
    OutputClosed,
    /// What there was to say could not be said.
    OutputFailed(io::Error),
}

impl From<jobq::Error> for Failure {
    fn from(error: jobq::Error) -> Self {
        Self::Queue(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::OutputClosed } else { Self::OutputFailed(error) }
    }
}

/// Exit code 5 says that nothing has happened. A command that changes something has done so before it says so.
fn without_output(error: &io::Error, command: &Command) -> jobq::Error {
    let message = format!("cannot write the output: {error}");
    if command.only_looks() {
        return jobq::Error::new(ErrorKind::Io, message);
    }
    let ask = "what it was about may have been done: look, or ask again with the same id or key";
    jobq::Error::new(ErrorKind::OutcomeUnknown, format!("{message}; {ask}"))
}

/// What a command answers: yes, or "it ran and the answer is no".
pub(crate) enum Answer {
    Yes,
    No,
    /// Some of several items failed; the errors have been printed.
    Failed(jobq::ErrorKind),
}

pub(crate) type Outcome = Result<Answer, Failure>;

pub(crate) fn main(supervisor: Supervisor) -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        // The message repeats what was typed, so what was typed is made printable first.
        let typed = std::env::args_os().map(|word| jobq::printable(&word.to_string_lossy()));
        Cli::try_parse_from(typed).err().unwrap_or(error).exit()
    });
    init_logging(&cli);
    let mut output = Output::new(cli.global.json, cli.global.quiet);
    let outcome = run(&cli, supervisor, &mut output);
    let code = match (outcome, output.close().map_err(Failure::from)) {
        // Who stops reading has heard enough, and the answer is what it is.
        (Ok(Answer::Failed(kind)), _) => exit_code(kind),
        (Ok(_), Err(Failure::OutputFailed(error))) | (Err(Failure::OutputFailed(error)), _) => {
            // Not the database's fault: there is nothing for the doctor to look at.
            let error = without_output(&error, &cli.command);
            print_error(&error);
            exit_code(error.kind())
        }
        (Ok(Answer::Yes) | Err(Failure::OutputClosed), _) => 0,
        (Ok(Answer::No), _) => 1,
        (Err(Failure::Queue(error)), _) => {
            print_error(&error);
            if let Some(next) = next_step(error.kind(), &cli.command) {
                let _ = output.hint(next);
            }
            exit_code(error.kind())
        }
    };
    ExitCode::from(code)
}

fn run(cli: &Cli, supervisor: Supervisor, out: &mut Output) -> Outcome {
    let place = || Place::find(&cli.global);
    match &cli.command {
        Command::Init(args) => init::run(args, &cli.global, out),
        Command::Enqueue(args) => enqueue::run(args, &place()?, out),
        Command::Commit(args) => commit::run(args, &place()?, out),
        Command::Extract(args) => extract::run(args, &cli.global, out),
        Command::Worker(args) => worker::run(args, &place()?, supervisor, out, cli.global.quiet),
        Command::Reconcile(args) => reconcile::run(args, &place()?, out),
        Command::Blame(args) => blame::run(args, &place()?, out),
        Command::List(args) => list::run(args, &place()?, out),
        Command::Show(args) => show::run(args, &place()?, out),
        Command::Events(args) => events::run(args, &place()?, out),
        Command::Stats => stats::run(&place()?, out),
        Command::Top(args) => top::run(args, &cli.global),
        Command::Retry(args) => retry::run(args, &place()?, out),
        Command::Cancel(args) => cancel::run(args, &place()?, out),
        Command::Reclaim(args) => reclaim::run(args, &place()?, out),
        Command::Prune(args) => prune::run(args, &place()?, out),
        Command::Doctor(args) => doctor::run(args, &cli.global, out),
        Command::Site(SiteCommand::Attach(args)) => site::attach(args, &cli.global, out),
        Command::Handlers(args) => handlers::run(args, &place()?, out),
        Command::Config => config::run(&cli.global, out),
        Command::Completions(args) => completions::run(args, out),
        Command::Man(args) => man::run(args, out),
    }
}

pub(crate) fn print_error(error: &jobq::Error) {
    let style = output::RED;
    output::tell(format_args!("{style}error:{style:#} {}", jobq::printable(&error.to_string())));
}

/// Nothing is refused for it, but somebody should look.
pub(crate) fn print_warning(warning: &impl std::fmt::Display) {
    let style = output::YELLOW;
    output::tell(format_args!("{style}warning:{style:#} {}", jobq::printable(&warning.to_string())));
}

/// What to do next, where a message alone does not lead anywhere.
fn next_step(kind: ErrorKind, command: &Command) -> Option<&'static str> {
    match (kind, command) {
        // There is no database yet, or none is concerned.
        (_, Command::Init(_) | Command::Man(_) | Command::Completions(_)) => None,
        (ErrorKind::Busy, _) => Some("`jobq doctor` names the process that holds the lock"),
        (ErrorKind::ReadOnly | ErrorKind::Corrupt | ErrorKind::Io, _) => {
            Some("`jobq doctor` looks at the database and its place")
        }
        _ => None,
    }
}

/// The contract of the exit codes; 0 and 1 are answers, not errors.
fn exit_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Invalid => 2,
        ErrorKind::NotFound | ErrorKind::NoDatabase => 3,
        ErrorKind::LeaseLost | ErrorKind::WrongState | ErrorKind::Conflict | ErrorKind::PathBusy => 4,
        ErrorKind::OutcomeUnknown => 6,
        _ => 5,
    }
}

/// What is logged: `-v` says more and `-q` less; without either, `JOBQ_LOG` says it
/// exactly.
pub(crate) fn log_level(global: &Global) -> (String, How) {
    let of_flag = |level: &str, flag| (level.to_owned(), (Source::Flag, Some(flag)));
    match (global.quiet, global.verbose) {
        (true, _) => return of_flag("error", "-q"),
        (_, 0) => {}
        (_, 1) => return of_flag("info", "-v"),
        (_, 2) => return of_flag("debug", "-vv"),
        _ => return of_flag("trace", "-vvv"),
    }
    match std::env::var("JOBQ_LOG") {
        Ok(level) if !level.is_empty() && log_slip(&level).is_none() => (level, (Source::Env, Some("JOBQ_LOG"))),
        _ => ("warn".to_owned(), (Source::Default, None)),
    }
}

/// What is wrong with a value of `JOBQ_LOG`. A word that is no level would be taken for the name of a module, and
/// everything else would be silent.
fn log_slip(level: &str) -> Option<String> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    let levels = LEVELS.join(", ");
    if tracing_subscriber::EnvFilter::try_new(level).is_err() {
        return Some(format!("write a level ({levels}) or parts of the program with theirs, as jobq=debug"));
    }
    let says_something = |word: &str| word.parse::<LevelFilter>().is_ok() || is_module(word);
    let slip = level.split(',').map(str::trim).find(|word| !word.contains(['=', '[']) && !says_something(word))?;
    let begins = |known: &&str| slip.to_lowercase().starts_with(known);
    Some(match LEVELS.into_iter().find(begins).or_else(|| config::nearest(slip, &LEVELS)) {
        Some(meant) => format!("did you mean `{meant}`? The levels are {levels}"),
        None => format!("`{slip}` is no level and no part of the program; the levels are {levels}"),
    })
}

/// Whether anything is logged under this name: a crate's, or that of a module in it.
fn is_module(word: &str) -> bool {
    const CRATES: [&str; 9] =
        ["jobq", "h2", "hyper", "hyper_rustls", "hyper_util", "rustls", "tokio", "tokio_util", "tower"];
    let name = word.split("::").next().unwrap_or(word);
    CRATES.contains(&name) || name.starts_with("aws_")
}

/// Warnings and logs go to stderr.
fn init_logging(cli: &Cli) {
    use tracing_subscriber::EnvFilter;
    if let Ok(level) = std::env::var("JOBQ_LOG")
        && let Some(why) = log_slip(&level).filter(|_| !level.is_empty() && !cli.global.quiet)
    {
        print_warning(&format_args!("JOBQ_LOG is `{level}` and not heeded; {why}"));
    }
    let (level, (source, _)) = log_level(&cli.global);
    let mut filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("warn"));
    // Drift is logged for those who read logs of what a worker does. `reconcile` has it as its result, and on a screen of
    // its own a worker counts it.
    let on_screen = output::for_people() && io::stderr().is_terminal() && !cli.global.json;
    let is_told = matches!((&cli.command, on_screen), (Command::Reconcile(_), _) | (Command::Worker(_), true));
    if source == Source::Default && is_told {
        filter = "jobq::reconcile::finding=error".parse().into_iter().fold(filter, EnvFilter::add_directive);
    }
    // What the AWS SDK and the HTTP client tell of a call, down to its headers, has credentials in it, and a warning of the
    // SDK's has what a `credential_process` has printed. Who wants that has to name the crate.
    let discreet =
        ["aws_=off", "hyper=warn", "h2=warn", "rustls=warn"].into_iter().filter_map(|rule| rule.parse().ok());
    let filter = discreet.fold(filter, EnvFilter::add_directive);
    // A line in the middle of a screen that is drawn would be of no use to anyone.
    let filter =
        if matches!(cli.command, Command::Top(_)) && io::stderr().is_terminal() { "off".into() } else { filter };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| progress::Logs)
        .with_ansi(anstream::stderr().current_choice() != anstream::ColorChoice::Never)
        .without_time()
        .log_internal_errors(false)
        .init();
}
