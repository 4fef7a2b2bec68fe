//! Trouble with the database: waited out, longer each time.

use std::sync::Arc;
use std::time::Duration;

use jobq::NewJob;
use jobq::clock::ManualClock;

use super::act::act;
use super::harness::World;
use super::inside::{Inside, Leaps, queue_with_clock};

#[test]
fn a_database_that_fails_is_left_alone_for_longer_each_time_and_a_success_ends_that() {
    let world = World::new();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let queue = queue_with_clock(&world, &clock, Duration::from_millis(50));
    let other = world.sql();
    let hour = Duration::from_secs(3_600);
    let later = |hours: u32| -> NewJob { act([]).delay(hour * hours) };
    let first = queue.enqueue(later(1)).unwrap().id;
    let second = queue.enqueue(later(2)).unwrap().id;
    let mut worker = Inside::start(&world.setup("inside"), &queue, Some(Leaps::new()));
    for id in [first, second] {
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        // Now there is something to claim, and no way to.
        clock.advance(i64::try_from(hour.as_millis()).unwrap());
        let waits: Vec<String> = (0..8).map(|_| worker.hear("trouble").split(' ').next().unwrap().to_owned()).collect();
        assert_eq!(waits, ["1000", "2000", "4000", "8000", "16000", "30000", "30000", "30000"]);
        other.execute_batch("ROLLBACK").unwrap();
        worker.hear("trouble_over");
        worker.hear(&format!("completed {id} 1"));
    }
    assert_eq!(worker.stop().completed, 2);
}

#[test]
fn an_end_that_cannot_be_recorded_is_kept_until_it_can() {
    let world = World::new();
    let clock = Arc::new(ManualClock::at(1_700_000_000_000));
    let queue = queue_with_clock(&world, &clock, Duration::from_millis(50));
    let other = world.sql();
    let go = world.outside("go");
    let deeds = [super::act::Deed::WaitFor(go.clone()), super::act::Deed::Progress(50)];
    let id = queue.enqueue(act(deeds)).unwrap().id;
    let mut worker = Inside::start(&world.setup("inside"), &queue, None);
    worker.hear("running");
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::fs::write(&go, "").unwrap();
    assert!(worker.hear("trouble").starts_with("1000"));
    other.execute_batch("ROLLBACK").unwrap();
    worker.hear(&format!("completed {id} 1"));
    worker.stop();
    assert_eq!(world.runs(&id), 1);
    assert!(world.events(&id).contains(&"progress".to_owned()), "its last progress is not lost either");
}
