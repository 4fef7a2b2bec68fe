//! Claiming must not get slower for what else lies in the table. Each pile is
//! made once; the same small drain is then timed beside an empty table.

use std::time::{Duration, SystemTime};

use jobq::NewJob;
use jobq::store::{Failure, Limits, Store as _};

use crate::Sizes;
use crate::ours::Ours;
use crate::table::{Goal, Table, per_second};

type Make = fn(&Ours, &Sizes);

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    let piles: [(&str, Make); 8] = [
        (FINISHED, finished),
        ("delayed", delayed),
        ("waiting on one job", waiting),
        ("behind one hold", held),
        ("of a type nobody handles", other_type),
        (PAUSED, paused_type),
        (AT_ITS_LIMIT, type_at_its_limit),
        ("not admitted, of a type nobody knows", unknown_type),
    ];
    for (name, make) in piles {
        // Of these the claim is asked for, too; of the others it knows nothing.
        let types: &[&str] = if [PAUSED, AT_ITS_LIMIT].contains(&name) { &["noop", "other"] } else { &["noop"] };
        let limits = if name == AT_ITS_LIMIT { Limits::from([("other".to_owned(), 1)]) } else { Limits::new() };
        let folder = tempfile::tempdir().unwrap();
        let pile = Ours::open(&folder.path().join("pile"));
        make(&pile, sizes);
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for round in 0..sizes.rounds.max(5) {
            // A new one each time: what was finished in the rounds before would be a pile of its own.
            let empty = Ours::open(&folder.path().join(format!("empty-{round}")));
            // Long enough for some checkpoints: whether one falls into a round must not decide what is measured.
            let count = sizes.drain;
            for (ours, rates) in [(&empty, &mut without), (&pile, &mut with)] {
                ours.enqueue_many(count);
                rates.push(per_second(count, || assert_eq!(ours.drain_of(50, types, &limits), count)));
            }
        }
        let name = format!(
            "claim + complete beside {} {name}; empty",
            if name == FINISHED { sizes.finished } else { sizes.pile }
        );
        table.ratio(&name, "jobs/s", &with, &without, Goal::AtLeast(0.9));
    }
    curve(sizes, table);
}

fn finished(ours: &Ours, sizes: &Sizes) {
    finish(ours, sizes.finished);
}

fn finish(ours: &Ours, mut count: usize) {
    while count > 0 {
        let some = count.min(50_000);
        ours.enqueue_many(some);
        assert_eq!(ours.drain(1_000), some);
        count -= some;
    }
}

/// The same drain as the table fills.
fn curve(sizes: &Sizes, table: &mut Table) {
    let folder = tempfile::tempdir().unwrap();
    let ours = Ours::open(folder.path());
    let mut rows = 0;
    for target in [0, sizes.finished / 100, sizes.finished / 10, sizes.finished] {
        finish(&ours, target.saturating_sub(rows));
        rows = rows.max(target);
        let mut rates = Vec::new();
        for _ in 0..sizes.rounds {
            let count = sizes.drain / 20;
            ours.enqueue_many(count);
            rates.push(per_second(count, || assert_eq!(ours.drain(50), count)));
            rows += count;
        }
        table.alone(&format!("claim + complete, rows: {target}"), "jobs/s", &rates, Goal::None);
    }
}

fn delayed(ours: &Ours, sizes: &Sizes) {
    let far = SystemTime::now() + Duration::from_secs(86_400);
    ours.queue.enqueue_many((0..sizes.pile).map(|_| ours.job().run_at(far))).unwrap();
}

fn waiting(ours: &Ours, sizes: &Sizes) {
    let far = SystemTime::now() + Duration::from_secs(86_400);
    let parent = ours.queue.enqueue(ours.job().run_at(far)).unwrap().id;
    ours.queue.enqueue_many((0..sizes.pile).map(|_| ours.job().after(&parent))).unwrap();
}

fn held(ours: &Ours, sizes: &Sizes) {
    let far = SystemTime::now() + Duration::from_secs(86_400);
    ours.queue.enqueue(ours.job().lane("one").run_at(far)).unwrap();
    ours.queue.enqueue_many((0..sizes.pile).map(|_| ours.job().lane("one"))).unwrap();
}

/// Known and admitted by the process that queued them, not asked for by the
/// one that claims: excluded by `--types`.
fn other_type(ours: &Ours, sizes: &Sizes) {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Other {
        n: usize,
    }
    impl jobq::Payload for Other {
        const TYPE: &'static str = "other";
        type Output = ();
    }
    ours.queue.enqueue_many((0..sizes.pile).map(|n| NewJob::of(&Other { n }))).unwrap();
}

const FINISHED: &str = "finished";
const PAUSED: &str = "of a paused type";
const AT_ITS_LIMIT: &str = "of a type at its limit";

fn paused_type(ours: &Ours, sizes: &Sizes) {
    other_type(ours, sizes);
    let claimed = ours.claim(1, &["other"], &Limits::new()).remove(0);
    let failure = Failure::new("rate_limited", "wait").pausing_type(jobq::store::LONGEST_PAUSE);
    ours.queue.store().fail(claimed.lease, failure).unwrap();
}

fn type_at_its_limit(ours: &Ours, sizes: &Sizes) {
    other_type(ours, sizes);
    assert_eq!(ours.claim(1, &["other"], &Limits::new()).len(), 1);
}

fn unknown_type(ours: &Ours, sizes: &Sizes) {
    ours.queue.enqueue_many((0..sizes.pile).map(|n| NewJob::raw("unknown", format!("{{\"n\":{n}}}")))).unwrap();
}
