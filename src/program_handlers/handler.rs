//! One attempt of a job by a program.

use std::sync::Arc;

use super::folder::Folder;
use super::result::last_object;
use super::said::{Declared, Said};
use crate::error::printable;
use crate::handler::{AnyHandler, Context, Ended, HandlerError, Outcome, Prepared};
use crate::job::Job;
use crate::json;
use crate::programs::{Exit, PROTOCOL_FD, Program, ProgramEnd};

/// How much of what a program complained about becomes the job's error.
const LONGEST_COMPLAINT: usize = 2000;

pub(super) struct ProgramHandler {
    job_type: String,
    folder: Arc<Folder>,
}

impl ProgramHandler {
    pub(super) fn new(job_type: String, folder: Arc<Folder>) -> Self {
        Self { job_type, folder }
    }

    fn program(&self, job: &Job) -> Result<Program, HandlerError> {
        let command = self.folder.command(&self.job_type).ok_or_else(|| {
            let why = format_args!("the program of {} is gone from {}", self.job_type, self.folder.path().display());
            HandlerError::retry(why).with_code("program_missing")
        })?;
        // A key made from the payload is that of every job with this payload: the same mail of another day would be
        // taken for one that was sent.
        let is_given = |key: &&str| !key.is_empty() && !key.starts_with(json::DEFAULT_KEY);
        let key = job.idempotency_key.as_deref().filter(is_given).unwrap_or(&job.id);
        let checkpoint = job.checkpoint.as_ref().map_or("", |text| text.as_str());
        Ok(self
            .folder
            .settings_of(&self.job_type)
            .program(&command)
            .with_protocol()
            .stdin(job.payload.as_str())
            .env("JOBQ_JOB_ID", &job.id)
            .env("JOBQ_TYPE", &job.job_type)
            .env("JOBQ_ATTEMPT", job.attempts.to_string())
            .env("JOBQ_TOKEN", job.token.to_string())
            .env("JOBQ_IDEMPOTENCY_KEY", key)
            .env("JOBQ_CHECKPOINT", checkpoint)
            .env("JOBQ_CORRELATION_ID", job.correlation_id.as_deref().unwrap_or_default())
            .env("JOBQ_FD", PROTOCOL_FD.to_string()))
    }
}

impl AnyHandler for ProgramHandler {
    fn run(&self, ctx: &Context, job: &Job) -> Result<Prepared, HandlerError> {
        if let Some(schema) = self.folder.schema(&self.job_type) {
            if let Some(problem) = schema.problem() {
                return Err(HandlerError::retry(problem).with_code("schema_error"));
            }
            schema.check(job.payload.as_str())?;
        }
        let stage = ctx.files.stage_folder_for(&ctx.run.lease)?;
        let program = self.program(job)?.env("JOBQ_ROOT", ctx.root()).env("JOBQ_STAGE", stage.path());
        let mut said = Said::to(ctx);
        let end = ctx.run_program_hearing(&program, &mut |bytes| said.hear(bytes))?;
        if !end.exit.is_success() {
            return Err(self.failed(&end));
        }
        said.end_of_line()?;
        if !end.stderr.is_empty() {
            tracing::debug!(job_id = job.id, stderr = complaint(&end.stderr), "what the program said on stderr");
        }
        let mut outcome = Outcome::new(result(&end)?);
        for declared in said.declared {
            outcome = match declared {
                Declared::Put { path, from } => {
                    let staged = stage.adopt(&from, &ctx.run.lease, ctx.next_stage_number())?;
                    outcome.put(path, staged)
                }
                Declared::Remove { path } => outcome.remove(path),
            };
        }
        Prepared::of(said.follow_ups.into_iter().fold(outcome, Outcome::follow_up))
    }

    fn runs_programs(&self) -> bool {
        true
    }

    fn on_success(&self, _ended: &Ended<'_>) -> Result<(), HandlerError> {
        Ok(())
    }

    fn on_failure(&self, _ended: &Ended<'_>) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl ProgramHandler {
    fn failed(&self, end: &ProgramEnd) -> HandlerError {
        let said = complaint(&end.stderr);
        let message = if said.is_empty() { end.exit.to_string() } else { format!("{}: {said}", end.exit) };
        let (error, details) = match end.exit {
            Exit::Code(code) if self.folder.settings_of(&self.job_type).is_permanent(code) => (
                HandlerError::permanent(message).with_code("program_refused_input"),
                serde_json::json!({ "exit_code": code }),
            ),
            Exit::Code(code) => {
                (HandlerError::retry(message).with_code("program_failed"), serde_json::json!({ "exit_code": code }))
            }
            Exit::Signal(signal) => {
                (HandlerError::retry(message).with_code("program_killed"), serde_json::json!({ "signal": signal }))
            }
        };
        error.with_details(details)
    }
}

/// The object the program printed last, as it was printed.
fn result(end: &ProgramEnd) -> Result<Option<Box<serde_json::value::RawValue>>, HandlerError> {
    let invalid = |why: &dyn std::fmt::Display| {
        HandlerError::permanent(format_args!("its result cannot be kept: {why}")).with_code("invalid_outcome")
    };
    let Some(text) = last_object(&end.stdout, end.stdout_cut).map_err(|why| invalid(&why))? else { return Ok(None) };
    json::check_limits(&text)
        .and_then(|()| json::parse(&text).map_err(|e| crate::Error::invalid("result", e)))
        .map(Some)
        .map_err(|e| invalid(&e))
}

/// The end of what a program complained about, whole lines if there are any.
fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let text = text.trim();
    let from = text.char_indices().rev().nth(LONGEST_COMPLAINT - 1).map_or(0, |(at, _)| at);
    let end = &text[from..];
    let end = if from > 0 { end.split_once('\n').map_or(end, |(_, whole)| whole) } else { end };
    end.lines().map(printable).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_the_end_of_what_was_said() {
        assert_eq!(complaint(b" \n"), "");
        assert_eq!(complaint(b"one\ntwo\x1b[31m\n"), "one\ntwo\u{fffd}[31m");
        let long = format!("{}\nlast line\n", "word ".repeat(1000));
        assert_eq!(complaint(long.as_bytes()), "last line");
        assert_eq!(complaint("ü".repeat(5000).as_bytes()).chars().count(), LONGEST_COMPLAINT);
    }
}
