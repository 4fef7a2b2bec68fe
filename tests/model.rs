//! Random sequences of operations by several workers, on the store and on a
//! small reference beside it: after every step both must agree on every job,
//! and in the end every job must have ended.
//!
//! `JOBQ_MODEL_SEQUENCES` says how many (10,000), `JOBQ_MODEL_SEED` where they
//! start, `JOBQ_MODEL_ONLY` runs just the one with that number. A sequence that
//! fails is shortened before it is shown.

#[path = "model/generate.rs"]
mod generate;
#[path = "model/inspect.rs"]
mod inspect;
#[path = "model/op.rs"]
mod op;
#[path = "model/reference.rs"]
mod reference;
#[path = "model/reference_claim.rs"]
mod reference_claim;
#[path = "model/reference_enqueue.rs"]
mod reference_enqueue;
#[path = "model/reference_operator.rs"]
mod reference_operator;
#[path = "model/reference_verbs.rs"]
mod reference_verbs;
#[path = "model/subject.rs"]
mod subject;
#[path = "model/trial.rs"]
mod trial;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use jobq::JobTypes;
use jobq::clock::ManualClock;
use jobq::store::sqlite::{SqliteOptions, SqliteStore};
use tempfile::TempDir;

use generate::{Generator, Random};
use inspect::Inspector;
use op::Op;
use trial::Script;

const THREADS: usize = 2;
/// Sequences leave nothing behind but their effects and free pages; now and
/// then a new database keeps that from mattering.
const SEQUENCES_PER_DATABASE: u64 = 300;

#[test]
fn store_and_reference_agree() {
    let number = |name: &str| std::env::var(name).ok().map(|text| parse(name, &text));
    let seed = number("JOBQ_MODEL_SEED").unwrap_or_else(seed_from_the_clock);
    let (first, end) = match number("JOBQ_MODEL_ONLY") {
        Some(only) => (only, only + 1),
        None => (0, number("JOBQ_MODEL_SEQUENCES").unwrap_or(10_000)),
    };
    println!("model: sequences {first} to {} of JOBQ_MODEL_SEED={seed}", end - 1);
    let next = AtomicU64::new(first);
    let stop = AtomicBool::new(false);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| run_share(seed, &next, end, &stop))).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

fn parse(name: &str, text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}"))
}

fn seed_from_the_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    // Short enough to be typed.
    Random::new(since.as_secs() ^ u64::from(since.subsec_nanos())).next() % 1_000_000_000
}

/// Runs sequences until there are none left or one has failed.
fn run_share(seed: u64, next: &AtomicU64, end: u64, stop: &AtomicBool) -> Option<String> {
    let mut database = Database::new();
    let mut used = 0;
    while !stop.load(Ordering::Relaxed) {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= end {
            break;
        }
        if used == SEQUENCES_PER_DATABASE {
            database = Database::new();
            used = 0;
        }
        used += 1;
        if let Err((why, ops)) = database.run(index, random_script(seed, index)) {
            stop.store(true, Ordering::Relaxed);
            return Some(report(seed, index, &why, ops));
        }
    }
    None
}

/// Depends on nothing but the two numbers.
fn random_script(seed: u64, index: u64) -> Script {
    let mut random = Random::new(Random::new(seed).next() ^ index.wrapping_mul(0xd134_2543_de82_ef95));
    let length = 15 + usize::from(random.below(21));
    Script::Random(Generator::new(random), length)
}

struct Database {
    store: SqliteStore,
    clock: Arc<ManualClock>,
    inspector: Inspector,
    // Last: the files go when nobody has them open.
    _folder: TempDir,
}

impl Database {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder = tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).expect("a temporary folder");
        let path = folder.path().join("jobq.db");
        let clock = Arc::new(ManualClock::at(0));
        let store = SqliteStore::open(SqliteOptions {
            create: true,
            // The jobs come already admitted.
            types: JobTypes::new(),
            clock: clock.clone(),
            ..SqliteOptions::new(&path)
        });
        let store = store.expect("a new database");
        let inspector = Inspector::new(rusqlite::Connection::open(&path).expect("a second connection"));
        Self { store, clock, inspector, _folder: folder }
    }

    fn run(&self, index: u64, script: Script) -> Result<(), (String, Vec<Op>)> {
        trial::run(&self.store, &self.clock, &self.inspector, format!("s{index}"), script)
    }
}

fn report(seed: u64, index: u64, why: &str, ops: Vec<Op>) -> String {
    let length = ops.len();
    let (why, ops) = shorten(why.to_owned(), ops);
    let mut text = format!("sequence {index} of seed {seed}: {why}\n");
    let _ = writeln!(text, "after these operations, shortened from {length}:");
    for (number, op) in (1..).zip(&ops) {
        let _ = writeln!(text, "{number:>4}. {op:?}");
    }
    let _ = write!(text, "again: JOBQ_MODEL_SEED={seed} JOBQ_MODEL_ONLY={index} cargo test --test model");
    text
}

/// Leaves out whatever can be left out so that it still fails.
fn shorten(mut why: String, mut ops: Vec<Op>) -> (String, Vec<Op>) {
    loop {
        let before = ops.len();
        for index in (0..ops.len()).rev() {
            let mut fewer = ops.clone();
            fewer.remove(index);
            if let Err((reason, _)) = Database::new().run(0, Script::Given(fewer.clone())) {
                (why, ops) = (reason, fewer);
            }
        }
        if ops.len() == before {
            return (why, ops);
        }
    }
}
