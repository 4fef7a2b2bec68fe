//! What a commit is to do, as the application says it.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::effects::Expect;
use crate::error::{Error, ErrorKind, Result};
use crate::new_job::{NewJob, check_id};
use crate::path::normalise_path;

/// What one commit is to do: filled by the closure that
/// [`Queue::commit`](crate::Queue::commit) is given. Nothing happens before that
/// returns `Ok`.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{Expect, NewJob};
/// queue.commit(|tx| {
///     tx.id("01J00000000000000000000000")?;
///     tx.expect("data/a.json", Expect::Absent)?;
///     tx.write_json("data/a.json", &[1, 2, 3])?;
///     tx.remove("data/old.json")?;
///     tx.enqueue(NewJob::raw("announce", "{}"))
/// })?;
/// assert_eq!(queue.read_json::<Vec<u32>>("data/a.json")?.value, Some(vec![1, 2, 3]));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Draft {
    pub(super) id: Option<String>,
    /// In the order they were given; a path is there once.
    pub(super) changes: Vec<(String, Change)>,
    /// Their paths.
    changed: HashSet<String>,
    pub(super) expectations: BTreeMap<String, Expect>,
    pub(super) jobs: Vec<NewJob>,
}

/// What happens to a file.
#[derive(Debug)]
pub(super) enum Change {
    Write(Vec<u8>),
    Remove,
}

impl Draft {
    pub(crate) fn filled_by(fill: impl FnOnce(&mut Self) -> Result<()>) -> Result<Self> {
        let mut draft = Self::default();
        fill(&mut draft)?;
        draft.check_links()?;
        Ok(draft)
    }

    /// Names the commit: a ULID or UUID. Submitted again with the same id and
    /// content, it is answered with what is there, whatever has become of it.
    pub fn id(&mut self, id: &str) -> Result<()> {
        self.id = Some(check_id(id)?);
        Ok(())
    }

    /// The file is to have this content.
    pub fn write(&mut self, path: &str, content: impl Into<Vec<u8>>) -> Result<()> {
        self.change(path, Change::Write(content.into()))
    }

    /// The file is to hold this value: indented, with a newline at its end.
    pub fn write_json<T: Serialize + ?Sized>(&mut self, path: &str, value: &T) -> Result<()> {
        let mut text = serde_json::to_string_pretty(value).map_err(|e| Error::invalid(path, e))?;
        text.push('\n');
        self.write(path, text)
    }

    /// The file is to go; one that is not there has gone already.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        self.change(path, Change::Remove)
    }

    /// The commit is refused unless this path holds this. It need not be one that
    /// is written: what was read to come to a decision can be guarded too.
    pub fn expect(&mut self, path: &str, expect: Expect) -> Result<()> {
        let path = normalise_path(path)?;
        let expect = match expect {
            Expect::Sha256(sha256) => Expect::Sha256(hash(&path, &sha256)?),
            other => other,
        };
        match self.expectations.get(&path) {
            Some(known) if *known != expect => {
                Err(Error::invalid("expect", format_args!("{path} is expected to hold two different things")))
            }
            _ => {
                self.expectations.insert(path, expect);
                Ok(())
            }
        }
    }

    /// Queues a job that waits until the files are in place.
    pub fn enqueue(&mut self, job: impl Into<NewJob>) -> Result<()> {
        self.jobs.push(job.into());
        Ok(())
    }

    fn change(&mut self, path: &str, change: Change) -> Result<()> {
        let path = normalise_path(path)?;
        if !self.changed.insert(path.clone()) {
            return Err(Error::invalid("path", format_args!("{path} is there twice; a commit changes a file once")));
        }
        self.changes.push((path, change));
        Ok(())
    }

    pub(super) fn changes_path(&self, path: &str) -> bool {
        self.changed.contains(path)
    }

    pub(super) fn expectation(&self, path: &str) -> &Expect {
        self.expectations.get(path).unwrap_or(&Expect::Any)
    }

    /// Jobs of a commit wait on it, so they can wait on each other and on nothing
    /// else: a job waits for one other at most.
    fn check_links(&self) -> Result<()> {
        let ids: Vec<&str> = self.jobs.iter().filter_map(|job| job.links().1).collect();
        for (index, job) in self.jobs.iter().enumerate() {
            let Some(parent) = job.links().0 else { continue };
            if !self.changes.is_empty() && !ids.contains(&parent) {
                let why = "names a job that is not of this commit; its jobs wait on the commit and on each other";
                return Err(Error::invalid("waiting_on", why).in_item(index));
            }
        }
        if self.changes.is_empty() && self.jobs.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "the commit is empty: it writes, removes and queues nothing"));
        }
        Ok(())
    }
}

/// A sha256 in its one spelling.
fn hash(path: &str, text: &str) -> Result<String> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Error::invalid("expect", format_args!("of {path} is neither a sha256 in hexadecimal nor \"absent\"")))
}
