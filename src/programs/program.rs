//! What to run, and how it ended.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use super::environment::Environment;

/// What is kept of what a program prints, unless said otherwise.
pub(crate) const KEEP: usize = 1 << 20;
/// What a program has between being asked to end and being made to.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// A program to be run by a handler: see [`Context::run_program`](crate::Context::run_program).
///
/// It gets the environment that it is given here and a short list of what the
/// worker's has (`PATH`, `HOME`, `LANG` and the like), nothing else of the worker,
/// and never a shell.
///
/// ```
/// use jobq::Program;
/// let convert = Program::new("convert").args(["in.png", "out.jpg"]).pass_env(["MAGICK_*"]);
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) command: Vec<OsString>,
    pub(super) stdin: Vec<u8>,
    pub(super) folder: Option<PathBuf>,
    pub(super) environment: Environment,
    pub(super) keep: usize,
    pub(super) grace: Duration,
    pub(super) has_protocol: bool,
}

impl Program {
    /// A program by its path, relative to the folder it runs in, or by its name in
    /// `PATH`.
    pub fn new(command: impl Into<OsString>) -> Self {
        Self {
            command: vec![command.into()],
            stdin: Vec::new(),
            folder: None,
            environment: Environment::default(),
            keep: KEEP,
            grace: GRACE,
            has_protocol: false,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.command.push(argument.into());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.command.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// What it reads from its standard input; nothing unless said.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// The folder it runs in; the root unless said.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Variables of the worker's environment that it gets, too, by name or by the
    /// beginning of a name (`AWS_*`).
    #[must_use]
    pub fn pass_env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.environment.pass(names);
        self
    }

    /// A variable of its own.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.set(name, value);
        self
    }

    /// How many bytes are kept of each of its outputs, the last ones; 1 MiB unless
    /// said.
    #[must_use]
    pub fn keep_output(mut self, bytes: usize) -> Self {
        self.keep = bytes;
        self
    }

    /// How long it has to end when it is asked to, before it is made to; 3 s unless
    /// said.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// It speaks the line protocol.
    pub(crate) fn with_protocol(mut self) -> Self {
        self.has_protocol = true;
        self
    }

    /// What no program can be given.
    pub(super) fn has_zero_byte(&self) -> bool {
        let command = self.command.iter().map(OsString::as_os_str);
        let folder = self.folder.iter().map(|folder| folder.as_os_str());
        command.chain(folder).chain(self.environment.own()).any(|text| text.as_bytes().contains(&0))
    }

    /// Its name, for messages. Arguments may be nobody's business.
    pub(crate) fn name(&self) -> String {
        crate::printable(&self.command[0].to_string_lossy())
    }
}

/// How a program ended, and what it printed.
///
/// ```
/// use jobq::{Context, HandlerError, Outcome, Program};
/// fn count_lines(ctx: &Context) -> Result<Outcome<String>, HandlerError> {
///     let end = ctx.run_program(&Program::new("wc").args(["-l", "data.csv"]))?;
///     if !end.exit.is_success() {
///         let said = String::from_utf8_lossy(&end.stderr);
///         return Err(HandlerError::retry(format_args!("wc: {}: {said}", end.exit)));
///     }
///     Ok(Outcome::new(String::from_utf8_lossy(&end.stdout).into_owned()))
/// }
/// # let _ = count_lines;
/// ```
#[derive(Clone, Debug)]
pub struct ProgramEnd {
    /// How it ended.
    pub exit: Exit,
    /// The last of its standard output.
    pub stdout: Vec<u8>,
    /// The last of its standard error.
    pub stderr: Vec<u8>,
    /// There was more output before what was kept.
    pub stdout_cut: bool,
    /// The same for errors.
    pub stderr_cut: bool,
}

/// How a program ended.
///
/// ```
/// use jobq::Exit;
/// assert!(Exit::Code(0).is_success());
/// assert_eq!(Exit::Signal(9).to_string(), "signal 9 (SIGKILL)");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// It says that all went well.
    #[must_use]
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "signal {number} ({name})"),
                None => write!(f, "signal {number}"),
            },
        }
    }
}

/// Those that end programs.
fn signal_name(number: i32) -> Option<&'static str> {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.into_iter().find(|(signal, _)| signal.as_raw() == number).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_said_in_words() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Signal(9).to_string(), "signal 9 (SIGKILL)");
        assert_eq!(Exit::Signal(63).to_string(), "signal 63");
    }
}
