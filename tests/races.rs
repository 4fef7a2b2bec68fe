//! Races between real processes on one database with full durability. The
//! test program starts itself: a child runs [`race_child`] and nothing else,
//! and is told over its standard input when to go, so nobody sleeps or guesses.

use std::collections::{HashMap, HashSet};
use std::env;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Lines, Write as _, stdin, stdout};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use jobq::store::sqlite::{SqliteOptions, SqliteStore};
use jobq::store::{ClaimRequest, Dedup, EnqueueJob, Owner, Store as _};
use jobq::{Backoff, EnqueueOutcome, Filter, JobTypes, Status, Unique};
use sha2::{Digest as _, Sha256};

const ROLE: &str = "JOBQ_RACE_CHILD";
const DATABASE: &str = "JOBQ_RACE_DATABASE";
const NAME: &str = "JOBQ_RACE_NAME";
/// Begins what a child has to say, among the lines of the test harness.
const MARK: &str = "RACE:";
const JOB_TYPE: &str = "race";

const CLAIMERS: usize = 8;
const CLAIMS_EACH: usize = 1_000;
const ROUNDS: usize = 1_000;

#[test]
fn eight_processes_claim_every_job_exactly_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("jobq.db");
    let store = open(&database, true);
    let jobs = CLAIMERS * CLAIMS_EACH;
    let ids: Vec<String> = (0..jobs).map(|n| format!("job-{n}")).collect();
    for some in ids.chunks(1_000) {
        store.enqueue(some.iter().map(|id| job(id, Dedup::None)).collect()).unwrap();
    }

    let mut children: Vec<Racer> =
        (0..CLAIMERS).map(|n| Racer::start("claim", &format!("worker-{n}"), &database)).collect();
    for child in &mut children {
        assert_eq!(child.hear(), "ready");
    }
    for child in &mut children {
        child.tell("go");
    }
    let mut claimed_by: HashMap<String, String> = HashMap::new();
    for child in &mut children {
        for id in child.hear().split_whitespace() {
            let other = claimed_by.insert(id.to_owned(), child.name.clone());
            assert_eq!(other, None, "{id} was claimed twice, the second time by {}", child.name);
        }
        child.expect_success();
    }
    let expected: HashSet<&String> = ids.iter().collect();
    assert_eq!(claimed_by.keys().collect::<HashSet<_>>(), expected);

    let rows = store.list(&Filter { limit: u32::MAX, ..Filter::default() }).unwrap();
    assert_eq!(rows.len(), jobs);
    for row in rows {
        assert_eq!((row.status, row.attempts, row.token), (Status::Claimed, 1, 1), "{}", row.id);
        assert_eq!(row.locked_by.as_ref(), claimed_by.get(&row.id), "{}", row.id);
    }
    let nothing = store.claim(ClaimRequest {
        owner: owner("late"),
        types: vec![JOB_TYPE.to_owned()],
        limit: 1,
        limits: jobq::store::Limits::new(),
    });
    assert!(nothing.unwrap().is_empty());
}

#[test]
fn two_processes_with_one_key_make_one_job() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("jobq.db");
    let store = open(&database, true);
    let mut children = ["left", "right"].map(|name| Racer::start("enqueue", name, &database));
    for child in &mut children {
        assert_eq!(child.hear(), "ready");
    }

    let mut made = HashSet::new();
    for round in 0..ROUNDS {
        // Neither side is always told first.
        let first = round % 2;
        children[first].tell(&round.to_string());
        children[1 - first].tell(&round.to_string());
        let answers = children.each_mut().map(Racer::hear);
        let [(left, left_id), (right, right_id)] =
            answers.each_ref().map(|answer| answer.split_once(' ').expect("an outcome and an id"));
        assert_eq!(left_id, right_id, "round {round}: both name the same job");
        let mut outcomes = [left, right];
        outcomes.sort_unstable();
        assert_eq!(outcomes, ["existing", "inserted"], "round {round}: one made it, the other found it");
        let maker = if left == "inserted" { "left" } else { "right" };
        assert_eq!(left_id, format!("{maker}-{round}"), "round {round}: the job is the one its maker brought");
        assert!(made.insert(left_id.to_owned()), "round {round}: a job of an earlier round");
    }
    for child in &mut children {
        child.tell("end");
        child.expect_success();
    }
    let rows = store.list(&Filter { limit: u32::MAX, ..Filter::default() }).unwrap();
    assert_eq!(rows.into_iter().map(|row| row.id).collect::<HashSet<_>>(), made);
}

/// Not a test of its own: what a child process does.
#[test]
fn race_child() {
    let Ok(role) = env::var(ROLE) else { return };
    let database = PathBuf::from(env::var_os(DATABASE).expect("the parent names the database"));
    let name = env::var(NAME).expect("the parent names the child");
    let store = open(&database, false);
    say("ready");
    match role.as_str() {
        "claim" => claim_my_share(&store, &name),
        "enqueue" => enqueue_every_round(&store, &name),
        other => panic!("no such role: {other}"),
    }
}

fn claim_my_share(store: &SqliteStore, name: &str) {
    assert_eq!(stdin().lines().next().unwrap().unwrap(), "go");
    let mut ids = String::new();
    for number in 0..CLAIMS_EACH {
        let request = ClaimRequest {
            owner: owner(name),
            types: vec![JOB_TYPE.to_owned()],
            limit: 1,
            limits: jobq::store::Limits::new(),
        };
        let claimed = store.claim(request).unwrap();
        // There are exactly as many jobs as claims, so none comes back empty.
        assert_eq!(claimed.len(), 1, "claim {number} of {name}");
        let _ = write!(ids, "{} ", claimed[0].lease.id);
    }
    say(&ids);
}

fn enqueue_every_round(store: &SqliteStore, name: &str) {
    for line in stdin().lines() {
        let round = line.unwrap();
        if round == "end" {
            return;
        }
        let request = job(&format!("{name}-{round}"), Dedup::Key(format!("round-{round}")));
        let answer = store.enqueue(vec![request]).unwrap().remove(0);
        let outcome = if answer.outcome == EnqueueOutcome::Inserted { "inserted" } else { "existing" };
        say(&format!("{outcome} {}", answer.id));
    }
}

fn say(words: &str) {
    // The harness may have begun a line of its own.
    println!("\n{MARK}{words}");
    stdout().flush().unwrap();
}

/// A child process and both ends of the talk with it.
struct Racer {
    name: String,
    process: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Racer {
    fn start(role: &str, name: &str, database: &Path) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "race_child", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(NAME, name)
            .env(DATABASE, database)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = process.stdin.take().unwrap();
        let from = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { name: name.to_owned(), process, to, from }
    }

    fn tell(&mut self, word: &str) {
        writeln!(self.to, "{word}").unwrap_or_else(|e| panic!("{} is gone: {e}", self.name));
    }

    /// The next thing the child says. Its silence is its end.
    fn hear(&mut self) -> String {
        let said = self.from.by_ref().map(Result::unwrap).find_map(|line| line.strip_prefix(MARK).map(str::to_owned));
        said.unwrap_or_else(|| panic!("{} ended without a word; its panic is above", self.name))
    }

    fn expect_success(&mut self) {
        // Reads to the end first, so that the child is never stuck on a full pipe.
        self.from.by_ref().for_each(drop);
        assert!(self.process.wait().unwrap().success(), "{} failed", self.name);
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        // After a failed check the children still wait for their next word.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn open(database: &Path, create: bool) -> SqliteStore {
    let options = SqliteOptions {
        create,
        // The lock is not handed out in order of arrival; nobody may give up because of bad luck.
        busy_timeout: Duration::from_secs(120),
        types: JobTypes::new(),
        ..SqliteOptions::new(database)
    };
    SqliteStore::open(options).unwrap()
}

fn owner(name: &str) -> Owner {
    Owner {
        locked_by: name.to_owned(),
        machine_id: "machine".to_owned(),
        boot_id: "boot".to_owned(),
        pid: std::process::id(),
        lock_file: format!("{name}.lock"),
    }
}

fn job(id: &str, dedup: Dedup) -> EnqueueJob {
    let payload = "{\"n\":1}".to_owned();
    let mut payload_hash = String::new();
    for byte in Sha256::digest(payload.as_bytes()) {
        let _ = write!(payload_hash, "{byte:02x}");
    }
    EnqueueJob {
        id: id.to_owned(),
        id_given: false,
        job_type: JOB_TYPE.to_owned(),
        payload,
        payload_hash,
        admitted: true,
        dedup,
        unique: Unique::Active,
        holds: Vec::new(),
        priority: 0,
        run_at: None,
        max_attempts: 3,
        timeout: 60_000,
        backoff: Backoff::default(),
        waiting_on: None,
        correlation_id: None,
    }
}
