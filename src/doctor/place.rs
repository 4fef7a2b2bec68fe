//! The place the queue is in: filesystems, room, and other programs' hands.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::{Check, Places, filesystem, or_bad, synced};
use crate::site;
use crate::store::sqlite::Health;

const MIB: u64 = 1024 * 1024;
/// Below this even the log of a few jobs may not fit.
const FULL: u64 = 8 * MIB;
/// Below this one payload and a checkpoint of its log are felt.
const NEARLY_FULL: u64 = 256 * MIB;

pub(super) fn look(places: &Places, tell: &mut dyn FnMut(Check)) {
    let state = existing(&places.state);
    tell(filesystem::check("filesystem", &places.db));
    tell(filesystem::check("root_filesystem", &places.root));
    private(&places.state).into_iter().for_each(&mut *tell);
    tell(one_filesystem(state, &places.root));
    tell(synced::check(&places.root, &places.db));
    tell(room("disk_space", &places.db));
    if device(&places.db) != device(&places.root) {
        tell(room("root_disk_space", &places.root));
    }
}

/// Users who share a queue open its folder to each other. For anybody else it should be closed.
fn private(state: &Path) -> Option<Check> {
    let open_to = state.metadata().ok()?.mode() & 0o077;
    let shown = state.display();
    if open_to == 0 {
        return Some(Check::ok("state_folder", format_args!("only its owner can enter {shown}")));
    }
    let what = format_args!("others can enter {shown}, read prompts and lock the queue's files");
    let next = format_args!("`chmod 700 {shown}`, unless several users share this queue");
    Some(Check::warn("state_folder", what, next))
}

/// Whether the queue belongs to this folder.
pub(super) fn site(health: &Health, state: &Path) -> Check {
    const NEXT: &str = "`jobq site attach --move` if the original is gone, `jobq site attach --new` for a copy";
    let what = format_args!("{} is not this queue's recorded folder, so jobq changes nothing", state.display());
    let check = |recorded| match recorded {
        Some(_) if recorded == site::identity(state) => Check::ok("site", "the queue belongs to this folder"),
        _ => Check::bad("site", what, NEXT),
    };
    or_bad("site", health.site().map(check))
}

/// Staged files are moved to their places, which no system does across filesystems.
fn one_filesystem(state: &Path, root: &Path) -> Check {
    const NAME: &str = "one_filesystem";
    let (shown_state, shown_root) = (state.display(), root.display());
    match (device(state), device(root)) {
        (Some(one), Some(other)) if one == other => Check::ok(NAME, ".jobq and the root are on one filesystem"),
        (Some(_), Some(_)) => Check::bad(
            NAME,
            format_args!(
                "{shown_state} and the root {shown_root} are on different filesystems: no job can put a file in place in one step"
            ),
            "keep .jobq and the root on one filesystem",
        ),
        _ => Check::bad(
            NAME,
            format_args!("{shown_state} or the root {shown_root} is not there or cannot be looked at"),
            "check that both are there and who may read them",
        ),
    }
}

fn room(check: &'static str, path: &Path) -> Check {
    match rustix::fs::statvfs(path) {
        Err(error) => Check::warn(
            check,
            format_args!("{} cannot be looked at: {error}", path.display()),
            "check that it is there",
        ),
        // Filesystems that make them as needed say that there are none at all.
        Ok(stat) if stat.f_files > 0 && stat.f_favail == 0 => Check::bad(
            check,
            format_args!("the filesystem of {} has no room for another file", path.display()),
            "delete some files; `jobq prune` deletes old jobs, not files",
        ),
        Ok(stat) => enough(check, path, stat.f_bavail.saturating_mul(stat.f_frsize)),
    }
}

fn enough(check: &'static str, path: &Path, free: u64) -> Check {
    let message = format!("{} MiB are free where {} is", free / MIB, path.display());
    match free {
        ..FULL => Check::bad(check, message, "make room: nothing can be queued or finished without it"),
        FULL..NEARLY_FULL => Check::warn(check, message, "make room before it is full; `jobq prune` deletes old jobs"),
        _ => Check::ok(check, message),
    }
}

fn device(path: &Path) -> Option<u64> {
    path.metadata().ok().map(|meta| meta.dev())
}

/// The folder, or what it will be made in.
fn existing(path: &Path) -> &Path {
    path.ancestors().find(|folder| folder.exists()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn little_room_is_told_before_there_is_none() {
        let verdict = |free| enough("disk_space", Path::new("/somewhere"), free).verdict;
        assert_eq!([0, FULL, NEARLY_FULL].map(verdict), [Verdict::Bad, Verdict::Warn, Verdict::Ok]);
    }
}
