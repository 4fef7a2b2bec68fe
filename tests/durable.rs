//! A worker under strace: whatever the database says of a file was made sure before
//! it says so. (`tests/commit_crash/power_cut.rs` asks the same of a commit.)

#[path = "support/skipped.rs"]
mod skipped;

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TRACED: &str = "mkdir,mkdirat,openat,write,pwrite64,fchmod,rename,renameat,renameat2,unlinkat,fsync,fdatasync";

/// A call that was made: its name and the paths it was about.
#[derive(Debug)]
struct Call {
    name: String,
    paths: Vec<PathBuf>,
}

impl Call {
    fn is(&self, names: &[&str], path: &Path) -> bool {
        names.contains(&self.name.as_str()) && self.paths.first().is_some_and(|first| first == path)
    }
}

const SYNCS: &[&str] = &["fsync", "fdatasync"];
const RENAMES: &[&str] = &["rename", "renameat", "renameat2"];

#[test]
fn a_worker_makes_sure_of_what_it_has_done_before_it_says_so() {
    let Some(work) = Work::done() else { return };
    // A new file in a new folder, one over another with other rights, one that a program has made.
    let staged: Vec<(PathBuf, usize)> =
        ["new/file.txt", "over.txt", "made.txt"].map(|path| work.renamed_to(path)).into();
    for (source, renamed) in &staged {
        work.content_is_sure(source, *renamed);
        let made = work.first(0, |call| call.paths.last() == Some(source));
        // Its name in the stage, before it was decided; the decision, before it was carried out.
        let decided = work.sync_and_log(source.parent().unwrap(), made);
        assert!(decided < *renamed, "{} went to its place before that was decided", source.display());
        let target = work.calls[*renamed].paths.last().unwrap();
        work.sync_before_log(target.parent().unwrap(), *renamed);
    }
    let folder = work.first(0, |call| call.name.starts_with("mkdir") && call.paths.last().unwrap().ends_with("new"));
    work.sync_before_log(&work.root, folder);
    let removed = work.first(0, |call| call.name == "unlinkat" && call.paths.last().unwrap().ends_with("gone.txt"));
    work.sync_before_log(&work.root, removed);
    // It was there already; that it is durable is known only when it has been synced.
    work.first(0, |call| call.is(SYNCS, &work.root.join("same.txt")));
    // The folders of the stage itself.
    let stage = work.root.join(".jobq/stage");
    let owner = staged[0].0.parent().unwrap();
    for (folder, parent) in [(owner, stage.as_path()), (&stage, &work.root.join(".jobq"))] {
        let made = work.first(0, |call| call.name.starts_with("mkdir") && call.paths.last().unwrap() == folder);
        let decided = work.sync_and_log(parent, made);
        assert!(staged.iter().all(|(_, renamed)| decided < *renamed), "{} may not be there", folder.display());
    }
}

/// `synchronous=FULL`: what is answered is on the disk, not on its way.
#[test]
fn every_commit_is_synced_before_the_next_begins() {
    let Some(work) = Work::done() else { return };
    let log = work.root.join(".jobq/jobq.db-wal");
    let (mut written, mut syncs) = (false, 0);
    for call in &work.calls {
        if call.is(&["pwrite64"], &log) {
            written = true;
        } else if call.is(SYNCS, &log) {
            syncs += usize::from(written);
            written = false;
        }
        // What is staged meanwhile is nobody's file yet.
        let is_applied = |path: &PathBuf| !path.starts_with(work.root.join(".jobq"));
        let applies = RENAMES.contains(&call.name.as_str()) && call.paths.last().is_some_and(is_applied);
        assert!(!(written && applies), "the log is not sure when this is done: {call:?}");
    }
    // One for what is claimed, decided and applied, each; and nothing is left in doubt at the end.
    assert!(syncs >= 3 && !written, "{syncs} syncs of the log, {written}");
}

/// What a worker did, call by call.
struct Work {
    root: PathBuf,
    calls: Vec<Call>,
    _folder: tempfile::TempDir,
}

impl Work {
    fn done() -> Option<Self> {
        if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
            skipped::skipped("what workers sync", "strace is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let root = base.join("root");
        std::fs::create_dir(&root).unwrap();
        let jobq = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
            command.args(args).current_dir(&root).env_remove("JOBQ_DB").env_remove("JOBQ_LOG").stdin(Stdio::null());
            command
        };
        assert!(jobq(&["init"]).output().unwrap().status.success());
        let write = |path: &str, content: &str, mode: u32| {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), content).unwrap();
            std::fs::set_permissions(root.join(path), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        write("over.txt", "old", 0o600);
        write("same.txt", "same", 0o644);
        write("gone.txt", "gone", 0o644);
        let program =
            "#!/bin/sh\nprintf made > \"$JOBQ_STAGE/x\"\necho '{\"put\":\"made.txt\",\"from\":\"x\"}' >&$JOBQ_FD\n";
        write(".jobq/handlers/make", program, 0o755);
        for (kind, payload) in [
            ("create_file", r#"{"path":"new/file.txt","content":"new"}"#),
            ("create_file", r#"{"path":"over.txt","content":"newer","overwrite":true}"#),
            ("create_file", r#"{"path":"same.txt","content":"same"}"#),
            ("delete_file", r#"{"path":"gone.txt"}"#),
            ("make", "{}"),
        ] {
            assert!(jobq(&["enqueue", kind, payload]).output().unwrap().status.success());
        }
        let log = base.join("log");
        let worker = jobq(&["worker", "--drain", "--concurrency", "1", "--no-reconcile"]);
        let mut strace = Command::new("strace");
        strace.args(["-f", "-y", "-s", "0", "-e", &format!("trace={TRACED}"), "-o"]).arg(&log).arg("--");
        strace.arg(worker.get_program()).args(worker.get_args()).current_dir(&root).env_remove("JOBQ_DB");
        // Or an ordinary user's strace could not read what the worker's calls are given.
        strace.env("JOBQ_DUMPABLE", "1");
        let said = strace.stdin(Stdio::null()).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        for (path, content) in [("new/file.txt", "new"), ("over.txt", "newer"), ("made.txt", "made")] {
            assert_eq!(std::fs::read_to_string(root.join(path)).unwrap(), content);
        }
        assert!(!root.join("gone.txt").exists());
        let calls = calls(&std::fs::read_to_string(&log).unwrap());
        Some(Self { root, calls, _folder: folder })
    }

    #[track_caller]
    fn first(&self, from: usize, is_it: impl Fn(&Call) -> bool) -> usize {
        let found = self.calls[from..].iter().position(is_it);
        from + found.unwrap_or_else(|| panic!("no such call after {from}: {:#?}", self.calls))
    }

    /// Where a file came from, and when it came to its place.
    #[track_caller]
    fn renamed_to(&self, path: &str) -> (PathBuf, usize) {
        let target = self.root.join(path);
        let at = self.first(0, |call| RENAMES.contains(&call.name.as_str()) && call.paths.last() == Some(&target));
        (self.calls[at].paths[0].clone(), at)
    }

    /// Whatever was done to a file, and to what it was called before, was synced
    /// afterwards.
    #[track_caller]
    fn content_is_sure(&self, path: &Path, until: usize) {
        let mut name = path.to_owned();
        let mut synced = false;
        for call in self.calls[..until].iter().rev() {
            if call.is(SYNCS, &name) {
                synced = true;
            }
            let changes = call.is(&["write", "pwrite64", "fchmod"], &name);
            assert!(synced || !changes, "{} has been changed and not synced: {call:?}", name.display());
            if RENAMES.contains(&call.name.as_str()) && call.paths.last() == Some(&name) {
                name.clone_from(&call.paths[0]);
            }
        }
        assert!(synced, "{} was never synced", path.display());
    }

    /// A folder is synced after this call, and then the log; when the log is.
    #[track_caller]
    fn sync_and_log(&self, folder: &Path, after: usize) -> usize {
        let synced = self.first(after, |call| call.is(SYNCS, folder));
        self.first(synced, |call| call.is(SYNCS, &self.root.join(".jobq/jobq.db-wal")))
    }

    /// The same for what is done inside a transaction: before its log is even written.
    #[track_caller]
    fn sync_before_log(&self, folder: &Path, after: usize) {
        let written = self.first(after, |call| call.is(&["pwrite64"], &self.root.join(".jobq/jobq.db-wal")));
        let synced = self.first(after, |call| call.is(SYNCS, folder));
        assert!(synced < written, "the log is written before {} is synced", folder.display());
    }
}

/// The calls of all threads in the order they were made; a sync counts when it is over.
fn calls(text: &str) -> Vec<Call> {
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((thread, words)) = line.split_once(' ') else { continue };
        let words = words.trim_start();
        let is_sync = |words: &str| SYNCS.contains(&words.split('(').next().unwrap_or_default());
        let words = if words.starts_with("<... ") {
            match begun.remove(thread) {
                Some(first) if is_sync(first) => first,
                _ => continue,
            }
        } else {
            words
        };
        if line.contains("<unfinished ...>") {
            begun.insert(thread, words);
            if is_sync(words) {
                continue;
            }
        }
        let Some((name, arguments)) = words.split_once('(') else { continue };
        let arguments = arguments.rsplit_once(" = ").map_or(arguments, |(arguments, _)| arguments);
        if name != "openat" || arguments.contains("O_CREAT") {
            calls.push(Call { name: name.to_owned(), paths: paths(&arguments.replace("<unfinished ...>", "")) });
        }
    }
    calls
}

/// A descriptor's path, or that of a name in a descriptor's folder.
fn paths(mut rest: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut in_folder = false;
    while let Some(at) = rest.find(['<', '"']) {
        let is_name = rest.as_bytes()[at] == b'"';
        let Some((inner, after)) = rest[at + 1..].split_once(if is_name { '"' } else { '>' }) else { break };
        match found.last_mut().filter(|_| is_name && in_folder) {
            Some(_) if inner.is_empty() => {}
            Some(folder) => *folder = folder.join(inner),
            None => found.push(inner.into()),
        }
        in_folder = !is_name;
        rest = after;
    }
    found
}
