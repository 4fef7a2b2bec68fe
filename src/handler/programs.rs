//! Runs programs for a handler's job.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Context, HandlerError, Run, Stop};
use crate::programs::{self, Client, Ending, Program, ProgramEnd, RunError};

/// Takes the lines that a program writes while it runs. An error ends the program.
pub(crate) type Listener<'l> = &'l mut dyn FnMut(&[u8]) -> Result<(), HandlerError>;

impl Context {
    /// Runs a program and waits for its end. When the job must stop (a cancel, its
    /// timeout, the worker's end), this ends the program and all that it has started, and
    /// returns an error that the handler should return. All processes of the program are
    /// dead when this returns.
    ///
    /// If the program's supervisor is killed before it reports, this returns an error with
    /// the code `supervisor_killed`. The attempt counts if the handler returns it.
    ///
    /// The worker needs a [`Supervisor`](crate::Supervisor) for that.
    pub fn run_program(&self, program: &Program) -> Result<ProgramEnd, HandlerError> {
        self.run_program_hearing(program, &mut |_| Ok(()))
    }

    /// The same, with a listener for the line protocol.
    pub(crate) fn run_program_hearing(
        &self,
        program: &Program,
        listener: Listener<'_>,
    ) -> Result<ProgramEnd, HandlerError> {
        let Some(link) = &self.programs else {
            let why = "this worker cannot run programs: it was made without WorkerOptions::supervisor";
            return Err(HandlerError::permanent(why).with_code("no_supervisor"));
        };
        let event = self.run.stop_event().map_err(|e| cannot_run(program, &e))?;
        if self.stop().is_some() {
            self.check()?;
        }
        let mut attended = Attended { run: &self.run, event, listener, failed: None };
        let _lives = Lives::of(&self.run);
        let end = programs::run(link, program, self.root(), &mut attended);
        if let Some(error) = attended.failed {
            return Err(error);
        }
        // A program that was told to end may exit with 0, which says nothing about its work.
        if self.stop().is_some() {
            self.check()?;
        }
        end.map_err(|error| match error {
            RunError::NotStarted(error) => not_started(program, &error),
            RunError::NoFolder(error) => {
                HandlerError::retry(format_args!("cannot enter the folder to run {} in: {error}", program.name()))
                    .with_code("program_error")
            }
            RunError::Supervisor(error) => cannot_run(program, &error),
            // This costs an attempt: a program that kills its supervisor could otherwise do so for ever.
            RunError::NoReport(error) => {
                let why = format_args!("no report from the supervisor of {}: {error}", program.name());
                HandlerError::retry(why).with_code("supervisor_killed")
            }
        })
    }
}

/// Marks the job as having a program while this value lives.
struct Lives<'r>(&'r Run);

impl<'r> Lives<'r> {
    fn of(run: &'r Run) -> Self {
        run.has_program.store(true, Ordering::Release);
        Self(run)
    }
}

impl Drop for Lives<'_> {
    fn drop(&mut self) {
        self.0.has_program.store(false, Ordering::Release);
    }
}

struct Attended<'a> {
    run: &'a Run,
    event: &'a OwnedFd,
    listener: Listener<'a>,
    failed: Option<HandlerError>,
}

impl Client for Attended<'_> {
    fn wake(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn wants_end(&self) -> Option<Ending> {
        // Another worker may run a lost job by now, so there is no time for a grace.
        self.run.stop().map(|stop| if stop == Stop::Lost { Ending::AtOnce } else { Ending::Graceful })
    }

    fn receive(&mut self, bytes: &[u8]) -> bool {
        if self.failed.is_none() {
            self.failed = (self.listener)(bytes).err();
        }
        self.failed.is_none()
    }
}

fn cannot_run(program: &Program, error: &io::Error) -> HandlerError {
    // This is not the job's fault, and other jobs of the type would fail in the same way now.
    HandlerError::retry(format_args!("cannot run {}: its supervisor: {error}", program.name()))
        .with_code("supervisor_error")
        .pausing_type(Duration::from_secs(1))
}

/// Most of these errors are the program's own, and another attempt cannot help.
fn not_started(program: &Program, error: &io::Error) -> HandlerError {
    let name = program.name();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let why = format_args!(
                "cannot start {name}: there is no such program, or its first line (#!) names none that exists"
            );
            HandlerError::permanent(why).with_code("program_missing")
        }
        io::ErrorKind::PermissionDenied => {
            HandlerError::permanent(format_args!("cannot start {name}: it may not be executed; `chmod +x` lets it"))
                .with_code("program_refused")
        }
        io::ErrorKind::ArgumentListTooLong => {
            HandlerError::permanent(format_args!("cannot start {name}: its arguments or its environment are too long"))
                .with_code("program_refused")
        }
        io::ErrorKind::InvalidInput => {
            HandlerError::permanent(format_args!("cannot start {name}: {error}")).with_code("program_refused")
        }
        _ if error.raw_os_error() == Some(libc::ENOEXEC) => HandlerError::permanent(format_args!(
            "cannot start {name}: it is not a program for this machine; a script must begin with #! and its interpreter"
        ))
        .with_code("program_refused"),
        _ => HandlerError::retry(format_args!("cannot start {name}: {error}")).with_code("program_error"),
    }
}
