//! A job as it is asked for, and every check that needs no database.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::clock::{Millis, millis};
use crate::error::{Error, Result};
use crate::json;
use crate::payload::{Checked, DefaultKey, Hold, JobTypes, Payload, check_label, check_text, check_type_name};
use crate::retry::Backoff;
use crate::store::{Dedup, EnqueueJob};

/// The longest delay or timeout of a job, a hundred years: beyond it, sums with the
/// present would leave the range of dates.
pub const MAX_TIME: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Against which jobs a key is compared.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{EnqueueOutcome, NewJob, Unique};
/// let once = || NewJob::raw("send_mail", "{}").key("welcome ada").unique(Unique::Always);
/// let first = queue.enqueue(once())?;
/// queue.cancel(&first.id)?;
/// assert_eq!(queue.enqueue(once())?.outcome, EnqueueOutcome::Existing, "although it has ended");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unique {
    /// Against unfinished jobs.
    #[default]
    Active,
    /// Also against finished jobs that are still kept.
    Always,
}

#[derive(Debug)]
enum Key {
    Default,
    None,
    Given(String),
}

/// A job to be queued.
///
/// ```
/// use jobq::NewJob;
/// use std::time::Duration;
///
/// let job = NewJob::raw("send_mail", r#"{"to":"ada@example.org"}"#)
///     .priority(5)
///     .delay(Duration::from_secs(10))
///     .lane("mail");
/// ```
#[derive(Debug)]
pub struct NewJob {
    job_type: String,
    // A typed payload that does not pass its checks is reported by enqueue, so that building a job never fails.
    payload: Result<Content>,
    id: Option<String>,
    key: Key,
    unique: Unique,
    priority: i32,
    run: Run,
    max_attempts: Option<u32>,
    timeout: Option<Duration>,
    backoff: Option<Backoff>,
    lane: Option<String>,
    waiting_on: Option<String>,
    correlation_id: Option<String>,
}

#[derive(Debug)]
enum Content {
    /// From a typed payload: already checked.
    Typed { text: String, checked: Checked, defaults: crate::Defaults },
    /// As given; checked against the table of types when queued.
    Raw(String),
}

#[derive(Clone, Copy, Debug)]
enum Run {
    Now,
    At(Millis),
    After(Duration),
}

impl<P: Payload> From<P> for NewJob {
    fn from(payload: P) -> Self {
        Self::of(&payload)
    }
}

impl NewJob {
    /// A job with a typed payload. An invalid payload is reported by enqueue; so is one
    /// that cannot be read back, such as an `f64` that is not a number: JSON has none, and
    /// `null` is written.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Measured {
    ///     metres: f64,
    /// }
    /// impl jobq::Payload for Measured {
    ///     const TYPE: &'static str = "measured";
    ///     type Output = ();
    /// }
    /// assert!(queue.enqueue(Measured { metres: 1.5 }).is_ok());
    /// assert!(queue.enqueue(Measured { metres: f64::NAN }).unwrap_err().is_invalid());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn of<P: Payload>(payload: &P) -> Self {
        let content = Checked::of(payload).and_then(|checked| {
            let text = serde_json::to_string(payload).map_err(|e| Error::invalid("payload", e))?;
            check_text(&text)?;
            // Numbers that JSON has not become this. Others are not read back: it would cost each job something.
            if text.contains("null") {
                json::parse::<P>(&text).map_err(|e| {
                    Error::invalid("payload", format_args!("could not be read back, so the job could not run: {e}"))
                })?;
            }
            Ok(Content::Typed { text, checked, defaults: P::defaults() })
        });
        Self::with_content(P::TYPE.to_owned(), content)
    }

    /// A job with a payload given as JSON text.
    pub fn raw(job_type: impl Into<String>, payload: impl Into<String>) -> Self {
        Self::with_content(job_type.into(), Ok(Content::Raw(payload.into())))
    }

    fn with_content(job_type: String, payload: Result<Content>) -> Self {
        Self {
            job_type,
            payload,
            id: None,
            key: Key::Default,
            unique: Unique::Active,
            priority: 0,
            run: Run::Now,
            max_attempts: None,
            timeout: None,
            backoff: None,
            lane: None,
            waiting_on: None,
            correlation_id: None,
        }
    }

    /// The job's name: a ULID or UUID. Submitting it again with the same id is
    /// how an unknown outcome is resolved.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Higher runs first.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The same as any unfinished job of this type with this key. Replaces the
    /// type's own rule.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Key::Given(key.into());
        self
    }

    /// Never a duplicate of anything.
    #[must_use]
    pub fn no_key(mut self) -> Self {
        self.key = Key::None;
        self
    }

    /// Against which jobs the key is compared.
    #[must_use]
    pub fn unique(mut self, unique: Unique) -> Self {
        self.unique = unique;
        self
    }

    /// Not before this much time has passed.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.run = Run::After(delay);
        self
    }

    /// Not before this time.
    #[must_use]
    pub fn run_at(mut self, time: SystemTime) -> Self {
        self.run = Run::At(millis(time));
        self
    }

    /// Attempts before the job fails.
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: u32) -> Self {
        self.max_attempts = Some(max_attempts);
        self
    }

    /// How long one attempt may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The wait between attempts.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Jobs of one lane run one at a time, in order.
    #[must_use]
    pub fn lane(mut self, lane: impl Into<String>) -> Self {
        self.lane = Some(lane.into());
        self
    }

    /// Not before this job has completed.
    #[must_use]
    pub fn after(mut self, job: impl Into<String>) -> Self {
        self.waiting_on = Some(job.into());
        self
    }

    /// What it waits on, as it was named.
    #[must_use]
    pub fn parent(&self) -> Option<&str> {
        self.waiting_on.as_deref()
    }

    /// A name for everything that belongs to one cause.
    #[must_use]
    pub fn correlation_id(mut self, correlation_id: impl Into<String>) -> Self {
        self.correlation_id = Some(correlation_id.into());
        self
    }

    /// What is asked for, in one spelling: two requests that ask for the same have
    /// the same.
    pub(crate) fn meaning(&self) -> Result<serde_json::Value> {
        let Ok(Content::Typed { text, .. } | Content::Raw(text)) = &self.payload else {
            return Ok(serde_json::Value::Null);
        };
        let run = match self.run {
            Run::Now => None,
            Run::At(time) => Some(("at", i128::from(time))),
            Run::After(delay) => Some(("after", i128::try_from(delay.as_nanos()).unwrap_or(i128::MAX))),
        };
        let key = match &self.key {
            Key::Default | Key::None => None,
            Key::Given(key) => Some(key),
        };
        Ok(serde_json::json!([
            self.job_type,
            payload_key(text)?,
            self.id,
            key,
            self.unique,
            self.priority,
            run.map(|(kind, time)| (kind, time.to_string())),
            self.max_attempts,
            self.timeout.map(|timeout| timeout.as_nanos().to_string()),
            self.backoff.map(|backoff| (backoff.base_ms, backoff.max_ms)),
            self.lane,
            self.waiting_on,
            self.correlation_id,
        ]))
    }

    /// As a part of a commit: the same side effect must run again for new
    /// content, so it has no default key; it waits on the commit unless it waits
    /// on another job of it, and is found by the commit's id.
    pub(crate) fn in_commit(mut self, commit: &str, waits: bool, id: impl FnOnce() -> String) -> Self {
        if matches!(self.key, Key::Default) {
            self.key = Key::None;
        }
        if waits {
            self.waiting_on.get_or_insert_with(|| commit.to_owned());
        }
        self.correlation_id.get_or_insert_with(|| commit.to_owned());
        self.id.get_or_insert_with(id);
        self
    }

    /// The job it waits for, and its own id, as they were given.
    pub(crate) fn links(&self) -> (Option<&str>, Option<&str>) {
        (self.waiting_on.as_deref(), self.id.as_deref())
    }

    /// When it is to run, if that is not to be reckoned from now.
    pub(crate) fn time(&self) -> Option<Millis> {
        match self.run {
            Run::At(time) => Some(time),
            Run::Now | Run::After(_) => None,
        }
    }

    /// Everything that can be checked without the database, done here, so that
    /// it costs the caller's time and not the writer's.
    pub(crate) fn prepare(self, types: &JobTypes, now: Millis, new_id: impl FnOnce() -> String) -> Result<EnqueueJob> {
        check_type_name(&self.job_type)?;
        let (text, checked, defaults, admitted) = match self.payload? {
            Content::Typed { text, checked, defaults } => (text, checked, defaults, true),
            Content::Raw(text) => match types.check(&self.job_type, &text) {
                Some(checked) => (text, checked?, types.defaults(&self.job_type), true),
                None => (check_text(&text).map(|()| text)?, Checked::unknown(), types.defaults(&self.job_type), false),
            },
        };
        let dedup = match self.key {
            Key::None => Dedup::None,
            Key::Given(key) => {
                check_label("idempotency_key", &key, 512)?;
                Dedup::Key(key)
            }
            Key::Default => match default_dedup(&checked, &text)? {
                // Finished jobs have no holds any more; among those only the payload can tell.
                Dedup::NewestHolder(_) if self.unique == Unique::Always => Dedup::Key(payload_key(&text)?),
                rule => rule,
            },
        };
        let mut holds = checked.holds;
        if let Some(lane) = &self.lane {
            holds.push(Hold::lane(lane)?);
        }
        if let Some(correlation) = &self.correlation_id {
            check_label("correlation_id", correlation, 256)?;
        }
        let backoff = self.backoff.unwrap_or(defaults.backoff);
        let timeout = self.timeout.unwrap_or(defaults.timeout);
        if timeout.is_zero() {
            return Err(Error::invalid("timeout", "must be longer than zero"));
        }
        let max_attempts = self.max_attempts.unwrap_or(defaults.max_attempts);
        if max_attempts == 0 {
            return Err(Error::invalid("max_attempts", "must be at least 1"));
        }
        Ok(EnqueueJob {
            id_given: self.id.is_some(),
            id: match self.id {
                Some(id) => check_id(&id)?,
                None => new_id(),
            },
            job_type: self.job_type,
            payload_hash: json::sha256_hex(text.as_bytes()),
            payload: text,
            admitted,
            dedup,
            unique: self.unique,
            holds: holds.iter().map(|h| h.as_str().to_owned()).collect(),
            priority: self.priority,
            run_at: match self.run {
                Run::Now => None,
                Run::At(time) => Some(time),
                Run::After(delay) => Some(now.saturating_add(to_millis("delay", delay)?)),
            },
            max_attempts,
            timeout: to_millis("timeout", timeout)?.max(1),
            backoff,
            // Plain SQL may have given its jobs other names.
            waiting_on: self.waiting_on.map(|id| check_id(&id).unwrap_or(id)),
            correlation_id: self.correlation_id,
        })
    }
}

/// The default rule of [`DefaultKey`], made concrete for one payload.
pub(crate) fn default_dedup(checked: &Checked, text: &str) -> Result<Dedup> {
    Ok(match &checked.key {
        DefaultKey::Key(key) => {
            check_label("idempotency_key", key, 512)?;
            Dedup::Key(key.clone())
        }
        DefaultKey::ByKind if checked.holds.is_empty() => Dedup::Key(payload_key(text)?),
        DefaultKey::ByKind => Dedup::NewestHolder(checked.holds.iter().map(|h| h.as_str().to_owned()).collect()),
    })
}

fn payload_key(text: &str) -> Result<String> {
    json::meaning_key(text).map_err(|e| Error::invalid("payload", e))
}

fn to_millis(field: &str, duration: Duration) -> Result<Millis> {
    if duration > MAX_TIME {
        return Err(Error::invalid(field, "is longer than a hundred years"));
    }
    Ok(Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX))
}

/// A ULID or UUID in its one spelling.
pub(crate) fn check_id(id: &str) -> Result<String> {
    // Beyond 7ZZZ… the first digit overflows, and two spellings would name one job.
    if let Ok(ulid) = ulid::Ulid::from_string(id)
        && ulid.to_string().eq_ignore_ascii_case(id)
    {
        return Ok(ulid.to_string());
    }
    match uuid::Uuid::try_parse(id) {
        Ok(uuid) => Ok(uuid.hyphenated().to_string()),
        Err(_) => Err(Error::invalid("id", format_args!("{} is neither a ULID nor a UUID", crate::printable(id)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_one_spelling() {
        assert_eq!(check_id("01arz3ndektsv4rrffq69g5fav").unwrap(), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_eq!(check_id("67E55044-10B1-426F-9247-BB680E5FE0C8").unwrap(), "67e55044-10b1-426f-9247-bb680e5fe0c8");
        for bad in ["", "8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "job-1", "../../etc", "01ARZ3NDEKTSV4RRFFQ69G5FA"] {
            assert_eq!(check_id(bad).unwrap_err().field(), Some("id"), "{bad:?}");
        }
    }
}
