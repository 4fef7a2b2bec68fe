//! What completed jobs were about, and who has a hold.

use jobq::store::{CompletedJob, CompletedQuery, Store as _};

use super::Harness;
use super::draft::{Draft, note};
use super::world::World;

const ONE: &str = "thing:one";
const OTHER: &str = "thing:other";

fn on(id: &str, keys: &[&str]) -> Draft {
    note(id).holds(keys)
}

fn completed<H: Harness>(world: &World<H>, id: &str, keys: &[&str]) {
    let lease = world.running(on(id, keys));
    world.complete(&lease);
}

/// All of them, in pages of this many.
fn all<H: Harness>(world: &World<H>, query: &CompletedQuery) -> Vec<CompletedJob> {
    let (mut query, mut all) = (query.clone(), Vec::new());
    loop {
        let page = world.store.completed(&query).unwrap();
        assert!(page.len() <= query.limit as usize);
        let Some(last) = page.last() else { return all };
        query.before = Some(last.seq);
        all.extend(page);
    }
}

fn ids(jobs: &[CompletedJob]) -> Vec<&str> {
    jobs.iter().map(|job| job.id.as_str()).collect()
}

fn notes(limit: u32) -> CompletedQuery {
    CompletedQuery { job_type: "note".to_owned(), limit, ..CompletedQuery::default() }
}

pub fn the_latest_completed_job_of_each_hold_comes_first<H: Harness>() {
    let world = World::<H>::new();
    completed(&world, "first", &[ONE]);
    completed(&world, "other", &[OTHER]);
    // Times do not count, nor do names.
    world.clock.advance(-1_000_000);
    completed(&world, "a", &[ONE]);
    let failed = world.running(on("failed", &[ONE]));
    world.fail(&failed);
    world.add(on("cancelled", &[ONE]));
    world.cancel("cancelled");
    completed(&world, "without", &[]);
    world.running(on("claimed", &[OTHER]));
    world.add(on("pending", &[ONE]).after("claimed"));
    assert_eq!(ids(&all(&world, &notes(100))), ["a", "other", "first"]);
    assert!(all(&world, &CompletedQuery { job_type: "create".to_owned(), ..notes(100) }).is_empty());
    // One that is brought back and ends is where it was.
    assert!(world.store.retry("failed").is_ok());
    let lease = world.claim_only("failed");
    world.complete(&lease);
    assert_eq!(ids(&all(&world, &notes(100))), ["failed", "a", "other", "first"]);
}

pub fn completed_jobs_come_in_pages_and_by_hold<H: Harness>() {
    let world = World::<H>::new();
    for (id, keys) in [("1", &[ONE][..]), ("2", &[OTHER]), ("3", &[ONE, OTHER]), ("4", &["thing:on"])] {
        completed(&world, id, keys);
    }
    for limit in 1..5 {
        let jobs = all(&world, &notes(limit));
        assert_eq!(ids(&jobs), ["4", "3", "2", "1"], "{limit} at a time");
        assert_eq!(jobs[1].holds, [ONE, OTHER]);
        let hold = Some(ONE.to_owned());
        assert_eq!(ids(&all(&world, &CompletedQuery { hold, ..notes(limit) })), ["3", "1"]);
        let (hold, after) = (Some(ONE.to_owned()), jobs[3].seq);
        assert_eq!(ids(&all(&world, &CompletedQuery { hold, after, ..notes(limit) })), ["3"]);
    }
}

pub fn the_holder_of_a_key_is_the_one_that_runs_first<H: Harness>() {
    let world = World::<H>::new();
    let holder = |key: &str| world.unchanged("a look", || world.store.holder(key)).unwrap();
    assert_eq!(holder(ONE), None);
    let lease = world.running(on("running", &[ONE]));
    world.add(on("next", &[ONE, OTHER]));
    assert_eq!((holder(ONE).as_deref(), holder(OTHER).as_deref()), (Some("running"), Some("next")));
    world.complete(&lease);
    assert_eq!(holder(ONE).as_deref(), Some("next"));
    world.cancel("next");
    assert_eq!((holder(ONE), holder(OTHER)), (None, None));
}

pub fn looking_for_a_holder_admits_first<H: Harness>() {
    let world = World::<H>::new();
    world.add(super::draft::create("unchecked", "x", "1").no_key().unadmitted());
    assert_eq!(world.store.holder("path:x").unwrap().as_deref(), Some("unchecked"));
}
