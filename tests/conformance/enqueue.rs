//! Accepting jobs: kept as given, in order, whole or not at all.

use jobq::state::{Gate, Status};
use jobq::store::{Enqueued, PruneRequest, Store as _};
use jobq::{EnqueueOutcome, ErrorKind, JsonText};

use super::Harness;
use super::draft::{note, sha256};
use super::world::{World, kind};

pub fn an_accepted_job_is_kept_as_it_was_given<H: Harness>() {
    let world = World::<H>::new();
    let payload = r#"{ "text" : "as given",  "n": 1.50 }"#;
    let due = world.now() + 5_000;
    let draft = note("a").payload(payload).priority(-5).run_at(due).max_attempts(7).timeout(1_234);
    let answer = world.enqueue(draft.backoff_max(9_000).holds(&["lane:x", "lane:y"]).key("k").correlation("cause"));

    let expected = Enqueued {
        id: "a".to_owned(),
        job_type: "note".to_owned(),
        status: Status::Pending,
        outcome: EnqueueOutcome::Inserted,
        same_payload: true,
    };
    assert_eq!(answer, expected);
    let job = world.get("a");
    assert_eq!((job.id.as_str(), job.job_type.as_str()), ("a", "note"));
    assert_eq!((job.status, job.gate), (Status::Pending, Some(Gate::Delayed)));
    assert_eq!((job.priority, job.run_at, job.max_attempts), (-5, Some(due), 7));
    assert_eq!((job.attempts, job.token, job.heartbeat, job.cancel_requested), (0, 0, 0, false));
    assert_eq!((job.timeout, job.backoff_base, job.backoff_max), (Some(1_234), Some(1_000), Some(9_000)));
    assert_eq!(job.payload, JsonText(payload.to_owned()), "byte for byte");
    assert_eq!(job.payload_hash, Some(sha256(payload)));
    assert_eq!(job.holds, Some(JsonText(r#"["lane:x","lane:y"]"#.to_owned())));
    assert_eq!(job.idempotency_key.as_deref(), Some("k"));
    assert_eq!(job.correlation_id.as_deref(), Some("cause"));
    assert_eq!(job.created_at, world.now());
    assert_eq!((job.locked_by, job.locked_at, job.claimed_at, job.completed_at), (None, None, None, None));
    assert_eq!((job.result, job.outcome, job.last_error, job.waiting_on), (None, None, None, None));
}

pub fn a_batch_is_accepted_in_its_order<H: Harness>() {
    let world = World::<H>::new();
    let jobs = ["c", "a", "b"].map(|id| note(id).build());
    let answers = world.store.enqueue(jobs.to_vec()).unwrap();
    assert_eq!(answers.iter().map(|a| a.id.as_str()).collect::<Vec<_>>(), ["c", "a", "b"]);
    let first = world.get("c").seq;
    assert_eq!((world.get("a").seq, world.get("b").seq), (first + 1, first + 2));
}

pub fn a_batch_is_accepted_whole_or_not_at_all<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("before"));
    let jobs = vec![note("good").build(), note("bad").after("nobody").build(), note("good too").build()];
    let error = world.unchanged("a batch with a bad job", || world.store.enqueue(jobs).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().starts_with("job 2: "), "the bad one is named by its number: {error}");
    assert_eq!(kind(world.store.get("good")), ErrorKind::NotFound);
}

pub fn nothing_to_enqueue_is_answered_with_nothing<H: Harness>() {
    let world = World::<H>::new();
    assert_eq!(world.unchanged("an empty enqueue", || world.store.enqueue(Vec::new()).unwrap()), []);
}

pub fn order_of_acceptance_never_goes_back<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    let newest = world.get("a").seq;
    world.cancel("a");
    world.clock.advance(1);
    let everything = PruneRequest { ended_before: world.now(), failed: true, forget: true, job_type: None };
    assert_eq!(world.store.prune(everything).unwrap(), 1);
    world.add(note("b"));
    assert!(world.get("b").seq > newest, "a number is not used again after its job is gone");
}

/// Submitting again under the same id is how an unknown outcome is resolved,
/// so it has to be answered whatever became of the job meanwhile.
pub fn the_same_id_again_is_the_same_job_in_any_status<H: Harness>() {
    let world = World::<H>::new();
    let again = |id: &str| {
        world.unchanged("the same id again", || {
            let answer = world.enqueue(note(id).given());
            assert_eq!((answer.id.as_str(), answer.outcome), (id, EnqueueOutcome::Existing));
            assert!(answer.same_payload);
            answer.status
        })
    };
    let claimed = world.running(note("claimed").given());
    assert_eq!(again("claimed"), Status::Claimed);
    world.complete(&claimed);
    assert_eq!(again("claimed"), Status::Completed);
    let failed = world.running(note("failed").given());
    world.fail(&failed);
    assert_eq!(again("failed"), Status::Failed);
    world.add(note("cancelled").given());
    assert_eq!(again("cancelled"), Status::Pending);
    world.cancel("cancelled");
    assert_eq!(again("cancelled"), Status::Cancelled);
}

pub fn the_same_id_with_other_content_is_refused<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").given());
    assert_eq!(world.refuse(note("a").given().payload(r#"{"text":"other"}"#)), ErrorKind::Conflict);
    assert_eq!(world.refuse(note("a").given().of_type("other")), ErrorKind::Conflict);
    let lease = world.claim_only("a");
    world.complete(&lease);
    assert_eq!(world.refuse(note("a").given().payload(r#"{"text":"other"}"#)), ErrorKind::Conflict);
}

pub fn the_same_id_is_compared_by_meaning<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a").given().payload(r#"{"x":1,"y":[2]}"#));
    let answer = world.enqueue(note("a").given().payload(r#"{ "y": [ 2 ], "x": 1 }"#));
    assert_eq!((answer.outcome, answer.same_payload), (EnqueueOutcome::Existing, true));
    assert_eq!(world.get("a").payload.as_str(), r#"{"x":1,"y":[2]}"#, "the first spelling stays");
}
