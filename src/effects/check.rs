//! Whether the disk is as an effect needs it. Looks only.

use serde_json::json;

use super::Files;
use super::error::{FileError, shown};
use super::meta::Meta;
use super::sight::Observed;
use super::walk::{LOOK, Spot};
use crate::store::{EffectOp, PlannedEffect, Precondition};

/// What is left to do for an effect.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// Nothing: the disk holds this already.
    Done(Option<Meta>),
    /// The change: the disk holds this, as was planned.
    Change(Option<Meta>),
}

/// Why an effect cannot be applied.
pub(super) enum Trouble {
    /// The disk is not as it must be.
    Conflict(Conflict),
    /// Not now.
    Later(FileError),
}

pub(super) struct Conflict {
    pub(super) message: String,
    pub(super) details: serde_json::Value,
}

/// A larger file that is seen to be a wrong one by its size is not hashed just
/// for the message: the write lock is held meanwhile.
const HASHED_FOR_THE_MESSAGE: u64 = 16 << 20;

impl Files {
    /// By content: the new content means done, the old one means go on, and
    /// anything else is somebody else's.
    pub(super) fn check(&self, effect: &PlannedEffect) -> Result<Next, Trouble> {
        let trouble = |error: FileError| Trouble::of(effect, error);
        let spot = self.walk(&effect.path, LOOK).map_err(trouble)?;
        let Some(meta) = spot.find().map_err(trouble)? else {
            return match (&effect.op, &effect.precondition) {
                (EffectOp::Remove, _) => Ok(Next::Done(None)),
                (EffectOp::Put { .. }, Precondition::Absent) => self.ready(effect, None),
                (EffectOp::Put { .. }, Precondition::Sha256(_)) => Err(Trouble::conflict(effect, "nothing")),
            };
        };
        let Some((holds, meta)) = content(effect, &spot, meta).map_err(trouble)? else {
            return Err(Trouble::conflict(effect, &format!("another file of {} bytes", meta.stamp.size)));
        };
        match (&effect.op, &effect.precondition) {
            (EffectOp::Put { sha256, .. }, _) if *sha256 == holds => Ok(Next::Done(Some(meta))),
            (_, Precondition::Sha256(sha256)) if *sha256 == holds => self.ready(effect, Some(meta)),
            _ => Err(Trouble::conflict(effect, &holds)),
        }
    }

    /// Whether a path looks as it did when the effect was planned. Looks at no
    /// content; another job's change always shows, because it puts another file
    /// there or takes it away. What cannot be looked at now is left to apply.
    #[must_use]
    pub fn looks_as_planned(&self, effect: &PlannedEffect) -> bool {
        let Ok(found) = self.walk(&effect.path, LOOK).and_then(|spot| spot.find()) else { return true };
        let observed = effect.observed.as_deref().and_then(|text| serde_json::from_str::<Observed>(text).ok());
        match (observed, found) {
            (Some(observed), Some(found)) => observed.looks_like(&found),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether a path holds what was seen there, exactly: its content is looked at
    /// when its stamp does not prove it.
    pub(crate) fn still_holds(&self, path: &str, precondition: &Precondition, observed: Option<&str>) -> bool {
        let Ok(spot) = self.walk(path, LOOK) else { return false };
        let Ok(found) = spot.find() else { return false };
        let (sha256, meta) = match (precondition, found) {
            (Precondition::Absent, found) => return found.is_none(),
            (Precondition::Sha256(sha256), Some(meta)) => (sha256, meta),
            (Precondition::Sha256(_), None) => return false,
        };
        match observed.and_then(|text| serde_json::from_str::<Observed>(text).ok()) {
            Some(observed) if observed.proves(&meta) => true,
            Some(observed) if !observed.looks_like(&meta) => false,
            _ => matches!(spot.hash(false), Ok(Some(file)) if file.sha256 == *sha256),
        }
    }

    /// The change can be made, if what it needs is there.
    fn ready(&self, effect: &PlannedEffect, found: Option<Meta>) -> Result<Next, Trouble> {
        if let EffectOp::Put { size, stage, .. } = &effect.op {
            let staged = stage.as_ref().map_or(Ok(false), |stage| self.is_staged(stage, *size));
            let failed = |e| Trouble::of(effect, FileError::os(&effect.path, "look at its staged content", e));
            if !staged.map_err(failed)? {
                return Err(Trouble::unstaged(effect));
            }
        }
        Ok(Next::Change(found))
    }
}

/// The hash of what is there. If it looks as it did when the effect was
/// planned, it has the content it had then. `None`: neither the old nor the
/// new content, by its size alone.
fn content(effect: &PlannedEffect, spot: &Spot<'_>, meta: Meta) -> Result<Option<(String, Meta)>, FileError> {
    let observed = effect.observed.as_deref().and_then(|text| serde_json::from_str::<Observed>(text).ok());
    if let (Some(observed), Precondition::Sha256(sha256)) = (&observed, &effect.precondition)
        && observed.proves(&meta)
    {
        return Ok(Some((sha256.clone(), meta)));
    }
    let size = meta.stamp.size;
    let is_new = matches!(&effect.op, EffectOp::Put { size: new, .. } if *new == size);
    let is_old = observed.map_or(effect.precondition != Precondition::Absent, |observed| observed.size() == size);
    if !is_new && !is_old && size > HASHED_FOR_THE_MESSAGE {
        return Ok(None);
    }
    let vanished = || FileError::temporary(spot.path, "it vanished while it was looked at");
    let file = spot.hash(false)?.ok_or_else(vanished)?;
    Ok(Some((file.sha256, file.meta)))
}

impl Trouble {
    pub(super) fn of(effect: &PlannedEffect, error: FileError) -> Self {
        if error.is_permanent() {
            let details = details(effect, error.message());
            Self::Conflict(Conflict { message: error.message().to_owned(), details })
        } else {
            Self::Later(error)
        }
    }

    fn conflict(effect: &PlannedEffect, found: &str) -> Self {
        let expected = expectation(effect);
        let message =
            format!("{}: expected {expected} there, found {found}; it was left as it is", shown(&effect.path));
        Self::Conflict(Conflict { message, details: details(effect, found) })
    }

    pub(super) fn unstaged(effect: &PlannedEffect) -> Self {
        let stage = match &effect.op {
            EffectOp::Put { stage: Some(stage), .. } => stage,
            _ => "none",
        };
        let message = format!(
            "{}: its staged content ({}) is gone or damaged; queue the job anew",
            shown(&effect.path),
            shown(stage)
        );
        Self::Conflict(Conflict { message, details: details(effect, "staged content is gone") })
    }
}

fn expectation(effect: &PlannedEffect) -> &str {
    match &effect.precondition {
        Precondition::Absent => "nothing",
        Precondition::Sha256(sha256) => sha256,
    }
}

fn details(effect: &PlannedEffect, found: &str) -> serde_json::Value {
    let new = match &effect.op {
        EffectOp::Put { sha256, .. } => Some(sha256),
        EffectOp::Remove => None,
    };
    json!({ "path": effect.path, "expected": expectation(effect), "found": found, "new": new })
}
