//! Whether staged content is still what was recorded. Somebody else has staged it,
//! perhaps long ago, and what is put in place is called right from then on.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};

use super::Files;
use super::error::FileError;
use super::meta::{Meta, Stamp};
use super::sight::{copy_hashed, is_young};
use crate::store::{EffectOp, PlannedEffect};

/// Staged files that were hashed and found in order, with how they looked then.
#[derive(Default)]
pub(super) struct Verified(Mutex<HashMap<String, Stamp>>);

/// Smaller files are hashed when they are applied.
const LARGE: u64 = 1 << 20;

/// What is remembered; more is hashed again.
const MOST: usize = 1_000;

impl Files {
    /// Hashes what is large among the staged contents of these effects. To be called
    /// before they are applied, by whoever has not staged them: applying hashes what
    /// it does not know, and the database is locked meanwhile.
    pub(crate) fn look_over(&self, effects: &[PlannedEffect]) {
        for effect in effects {
            if let EffectOp::Put { sha256, size, stage: Some(stage) } = &effect.op
                && *size >= LARGE
            {
                // What is wrong with it is told when it is applied.
                let _ = self.is_whole(stage, sha256, *size);
            }
        }
    }

    /// Whether a staged file has this content.
    pub(super) fn is_whole(&self, stage: &str, sha256: &str, size: u64) -> Result<bool, FileError> {
        let opened = self.open_staged(stage, size).map_err(|e| FileError::os(stage, "open the staged file", e))?;
        let Some(mut staged) = opened else { return Ok(false) };
        let stamp = staged.meta.stamp;
        let known = |verified: &Verified| verified.0.lock().unwrap_or_else(PoisonError::into_inner).get(stage).copied();
        if known(&self.verified) == Some(stamp) {
            return Ok(true);
        }
        let failed = |e: &io::Error| FileError::io(stage, "read the staged file", e);
        let young = is_young(stamp.ctime);
        let (found, _) = copy_hashed(&mut staged.file, &mut io::sink()).map_err(|e| failed(&e))?;
        let after = Meta::of(&staged.file).map_err(|e| FileError::os(stage, "look at the staged file", e))?;
        let whole = found == sha256;
        if whole && !young && after.stamp == stamp {
            let mut verified = self.verified.0.lock().unwrap_or_else(PoisonError::into_inner);
            if verified.len() >= MOST {
                verified.clear();
            }
            verified.insert(stage.to_owned(), stamp);
        }
        Ok(whole)
    }
}
