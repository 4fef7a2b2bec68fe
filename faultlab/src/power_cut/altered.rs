//! The same program without something that it cannot do without: negative
//! controls. If their losses are not found, nothing that is found elsewhere
//! means anything.
//!
//! It is built from a copy of the source in which each of these is asked for by
//! its name when the program runs, so that one build serves all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::WITHOUT;

/// What is taken out: its name, the file, the words, and what is there instead.
struct Removal {
    name: &'static str,
    file: &'static str,
    words: &'static str,
    instead: &'static str,
}

pub const LOG_SYNC: &str = "log fsync";
pub const FOLDER_SYNC: &str = "folder fsync";
pub const STAGE_SYNC: &str = "stage fsync";

const REMOVALS: &[Removal] = &[
    // Not by `synchronous=NORMAL`: what is written to the log is kept until it is synced.
    Removal {
        name: LOG_SYNC,
        file: "src/store/sqlite/log_writes.rs",
        words: "called(log.below(), |m| m.xSync, |sync| sync(log.below(), flags))",
        instead: "SQLITE_OK",
    },
    Removal { name: FOLDER_SYNC, file: "src/effects.rs", words: "rustix::fs::fsync(folder)", instead: "Ok(())" },
    Removal {
        name: STAGE_SYNC,
        file: "src/effects/stage_writer.rs",
        words: "rustix::fs::fsync(&self.file)",
        instead: "Ok(())",
    },
];

/// Names and contents.
type Files = BTreeMap<String, String>;

/// What of the project goes into a program.
const SOURCE: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "schema.sql",
    "migrations",
    "src",
    "handlers",
    "tests/support",
    // The manifest names these.
    "tests/runtime.rs",
    "tests/spans.rs",
    "tests/testing.rs",
    "examples",
    "benches",
    "faultlab/Cargo.toml",
    "faultlab/src",
];

/// Names in it that are not the project's: packages of the same name would be
/// taken for each other where both are built.
const NAMES: &[(&str, &str, &str)] = &[
    ("Cargo.toml", "name = \"jobq\"\nversion", "name = \"jobq-altered\"\nversion"),
    ("Cargo.toml", "[[bin]]", "[[bin]]\npath = \"src/main.rs\""),
    ("Cargo.toml", "[lib]", "[lib]\nname = \"jobq\""),
    ("faultlab/Cargo.toml", "name = \"faultlab\"", "name = \"faultlab-altered\""),
    ("faultlab/Cargo.toml", "jobq = { path = \"..\"", "jobq = { path = \"..\", package = \"jobq-altered\""),
];

/// Builds it beside this program; where it is then. What has not changed since the
/// last time is not built anew.
pub fn build() -> Result<PathBuf, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let [profile, target] = [1, 2].map(|up| program.ancestors().nth(up).expect("programs are two folders deep"));
    let folder = target.join("faultlab-altered");
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project is around it");
    let mut files = BTreeMap::new();
    for name in SOURCE {
        read(&project.join(name), name, &mut files).map_err(|e| format!("cannot read {name}: {e}"))?;
    }
    for Removal { name, file, words, instead } in REMOVALS {
        let asked = format!("std::env::var({WITHOUT:?}).as_deref() == Ok({name:?})");
        change(&mut files, file, words, &format!("(if {asked} {{ {instead} }} else {{ {words} }})"))?;
    }
    for (file, words, instead) in NAMES {
        change(&mut files, file, words, instead)?;
    }
    for (name, text) in files {
        write(&folder.join(&name), &text).map_err(|e| format!("cannot write {name}: {e}"))?;
    }

    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "-q", "--offline", "-p", "faultlab-altered", "--target-dir"]).arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.current_dir(&folder).output().map_err(|e| format!("cargo: {e}"))?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    Ok(profile.join("faultlab-altered"))
}

/// Where the words are not there exactly once, somebody has to look at it again.
fn change(files: &mut Files, file: &str, words: &str, instead: &str) -> Result<(), String> {
    let text = files.get_mut(file).ok_or_else(|| format!("{file} is not there"))?;
    let times = text.matches(words).count();
    if times != 1 {
        return Err(format!("{file} has `{words}` {times} times, not once"));
    }
    *text = text.replace(words, instead);
    Ok(())
}

fn read(path: &Path, name: &str, files: &mut Files) -> std::io::Result<()> {
    if !path.is_dir() {
        files.insert(name.to_owned(), std::fs::read_to_string(path)?);
        return Ok(());
    }
    for entry in path.read_dir()? {
        let entry = entry?;
        read(&entry.path(), &format!("{name}/{}", entry.file_name().display()), files)?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    std::fs::create_dir_all(path.parent().expect("it is in a folder"))?;
    std::fs::write(path, text)
}
