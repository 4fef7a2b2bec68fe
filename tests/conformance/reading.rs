//! Finding jobs: by id, by the beginning of one, and in lists.

use jobq::state::Status;
use jobq::store::{Filter, Store as _};
use jobq::{ErrorKind, Job};

use super::Harness;
use super::draft::note;
use super::world::{World, kind};

fn ids(jobs: &[Job]) -> Vec<&str> {
    jobs.iter().map(|job| job.id.as_str()).collect()
}

/// Five jobs, one in each status, two types, a minute apart.
fn five<H: Harness>() -> World<H> {
    let world = World::<H>::new();
    let later = || world.clock.advance(60_000);
    let lease = world.running(note("completed"));
    world.complete(&lease);
    later();
    let lease = world.running(note("failed").of_type("create"));
    world.fail(&lease);
    later();
    world.add(note("cancelled"));
    world.cancel("cancelled");
    later();
    world.running(note("claimed").of_type("create"));
    later();
    world.add(note("pending"));
    world
}

pub fn lists_show_the_newest_first<H: Harness>() {
    let world = five::<H>();
    let all = world.store.list(&Filter::default()).unwrap();
    assert_eq!(ids(&all), ["pending", "claimed", "cancelled", "failed", "completed"]);
    for job in &all {
        assert_eq!(format!("{job:?}"), format!("{:?}", world.get(&job.id)), "as a single look shows it");
    }
    let two = world.store.list(&Filter { limit: 2, ..Filter::default() }).unwrap();
    assert_eq!(ids(&two), ["pending", "claimed"]);
}

pub fn lists_can_be_narrowed<H: Harness>() {
    let world = five::<H>();
    for status in Status::ALL {
        let found = world.store.list(&Filter { status: Some(status), ..Filter::default() }).unwrap();
        assert_eq!(ids(&found), [status.as_str()]);
    }
    let list = |filter: Filter| {
        let found = world.store.list(&filter).unwrap();
        found.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let create = Some("create".to_owned());
    assert_eq!(list(Filter { job_type: create.clone(), ..Filter::default() }), ["claimed", "failed"]);
    let since = Some(world.get("cancelled").created_at);
    assert_eq!(list(Filter { since, ..Filter::default() }), ["pending", "claimed", "cancelled"]);
    assert_eq!(list(Filter { since, job_type: create.clone(), ..Filter::default() }), ["claimed"]);
    let failed = Some(Status::Failed);
    assert_eq!(list(Filter { status: failed, job_type: create.clone(), ..Filter::default() }), ["failed"]);
    assert_eq!(list(Filter { status: failed, since, job_type: create, ..Filter::default() }), [""; 0]);
    assert_eq!(list(Filter { job_type: Some("unheard_of".to_owned()), ..Filter::default() }), [""; 0]);
    assert_eq!(list(Filter { since: Some(world.now() + 1), ..Filter::default() }), [""; 0]);
}

/// Jobs that come, go or change while someone pages must not shift the pages.
pub fn pages_do_not_shift<H: Harness>() {
    for (status, job_type) in [(None, None), (Some(Status::Pending), None), (None, Some("note".to_owned()))] {
        let world = World::<H>::new();
        for n in 0..10 {
            world.add(note(&format!("n{n}")));
        }
        let mut seen = Vec::new();
        let mut before = None;
        loop {
            let filter = Filter { status, job_type: job_type.clone(), since: None, before, limit: 3 };
            let page = world.store.list(&filter).unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.seq);
            seen.extend(page.into_iter().map(|job| job.id));
            world.add(note(&format!("came meanwhile {}", seen.len())));
        }
        assert_eq!(seen, ["n9", "n8", "n7", "n6", "n5", "n4", "n3", "n2", "n1", "n0"]);
    }
}

pub fn a_list_without_a_limit_is_a_page<H: Harness>() {
    let world = World::<H>::new();
    world.store.enqueue((0..60).map(|n| note(&format!("n{n}")).build()).collect()).unwrap();
    assert_eq!(world.store.list(&Filter::default()).unwrap().len(), 50);
    assert_eq!(world.store.list(&Filter { limit: 55, ..Filter::default() }).unwrap().len(), 55);
}

pub fn the_beginning_of_an_id_finds_the_job<H: Harness>() {
    let world = World::<H>::new();
    for id in ["01ABC1", "01ABC2", "01ABC", "01XYZ9", "mixedCase"] {
        world.add(note(id));
    }
    let resolve = |prefix: &str| world.store.resolve(prefix);
    assert_eq!(resolve("01XYZ9").unwrap(), "01XYZ9");
    assert_eq!(resolve("01X").unwrap(), "01XYZ9");
    assert_eq!(resolve("01xy").unwrap(), "01XYZ9", "ids may be typed in small letters");
    assert_eq!(resolve("mixedC").unwrap(), "mixedCase");
    assert_eq!(resolve("01ABC").unwrap(), "01ABC", "a whole id is that job, whatever else begins with it");
    assert_eq!(kind(resolve("01AB")), ErrorKind::Invalid, "more than one");
    assert_eq!(kind(resolve("01ABD")), ErrorKind::NotFound);
    assert_eq!(kind(resolve("01XYZ99")), ErrorKind::NotFound);
    assert_eq!(kind(resolve("")), ErrorKind::Invalid);
    assert_eq!(kind(resolve("%")), ErrorKind::NotFound, "letters only mean themselves");
}
