//! Paths in payloads, judged by their letters alone.
//!
//! A path is relative to the root and names a file beneath it. What can be
//! seen to be wrong without looking at the disk is refused when the job is
//! queued. What the disk holds there is judged at run time, from a directory
//! handle, never by a string.

use crate::error::{Error, Result};

/// Longest name of one component, as on every common filesystem.
const MAX_NAME: usize = 255;
/// Longest path below the root; leaves room for the root within `PATH_MAX`.
const MAX_PATH: usize = 3072;

/// The one spelling of a path below the root: `./a//b` is `a/b`. Holds use it,
/// so two spellings of a file are one hold.
///
/// ```
/// assert_eq!(jobq::normalise_path("./out//a.json").unwrap(), "out/a.json");
/// assert!(jobq::normalise_path("../outside").unwrap_err().is_invalid());
/// ```
pub fn normalise_path(path: &str) -> Result<String> {
    let bad = |why: &str| Err(Error::invalid("path", why));
    if path.is_empty() {
        return bad("is empty; give a path relative to the root");
    }
    if path.contains('\0') {
        return bad("contains a NUL character");
    }
    if path.starts_with('/') {
        return bad("is absolute; give a path relative to the root");
    }
    if path.ends_with('/') || path.ends_with("/.") {
        return bad("names a folder; give the path of a file");
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return bad("contains `..`; only paths beneath the root are allowed"),
            name if name.len() > MAX_NAME => return bad("has a name longer than 255 bytes"),
            name => parts.push(name),
        }
    }
    match parts.first() {
        None => return bad("names the root itself; give the path of a file"),
        // Case-insensitive filesystems exist; jobq's own folder is off limits in any case.
        Some(first) if first.eq_ignore_ascii_case(".jobq") => return bad("is inside .jobq, which belongs to jobq"),
        Some(_) => {}
    }
    let normal = parts.join("/");
    if normal.len() > MAX_PATH {
        return bad("is longer than 3072 bytes");
    }
    Ok(normal)
}

#[cfg(test)]
mod tests {
    use super::normalise_path;

    #[test]
    fn one_spelling_per_file() {
        for spelling in ["a/b", "./a/b", "a//b", "a/./b", ".//a///b"] {
            assert_eq!(normalise_path(spelling).unwrap(), "a/b");
        }
        assert_eq!(normalise_path("..a/b..").unwrap(), "..a/b..");
    }

    #[test]
    fn lexically_bad_paths_are_refused() {
        let long = "x".repeat(256);
        let deep = "x/".repeat(2000) + "x";
        for bad in [
            "",
            ".",
            "./",
            "/",
            "/etc/passwd",
            "..",
            "a/../b",
            "a/..",
            "a/",
            "a/.",
            ".jobq",
            ".jobq/x",
            "./.JobQ/x",
            "a\0b",
            &long,
            &deep,
        ] {
            let error = normalise_path(bad).unwrap_err();
            assert_eq!(error.field(), Some("path"), "{bad:?}");
        }
    }
}
