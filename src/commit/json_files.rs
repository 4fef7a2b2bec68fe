//! Reading JSON files, and changing them so that nobody's change is lost.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Accepted, Draft};
use crate::effects::Expect;
use crate::error::{Error, Result};
use crate::json::sha256_hex;
use crate::queue::Queue;

/// How long [`Queue::update_json`] goes on while others are at the same file.
const PATIENCE: Duration = Duration::from_secs(30);
/// The wait after the first refusal and the longest one, in microseconds.
const PAUSE: (u64, u64) = (200, 20_000);

/// A file as it was read.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// let read = queue.read_json::<u64>("counter.json")?;
/// assert_eq!((read.value, &read.expect), (None, &jobq::Expect::Absent));
/// // Somebody else is faster.
/// queue.commit(|tx| tx.write_json("counter.json", &5))?;
/// let late = queue.commit(|tx| {
///     tx.write_json("counter.json", &1)?;
///     tx.expect("counter.json", read.expect.clone())
/// });
/// assert!(late.unwrap_err().is_stale());
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<T> {
    /// What it held; `None` if there was no such file.
    pub value: Option<T>,
    /// What a commit can expect, to be refused if the file has changed since.
    pub expect: Expect,
}

impl Queue {
    /// Reads a JSON file below the root, with what a later commit can expect.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// let read = queue.read_json::<Vec<u32>>("data/numbers.json")?;
    /// let mut numbers = read.value.unwrap_or_default();
    /// numbers.push(7);
    /// queue.commit(|tx| {
    ///     tx.write_json("data/numbers.json", &numbers)?;
    ///     tx.expect("data/numbers.json", read.expect.clone())
    /// })?;
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn read_json<T: DeserializeOwned>(&self, path: &str) -> Result<Snapshot<T>> {
        let Some(bytes) = self.files()?.read(path, u64::MAX)? else {
            return Ok(Snapshot { value: None, expect: Expect::Absent });
        };
        let value = serde_json::from_slice(&bytes).map_err(|e| Error::invalid("json", e).context(path))?;
        Ok(Snapshot { value: Some(value), expect: Expect::Sha256(sha256_hex(&bytes)) })
    }

    /// Reads a JSON file, changes it and commits that; from the start again when
    /// somebody else has changed it meanwhile or a job is at work on it. The
    /// closure may be called several times; what it adds to the commit counts
    /// once.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::NewJob;
    /// for _ in 0..3 {
    ///     queue.update_json("data/counter.json", |value: Option<u64>, tx| {
    ///         tx.enqueue(NewJob::raw("announce", "{}"))?;
    ///         Ok(value.unwrap_or(0) + 1)
    ///     })?;
    /// }
    /// assert_eq!(queue.read_json::<u64>("data/counter.json")?.value, Some(3));
    /// # Ok::<(), jobq::Error>(())
    /// ```
    ///
    /// After half a minute of refusals the last one is returned.
    pub fn update_json<T: DeserializeOwned + Serialize>(
        &self,
        path: &str,
        mut change: impl FnMut(Option<T>, &mut Draft) -> Result<T>,
    ) -> Result<Accepted> {
        let since = Instant::now();
        let mut pause = PAUSE.0;
        loop {
            let read = self.read_json::<T>(path)?;
            // The closure's own refusal is no reason to try again.
            let mut asked = false;
            let answer = self.commit(|tx| {
                let value = change(read.value, tx)?;
                tx.write_json(path, &value)?;
                tx.expect(path, read.expect)?;
                asked = true;
                Ok(())
            });
            match answer {
                Err(error) if asked && is_about_others(&error) && since.elapsed() < PATIENCE => {
                    tracing::debug!(path, %error, "somebody else was faster; again");
                    // Not in step with whoever is at it too.
                    std::thread::sleep(Duration::from_micros(fastrand::u64(pause / 2..=pause)));
                    pause = (pause * 2).min(PAUSE.1);
                }
                answer => return answer,
            }
        }
    }
}

/// Somebody else changed the file or is about to; whoever reads it again may succeed.
fn is_about_others(error: &Error) -> bool {
    error.is_stale() || error.is_path_busy()
}
