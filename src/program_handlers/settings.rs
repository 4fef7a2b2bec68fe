//! What can be said of the program of one type.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::payload::Defaults;
use crate::programs::Program;

/// The code of `sysexits.h` for input that is wrong: no other attempt can help.
const EX_DATAERR: i32 = 65;

/// How the program of a type is run. What is not said is as for other types.
///
/// ```
/// use jobq::{Defaults, ProgramSettings};
/// let settings = ProgramSettings {
///     permanent_exit_codes: vec![2],
///     pass_env: vec!["AWS_*".to_owned()],
///     defaults: Defaults { max_attempts: 5, ..Defaults::default() },
///     ..ProgramSettings::command(["python3", "tools/resize.py"])
/// };
/// # let _ = settings;
/// ```
#[derive(Clone, Debug)]
pub struct ProgramSettings {
    /// The program and its arguments; the executable of the type's name in the
    /// folder unless said.
    pub command: Option<Vec<String>>,
    /// Attempts, timeout, backoff and retention of jobs that do not bring their own.
    pub defaults: Defaults,
    /// Exit codes that no other attempt can help with, besides 65 (`EX_DATAERR`).
    pub permanent_exit_codes: Vec<i32>,
    /// Variables of the worker's environment that it gets besides the usual ones, by
    /// name or by the beginning of a name (`AWS_*`).
    pub pass_env: Vec<String>,
    /// Variables of its own.
    pub env: BTreeMap<String, String>,
    /// How many bytes are kept of each of its outputs, the last ones.
    pub keep_output: usize,
    /// How long it has to end when it is asked to, before it is made to.
    pub grace: Duration,
}

impl Default for ProgramSettings {
    fn default() -> Self {
        Self {
            command: None,
            defaults: Defaults::default(),
            permanent_exit_codes: Vec::new(),
            pass_env: Vec::new(),
            env: BTreeMap::new(),
            keep_output: crate::programs::KEEP,
            grace: crate::programs::GRACE,
        }
    }
}

impl ProgramSettings {
    /// A program and its arguments.
    pub fn command(command: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { command: Some(command.into_iter().map(Into::into).collect()), ..Self::default() }
    }

    pub(super) fn is_permanent(&self, exit_code: i32) -> bool {
        exit_code == EX_DATAERR || self.permanent_exit_codes.contains(&exit_code)
    }

    pub(super) fn program(&self, command: &[String]) -> Program {
        let mut words = command.iter();
        let program = Program::new(words.next().cloned().unwrap_or_default())
            .args(words)
            .pass_env(self.pass_env.iter().cloned())
            .keep_output(self.keep_output)
            .grace(self.grace);
        self.env.iter().fold(program, |program, (name, value)| program.env(name, value))
    }
}
