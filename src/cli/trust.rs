//! Whether a queue that was found, not named, is the user's own. jobq acts with the user's rights on what is recorded in
//! the state folder, so that folder must not be one that somebody else has prepared.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use jobq::{Error, ErrorKind, Result};
use rustix::process::geteuid;

use super::locate::quoted;

/// Others can write, by the bits for group and others. With an ACL, the group bits are the most that any entry allows.
const WRITABLE: u32 = 0o022;
/// Others can enter.
const OPEN: u32 = 0o077;

/// Refuses a state folder that others own, can write, or have put something into.
pub(super) fn check(state: &Path) -> Result<()> {
    let found = look(state)?;
    if found.is_symlink() {
        let target = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        return Err(not_trusted(&format!("{} is a link", state.display()), &name_it(&target)));
    }
    check_one(state, &found, true)?;
    check_entries(state, found.mode() & OPEN != 0)
}

/// Everything that jobq reads or runs in it.
fn check_entries(folder: &Path, others_can_enter: bool) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        // A command that ends meanwhile removes its files.
        let Ok(mut found) = path.symlink_metadata() else { continue };
        let name = path.file_name();
        if found.is_symlink() {
            // It leads to a database with a state folder of its own, which is not looked at here.
            if name == Some("jobq.db".as_ref()) {
                return Err(not_trusted(&format!("{} is a link", path.display()), &name_it(&path)));
            }
            check_one(&path, &found, false)?;
            let Ok(target) = path.metadata() else { continue };
            found = target;
        }
        check_one(&path, &found, others_can_enter)?;
        if found.is_dir() && (name == Some("handlers".as_ref()) || name == Some("hooks".as_ref())) {
            check_entries(&path, others_can_enter)?;
        }
    }
    Ok(())
}

fn check_one(path: &Path, found: &Metadata, check_mode: bool) -> Result<()> {
    let me = geteuid().as_raw();
    if found.uid() != me && found.uid() != 0 {
        let owner = user(found.uid());
        let next = if me == 0 { format!("run `sudo -u {owner} jobq …`, or ") } else { String::new() };
        return Err(not_trusted(&format!("{} belongs to {owner}", path.display()), &(next + &name_it(path))));
    }
    if check_mode && found.mode() & WRITABLE != 0 {
        let next = format!("run `chmod go-w {}` after a look at what is there, or {}", quoted(path), name_it(path));
        return Err(not_trusted(&format!("others can write {}", path.display()), &next));
    }
    Ok(())
}

fn name_it(path: &Path) -> String {
    let mut folders = path.ancestors().filter(|folder| folder.file_name() == Some(".jobq".as_ref()));
    let root = folders.next().and_then(Path::parent).unwrap_or(path);
    format!("name the queue with `--root {}`, `--db` or JOBQ_DB if you trust it", quoted(root))
}

fn not_trusted(what: &str, next: &str) -> Error {
    Error::new(ErrorKind::NotTrusted, format!("{what}, so this queue was not used; {next}"))
}

/// The user's name, or `#` and the number, which sudo takes as well.
fn user(uid: u32) -> String {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = users.lines().find(|line| line.split(':').nth(2) == Some(&uid.to_string()));
    named.and_then(|line| line.split(':').next()).map_or_else(|| format!("'#{uid}'"), str::to_owned)
}

fn look(path: &Path) -> Result<Metadata> {
    path.symlink_metadata().map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot look at {}: {error}", path.display()))
}
