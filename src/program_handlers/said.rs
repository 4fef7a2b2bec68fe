//! What a program says while it runs: JSON objects, one on a line.
//!
//! | line | meaning |
//! |---|---|
//! | `{"progress":40,"message":"…"}` | how far it is, at once |
//! | `{"checkpoint":…}` | kept for the next attempt, at once |
//! | `{"enqueue":{"type":…,"payload":…}}` | a job that is queued when this one completes |
//! | `{"put":"out/x.json","from":"x.json"}` | a file it has written into `$JOBQ_STAGE` goes to its place then |
//! | `{"remove":"old.json"}` | a file goes then |

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::printable;
use crate::handler::{Context, HandlerError};
use crate::json::MAX_JSON_BYTES;
use crate::new_job::NewJob;

/// A line may carry a payload.
const LONGEST_LINE: usize = MAX_JSON_BYTES + (64 << 10);
/// What is kept until the program ends, in bytes of lines.
const MOST_KEPT: usize = 64 << 20;
/// Of follow-up jobs, and of files: all of them go into one transaction, and others wait for it.
const MOST_DECLARED: usize = 10_000;
/// Characters of a progress message. It is written down each time.
const LONGEST_MESSAGE: usize = 1_000;
/// It comes back in a variable of the environment, and the system has a limit for those.
const LARGEST_CHECKPOINT: usize = 96 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    progress: Option<f64>,
    message: Option<String>,
    #[serde(default, deserialize_with = "whatever_it_is")]
    checkpoint: Option<Box<RawValue>>,
    enqueue: Option<Box<RawValue>>,
    put: Option<String>,
    from: Option<String>,
    remove: Option<String>,
}

/// Null is a value, too.
fn whatever_it_is<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

/// Something that is to happen to a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Declared {
    Put { path: String, from: String },
    Remove { path: String },
}

/// What a program has said so far.
pub(super) struct Said<'c> {
    ctx: &'c Context,
    unfinished: Vec<u8>,
    lines: usize,
    kept: usize,
    pub(super) declared: Vec<Declared>,
    pub(super) follow_ups: Vec<NewJob>,
}

impl<'c> Said<'c> {
    pub(super) fn to(ctx: &'c Context) -> Self {
        Self { ctx, unfinished: Vec::new(), lines: 0, kept: 0, declared: Vec::new(), follow_ups: Vec::new() }
    }

    /// Takes what has come, in pieces of any size.
    pub(super) fn hear(&mut self, mut bytes: &[u8]) -> Result<(), HandlerError> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.unfinished.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_of_line()?;
        }
        self.unfinished.extend_from_slice(bytes);
        if self.unfinished.len() > LONGEST_LINE {
            return Err(self.wrong(format_args!("is longer than {LONGEST_LINE} bytes")));
        }
        Ok(())
    }

    /// The last line needs no end.
    pub(super) fn end_of_line(&mut self) -> Result<(), HandlerError> {
        let line = std::mem::take(&mut self.unfinished);
        self.lines += 1;
        let text = std::str::from_utf8(&line).map_err(|_| self.wrong("is not UTF-8"))?.trim();
        if text.is_empty() {
            return Ok(());
        }
        let line: Line = serde_json::from_str(text).map_err(|e| self.wrong(e))?;
        self.act(line, text.len())
    }

    fn act(&mut self, line: Line, length: usize) -> Result<(), HandlerError> {
        let things = [
            line.progress.is_some(),
            line.checkpoint.is_some(),
            line.enqueue.is_some(),
            line.put.is_some(),
            line.remove.is_some(),
        ];
        if things.into_iter().filter(|is_said| *is_said).count() != 1 {
            return Err(self.wrong("has to say one thing: progress, checkpoint, enqueue, put or remove"));
        }
        if line.message.is_some() && line.progress.is_none() {
            return Err(self.wrong("has a message without progress"));
        }
        if line.from.is_some() != line.put.is_some() {
            return Err(self.wrong("needs put and from: where a file goes, and what it is called in $JOBQ_STAGE"));
        }
        if let Some(percent) = line.progress {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
            let percent = percent.clamp(0.0, 100.0) as u8;
            let message: String = line.message.unwrap_or_default().chars().take(LONGEST_MESSAGE).collect();
            self.ctx.progress(percent, printable(&message));
            return Ok(());
        }
        if let Some(value) = line.checkpoint {
            if value.get().len() > LARGEST_CHECKPOINT {
                return Err(self.wrong(format_args!("has a checkpoint of more than {LARGEST_CHECKPOINT} bytes")));
            }
            return self.ctx.checkpoint(&value);
        }
        if let Some(job) = line.enqueue {
            self.follow_ups.push(NewJob::from_json(job.get()).map_err(|e| self.wrong(e))?);
        }
        if let (Some(path), Some(from)) = (line.put, line.from) {
            self.declared.push(Declared::Put { path: self.path(&path)?, from: self.path(&from)? });
        }
        if let Some(path) = line.remove {
            self.declared.push(Declared::Remove { path: self.path(&path)? });
        }
        self.keep(length)
    }

    fn path(&self, path: &str) -> Result<String, HandlerError> {
        crate::normalise_path(path).map_err(|e| self.wrong(e))
    }

    fn keep(&mut self, length: usize) -> Result<(), HandlerError> {
        if self.follow_ups.len() > MOST_DECLARED {
            return Err(self.wrong(format_args!("is one too many: more than {MOST_DECLARED} follow-up jobs")));
        }
        if self.declared.len() > MOST_DECLARED {
            return Err(self.wrong(format_args!("is one too many: more than {MOST_DECLARED} files")));
        }
        self.kept += length;
        if self.kept > MOST_KEPT {
            return Err(self.wrong(format_args!("is one too many: more than {MOST_KEPT} bytes were declared")));
        }
        Ok(())
    }

    /// The same program will say the same again, so another attempt is no help.
    fn wrong(&self, why: impl std::fmt::Display) -> HandlerError {
        let line = self.lines.max(1);
        HandlerError::permanent(format_args!("line {line} on JOBQ_FD {why}")).with_code("protocol_error")
    }
}

#[cfg(test)]
mod properties;
