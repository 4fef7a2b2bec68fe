//! Paths in payloads, checked as text alone.
//!
//! A path is relative to the root and names a file beneath it. A path that is
//! wrong as text is refused when the job is queued. What the disk holds there is
//! checked when the job runs, from a directory handle, never by a string.

use std::path::{Path, PathBuf};

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
            // Also in a folder below: that is another queue, or this one if its database is there.
            name if is_spelling_of(name, ".jobq") => return bad("is inside .jobq, which belongs to jobq"),
            name => parts.push(name),
        }
    }
    if parts.is_empty() {
        return bad("names the root itself; give the path of a file");
    }
    let normal = parts.join("/");
    if normal.len() > MAX_PATH {
        return bad("is longer than 3072 bytes");
    }
    Ok(normal)
}

/// Whether a file system may take `name` for `reserved`, which is ASCII. Some ignore case (macOS, ext4 with casefold), some
/// ignore invisible characters, and some ignore dots and spaces at the end (FAT). This comparison ignores case, characters
/// beyond ASCII, and dots and spaces at the end.
pub(crate) fn is_spelling_of(name: &str, reserved: &str) -> bool {
    // In capitals, because the capital of `ſ` is `S`.
    let capitals: String = name.chars().flat_map(char::to_uppercase).filter(char::is_ascii).collect();
    capitals.trim_end_matches(['.', ' ']) == reserved.to_ascii_uppercase()
}

/// The path without links, as far as it exists.
pub(crate) fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::{is_spelling_of, normalise_path};

    #[test]
    fn a_reserved_name_is_known_in_every_spelling_that_a_file_system_may_fold() {
        for name in [
            ".mcp.json",
            ".MCP.Json",
            ".mcp.j\u{17f}on",
            ".mc\u{200d}p.json",
            ".mcp.json.\u{200b} ",
            "\u{feff}.mcp.json",
        ] {
            assert!(is_spelling_of(name, ".mcp.json"), "{name:?}");
        }
        for name in ["", "mcp.json", ".mcp.json5", ".mcp", ".gitignore"] {
            assert!(!is_spelling_of(name, ".mcp.json"), "{name:?}");
        }
    }

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
            "sub/.jobq/x",
            "a/b/.JOBQ",
            "a\0b",
            &long,
            &deep,
        ] {
            let error = normalise_path(bad).unwrap_err();
            assert_eq!(error.field(), Some("path"), "{bad:?}");
        }
    }
}
