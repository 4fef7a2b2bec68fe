//! The benchmark: everything in one table, each line beside a floor that was
//! measured in the same run on the same disk. Ratios are what counts; absolute
//! figures depend on the machine.
//!
//! ```text
//! cargo bench                        # all but the peers, half an hour
//! cargo bench -- --short             # small numbers, to see that it runs
//! cargo bench -- enqueue growth      # some parts
//! bash scripts/bench.sh              # with the peers; writes docs/performance.md
//! ```
//!
//! ```text
//! floor, bare_files, bare_commit   what is compared with: the same without a queue
//! ours, child                      jobq, in this process and as one of its own
//! enqueue … peers                  the parts, in the order of the table
//! table                            how it is printed and kept
//! ```

mod bare_commit;
mod bare_files;
mod child;
mod cli;
mod commit;
mod drain;
mod enqueue;
mod files;
mod floor;
mod growth;
mod headlines;
mod left_behind;
mod ours;
mod peers;
mod process;
mod programs;
mod reconcile;
mod stats;
mod table;

use std::path::PathBuf;

use table::Table;

/// How much of everything.
pub(crate) struct Sizes {
    rounds: usize,
    warm_up: usize,
    singles: usize,
    bulk: usize,
    drain: usize,
    noops: usize,
    files: usize,
    commits: usize,
    left_behind: usize,
    finished: usize,
    pile: usize,
    programs: usize,
    pickups: usize,
    idle_seconds: u64,
    many: usize,
    processes: usize,
    looked_at: usize,
    hashed: usize,
    hashed_bytes: usize,
    peer_singles: usize,
    peer_drain: usize,
}

const WHOLE: Sizes = Sizes {
    rounds: 5,
    warm_up: 2_000,
    singles: 2_000,
    bulk: 100_000,
    drain: 20_000,
    noops: 40_000,
    files: 3_000,
    commits: 1_000,
    left_behind: 10_000,
    finished: 1_000_000,
    pile: 100_000,
    programs: 200,
    pickups: 500,
    idle_seconds: 20,
    many: 1_000_000,
    processes: 40,
    looked_at: 100_000,
    hashed: 256,
    hashed_bytes: 8 << 20,
    peer_singles: 2_000,
    peer_drain: 5_000,
};

const SHORT: Sizes = Sizes {
    rounds: 1,
    warm_up: 0,
    singles: 100,
    bulk: 2_000,
    drain: 500,
    noops: 1_000,
    files: 100,
    commits: 50,
    left_behind: 100,
    finished: 2_000,
    pile: 1_000,
    programs: 20,
    pickups: 20,
    idle_seconds: 1,
    many: 5_000,
    processes: 3,
    looked_at: 500,
    hashed: 4,
    hashed_bytes: 1 << 20,
    peer_singles: 100,
    peer_drain: 100,
};

type Part = fn(&Sizes, &mut Table);

const PARTS: [(&str, Part); 14] = [
    ("enqueue", enqueue::run),
    ("bulk", enqueue::bulk),
    ("claim", drain::claim),
    ("drain", drain::run),
    ("files", files::run),
    ("commit", commit::run),
    ("growth", growth::run),
    ("pickup", process::pickup),
    ("idle", process::idle),
    ("memory", process::memory),
    ("cli", cli::run),
    ("programs", programs::run),
    ("reconcile", reconcile::run),
    ("stats", stats::run),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if args.first().is_some_and(|a| a == "child") {
        return child::run(&args[1..]);
    }
    let mut short = false;
    let (mut parts, mut json, mut peers) = (Vec::new(), None, None);
    let mut rest = args.into_iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "--short" => short = true,
            "--json" => json = rest.next().map(PathBuf::from),
            "--peers" => peers = rest.next().map(PathBuf::from),
            part if PARTS.iter().any(|(name, _)| *name == part) || ["headlines", "peers"].contains(&part) => {
                parts.push(arg);
            }
            unknown => panic!("{unknown}? The parts are {:?}, headlines and peers", PARTS.map(|(name, _)| name)),
        }
    }
    let sizes = if short { SHORT } else { WHOLE };
    if short {
        println!("Short form: it shows that the benchmark runs; its figures and verdicts mean nothing.");
    }
    println!("SQLite {}, FULL durability, medians of {} rounds\n", rusqlite::version(), sizes.rounds);
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|p| p == part);
    let mut table = Table::new();
    for (name, run) in PARTS.iter().filter(|(name, _)| wanted(name)) {
        table.part(name);
        run(&sizes, &mut table);
    }
    if wanted("headlines") {
        table.part("headlines");
        headlines::run(&sizes, &mut table);
    }
    match peers {
        Some(folder) if wanted("peers") => {
            table.part("peers");
            peers::run(&sizes, &mut table, &folder);
        }
        _ => println!("peers: SKIPPED; `bash scripts/bench.sh` installs and measures them"),
    }
    if let Some(path) = json {
        table.write(&path);
    }
}
