//! Job objects: jobs as JSON, in the lines of `jobq enqueue --batch`, in commit
//! documents, and in what programs say.

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::new_job::{NewJob, Unique};

/// Fields have the names of the columns; anything else is a mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a job object with type and payload")]
struct JobObject {
    #[serde(rename = "type")]
    job_type: String,
    payload: Box<RawValue>,
    priority: Option<i32>,
    #[serde(default)]
    idempotency_key: KeyField,
    unique: Option<Unique>,
    id: Option<String>,
    delay: Option<String>,
    run_at: Option<String>,
    max_attempts: Option<u32>,
    timeout: Option<String>,
    lane: Option<String>,
    waiting_on: Option<String>,
    correlation_id: Option<String>,
}

impl NewJob {
    /// A job as JSON: `{"type","payload"}` and any of `priority`, `idempotency_key`
    /// (null: none), `unique`, `id`, `delay`, `run_at`, `max_attempts`, `timeout`,
    /// `lane`, `waiting_on`, `correlation_id`. Other fields are an error.
    ///
    /// ```
    /// let job = jobq::NewJob::from_json(r#"{"type":"send_mail","payload":{"to":"ada"},"delay":"10s"}"#)?;
    /// assert!(jobq::NewJob::from_json(r#"{"type":"send_mail","payload":{},"dely":"10s"}"#).is_err());
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn from_json(text: &str) -> Result<Self> {
        let object: JobObject = serde_json::from_str(text).map_err(|e| Error::invalid("job", e))?;
        object.into_job()
    }

    /// Not before this time, in RFC 3339 with any offset: `2030-01-31T12:00:00Z`.
    pub fn run_at_rfc3339(self, text: &str) -> Result<Self> {
        let time: jiff::Timestamp =
            text.parse().map_err(|_| Error::invalid("run_at", "is a time such as 2030-01-31T12:00:00Z"))?;
        Ok(self.run_at(time.into()))
    }
}

impl JobObject {
    fn into_job(self) -> Result<NewJob> {
        let mut job = NewJob::raw(self.job_type, self.payload.get());
        if let Some(priority) = self.priority {
            job = job.priority(priority);
        }
        job = match self.idempotency_key {
            KeyField::Absent => job,
            KeyField::Null => job.no_key(),
            KeyField::Given(key) => job.key(key),
        };
        if let Some(unique) = self.unique {
            job = job.unique(unique);
        }
        if let Some(id) = self.id {
            job = job.id(id);
        }
        if self.delay.is_some() && self.run_at.is_some() {
            return Err(Error::invalid("delay", "give either delay or run_at"));
        }
        if let Some(delay) = &self.delay {
            job = job.delay(duration(delay).map_err(|e| Error::invalid("delay", e))?);
        }
        if let Some(time) = &self.run_at {
            job = job.run_at_rfc3339(time)?;
        }
        if let Some(attempts) = self.max_attempts {
            job = job.max_attempts(attempts);
        }
        if let Some(timeout) = &self.timeout {
            job = job.timeout(duration(timeout).map_err(|e| Error::invalid("timeout", e))?);
        }
        if let Some(lane) = self.lane {
            job = job.lane(lane);
        }
        if let Some(parent) = self.waiting_on {
            job = job.after(parent);
        }
        if let Some(correlation) = self.correlation_id {
            job = job.correlation_id(correlation);
        }
        Ok(job)
    }
}

/// `10s`, `5m`, `1h 30m`, `14d`.
fn duration(text: &str) -> std::result::Result<Duration, String> {
    humantime::parse_duration(text).map_err(|e| format!("{e}; write it as 10s, 5m, 1h30m or 14d"))
}

/// Absent means the type's own rule, null means no key at all.
#[derive(Default)]
enum KeyField {
    #[default]
    Absent,
    Null,
    Given(String),
}

impl<'de> Deserialize<'de> for KeyField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Given))
    }
}
