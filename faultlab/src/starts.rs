//! Starting processes beside threads that open queues. Until a new process runs its
//! program it has a copy of all that this one has open, locks included: whoever looks
//! just then takes the dead for alive, and leaves what they have staged.

use std::process::{Child, Command};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

static STARTS: RwLock<()> = RwLock::new(());

/// Starts it when nobody minds. It runs its program when this returns.
pub fn start(command: &mut Command) -> std::io::Result<Child> {
    let _alone = STARTS.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// As long as this is kept, nobody starts a process.
pub fn none() -> RwLockReadGuard<'static, ()> {
    STARTS.read().unwrap_or_else(PoisonError::into_inner)
}
