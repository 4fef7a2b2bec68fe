//! What is old goes by itself, and nothing that is still needed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jobq::{NewJob, Retention, WorkerOptions};

use super::act::{Deed, act};
use super::days::{DAY, Place, delete, effect, write};
use super::harness::until;
use super::inside::Inside;

#[test]
fn a_worker_deletes_what_ended_two_weeks_ago_and_keeps_what_failed() {
    let place = Place::new();
    let completed = place.run(write("a", "1"));
    let failed = place.run(act([Deed::RetryBefore(2), Deed::Permanent]).max_attempts(1));
    let delayed = place.queue.enqueue(act([]).delay(Duration::from_secs(1_000 * 86_400))).unwrap().id;
    let cancelled = place.queue.enqueue(act([])).unwrap().id;
    place.queue.cancel(&cancelled).unwrap();
    place.pass(14 * DAY);
    place.drain(Retention::default());
    assert!(!place.is_gone(&completed) && !place.is_gone(&cancelled), "not yet");
    place.pass(1);
    for gone in [&completed, &cancelled] {
        // A worker that is to drain takes a part of it with it each time.
        until("it is gone", || {
            place.drain(Retention::default());
            place.is_gone(gone)
        });
        assert_eq!(place.world.events(gone), [] as [&str; 0]);
    }
    assert!(!place.is_gone(&delayed));
    assert_eq!(place.world.events(&failed), ["queued", "claimed", "failed"], "what went wrong stays readable");
    assert_eq!(place.effects(), [effect("a", "put", &completed)]);
    assert_eq!(place.world.read("a").as_deref(), Some("1"));
}

#[test]
fn a_type_may_have_a_time_of_its_own_and_events_may_go_before_jobs() {
    let place = Place::new();
    let kept = place.run(write("kept", "1"));
    let short = place.run(delete("kept"));
    let failed = place.run(act([Deed::Permanent]));
    let [named, other] =
        ["named", "other"].map(|job_type| place.queue.enqueue(NewJob::raw(job_type, "{}")).unwrap().id);
    for id in [&named, &other] {
        place.queue.cancel(id).unwrap();
    }
    let day = Duration::from_secs(86_400);
    let types = [("create_file", None), ("delete_file", Some(day)), ("named", Some(day))];
    let types: BTreeMap<_, _> = types.into_iter().map(|(name, kept)| (name.to_owned(), kept)).collect();
    let retention = Retention { types, ..Retention::default() };
    place.pass(2 * DAY);
    until("what has a short time is gone", || {
        place.drain(retention.clone());
        place.is_gone(&short) && place.is_gone(&named)
    });
    assert_eq!(place.world.events(&kept).len(), 4, "queued, claimed, decided, completed");
    place.pass(13 * DAY);
    until("events are gone", || {
        place.drain(retention.clone());
        place.world.events(&kept).is_empty()
    });
    assert!(!place.is_gone(&kept));
    assert_eq!(place.world.events(&failed).len(), 3);
    assert!(!place.is_gone(&other), "what is unknown here may have a time of its own elsewhere");
}

#[test]
fn a_clock_that_has_leapt_ahead_is_not_believed_at_once() {
    let place = Place::new();
    let done = place.run(write("a", "1"));
    let setup = place.world.setup("long");
    let ticks = Arc::clone(&place.ticks);
    let options = WorkerOptions { poll_interval: Duration::from_millis(5), ..setup.options() };
    let mut worker = Inside::start_with(&setup, options, &place.queue, Some(ticks as _));
    // One that runs has looked once; what it waits for then is the time of the next look.
    let ran = place.queue.enqueue(act([])).unwrap().id;
    place.world.ended(&ran);
    place.clock.advance(100 * DAY);
    place.ticks.advance(601_000);
    // The second one is claimed in a round that has begun after that.
    for _ in 0..2 {
        let later = place.queue.enqueue(act([])).unwrap().id;
        place.world.ended(&later);
    }
    // Of the type that is looked at first.
    assert!(!place.is_gone(&ran));
    until("it has been so for a while", || {
        place.ticks.advance(601_000);
        place.is_gone(&done)
    });
    worker.stop();
}

/// What ends then is older than what has lost its events already.
#[test]
fn events_of_jobs_that_end_while_the_clock_is_set_back_go_too() {
    let place = Place::new();
    let setup = place.world.setup("long");
    let ticks = Arc::clone(&place.ticks);
    let retention = Retention { completed: None, events: Some(Duration::from_secs(86_400)), ..Retention::default() };
    let options = WorkerOptions { poll_interval: Duration::from_millis(5), retention, ..setup.options() };
    let mut worker = Inside::start_with(&setup, options, &place.queue, Some(ticks as _));
    let lose_events = |id: &str| {
        place.world.completed(id);
        place.pass(2 * DAY);
        until("its events are gone", || {
            place.ticks.advance(601_000);
            place.world.events(id).is_empty()
        });
        assert!(!place.is_gone(id));
    };
    lose_events(&place.queue.enqueue(write("a", "1")).unwrap().id);
    place.clock.advance(-100 * DAY);
    lose_events(&place.queue.enqueue(write("a", "2")).unwrap().id);
    worker.stop();
}

#[test]
fn while_jobs_come_and_go_the_database_stays_as_large_as_what_is_kept() {
    const JOBS: usize = 60;
    const CYCLES: usize = 40;
    let place = Place::new();
    let setup = place.world.setup("long");
    let options = WorkerOptions { concurrency: 2, poll_interval: Duration::from_millis(5), ..setup.options() };
    let ticks = Arc::clone(&place.ticks);
    let mut worker = Inside::start_with(&setup, options, &place.queue, Some(ticks as _));
    let conn = place.world.sql();
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    let text = "x".repeat(2_000);
    let mut pages = Vec::new();
    for cycle in 0..CYCLES {
        let jobs = (0..JOBS).map(|n| NewJob::of(&write(&format!("{n}.txt"), &format!("{cycle} {text}"))));
        for job in place.queue.enqueue_many(jobs).unwrap() {
            place.world.completed(&job.id);
        }
        // Those of this cycle are ten days old then, those of the one before twenty.
        place.pass(10 * DAY);
        until("what is old is gone", || {
            // A look that had begun before is over, and another one comes.
            place.ticks.advance(601_000);
            number("SELECT count(*) FROM jobs") <= i64::try_from(JOBS).unwrap()
        });
        pages.push(number("PRAGMA page_count"));
    }
    worker.stop();
    assert_eq!(number("SELECT count(*) FROM effects"), i64::try_from(JOBS).unwrap(), "one for each path");
    let events_of_others = "SELECT count(*) FROM job_events WHERE job_id NOT IN (SELECT id FROM jobs)";
    assert_eq!(number(events_of_others), 0);
    // How rows fall into pages differs from run to run, by a few. A leak of thirty bytes per job would be more.
    let early = *pages[..CYCLES / 4].iter().max().unwrap();
    assert!(*pages.last().unwrap() <= early + early / 20, "the file still grows: {pages:?}");
    let wal = std::fs::metadata(place.world.root().join(".jobq/jobq.db-wal")).map_or(0, |meta| meta.len());
    assert!(wal <= 64 << 20, "{wal}");
}
