//! Folders that another program copies to other machines while they change: it
//! may copy the database in the middle of a write, or bring an old one back.

use std::path::Path;

use super::Check;

/// How such folders are called, in small letters.
const NAMES: &[&str] = &[
    "dropbox",
    "onedrive",
    "google drive",
    "googledrive",
    "icloud drive",
    "iclouddrive",
    "mobile documents",
    "com~apple~clouddocs",
    "nextcloud",
    "owncloud",
    "pclouddrive",
    "pcloud drive",
    "megasync",
    "seafile",
    "box sync",
    "resilio sync",
];

/// What such programs leave in the folder they watch.
const MARKS: &[&str] =
    &[".stfolder", ".dropbox.cache", ".owncloudsync.log", ".nextcloudsync.log", ".sync_folder", ".seafile-data"];

pub(super) fn check(root: &Path, db: &Path) -> Check {
    let hint = [root, db].into_iter().find_map(|path| hint(&path.canonicalize().unwrap_or_else(|_| path.to_owned())));
    match hint {
        None => Check::ok("synced_folder", "nothing looks like a folder that is synchronised with other machines"),
        Some(hint) => Check::warn(
            "synced_folder",
            format_args!("{hint} looks like a folder that another program synchronises with other machines"),
            "move the queue out of it, or tell that program to leave .jobq alone: a database that is copied while it \
             changes, or brought back, loses jobs",
        ),
    }
}

fn hint(path: &Path) -> Option<String> {
    path.ancestors().find_map(|folder| {
        let called = folder.file_name().is_some_and(|name| is_name(&name.to_string_lossy().to_lowercase()));
        let marked = MARKS.iter().any(|mark| folder.join(mark).symlink_metadata().is_ok());
        (called || marked).then(|| folder.display().to_string())
    })
}

/// `Dropbox`, `Dropbox (Personal)`, `OneDrive - Example Ltd`.
fn is_name(name: &str) -> bool {
    let rest = |known: &&str| name.strip_prefix(*known);
    NAMES.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with([' ', '-', '(']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_with_what_people_add_to_them() {
        for name in ["dropbox", "dropbox (personal)", "onedrive - example ltd", "mobile documents", "nextcloud"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["dropboxes", "my-dropbox-client", "drive", "", "onedriver"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
