//! Is this queue in order, and if not, what is to be done? Looks at the place it
//! is in, the database, the jobs and what dead processes have left. Changes
//! nothing: an older database is not migrated, nobody's work is brought to its end.
//!
//! ```text
//! place       filesystems, room, synced folders
//! database    SQLite, schema, integrity, settings, log, write lock
//! jobs        clock, leases, waits, admission, payloads
//! leftovers   staged files of dead processes
//! processes   who holds a lock, and in what state it is
//! ```
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! use jobq::doctor::{Doctor, Verdict};
//! # drop(jobq::Queue::init(folder)?);
//! let worst = Doctor::in_folder(folder).examine(|check| println!("{}: {}", check.check, check.message));
//! assert_ne!(worst, Verdict::Bad);
//! # Ok::<(), jobq::Error>(())
//! ```

mod database;
mod filesystem;
mod jobs;
mod leftovers;
mod place;
mod processes;
mod synced;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use self::database::Tables;
use crate::clock::{Clock, SystemClock};
use crate::error::{Result, printable};
use crate::payload::JobTypes;
use crate::queue::QueuePaths;
use crate::store::sqlite::Health;

/// How long the write lock may stay taken before that is worth a word.
const PATIENCE: Duration = Duration::from_secs(1);

/// How a check came out, the best first.
///
/// ```
/// use jobq::doctor::Verdict;
/// assert!(Verdict::Bad > Verdict::Warn && Verdict::Warn > Verdict::Ok);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// In order.
    Ok,
    /// Nothing is lost, but someone should look.
    Warn,
    /// Not safe, or not working.
    Bad,
}

impl Verdict {
    /// As scripts see it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One thing that was looked at.
///
/// ```
/// use jobq::doctor::{Check, Verdict};
/// let check = Check::warn("room", "only 1 GiB is left", "make room");
/// assert_eq!((check.verdict, check.advice.as_deref()), (Verdict::Warn, Some("make room")));
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// A word for scripts.
    pub check: &'static str,
    /// How it came out.
    pub verdict: Verdict,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Check {
    /// All is well.
    pub fn ok(check: &'static str, message: impl fmt::Display) -> Self {
        Self { check, verdict: Verdict::Ok, message: printable(&message.to_string()), advice: None }
    }

    /// Someone should look.
    pub fn warn(check: &'static str, message: impl fmt::Display, advice: impl fmt::Display) -> Self {
        let advice = Some(printable(&advice.to_string()));
        Self { verdict: Verdict::Warn, advice, ..Self::ok(check, message) }
    }

    /// Not safe, or not working.
    pub fn bad(check: &'static str, message: impl fmt::Display, advice: impl fmt::Display) -> Self {
        Self { verdict: Verdict::Bad, ..Self::warn(check, message, advice) }
    }
}

/// Looks at one queue.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::doctor::{Doctor, Verdict};
/// # drop(queue);
/// let mut bad = Vec::new();
/// Doctor::in_folder(folder.path()).deep(true).examine(|check| {
///     if check.verdict == Verdict::Bad {
///         bad.push(check.message);
///     }
/// });
/// assert!(bad.is_empty(), "{bad:?}");
/// # Ok::<(), jobq::Error>(())
/// ```
pub struct Doctor {
    db: PathBuf,
    root: Option<PathBuf>,
    deep: bool,
    types: JobTypes,
    clock: Arc<dyn Clock>,
}

/// Where everything of the queue is.
struct Places {
    db: PathBuf,
    state: PathBuf,
    root: PathBuf,
}

impl Doctor {
    /// For the queue of a root folder.
    pub fn in_folder(root: impl AsRef<Path>) -> Self {
        Self::at(root.as_ref().join(".jobq").join("jobq.db"))
    }

    /// For the queue in this database file.
    pub fn at(db: impl Into<PathBuf>) -> Self {
        let (types, clock) = (JobTypes::builtin(), Arc::new(SystemClock));
        Self { db: db.into(), root: None, deep: false, types, clock }
    }

    /// The folder jobs may touch, if it is not the one the database is in.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Also compare every index with its table and every payload with its hash.
    #[must_use]
    pub fn deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// The job types that are known here; the built-in ones unless said.
    #[must_use]
    pub fn types(mut self, types: JobTypes) -> Self {
        self.types = types;
        self
    }

    /// Where the time comes from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Looks at everything, and tells of each thing as it is looked at. Returns
    /// the worst verdict.
    pub fn examine(&self, mut tell: impl FnMut(Check)) -> Verdict {
        let mut worst = Verdict::Ok;
        let mut tell = |check: Check| {
            worst = worst.max(check.verdict);
            tell(check);
        };
        match self.places() {
            Ok(places) => self.look(&places, &mut tell),
            Err(error) => tell(Check::bad("database", error, "give the path of a jobq database")),
        }
        worst
    }

    /// Whether the database has jobq's tables, of whatever version: one of the application's own need not.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use jobq::{Queue, doctor::Doctor};
    /// Queue::init(folder.path())?;
    /// assert!(Doctor::in_folder(folder.path()).has_tables()?);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn has_tables(&self) -> Result<bool> {
        Ok(self.health()?.schema_version()?.is_some())
    }

    /// The types that jobs on record have, in order, whoever runs them.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::{NewJob, doctor::Doctor};
    /// queue.enqueue(NewJob::raw("send_mail", "{}"))?;
    /// assert_eq!(Doctor::in_folder(folder.path()).types_on_record()?, ["send_mail"]);
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn types_on_record(&self) -> Result<Vec<String>> {
        self.health()?.types()
    }

    fn health(&self) -> Result<Health> {
        Health::open(&QueuePaths::of(self.db.clone(), false)?.db, PATIENCE)
    }

    fn places(&self) -> Result<Places> {
        let QueuePaths { db, state, home } = QueuePaths::of(self.db.clone(), false)?;
        // The one on record, if the database can be read; whether it can is looked at later.
        let on_record = || Health::open(&db, PATIENCE).ok()?.root().ok()?;
        let root =
            self.root.clone().unwrap_or_else(|| on_record().map_or_else(|| home.clone(), |root| home.join(root)));
        Ok(Places { db, state, root })
    }

    fn look(&self, places: &Places, tell: &mut dyn FnMut(Check)) {
        place::look(places, tell);
        tell(database::sqlite(rusqlite::version_number(), rusqlite::version()));
        let health = match Health::open(&places.db, PATIENCE) {
            Ok(health) => health,
            Err(error) => return tell(database::unreadable(places, &error)),
        };
        let tables = database::look(&health, places, self.deep, tell);
        if !matches!(tables, Tables::Foreign) {
            tell(place::site(&health, &places.state));
        }
        let jobs = jobs::Jobs { health: &health, places, types: &self.types, now: self.clock.now() };
        match tables {
            Tables::Foreign => {}
            // That nothing was found there means nothing, and what a job still needs cannot be told.
            Tables::Damaged => jobs::look(&jobs, self.deep, &mut |check| {
                if check.verdict != Verdict::Ok {
                    tell(check);
                }
            }),
            Tables::Whole => {
                jobs::look(&jobs, self.deep, tell);
                leftovers::look(&health, places, tell);
            }
        }
    }
}

/// A question that could not be answered is no good sign either.
fn or_bad(check: &'static str, answer: Result<Check>) -> Check {
    answer.unwrap_or_else(|error| Check::bad(check, format_args!("cannot be told: {error}"), "see to that first"))
}

/// `a, b, c and 4 more`.
fn names<'n>(first: impl Iterator<Item = &'n str>, of: i64) -> String {
    let first: Vec<&str> = first.collect();
    let more = of - i64::try_from(first.len()).unwrap_or(of);
    let first = first.join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

/// `1 job`, `2 jobs`.
fn count(number: i64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
