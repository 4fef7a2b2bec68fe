//! Syncing the stage folder for many threads at once.
//!
//! A sync helps only those whose files were there before it began. So there are
//! rounds: whoever comes while one is running waits for the next, and all who
//! wait for the same round share its sync and its answer.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use super::Files;
use super::error::FileError;
use super::stage::{Durability, lost};
use crate::store::{EffectOp, PlannedEffect};

#[derive(Default)]
pub(super) struct Rounds {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Default)]
struct State {
    running: bool,
    /// The round that has not begun; what callers join.
    next: Arc<Round>,
}

type Round = OnceLock<Result<(), FileError>>;

impl Rounds {
    fn join(&self, sync: impl FnOnce() -> Result<(), FileError>) -> Result<(), FileError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let round = Arc::clone(&state.next);
        loop {
            if let Some(answer) = round.get() {
                return answer.clone();
            }
            if !state.running {
                break;
            }
            state = self.over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // Nobody is at it and our round is not over: it is the next one, and ours to lead.
        state.running = true;
        state.next = Arc::default();
        drop(state);
        let answer = sync();
        let _ = round.set(answer.clone());
        self.state.lock().unwrap_or_else(PoisonError::into_inner).running = false;
        self.over.notify_all();
        answer
    }
}

impl Files {
    /// Makes the names of all staged files durable that were finished before the
    /// call, except those that an earlier failed sync has left in doubt: they
    /// stay so. Which they are is told by [`confirm_staged`](Files::confirm_staged),
    /// to be asked afterwards.
    pub fn sync_stage(&self) -> Result<(), FileError> {
        self.stage.rounds.join(|| {
            let is_open = |known: &Durability| *known == Durability::Open;
            // Before the folder is asked for: if that is made anew in between, these are not in it, and are lost.
            let there: Vec<String> =
                self.stage.files().iter().filter(|(_, known)| is_open(known)).map(|(name, _)| name.clone()).collect();
            let Some(folder) = self.stage.folder() else { return Ok(()) };
            // Whoever goes on after a crash looks for them by name.
            if !self.is_in_its_place(&folder) {
                self.leave_stage_folder(&folder);
                return Ok(());
            }
            let answer = self.sync_folder(&folder, ".jobq/stage");
            let mut files = self.stage.files();
            match answer {
                Ok(()) => {
                    for name in there {
                        if let Some(known) = files.get_mut(&name).filter(|known| is_open(known)) {
                            *known = Durability::Synced;
                        }
                    }
                    Ok(())
                }
                Err(errno) => {
                    for known in files.values_mut().filter(|known| **known != Durability::Synced) {
                        *known = Durability::Lost;
                    }
                    Err(FileError::os(".jobq/stage", "sync the stage folder", errno))
                }
            }
        })
    }

    /// Whether what was staged for these effects is durable, to be asked after
    /// [`sync_stage`](Files::sync_stage) has succeeded and before they are
    /// recorded. A file that was there when a sync failed never is: it has to be
    /// staged anew, because a sync that succeeds after one that failed may have
    /// written nothing.
    pub fn confirm_staged(&self, effects: &[PlannedEffect]) -> Result<(), FileError> {
        let files = self.stage.files();
        for effect in effects {
            if let EffectOp::Put { stage: Some(stage), .. } = &effect.op
                && let Some(name) = self.stage.own_name(stage)
                && files.get(name) != Some(&Durability::Synced)
            {
                return Err(lost(name));
            }
        }
        Ok(())
    }
}
