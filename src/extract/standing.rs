//! Whether an extraction has been done already and its answer is still there.

use std::sync::Arc;

use crate::effects::Sight;
use crate::error::Result;
use crate::handlers::ClaudeExtraction;
use crate::path::normalise_path;
use crate::payload::Payload as _;
use crate::queue::Queue;
use crate::state::Status;
use crate::store::{Confirmation, Store as _, Suspicion};

impl Queue {
    /// The completed job that makes this extraction needless: it was the last to
    /// write the target, it asked the same of the same requirement, the file still
    /// has the content it left, and no unfinished job is about to change that.
    ///
    /// Found by the target, not by a key, because jobs of commits have none. It
    /// needs the job, which is why completed extractions are kept for ever.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let queue = jobq::Queue::init(folder.path())?;
    /// use jobq::handlers::ClaudeExtraction;
    /// let extraction = ClaudeExtraction::new("REQ-1", "What follows?", "out/req-1.md");
    /// if queue.standing_extraction(&extraction)?.is_none() {
    ///     queue.enqueue(extraction)?;
    /// }
    /// # Ok::<(), jobq::Error>(())
    /// ```
    pub fn standing_extraction(&self, extraction: &ClaudeExtraction) -> Result<Option<String>> {
        let path = normalise_path(&extraction.target_path)?;
        let Some(latest) = self.store().expected_file(&path)? else { return Ok(None) };
        let Some(sha256) = latest.stamp.sha256 else { return Ok(None) };
        let job = match self.get(&latest.job_id) {
            Ok(job) => job,
            // Someone has pruned it.
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        if job.job_type != ClaudeExtraction::TYPE || job.status != Status::Completed {
            return Ok(None);
        }
        let same = job.payload::<ClaudeExtraction>().is_ok_and(|done| asks_the_same(&done, extraction));
        if !same || !self.holds_content(&path, &sha256)? {
            return Ok(None);
        }
        // What waits or runs on the path changes it after all. If it is the same extraction, enqueue will say so.
        let suspicion = Suspicion { path, job_id: job.id.clone(), still_so: Arc::new(|| true) };
        let stands = self.store().confirm(suspicion)? == Confirmation::Confirmed { in_flight: None };
        Ok(stands.then_some(job.id))
    }

    /// By content: a file that was only touched has not changed.
    fn holds_content(&self, path: &str, sha256: &str) -> Result<bool> {
        match self.files()?.look(path) {
            Ok(Sight::File { sha256: found, .. }) => Ok(found == sha256),
            Ok(Sight::Absent) => Ok(false),
            // Something else is in its place.
            Err(error) if error.is_permanent() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

fn asks_the_same(done: &ClaudeExtraction, asked: &ClaudeExtraction) -> bool {
    done.requirement_id == asked.requirement_id
        && done.prompt == asked.prompt
        && done.format.unwrap_or_default() == asked.format.unwrap_or_default()
}
