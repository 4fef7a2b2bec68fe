//! Uniqueness: an explicit answer to every enqueue, never a silent nothing.

use jobq::state::Status;
use jobq::store::{Decision, Ending, PruneRequest, Store as _};
use jobq::{EnqueueOutcome, Enqueued};

use super::Harness;
use super::draft::{Draft, create, delete, note, put};
use super::world::World;

fn existing(id: &str, job_type: &str, status: Status, same_payload: bool) -> Enqueued {
    Enqueued {
        id: id.to_owned(),
        job_type: job_type.to_owned(),
        status,
        outcome: EnqueueOutcome::Existing,
        same_payload,
    }
}

/// Ends the one claimable job in each of the three ways and hands it on.
fn for_each_end<H: Harness>(job: &Draft, check: impl Fn(&World<H>, Status)) {
    for end in [Status::Completed, Status::Failed, Status::Cancelled] {
        let world = World::<H>::new();
        let lease = world.running(job.clone());
        match end {
            Status::Completed => world.complete(&lease),
            Status::Failed => world.fail(&lease),
            _ => {
                world.release(&lease);
                world.cancel(&lease.id);
            }
        }
        check(&world, end);
    }
}

pub fn the_same_key_finds_the_unfinished_job<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").key("k").payload(r#"{"text":"x","n":1}"#));
    world.unchanged("a duplicate", || {
        let same = world.enqueue(note("b").key("k").payload(r#"{"n":1,"text":"x"}"#));
        assert_eq!(same, existing("a", "note", Status::Pending, true));
        let other = world.enqueue(note("b").key("k").payload(r#"{"n":2,"text":"x"}"#));
        assert_eq!(other, existing("a", "note", Status::Pending, false));
    });
    world.claim_only("a");
    assert_eq!(world.enqueue(note("b").key("k")), existing("a", "note", Status::Claimed, false));
}

pub fn a_key_belongs_to_its_type<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").key("k"));
    world.add(note("b").key("k").of_type("create"));
    world.add(note("c").key("K"));
}

pub fn without_a_key_nothing_is_a_duplicate<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").payload("{}"));
    world.add(note("b").payload("{}"));
    assert_eq!(world.get("b").idempotency_key, None);
}

pub fn a_finished_job_frees_its_key<H: Harness>() {
    for_each_end::<H>(&note("a").key("k"), |world, _| {
        world.add(note("b").key("k"));
        assert_eq!(world.enqueue(note("c").key("k")).id, "b");
    });
}

pub fn always_also_looks_at_finished_jobs<H: Harness>() {
    for_each_end::<H>(&note("a").key("k"), |world, end| {
        world.unchanged("a duplicate of a finished job", || {
            let answer = world.enqueue(note("b").key("k").always());
            assert_eq!(answer, existing("a", "note", end, false));
        });
        world.clock.advance(1);
        let all = PruneRequest { ended_before: world.now(), failed: true, forget: false, job_type: None };
        assert_eq!(world.store.prune(all).unwrap(), 1);
        world.add(note("b").key("k").always());
    });
}

pub fn always_names_the_unfinished_job_first<H: Harness>() {
    let world = World::<H>::new();
    let old = world.running(note("old").key("k"));
    world.complete(&old);
    world.add(note("new").key("k"));
    assert_eq!(world.enqueue(note("c").key("k").always()), existing("new", "note", Status::Pending, false));
}

pub fn always_names_the_newest_of_the_finished<H: Harness>() {
    let world = World::<H>::new();
    for id in ["first", "second"] {
        let lease = world.running(note(id).key("k"));
        world.complete(&lease);
    }
    assert_eq!(world.enqueue(note("c").key("k").always()), existing("second", "note", Status::Completed, false));
}

pub fn a_batch_finds_its_own_duplicates<H: Harness>() {
    let world = World::<H>::new();
    let jobs = vec![note("a").key("k").build(), note("b").key("k").build(), note("c").build()];
    let answers = world.store.enqueue(jobs).unwrap();
    let told: Vec<_> = answers.iter().map(|a| (a.id.as_str(), a.outcome)).collect();
    let expected = [("a", EnqueueOutcome::Inserted), ("a", EnqueueOutcome::Existing), ("c", EnqueueOutcome::Inserted)];
    assert_eq!(told, expected);
}

pub fn a_file_job_is_a_duplicate_only_of_the_newest_on_its_path<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("a", "x", "1"));
    assert_eq!(world.enqueue(create("b", "x", "1")), existing("a", "create", Status::Pending, true));
    world.add(create("b", "x", "2"));
    world.add(create("c", "x", "1"));
    world.add(delete("d", "x"));
    world.add(create("e", "x", "1"));
    assert_eq!(world.enqueue(create("f", "x", "1")), existing("e", "create", Status::Pending, true));
    world.add(create("f", "y", "1"));
    assert_eq!(world.get("f").idempotency_key, None, "the rule is not a key");
}

pub fn a_cancelled_job_no_longer_counts_as_the_newest<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("a", "x", "1"));
    world.add(delete("b", "x"));
    world.cancel("b");
    assert_eq!(world.enqueue(create("c", "x", "1")), existing("a", "create", Status::Pending, true));
}

/// In every state a job may be in: it stands for an equal new one exactly as
/// long as it will still do the work.
pub fn a_file_job_stands_for_another_while_it_will_still_run<H: Harness>() {
    type Bring<H> = fn(&World<H>);
    let lives: [(&str, Bring<H>, Option<Status>); 9] = [
        ("ready", |_| {}, Some(Status::Pending)),
        ("running", |w| drop(w.claim_only("a")), Some(Status::Claimed)),
        ("backing off", |w| assert_eq!(w.reschedule(&w.claim_only("a"), 1_000), Ending::Done), Some(Status::Pending)),
        (
            "decided",
            |w| assert_eq!(w.decide(&w.claim_only("a"), vec![put("x")]).unwrap(), Ending::Done),
            Some(Status::Claimed),
        ),
        (
            "decided, unowned",
            |w| {
                w.decide(&w.claim_only("a"), vec![put("x")]).unwrap();
                w.reclaim_from("w1");
            },
            Some(Status::Claimed),
        ),
        (
            "asked to stop",
            |w| {
                w.claim_only("a");
                w.cancel("a");
            },
            None,
        ),
        ("completed", |w| w.complete(&w.claim_only("a")), None),
        ("failed", |w| w.fail(&w.claim_only("a")), None),
        ("cancelled", |w| drop(w.cancel("a")), None),
    ];
    for (life, bring, stands) in lives {
        let world = World::<H>::new();
        world.add(create("a", "x", "1"));
        bring(&world);
        let answer = world.enqueue(create("b", "x", "1"));
        match stands {
            Some(status) => assert_eq!(answer, existing("a", "create", status, true), "{life}"),
            None => assert_eq!((answer.id.as_str(), answer.outcome), ("b", EnqueueOutcome::Inserted), "{life}"),
        }
    }
}

pub fn with_several_holds_one_job_must_be_newest_on_all<H: Harness>() {
    let world = World::<H>::new();
    let both = |id| note(id).payload("{}").holds(&["path:x", "path:y"]).newest_holder();
    world.add(both("a"));
    assert_eq!(world.enqueue(both("b")), existing("a", "note", Status::Pending, true));
    world.add(note("one").holds(&["path:y"]).newest_holder());
    world.add(both("b"));
    assert_eq!(world.enqueue(both("c")), existing("b", "note", Status::Pending, true));
}

/// A path that became known only at decide counts like one that was declared.
pub fn a_path_taken_at_decide_makes_its_holder_the_newest<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("early"));
    world.add(create("a", "x", "1"));
    let claims = world.claim_as("w1", 1);
    let late = claims[0].lease.clone();
    assert_eq!(late.id, "early");
    world.store.decide(late, Decision { effects: vec![put("x")], ..Decision::default() }).unwrap();
    // `a` was accepted after `early` and runs after it: it still stands for an equal one.
    assert_eq!(world.enqueue(create("b", "x", "1")), existing("a", "create", Status::Pending, true));
}
