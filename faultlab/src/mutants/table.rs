//! What is taken away, and who must notice.

use std::fmt;

/// One change. `from` is there exactly once.
pub struct Mutant {
    pub name: &'static str,
    pub file: &'static str,
    pub from: &'static str,
    pub to: &'static str,
    pub test: Test,
}

/// A test program, and the part of it that is run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    pub program: &'static str,
    pub features: &'static str,
    pub name: &'static str,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.program, self.name)
    }
}

const fn test(program: &'static str, name: &'static str) -> Test {
    Test { program, features: "bundled", name }
}

/// With the program as well.
const fn with_cli(program: &'static str, name: &'static str) -> Test {
    Test { program, features: "bundled,cli", name }
}

const fn mutant(name: &'static str, file: &'static str, from: &'static str, to: &'static str, test: Test) -> Mutant {
    Mutant { name, file, from, to, test }
}

const DURABLE: Test = with_cli("--test durable", "");
const POWER_CUT: Test = with_cli("--test commit_crash", "power_cut");
const FAILED_SYNC: Test = with_cli("--test commit_crash", "failed_sync");
const CONFORMANCE: Test = test("--test store_conformance", "");
const ATTACKS: Test = test("--test effects", "attacks");

/// Whoever asks is taken for the one whose turn it is.
macro_rules! anybody {
    ($signature:literal) => {
        concat!(
            $signature,
            "\n    let lease = &Lease { token: tx.row(\"SELECT token FROM jobs WHERE seq = ?1\", \
             rusqlite::params![lease.seq], |row| row.get(0))?.unwrap_or_default(), ..lease.clone() };"
        )
    };
}

macro_rules! token {
    ($name:literal, $file:literal, $signature:literal) => {
        mutant(concat!("token: ", $name), $file, $signature, anybody!($signature), CONFORMANCE)
    };
}

pub const MUTANTS: &[Mutant] = &[
    // Every sync.
    mutant(
        "sync of a staged file",
        "src/effects/stage_writer.rs",
        ".and_then(|()| rustix::fs::fsync(&self.file))",
        "",
        DURABLE,
    ),
    mutant(
        "sync of what a program has staged",
        "src/effects/stage_folder.rs",
        ".and_then(|()| rustix::fs::fsync(&file))",
        "",
        DURABLE,
    ),
    mutant(
        "sync of a staged file's rights",
        "src/effects/plan.rs",
        ".and_then(|()| rustix::fs::fsync(&found.file))",
        "",
        DURABLE,
    ),
    mutant(
        "sync of what is there already",
        "src/effects/plan.rs",
        ".and_then(|()| rustix::fs::fsync(&file))",
        "",
        DURABLE,
    ),
    mutant(
        "sync of folders",
        "src/effects.rs",
        "match rustix::fs::fsync(folder) {",
        "match folder.try_clone().map(drop).map_err(|_| Errno::IO) {",
        DURABLE,
    ),
    mutant(
        "sync of folders that were changed",
        "src/effects/touched.rs",
        "self.failed = files.sync_folder(&folder, &path).err().map(|e| FileError::os(&path, \"sync the folder\", e));",
        "let _ = (files, folder, path);",
        DURABLE,
    ),
    mutant(
        "sync of an owner's folder in the stage",
        "src/effects/stage_own.rs",
        "self.sync_folder(&all, \".jobq/stage\")?;",
        "",
        DURABLE,
    ),
    mutant("sync of the stage's name", "src/effects/stage_own.rs", "self.sync_folder(state, \".jobq\")?;", "", DURABLE),
    mutant(
        "sync of names in the stage",
        "src/effects/stage_sync.rs",
        "let answer = self.sync_folder(&folder, \".jobq/stage\");",
        "let answer = Ok::<(), rustix::io::Errno>(drop(folder));",
        DURABLE,
    ),
    mutant(
        "sync of the stage by a worker",
        "src/worker/seal.rs",
        "let synced = files.sync_stage();",
        "let synced = Ok(());",
        test("--lib", "seal"),
    ),
    mutant(
        "a hole in the log is jumped over",
        "src/store/sqlite/log_writes.rs",
        "Some(lost) if at > lost => return SQLITE_IOERR_WRITE,",
        "Some(lost) if at > lost => {}",
        test("--lib", "log_writes"),
    ),
    mutant(
        "a hole in the log is synced",
        "src/store/sqlite/log_writes.rs",
        "        if self.lost.is_some() {\n            return SQLITE_IOERR_WRITE;\n        }\n",
        "",
        test("--lib", "log_writes"),
    ),
    mutant("sync of the stage by a commit", "src/commit/plan.rs", "files.sync_stage()?;", "", POWER_CUT),
    mutant(
        "folders are synced before COMMIT",
        "src/store/sqlite/apply.rs",
        "tx.sync_before_commit(applier);",
        "",
        DURABLE,
    ),
    mutant(
        "folders are synced before COMMIT, alone",
        "src/store/sqlite/apply.rs",
        "if let Err(failure) = applier.sync() {",
        "if let Err(failure) = Ok(()) {",
        test("--test effects", "through_the_store"),
    ),
    mutant(
        "a COMMIT waits for that sync",
        "src/store/sqlite/writer.rs",
        "if tx.sync() {",
        "if tx.sync() || true {",
        test("--test effects", "through_the_store"),
    ),
    // The answers of syncs.
    mutant(
        "answer of a staged file's sync",
        "src/effects/stage_writer.rs",
        ".and_then(|()| rustix::fs::fsync(&self.file))",
        ".map(|()| drop(rustix::fs::fsync(&self.file)))",
        FAILED_SYNC,
    ),
    mutant(
        "answer of folders' syncs",
        "src/effects.rs",
        "answer => answer,",
        "answer => answer.or(Ok(())),",
        FAILED_SYNC,
    ),
    mutant(
        "answer of the syncs of folders that were changed",
        "src/effects/touched.rs",
        "self.failed = files.sync_folder(&folder, &path).err().map(|e| FileError::os(&path, \"sync the folder\", e));",
        "let _ = files.sync_folder(&folder, &path);",
        FAILED_SYNC,
    ),
    mutant(
        "answer of the sync of names in the stage",
        "src/effects/stage_sync.rs",
        "let answer = self.sync_folder(&folder, \".jobq/stage\");",
        "let answer = self.sync_folder(&folder, \".jobq/stage\").or(Ok::<(), rustix::io::Errno>(()));",
        FAILED_SYNC,
    ),
    mutant(
        "answer of the sync of an owner's folder in the stage",
        "src/effects/stage_own.rs",
        "self.sync_folder(&all, \".jobq/stage\")?;",
        "let _ = self.sync_folder(&all, \".jobq/stage\");",
        FAILED_SYNC,
    ),
    mutant(
        "answer of the sync of the stage's name",
        "src/effects/stage_own.rs",
        "self.sync_folder(state, \".jobq\")?;",
        "let _ = self.sync_folder(state, \".jobq\");",
        FAILED_SYNC,
    ),
    mutant(
        "synchronous=FULL",
        "src/store/sqlite/connection.rs",
        "expect_pragma(conn, \"synchronous\", \"FULL\", \"2\")?;",
        "expect_pragma(conn, \"synchronous\", \"NORMAL\", \"1\")?;",
        test("--lib", "connection"),
    ),
    // Every write that names a token.
    mutant("token: complete", "src/store/sqlite/complete.rs", "AND token = ?3 AND", "AND ?3 = ?3 AND", CONFORMANCE),
    token!(
        "decide",
        "src/store/sqlite/decide.rs",
        "pub(super) fn decide(tx: &Tx<'_>, lease: &Lease, decision: &Decision) -> Result<Ending> {"
    ),
    token!(
        "apply",
        "src/store/sqlite/apply.rs",
        "pub(super) fn apply(tx: &Tx<'_>, lease: &Lease, applier: &Arc<dyn Applier>, withdraw: bool) -> Result<Application> {"
    ),
    token!(
        "fail",
        "src/store/sqlite/fail.rs",
        "pub(super) fn fail(tx: &Tx<'_>, lease: &Lease, failure: &Failure) -> Result<Ending> {"
    ),
    token!(
        "acknowledge a cancel",
        "src/store/sqlite/fail.rs",
        "pub(super) fn acknowledge_cancel(tx: &Tx<'_>, lease: &Lease) -> Result<Ending> {"
    ),
    token!(
        "reschedule",
        "src/store/sqlite/reschedule.rs",
        "pub(super) fn reschedule(tx: &Tx<'_>, lease: &Lease, failure: &Failure, delay: Millis) -> Result<Ending> {"
    ),
    token!(
        "release",
        "src/store/sqlite/release.rs",
        "pub(super) fn release(tx: &Tx<'_>, lease: &Lease) -> Result<Ending> {"
    ),
    mutant(
        "token: heartbeat, progress and checkpoint",
        "src/store/sqlite/heartbeat.rs",
        "AND token = ?3",
        "AND ?3 = ?3",
        CONFORMANCE,
    ),
    mutant(
        "token: whatever looks a lease up",
        "src/store/sqlite/lease.rs",
        "if token != lease.token || (",
        "let _ = token;\n    if (",
        CONFORMANCE,
    ),
    mutant(
        "a token is never used twice",
        "src/store/sqlite/claim.rs",
        "attempts = attempts + 1, token = token + 1,\n            event_seq",
        "attempts = attempts + 1,\n            event_seq",
        CONFORMANCE,
    ),
    mutant(
        "a token is never used twice, taken over",
        "src/store/sqlite/claim.rs",
        "heartbeat_at = ?2, token = token + 1, event_seq",
        "heartbeat_at = ?2, event_seq",
        CONFORMANCE,
    ),
    // Uniqueness.
    mutant(
        "active keys are unique",
        "schema.sql",
        "CREATE UNIQUE INDEX jobs_active_key",
        "CREATE INDEX jobs_active_key",
        test("--test store_conformance", "dedup"),
    ),
    mutant(
        "active holds are unique",
        "schema.sql",
        "CREATE UNIQUE INDEX job_holds_active",
        "CREATE INDEX job_holds_active",
        test("--test transitions", "active_holder"),
    ),
    // Transactions.
    mutant(
        "BEGIN IMMEDIATE",
        "src/store/sqlite/writer/transaction.rs",
        "execute(conn, \"BEGIN IMMEDIATE\")",
        "execute(conn, \"BEGIN DEFERRED\")",
        test("--test races", ""),
    ),
    mutant(
        "BEGIN IMMEDIATE of migrations",
        "src/store/sqlite/schema.rs",
        "conn.execute_batch(\"BEGIN IMMEDIATE\")",
        "conn.execute_batch(\"BEGIN DEFERRED\")",
        test("--test schema", ""),
    ),
    // Damage.
    mutant(
        "payload hash",
        "src/store/sqlite/claim.rs",
        "if job.payload_hash.as_deref() == Some(&json::sha256_hex(job.payload.as_str().as_bytes())) {",
        "if true {",
        test("--test plain_sql", "damage"),
    ),
    mutant(
        "plan hash",
        "src/store/sqlite/decide.rs",
        "outcome.sha256 != outcome.hash(&lease.id, rows.iter().map(|(effect, _)| effect)) {",
        "outcome.sha256.len() != outcome.hash(&lease.id, rows.iter().map(|(effect, _)| effect)).len() {",
        test("--test effects", "through_the_store"),
    ),
    mutant(
        "staged hash",
        "src/effects/verify.rs",
        "let whole = found == sha256;",
        "let whole = found.len() == sha256.len();",
        test("--test effects", "through_the_store"),
    ),
    mutant(
        "staged content is what was recorded",
        "src/effects/stage_found.rs",
        " && meta.stamp.size == size",
        " && size < u64::MAX",
        test("--test effects", "meanwhile"),
    ),
    // Confinement.
    mutant("no link is followed on the way", "src/effects/walk.rs", "FOLDER | OFlags::NOFOLLOW", "FOLDER", ATTACKS),
    mutant(
        "no link is followed to look",
        "src/effects/meta.rs",
        "rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)",
        "rustix::fs::statat(folder, name, AtFlags::empty())",
        ATTACKS,
    ),
    mutant(
        "no link is opened",
        "src/effects/sight.rs",
        "OFlags::RDONLY | OFlags::NOFOLLOW |",
        "OFlags::RDONLY |",
        test("--test effects", "meanwhile"),
    ),
    mutant(
        "no link is followed in the stage",
        "src/effects/stage_own.rs",
        "rustix::fs::openat(from.as_fd(), name, FOLDER | OFlags::NOFOLLOW, Mode::empty())",
        "rustix::fs::openat(from.as_fd(), name, FOLDER, Mode::empty())",
        test("--test effects", "sweeping"),
    ),
    mutant(
        "no link is swept through",
        "src/effects/sweep.rs",
        "FOLDER | OFlags::NOFOLLOW",
        "FOLDER",
        test("--test effects", "sweeping"),
    ),
    mutant(
        "no path leads upwards",
        "src/path.rs",
        "\"..\" => return bad(\"contains `..`; only paths beneath the root are allowed\"),",
        "",
        ATTACKS,
    ),
    mutant(
        "jobq's own folder is off limits",
        "src/effects/walk.rs",
        "if self.off_limits == Some(id) {",
        "if false {",
        ATTACKS,
    ),
    // Applying.
    mutant(
        "what is replaced is what was expected",
        "src/effects/check.rs",
        "(_, Precondition::Sha256(sha256)) if *sha256 == holds => self.ready(effect, Some(meta)),",
        "(_, Precondition::Sha256(_)) => self.ready(effect, Some(meta)),",
        test("--test effects", "conflicts"),
    ),
    mutant(
        "what is new replaces nothing",
        "src/effects/apply.rs",
        "to, spot.name, RenameFlags::NOREPLACE)",
        "to, spot.name, RenameFlags::empty())",
        test("--test effects", "meanwhile"),
    ),
    mutant(
        "a last look before the rename",
        "src/effects/apply.rs",
        "let spot = self.files.walk(&effect.path, Walk { make: true, doubt }).map_err(|e| Trouble::of(effect, e))?;\n        let replaced = spot.open_file().map_err(|e| Trouble::of(effect, e))?;\n        if replaced.as_ref().map(|(_, meta)| *meta) != found {",
        "let spot = self.files.walk(&effect.path, Walk { make: true, doubt }).map_err(|e| Trouble::of(effect, e))?;\n        let replaced = spot.open_file().map_err(|e| Trouble::of(effect, e))?;\n        if false {",
        test("--test effects", "conflicts"),
    ),
    // Liveness.
    mutant(
        "a slot outlasts its job's COMMIT",
        "src/worker/execute.rs",
        "let mut finished = Finished { duration,",
        "let _ = shared.lock.start(slot, 0, 0);\n    let mut finished = Finished { duration,",
        with_cli("--test worker", ""),
    ),
    mutant(
        "a lock file is the one that is there",
        "src/liveness/lock_file.rs",
        "Ok(()) => Ok(same_file(&file, path)?.then_some(file)),",
        "Ok(()) => Ok(Some(file)),",
        test("--lib", "lock_file"),
    ),
];
