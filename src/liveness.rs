//! Who is alive. Every process that claims keeps a file locked under
//! `.jobq/owners/`; the kernel lets go of the lock when the process dies, and
//! nothing else does. So a dead owner is known at once, and no clock is asked.
//!
//! | the owner's machine and boot | how it is judged |
//! |---|---|
//! | this machine, this boot | by its lock |
//! | this machine, an earlier boot | dead |
//! | another machine, or its lock file is gone | by its lease only, see [`LeaseWatch`] |
//!
//! One that holds its lock may still be frozen, so its lease counts, too: the
//! longer of its own, which its lock file tells, and the judge's.

mod lease_watch;
mod lock_file;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use lease_watch::LeaseWatch;
pub use lock_file::OwnerLock;

use crate::error::{Error, ErrorKind, Result};
use crate::store::{DeadOwner, HeldLease, LapsedLease, Owner, Reclaim, Reclaimed, Started, Store};

/// How long an owner may be silent, unless it says otherwise.
pub(crate) const LEASE: Duration = Duration::from_secs(300);

/// What is known of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds its lock.
    Alive,
    /// It is gone; which jobs it had started, if that can still be read.
    Dead(Option<HashSet<(i64, i64)>>),
    /// Only its lease can tell.
    Unknown,
}

/// Judges an owner. `folder` is where the lock files are.
pub fn judge(owner: &Owner, folder: &Path) -> Result<Verdict> {
    if owner.machine_id != lock_file::machine_id() {
        return Ok(Verdict::Unknown);
    }
    if owner.boot_id != lock_file::boot_id() {
        return Ok(Verdict::Dead(None));
    }
    lock_path(owner, folder).map_or(Ok(Verdict::Unknown), |path| lock_file::judge(&path))
}

/// The owner's lock file. Its name comes from the database, so it has to be a
/// plain name: it must not lead out of the folder.
fn lock_path(owner: &Owner, folder: &Path) -> Option<PathBuf> {
    let name = Path::new(&owner.lock_file);
    let plain = name.file_name() == Some(name.as_os_str()) && name.extension() == Some("lock".as_ref());
    plain.then(|| folder.join(name))
}

/// How long the owner of a lease may be silent, if it has said so and its lock
/// file can be read.
pub(crate) fn promised_lease(held: &HeldLease, folder: &Path) -> Option<Duration> {
    lock_file::promised(&lock_path(held.owner.as_ref()?, folder)?)
}

/// Whether the owner of this name holds its lock; a lock file that is gone is
/// held by nobody.
pub(crate) fn holds_lock(locked_by: &str, folder: &Path) -> Result<bool> {
    Ok(lock_file::judge(&folder.join(format!("{locked_by}.lock")))? == Verdict::Alive)
}

/// Owners of leases that are dead, each with what it had started. Only looks.
fn dead_owners(leases: Vec<HeldLease>, folder: &Path) -> Vec<(Owner, DeadOwner)> {
    let owners: BTreeMap<String, Owner> =
        leases.into_iter().filter_map(|held| held.owner).map(|owner| (owner.locked_by.clone(), owner)).collect();
    let dead = |owner: Owner| match judge(&owner, folder) {
        Ok(Verdict::Dead(started)) => {
            let dead = DeadOwner { locked_by: owner.locked_by.clone(), started };
            Some((owner, dead))
        }
        Ok(Verdict::Alive | Verdict::Unknown) => None,
        Err(error) => {
            tracing::warn!(owner = owner.locked_by, %error, "cannot judge an owner; its lease decides");
            None
        }
    };
    owners.into_values().filter_map(dead).collect()
}

/// Leases of owners that are dead. Nothing is done about them.
pub(crate) fn lost(store: &dyn Store, folder: &Path) -> Result<Vec<HeldLease>> {
    let mut leases = store.leases()?;
    let dead: HashSet<String> =
        dead_owners(leases.clone(), folder).into_iter().map(|(owner, _)| owner.locked_by).collect();
    leases.retain(|held| dead.contains(&held.locked_by));
    Ok(leases)
}

/// Takes one job back whose owner is dead, so that it can be cancelled. Whether it had
/// started does not matter then; one that has used up its attempts is not to fail first.
/// What its owner has besides, and the lock file that tells of it, are left to a sweep.
pub(crate) fn take_back(store: &dyn Store, folder: &Path, id: &str) -> Result<()> {
    let mut leases = store.leases()?;
    leases.retain(|held| held.lease.id == id && !held.decided);
    if dead_owners(leases.clone(), folder).is_empty() {
        return Ok(());
    }
    let free = |HeldLease { lease, heartbeat, .. }| LapsedLease { lease, heartbeat, started: Started::Unknown };
    store.reclaim(Reclaim { dead: Vec::new(), lapsed: leases.into_iter().map(free).collect() }).map(drop)
}

/// One sweep: takes back everything whose owner is dead. Lock files of the dead
/// go only after that is durable, so that nobody else has to guess.
pub fn sweep(store: &dyn Store, folder: &Path) -> Result<Reclaimed> {
    let mut dead = Vec::new();
    let mut files = Vec::new();
    for (owner, gone) in dead_owners(store.leases()?, folder) {
        files.extend(lock_path(&owner, folder).map(|path| (owner.locked_by, path)));
        dead.push(gone);
    }
    let reclaimed =
        if dead.is_empty() { Reclaimed::default() } else { store.reclaim(Reclaim { dead, lapsed: Vec::new() })? };
    if !reclaimed.left.is_empty() {
        // What it says of them is still needed.
        let needed: HashSet<String> = store.leases()?.into_iter().map(|held| held.locked_by).collect();
        files.retain(|(locked_by, _)| !needed.contains(locked_by));
    }
    for (_, file) in files {
        remove(&file);
    }
    Ok(reclaimed)
}

/// The last thing a process does with its lock: what it still has goes back or
/// is free for others, and the lock file goes. If that fails, the lock tells
/// others that this process is gone. Returns jobs that it could not let go.
pub(crate) fn sign_off(lock: &OwnerLock, store: &dyn Store, state: &Path) -> Vec<String> {
    let locked_by = lock.owner().locked_by.clone();
    // Goes only if it is empty; what is left in it is still to be applied, or swept by others.
    let _ = std::fs::remove_dir(state.join("stage").join(&locked_by));
    match store.reclaim(Reclaim { dead: vec![DeadOwner { locked_by, started: None }], lapsed: Vec::new() }) {
        Ok(done) => {
            if done.left.is_empty() {
                lock.remove();
            }
            return done.left;
        }
        // There is nobody to be told of what is no longer there.
        Err(error) if error.kind() == ErrorKind::NoDatabase => {}
        Err(error) => tracing::warn!(%error, "could not sign off; others will notice"),
    }
    Vec::new()
}

/// Removes what is left of processes that died and had nothing claimed: their
/// lock files, and what is on record about them. Owners that have something are
/// still to be judged; see [`sweep`].
pub(crate) fn remove_idle_locks(store: &dyn Store, folder: &Path) -> Result<()> {
    let at = |e: std::io::Error| Error::new(ErrorKind::Io, format!("cannot sweep {}: {e}", folder.display()));
    let mut free = Vec::new();
    lock_file::refuse_link(folder)?;
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        // Nobody has claimed anything yet.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(at(e)),
    };
    for entry in entries {
        let path = entry.map_err(at)?.path();
        if path.extension() == Some("lock".as_ref())
            && let Some(file) = lock_file::hold_free(&path).map_err(at)?
        {
            free.push((path, file));
        }
    }
    if free.is_empty() {
        return Ok(());
    }
    // Read while they are held: their owners are dead by now, so no lease can be added.
    let mut needed = HashSet::new();
    for HeldLease { locked_by, owner, .. } in store.leases()? {
        needed.extend(owner.map(|owner| owner.lock_file));
        needed.insert(format!("{locked_by}.lock"));
    }
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    free.retain(|(path, _held)| !needed.contains(&name(path)));
    if free.is_empty() {
        return Ok(());
    }
    let gone = |path: &Path| DeadOwner { locked_by: name(path).trim_end_matches(".lock").to_owned(), started: None };
    let dead = free.iter().map(|(path, _)| gone(path)).collect();
    // Before the files: whoever comes after a crash in between finds them and does it again.
    if !store.reclaim(Reclaim { dead, lapsed: Vec::new() })?.left.is_empty() {
        return Ok(());
    }
    for (path, _held) in free {
        remove(&path);
    }
    Ok(())
}

/// A lock file that nobody needs. One that stays is litter, and no reason to
/// stop: what its owner had is taken back by now.
fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "a lock file could not be removed");
        }
        _ => {}
    }
}

/// Strikes owners from the record that have nothing claimed and no lock file to
/// find them by: it was removed by hand, or stayed where the folder once was. If
/// one of them lives all the same, its next claim puts it on record again.
pub(crate) fn forget_idle_owners(store: &dyn Store, folder: &Path) -> Result<()> {
    let mut owners = store.idle_owners()?;
    owners.retain(|owner| {
        let there = || lock_path(owner, folder).is_some_and(|path| path.symlink_metadata().is_ok());
        owner.machine_id == lock_file::machine_id() && !there()
    });
    if !owners.is_empty() {
        store.forget_owners(owners.into_iter().map(|owner| owner.locked_by).collect())?;
    }
    Ok(())
}
