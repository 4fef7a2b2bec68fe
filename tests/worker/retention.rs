//! What is old goes by itself, and nothing that is still needed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jobq::clock::{Clock as _, ManualClock};
use jobq::handlers::{CreateFile, DeleteFile};
use jobq::store::{ClaimRequest, Decision, EffectOp, Owner, PlannedEffect, Precondition, PruneRequest, Store as _};
use jobq::worker::{Bell, Ticks};
use jobq::{ErrorKind, NewJob, Queue, Retention, WorkerOptions};

use super::act::{Deed, act};
use super::harness::{World, until};
use super::inside::{Inside, queue_with_clock};

const DAY: i64 = 86_400_000;

/// The system's time, and as much more as a test says.
#[derive(Default)]
struct Ahead(Mutex<Duration>);

impl Ahead {
    fn advance(&self, millis: i64) {
        *self.0.lock().unwrap() += Duration::from_millis(millis.unsigned_abs());
    }
}

impl Ticks for Ahead {
    fn now(&self) -> Instant {
        Instant::now() + *self.0.lock().unwrap()
    }

    fn wait(&self, bell: &Bell, until: Instant) {
        let until = until.checked_sub(*self.0.lock().unwrap()).unwrap_or(until);
        // The test may move this clock meanwhile.
        bell.wait(until.min(Instant::now() + Duration::from_millis(5)));
    }
}

struct Place {
    world: World,
    clock: Arc<ManualClock>,
    ticks: Arc<Ahead>,
    queue: Arc<Queue>,
}

impl Place {
    fn new() -> Self {
        let world = World::new();
        let clock = Arc::new(ManualClock::at(1_700_000_000_000));
        let queue = queue_with_clock(&world, &clock, Duration::from_secs(30));
        Self { world, clock, ticks: Arc::default(), queue }
    }

    /// A worker that drains the queue, and prunes when it starts.
    fn drain(&self, retention: Retention) {
        let setup = self.world.setup("drains");
        let options = WorkerOptions { drain: true, retention, ..setup.options() };
        let mut worker = Inside::start_with(&setup, options, &self.queue, Some(Arc::clone(&self.ticks) as _));
        worker.hear("stopped");
        worker.stop();
    }

    fn run(&self, job: impl Into<NewJob>) -> String {
        let id = self.queue.enqueue(job).unwrap().id;
        self.drain(Retention::forever());
        assert!(self.queue.get(&id).unwrap().status.is_finished());
        id
    }

    fn is_gone(&self, id: &str) -> bool {
        self.queue.get(id).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    fn now(&self) -> i64 {
        self.clock.now()
    }

    /// Time passes for everybody.
    fn pass(&self, millis: i64) {
        // In this order: what looks in between must not see time pass without the clock.
        self.clock.advance(millis);
        self.ticks.advance(millis);
    }

    fn prune(&self, job_type: Option<&str>, ended_before: i64, forget: bool) {
        let request = PruneRequest { job_type: job_type.map(str::to_owned), ended_before, failed: true, forget };
        while self.queue.prune(request.clone()).unwrap() > 0 {}
    }

    /// Path, what was done, and by whom; in order of time.
    fn effects(&self) -> Vec<[String; 3]> {
        let conn = self.world.sql();
        let mut statement =
            conn.prepare("SELECT path, op, job_id FROM effects ORDER BY path, applied_in IS NULL, applied_in").unwrap();
        let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?])).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }
}

fn effect(path: &str, op: &str, job: &str) -> [String; 3] {
    [path, op, job].map(str::to_owned)
}

fn write(path: &str, content: &str) -> CreateFile {
    CreateFile { overwrite: true, ..CreateFile::text(path, content) }
}

fn delete(path: &str) -> DeleteFile {
    DeleteFile { path: path.to_owned(), require_exists: false }
}

#[test]
fn the_latest_effect_of_each_path_outlives_its_job() {
    let place = Place::new();
    place.run(write("a", "1"));
    let second = place.run(write("a", "2"));
    place.run(write("b", "1"));
    let removed = place.run(delete("b"));
    place.clock.advance(1);
    place.prune(None, i64::MAX, false);
    assert!(place.is_gone(&second) && place.is_gone(&removed));
    assert_eq!(place.effects(), [effect("a", "put", &second), effect("b", "remove", &removed)]);
    // Once more, on top of what is left of jobs that are gone.
    let third = place.run(write("a", "3"));
    let again = place.run(write("b", "2"));
    place.clock.advance(1);
    place.prune(None, i64::MAX, false);
    assert_eq!(place.effects(), [effect("a", "put", &third), effect("b", "put", &again)]);
}

/// Without it, the older put would read as a file that is missing.
#[test]
fn a_remove_stays_whichever_job_goes_first() {
    for first in ["delete_file", "create_file"] {
        let place = Place::new();
        let put = place.run(write("a", "1"));
        let removed = place.run(delete("a"));
        place.clock.advance(1);
        place.prune(Some(first), i64::MAX, false);
        let left = place.effects();
        assert_eq!(left.last(), Some(&effect("a", "remove", &removed)), "{first} first");
        assert_eq!(left.len(), if place.is_gone(&put) { 1 } else { 2 });
        place.prune(None, i64::MAX, false);
        assert_eq!(place.effects(), [effect("a", "remove", &removed)], "{first} first");
    }
}

#[test]
fn to_forget_takes_whole_paths_of_jobs_that_are_gone() {
    for first in [None, Some("delete_file"), Some("create_file")] {
        let place = Place::new();
        place.run(write("a", "1"));
        place.run(delete("a"));
        place.run(write("b", "1"));
        place.clock.advance(DAY);
        if let Some(first) = first {
            // As a worker does, long before.
            place.prune(Some(first), place.now(), false);
        }
        let young = place.run(write("c", "1"));
        let horizon = place.now();
        place.prune(None, horizon, true);
        assert_eq!(place.effects(), [effect("c", "put", &young)], "{first:?} had gone before");
        place.clock.advance(1);
        place.prune(None, horizon, true);
        assert_eq!(place.effects().len(), 1, "it did not end before that time");
        place.prune(None, horizon + 1, true);
        assert_eq!(place.effects(), [] as [[String; 3]; 0]);
    }
}

#[test]
fn to_forget_skips_paths_on_which_something_is_planned_or_that_a_job_still_tells_of() {
    let place = Place::new();
    let planned = place.run(write("planned", "1"));
    let older = place.run(write("told", "1"));
    let newer = place.run(write("told", "2"));
    place.clock.advance(DAY);
    // A job that is decided and not applied.
    let id = place.queue.enqueue(act([])).unwrap().id;
    let owner = Owner {
        locked_by: "someone".to_owned(),
        machine_id: "elsewhere".to_owned(),
        boot_id: String::new(),
        pid: 1,
        lock_file: "none".to_owned(),
    };
    let request = ClaimRequest { owner, types: vec!["act".to_owned()], limit: 1, limits: jobq::store::Limits::new() };
    let claimed = place.queue.store().claim(request).unwrap().remove(0);
    let effects = vec![PlannedEffect {
        path: "planned".to_owned(),
        op: EffectOp::Remove,
        precondition: Precondition::Absent,
        observed: None,
    }];
    place.queue.store().decide(claimed.lease, Decision { effects, ..Decision::default() }).unwrap();
    // The newer job goes, the older one stays: it has not been so long for its type.
    place.world.sql().execute("UPDATE jobs SET completed_at = ?1 WHERE id = ?2", (place.now(), &older)).unwrap();
    place.prune(None, place.now(), true);
    assert!(place.is_gone(&planned) && place.is_gone(&newer) && !place.is_gone(&older));
    let expected = [
        effect("planned", "put", &planned),
        effect("planned", "remove", &id),
        effect("told", "put", &older),
        effect("told", "put", &newer),
    ];
    assert_eq!(place.effects(), expected);
}

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
    let early = pages[..CYCLES / 4].iter().max().unwrap();
    assert!(pages.last() <= Some(early), "the file still grows: {pages:?}");
    let wal = std::fs::metadata(place.world.root().join(".jobq/jobq.db-wal")).map_or(0, |meta| meta.len());
    assert!(wal <= 64 << 20, "{wal}");
}
