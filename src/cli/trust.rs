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
    let found = state.symlink_metadata().map_err(|error| unreadable(state, &error))?;
    if found.is_symlink() {
        let target = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        return Err(not_trusted(&format!("{} is a link", state.display()), &name_it(&target)));
    }
    check_one(state, &found, true)?;
    check_entries(state, found.mode() & OPEN != 0)
}

/// Everything that jobq reads or runs in it. Only settings and handlers may be links: jobq writes and removes the rest.
fn check_entries(folder: &Path, others_can_enter: bool) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        // A command that ends meanwhile removes its files.
        let Ok(mut found) = path.symlink_metadata() else { continue };
        let is_handlers = path.ends_with(".jobq/handlers");
        let mut check_mode = others_can_enter;
        if found.is_symlink() {
            check_one(&path, &found, false)?;
            if !is_handlers && !path.ends_with(".jobq/config.toml") && !folder.ends_with("handlers") {
                return Err(not_trusted(&format!("{} is a link", path.display()), &name_it(&path)));
            }
            let Ok(target) = path.metadata() else { continue };
            // Others may enter the folder of the target.
            (found, check_mode) = (target, true);
        }
        check_one(&path, &found, check_mode)?;
        if found.is_dir() && is_handlers {
            check_entries(&path, check_mode)?;
        }
    }
    Ok(())
}

fn check_one(path: &Path, found: &Metadata, check_mode: bool) -> Result<()> {
    let me = geteuid().as_raw();
    if found.uid() != me && found.uid() != 0 {
        let owner = found.uid();
        let next = if me == 0 { format!("run `sudo -u '#{owner}' jobq …`, or ") } else { String::new() };
        return Err(not_trusted(&format!("{} belongs to user {owner}", path.display()), &(next + &name_it(path))));
    }
    let has_content = found.is_file() || found.is_dir();
    if check_mode && has_content && found.mode() & WRITABLE != 0 {
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

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot look at {}: {error}", path.display()))
}
