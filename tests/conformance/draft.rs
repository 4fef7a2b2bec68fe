//! Jobs as the store is handed them, built by hand: what the layers above the
//! store check and fill in is not under test here.

use std::fmt::Write as _;

use jobq::clock::Millis;
use jobq::store::{Dedup, EffectOp, EnqueueJob, PlannedEffect, Precondition};
use jobq::{Backoff, Hold, JobTypes, Payload, Unique};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A job without holds.
#[derive(Serialize, Deserialize)]
pub struct Note {
    pub text: String,
}

impl Payload for Note {
    const TYPE: &'static str = "note";
    type Output = ();
}

/// A job that holds the path it makes.
#[derive(Serialize, Deserialize)]
pub struct Create {
    pub path: String,
    pub content: String,
}

impl Payload for Create {
    const TYPE: &'static str = "create";
    type Output = ();

    fn holds(&self) -> jobq::Result<Vec<Hold>> {
        Ok(vec![Hold::path(&self.path)?])
    }
}

/// A job that holds the path it deletes.
#[derive(Serialize, Deserialize)]
pub struct Delete {
    pub path: String,
}

impl Payload for Delete {
    const TYPE: &'static str = "delete";
    type Output = ();

    fn holds(&self) -> jobq::Result<Vec<Hold>> {
        Ok(vec![Hold::path(&self.path)?])
    }
}

/// The types every store under test knows.
pub fn types() -> JobTypes {
    JobTypes::new().with::<Note>().with::<Create>().with::<Delete>()
}

/// A job to be queued, changed step by step.
#[derive(Clone)]
pub struct Draft(EnqueueJob);

/// A `note` of this id: no key, no holds, three attempts, due now.
pub fn note(id: &str) -> Draft {
    Draft(EnqueueJob {
        id: id.to_owned(),
        id_given: false,
        job_type: Note::TYPE.to_owned(),
        payload: String::new(),
        payload_hash: String::new(),
        admitted: true,
        dedup: Dedup::None,
        unique: Unique::Active,
        holds: Vec::new(),
        priority: 0,
        run_at: None,
        max_attempts: 3,
        timeout: 60_000,
        backoff: Backoff { base_ms: 1_000, max_ms: 30_000 },
        waiting_on: None,
        correlation_id: None,
    })
    .payload(&serde_json::json!({ "text": id }).to_string())
}

/// A `create` job with the key rule of file jobs.
pub fn create(id: &str, path: &str, content: &str) -> Draft {
    let payload = serde_json::json!({ "path": path, "content": content });
    note(id).of_type(Create::TYPE).payload(&payload.to_string()).file(path)
}

/// A `delete` job with the key rule of file jobs.
pub fn delete(id: &str, path: &str) -> Draft {
    note(id).of_type(Delete::TYPE).payload(&serde_json::json!({ "path": path }).to_string()).file(path)
}

/// The key of a path's hold.
pub fn path_key(path: &str) -> String {
    format!("path:{path}")
}

impl Draft {
    fn with(mut self, change: impl FnOnce(&mut EnqueueJob)) -> Self {
        change(&mut self.0);
        self
    }

    fn file(self, path: &str) -> Self {
        let keys = vec![path_key(path)];
        self.with(|job| {
            job.holds.clone_from(&keys);
            job.dedup = Dedup::NewestHolder(keys);
        })
    }

    pub fn of_type(self, job_type: &str) -> Self {
        self.with(|job| job_type.clone_into(&mut job.job_type))
    }

    pub fn payload(self, payload: &str) -> Self {
        self.with(|job| {
            job.payload_hash = sha256(payload);
            payload.clone_into(&mut job.payload);
        })
    }

    /// The caller chose the id.
    pub fn given(self) -> Self {
        self.with(|job| job.id_given = true)
    }

    /// As a process that does not know the type would queue it.
    pub fn unadmitted(self) -> Self {
        self.with(|job| {
            job.admitted = false;
            job.holds.clear();
        })
    }

    pub fn key(self, key: &str) -> Self {
        self.with(|job| job.dedup = Dedup::Key(key.to_owned()))
    }

    pub fn no_key(self) -> Self {
        self.with(|job| job.dedup = Dedup::None)
    }

    pub fn always(self) -> Self {
        self.with(|job| job.unique = Unique::Always)
    }

    pub fn holds(self, keys: &[&str]) -> Self {
        self.with(|job| job.holds = keys.iter().map(|&key| key.to_owned()).collect())
    }

    pub fn newest_holder(self) -> Self {
        self.with(|job| job.dedup = Dedup::NewestHolder(job.holds.clone()))
    }

    pub fn priority(self, priority: i32) -> Self {
        self.with(|job| job.priority = priority)
    }

    pub fn run_at(self, time: Millis) -> Self {
        self.with(|job| job.run_at = Some(time))
    }

    pub fn max_attempts(self, max_attempts: u32) -> Self {
        self.with(|job| job.max_attempts = max_attempts)
    }

    pub fn backoff_max(self, max_ms: u64) -> Self {
        self.with(|job| job.backoff.max_ms = max_ms)
    }

    pub fn timeout(self, millis: Millis) -> Self {
        self.with(|job| job.timeout = millis)
    }

    pub fn after(self, parent: &str) -> Self {
        self.with(|job| job.waiting_on = Some(parent.to_owned()))
    }

    pub fn correlation(self, id: &str) -> Self {
        self.with(|job| job.correlation_id = Some(id.to_owned()))
    }

    pub fn build(self) -> EnqueueJob {
        self.0
    }
}

/// An effect that makes a file which is not there yet.
pub fn put(path: &str) -> PlannedEffect {
    PlannedEffect {
        path: path.to_owned(),
        op: EffectOp::Put { sha256: sha256(path), size: 12, stage: Some(format!("stage/{path}")) },
        precondition: Precondition::Absent,
        observed: None,
    }
}

/// An effect that removes a file with known content.
pub fn remove(path: &str) -> PlannedEffect {
    PlannedEffect {
        path: path.to_owned(),
        op: EffectOp::Remove,
        precondition: Precondition::Sha256(sha256("old")),
        observed: Some(r#"{"size":3}"#.to_owned()),
    }
}

pub fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
