//! A job type whose payload is a script, so that a test says in one place what
//! its jobs do. Every run leaves a line in a log outside the root.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jobq::{Context, DefaultKey, Ended, Handler, HandlerError, Hold, NewJob, Outcome, Payload};
use serde::{Deserialize, Serialize};

/// What a job does, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Act {
    pub deeds: Vec<Deed>,
    /// A path it declares.
    #[serde(default)]
    pub hold: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Deed {
    /// Puts a file; `{worker}` stands for the name of the process.
    Put {
        path: String,
        content: String,
    },
    /// Waits until this file is there, whatever it is told; `{worker}` as in `Put`.
    WaitFor(PathBuf),
    /// Goes on until it is told to stop, and obeys.
    UntilToldToStop,
    /// Ends the process without a word.
    Abort,
    /// Ends the process if this is an attempt before that one.
    AbortBefore(u32),
    Panic,
    /// Fails, to be repeated, if this is an attempt before that one.
    RetryBefore(u32),
    Permanent,
    /// Fails and pauses its type for so many milliseconds; the next time it goes on.
    PauseTypeOnce(u64),
    /// Fails that many times and pauses its type each time, for as long as its context says.
    PauseTypeByBackoff(u32),
    /// Fails and leaves this, if this is an attempt before that one.
    LeaveBefore(u32, serde_json::Value),
    Checkpoint(u64),
    /// Notes in the log what an earlier attempt has left.
    NoteCheckpoint,
    Progress(u8),
    /// Takes its time.
    Pause(u64),
    FollowUp {
        id: String,
        content: String,
        correlation: Option<String>,
    },
    /// What no queue would take.
    BadFollowUp,
    /// One that waits on this job.
    FollowUpAfter(String),
    /// What its hooks do.
    HooksPanic,
    HooksFail,
    HooksHang,
    /// Goes on until it is told to stop, and says something of its own.
    UntilToldThenComplain,
    /// Leaves a line in the log.
    Note,
}

impl Payload for Act {
    const TYPE: &'static str = "act";
    type Output = ();

    fn holds(&self) -> jobq::Result<Vec<Hold>> {
        self.hold.iter().map(|path| Hold::path(path)).collect()
    }

    fn default_key(&self) -> DefaultKey {
        // Every job is another one, however alike.
        DefaultKey::Key(ulid::Ulid::generate().to_string())
    }
}

/// A job with this script.
pub fn act(deeds: impl IntoIterator<Item = Deed>) -> NewJob {
    NewJob::of(&Act { deeds: deeds.into_iter().collect(), hold: None })
}

/// The same, on a declared path.
pub fn act_on(path: &str, deeds: impl IntoIterator<Item = Deed>) -> NewJob {
    NewJob::of(&Act { deeds: deeds.into_iter().collect(), hold: Some(path.to_owned()) })
}

pub fn put(path: &str, content: &str) -> Deed {
    Deed::Put { path: path.to_owned(), content: content.to_owned() }
}

/// Does what its payload says.
pub struct Actor {
    pub worker: String,
    pub log: PathBuf,
}

impl Actor {
    fn note(&self, words: std::fmt::Arguments<'_>) {
        note(&self.log, &words.to_string());
    }

    /// That many times. Such attempts do not count, so the checkpoint does.
    fn pause(&self, ctx: &Context, times: u32, pause: Duration) -> Result<(), HandlerError> {
        let before: u32 = ctx.last_checkpoint()?.unwrap_or(0);
        if before >= times {
            return Ok(());
        }
        ctx.checkpoint(&(before + 1))?;
        self.note(format_args!("pause {} {}", ctx.job_id(), pause.as_micros()));
        let error = HandlerError::retry("the service says so").with_code("wait").after(Duration::ZERO);
        Err(error.pausing_type(pause))
    }
}

/// One line, in one write: processes share the log.
pub fn note(log: &Path, words: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(log).unwrap();
    file.write_all(format!("{words}\n").as_bytes()).unwrap();
}

impl Handler for Actor {
    type Payload = Act;

    fn run(&self, ctx: &Context, act: Act) -> Result<Outcome, HandlerError> {
        self.note(format_args!("run {} {} {}", ctx.job_id(), ctx.attempt(), self.worker));
        let mut outcome = Outcome::done();
        for deed in act.deeds {
            match deed {
                Deed::Put { path, content } => {
                    let staged = ctx.stage(content.replace("{worker}", &self.worker).as_bytes())?;
                    outcome = outcome.put(path, staged);
                }
                Deed::WaitFor(file) => {
                    let file = PathBuf::from(file.to_string_lossy().replace("{worker}", &self.worker));
                    while !file.exists() {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                }
                Deed::UntilToldToStop => loop {
                    ctx.check()?;
                    std::thread::sleep(Duration::from_millis(2));
                },
                Deed::UntilToldThenComplain => {
                    while ctx.stop().is_none() {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    let error = HandlerError::retry("a complaint").with_code("complaint");
                    return Err(error.with_result("half an answer").pausing_type(Duration::from_secs(3_600)));
                }
                Deed::Note => self.note(format_args!("note {}", ctx.job_id())),
                Deed::Abort => std::process::abort(),
                Deed::AbortBefore(attempt) if ctx.attempt() < attempt => std::process::abort(),
                Deed::Panic => panic!("as the test wants it"),
                Deed::RetryBefore(attempt) if ctx.attempt() < attempt => {
                    return Err(HandlerError::retry("not yet").with_code("not_yet"));
                }
                Deed::PauseTypeOnce(millis) => self.pause(ctx, 1, Duration::from_millis(millis))?,
                Deed::PauseTypeByBackoff(times) => self.pause(ctx, times, ctx.backoff())?,
                Deed::LeaveBefore(attempt, left) if ctx.attempt() < attempt => {
                    let error = HandlerError::retry("it cannot be used").with_code("useless").after(Duration::ZERO);
                    return Err(error.with_result(left));
                }
                Deed::Permanent => return Err(HandlerError::permanent("never").with_code("never")),
                Deed::Checkpoint(value) => ctx.checkpoint(&value)?,
                Deed::NoteCheckpoint => {
                    let last: Option<u64> = ctx.last_checkpoint()?;
                    self.note(format_args!("checkpoint {} {last:?}", ctx.job_id()));
                }
                Deed::Progress(percent) => ctx.progress(percent, format!("at {percent}")),
                Deed::Pause(millis) => std::thread::sleep(Duration::from_millis(millis)),
                Deed::FollowUp { id, content, correlation } => {
                    let mut job = NewJob::of(&super::act::Act { deeds: vec![put(&id, &content)], hold: None }).id(id);
                    if let Some(correlation) = correlation {
                        job = job.correlation_id(correlation);
                    }
                    outcome = outcome.follow_up(job);
                }
                Deed::FollowUpAfter(id) => {
                    outcome = outcome.follow_up(NewJob::raw("later", "{}").after(id));
                }
                Deed::BadFollowUp => {
                    outcome = outcome.follow_up(NewJob::raw("create_file", r#"{"path":"../outside","content":""}"#));
                }
                Deed::AbortBefore(_)
                | Deed::RetryBefore(_)
                | Deed::LeaveBefore(..)
                | Deed::HooksPanic
                | Deed::HooksFail
                | Deed::HooksHang => {}
            }
        }
        Ok(outcome)
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        self.note(format_args!("success {} {}", ended.job.id, ended.job.attempts));
        hook(ended)
    }

    fn on_failure(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        let code = ended.failure.map_or("none", |failure| failure.code.as_str());
        self.note(format_args!("failure {} {} {code}", ended.job.id, ended.job.attempts));
        hook(ended)
    }
}

fn hook(ended: &Ended<'_>) -> Result<(), HandlerError> {
    let act: Act = ended.job.payload()?;
    for deed in act.deeds {
        match deed {
            Deed::HooksPanic => panic!("a hook, as the test wants it"),
            Deed::HooksHang => loop {
                std::thread::park();
            },
            Deed::HooksFail => return Err(HandlerError::permanent("a hook")),
            _ => {}
        }
    }
    Ok(())
}
