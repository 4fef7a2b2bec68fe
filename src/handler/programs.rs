//! Programs that a handler runs for its job.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Context, HandlerError, Run, Stop};
use crate::programs::{self, Client, Ending, Program, ProgramEnd, RunError};

/// What a program says while it runs. An error ends it.
pub(crate) type Listener<'l> = &'l mut dyn FnMut(&[u8]) -> Result<(), HandlerError>;

impl Context {
    /// Runs a program and waits for its end. When the job is to stop (a cancel, its
    /// timeout, the worker's end), the program and all that it has started is ended
    /// and this returns an error to return with. Nothing of it lives when this
    /// returns.
    ///
    /// The worker needs a [`Supervisor`](crate::Supervisor) for that.
    pub fn run_program(&self, program: &Program) -> Result<ProgramEnd, HandlerError> {
        self.run_program_hearing(program, &mut |_| Ok(()))
    }

    /// The same with someone who listens to the line protocol.
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
        // It may have ended well because it was told to end; that says nothing of its work.
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
            // The program may have done its work, or killed its supervisor: without a cost it could do so for ever.
            RunError::NoReport(error) => {
                let why = format_args!("the supervisor of {} ended without a report: {error}", program.name());
                HandlerError::retry(why).with_code("supervisor_killed")
            }
        })
    }
}

/// Says that something of the job lives, for as long as this does.
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
        // Another worker may be at a job that was lost by now: there is no time for a grace.
        self.run.stop().map(|stop| if stop == Stop::Lost { Ending::AtOnce } else { Ending::Graceful })
    }

    fn heard(&mut self, bytes: &[u8]) -> bool {
        if self.failed.is_none() {
            self.failed = (self.listener)(bytes).err();
        }
        self.failed.is_none()
    }
}

fn cannot_run(program: &Program, error: &io::Error) -> HandlerError {
    // Not the job's fault, and others of its kind would fare no better just now.
    HandlerError::retry(format_args!("cannot run {}: its supervisor: {error}", program.name()))
        .with_code("supervisor_error")
        .pausing_type(Duration::from_secs(1))
}

/// What is wrong with the program itself, no other attempt can help.
fn not_started(program: &Program, error: &io::Error) -> HandlerError {
    let name = program.name();
    match error.kind() {
        io::ErrorKind::NotFound => {
            let why =
                format_args!("cannot start {name}: there is no such program, or none that its first line (#!) names");
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
            "cannot start {name}: it is no program for this machine; a script begins with #! and its interpreter"
        ))
        .with_code("program_refused"),
        _ => HandlerError::retry(format_args!("cannot start {name}: {error}")).with_code("program_error"),
    }
}
