//! What ARCHITECTURE.md says of who knows whom.

use std::path::{Path, PathBuf};

/// All source files below a folder, with their text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension() == Some("rs".as_ref()) {
                found.push((path.clone(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join(folder), &mut found);
    // The module itself.
    let parent = root.join(folder).with_extension("rs");
    found.extend(std::fs::read_to_string(&parent).map(|text| (parent, text)));
    for (path, _) in &mut found {
        *path = path.strip_prefix(root).unwrap().to_owned();
    }
    assert!(!found.is_empty(), "{folder} has moved");
    found
}

/// What is not a comment.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

#[test]
fn there_is_no_sql_outside_the_store() {
    let sql = ["SELECT ", "INSERT ", "UPDATE ", "DELETE FROM ", "BEGIN IMMEDIATE", "PRAGMA "];
    for (path, text) in sources("src").into_iter().chain(sources("handlers")) {
        if path.starts_with("src/store/sqlite") {
            continue;
        }
        let found = code(&text).find(|line| sql.iter().any(|word| line.contains(&format!("\"{word}"))));
        assert_eq!(found, None, "{}", path.display());
    }
}

/// Each layer with the modules of the crate that it may know; those that are above it are not among them.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "src/store",
        &["clock", "error", "job", "json", "new_job", "payload", "printable", "retry", "site", "state", "store"],
    ),
    (
        "src/effects",
        &["clock", "effects", "error", "json", "liveness", "normalise_path", "path", "path_policy", "store"],
    ),
    ("src/liveness", &["clock", "error", "liveness", "store"]),
    ("src/programs", &["error", "printable", "programs"]),
];

#[test]
fn no_layer_knows_what_is_above_it() {
    for (folder, known) in LAYERS {
        for (path, text) in sources(folder) {
            for line in code(&text) {
                for used in line.split("crate::").skip(1) {
                    let module = used.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                    // `crate::{…}` and the crate's own types are what everybody has.
                    let is_module = module.starts_with(char::is_lowercase);
                    let is_allowed = !is_module || known.contains(&module);
                    assert!(is_allowed, "{} knows {module}: {}", path.display(), line.trim());
                }
            }
        }
    }
}

/// Built-in handlers are written as an application's own would be.
#[test]
fn handlers_use_what_the_crate_exports() {
    for (path, text) in sources("handlers") {
        for line in code(&text) {
            let inner = ["crate::queue::", "crate::worker::", "crate::store::sqlite", "crate::commit::"];
            assert!(!inner.iter().any(|module| line.contains(module)), "{}: {}", path.display(), line.trim());
        }
    }
}
