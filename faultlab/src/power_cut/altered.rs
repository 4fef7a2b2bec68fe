//! The same program without something that it cannot do without: negative
//! controls. If their losses are not found, nothing that is found elsewhere
//! means anything.
//!
//! It is built from a copy of the source in which each of these is asked for by
//! its name when the program runs, so that one build serves all.

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

pub const FULL: &str = "synchronous=FULL";
pub const FOLDER_SYNC: &str = "folder fsync";
pub const STAGE_SYNC: &str = "stage fsync";

const REMOVALS: &[Removal] = &[
    Removal {
        name: FULL,
        file: "src/store/sqlite/connection.rs",
        words: r#"expect_pragma(conn, "synchronous", "FULL", "2")?"#,
        instead: r#"expect_pragma(conn, "synchronous", "NORMAL", "1")?"#,
    },
    Removal { name: FOLDER_SYNC, file: "src/effects.rs", words: "rustix::fs::fsync(folder)", instead: "Ok(())" },
    Removal {
        name: STAGE_SYNC,
        file: "src/effects/stage_writer.rs",
        words: "rustix::fs::fsync(&self.file)",
        instead: "Ok(())",
    },
];

/// What of the project goes into a program.
const SOURCE: &[&str] = &[
    "Cargo.toml",
    "Cargo.lock",
    "schema.sql",
    "migrations",
    "src",
    "handlers",
    "benches",
    "faultlab/Cargo.toml",
    "faultlab/src",
];

/// Builds it in a folder; where it is then. The names are not the project's:
/// packages of the same name would be taken for each other where both are built.
pub fn build(folder: &Path) -> Result<PathBuf, String> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project is around it");
    for name in SOURCE {
        copy(&project.join(name), &folder.join(name)).map_err(|e| format!("cannot copy {name}: {e}"))?;
    }
    for Removal { name, file, words, instead } in REMOVALS {
        let asked = format!("std::env::var({WITHOUT:?}).as_deref() == Ok({name:?})");
        change(&folder.join(file), words, &format!("(if {asked} {{ {instead} }} else {{ {words} }})"))?;
    }
    let (project, lab) = (folder.join("Cargo.toml"), folder.join("faultlab/Cargo.toml"));
    change(&project, "name = \"jobq\"\nversion", "name = \"jobq-altered\"\nversion")?;
    change(&project, "[[bin]]", "[[bin]]\npath = \"src/main.rs\"")?;
    change(&project, "[dependencies]", "[lib]\nname = \"jobq\"\n\n[dependencies]")?;
    change(&lab, "name = \"faultlab\"", "name = \"faultlab-altered\"")?;
    change(&lab, "jobq = { path = \"..\"", "jobq = { path = \"..\", package = \"jobq-altered\"")?;

    // What does not differ is built already, beside this program.
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let [profile, target] = [1, 2].map(|up| program.ancestors().nth(up).expect("programs are two folders deep"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "-q", "--offline", "-p", "faultlab-altered", "--target-dir"]).arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let built = cargo.current_dir(folder).output().map_err(|e| format!("cargo: {e}"))?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    Ok(profile.join("faultlab-altered"))
}

/// Where the words are not there exactly once, somebody has to look at it again.
fn change(file: &Path, words: &str, instead: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let times = text.matches(words).count();
    if times != 1 {
        return Err(format!("{} has `{words}` {times} times, not once", file.display()));
    }
    std::fs::write(file, text.replace(words, instead)).map_err(|e| format!("{}: {e}", file.display()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        std::fs::create_dir_all(to.parent().expect("it is in a folder"))?;
        return std::fs::copy(from, to).map(drop);
    }
    for entry in from.read_dir()? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
