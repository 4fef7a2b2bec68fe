//! Rows that were queued without being checked, because whoever queued them
//! did not know their type: checked by the next process that does.

use jobq::state::{Gate, Status};
use jobq::store::Store as _;

use super::Harness;
use super::draft::{Draft, create, note};
use super::world::World;

/// As queued by a process that does not know the type and names no key.
fn unchecked(draft: Draft) -> Draft {
    draft.no_key().unadmitted()
}

pub fn nothing_to_admit_is_no_work<H: Harness>() {
    let world = World::<H>::new();
    world.add(note("a"));
    assert_eq!(world.unchanged("an idle admit", || world.store.admit().unwrap()), 0);
}

pub fn a_sound_row_is_admitted_once<H: Harness>() {
    let world = World::<H>::new();
    world.add(unchecked(note("a")));
    assert_eq!(world.gate("a"), Some(Gate::New));
    assert!(world.get("a").blocked.is_some());
    assert_eq!(world.store.admit().unwrap(), 1);
    let job = world.get("a");
    assert_eq!((job.status, job.gate, job.attempts), (Status::Pending, Some(Gate::Ready), 0));
    assert_eq!(world.store.admit().unwrap(), 0);
    world.claim_only("a");
}

pub fn a_claim_admits_first<H: Harness>() {
    let world = World::<H>::new();
    world.add(unchecked(note("a")));
    world.claim_only("a");
}

pub fn a_row_of_an_unknown_type_stays<H: Harness>() {
    let world = World::<H>::new();
    world.add(unchecked(note("a").of_type("unheard_of")));
    assert_eq!(world.unchanged("admitting what nobody knows", || world.store.admit().unwrap()), 0);
    assert_eq!((world.status("a"), world.gate("a")), (Status::Pending, Some(Gate::New)));
    assert_eq!(world.claim(10), [""; 0]);
    world.cancel("a");
    assert_eq!(world.status("a"), Status::Cancelled);
}

/// Every failure passes through `claimed`, this one too.
pub fn an_unsound_row_fails_alone<H: Harness>() {
    let world = World::<H>::new();
    world.add(unchecked(note("bad").payload(r#"{"wrong":1}"#)));
    world.add(unchecked(note("good")));
    world.claim_only("good");
    let job = world.get("bad");
    assert_eq!((job.status, job.attempts, job.token, job.locked_by), (Status::Failed, 1, 1, None));
    assert!(job.last_error.unwrap().starts_with("invalid_input: "));
    assert_eq!(world.event_types("bad"), ["queued", "claimed", "failed"]);
}

/// Holds come from the payload, and the place in line from the order of
/// acceptance, not of admission.
pub fn a_row_takes_its_place_in_line<H: Harness>() {
    let world = World::<H>::new();
    world.add(unchecked(create("first", "x", "1")));
    world.add(create("second", "x", "2").priority(9));
    assert_eq!(world.get("first").holds.unwrap().as_str(), r#"["path:x"]"#);
    assert_eq!((world.gate("first"), world.gate("second")), (Some(Gate::Ready), Some(Gate::Held)));
    let first = world.claim_only("first");
    world.complete(&first);
    world.claim_only("second");
}

pub fn a_duplicate_row_is_cancelled_and_says_of_what<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("a", "x", "1"));
    // A key that says "by payload" stands for the rule of the type.
    world.add(create("b", "x", "1").key("payload:0").unadmitted());
    assert_eq!(world.store.admit().unwrap(), 1);
    let job = world.get("b");
    assert_eq!((job.status, job.last_error.as_deref()), (Status::Cancelled, Some("duplicate of a")));
    assert_eq!(world.event_types("b"), ["queued", "cancelled"]);
    let data = world.events("b")[1].data.clone().unwrap();
    assert_eq!(data.as_str(), r#"{"duplicate_of":"a"}"#);
}

pub fn who_waits_on_a_duplicate_waits_on_what_stands_for_it<H: Harness>() {
    let world = World::<H>::new();
    world.add(create("a", "x", "1"));
    let rows = vec![create("b", "x", "1").key("payload:0").unadmitted().build(), note("child").after("b").build()];
    world.store.enqueue(rows).unwrap();
    let first = world.claim_only("a");
    assert_eq!((world.status("b"), world.get("child").waiting_on.as_deref()), (Status::Cancelled, Some("a")));
    world.complete(&first);
    world.claim_only("child");
}

pub fn a_retried_unsound_row_is_looked_at_afresh<H: Harness>() {
    let world = World::<H>::new();
    world.add(unchecked(note("bad").payload(r#"{"wrong":1}"#)));
    world.store.admit().unwrap();
    assert_eq!(world.status("bad"), Status::Failed);
    world.store.retry("bad").unwrap();
    assert_eq!(world.claim(10), [""; 0], "still wrong, and never handed to anyone");
    assert_eq!(world.status("bad"), Status::Failed);
}

/// It was never checked, so coming back does not make it fit to run: neither
/// its payload nor its holds are known yet.
pub fn a_retried_row_that_was_never_admitted_is_admitted_first<H: Harness>() {
    let world = World::<H>::new();
    world.add(unchecked(create("a", "x", "1")));
    world.cancel("a");
    world.add(create("b", "x", "2"));
    assert_eq!(world.store.retry("a").unwrap().gate, Some(Gate::Ready), "admitted with the retry, ahead of b");
    let first = world.claim_only("a");
    assert_eq!(world.get("a").holds.unwrap().as_str(), r#"["path:x"]"#);
    world.complete(&first);
    world.claim_only("b");
}
