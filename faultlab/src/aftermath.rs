//! What must be so when the work was finished after a fault, whatever it was.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use jobq::{Queue, ReconcileOptions, Shutdown, Status, Worker, WorkerEvent, WorkerOptions};

use crate::jobs::{self, Found};
use crate::report::Trouble;
use crate::said::{Ran, Said};
use crate::scenarios::Scenario;
use crate::snapshot::Snapshot;
use crate::world::World;

/// A world in which faults happen, and what is known of it.
pub struct Case<'s> {
    pub world: World,
    pub scenario: &'s Scenario,
    /// How often each handler was called.
    runs: BTreeMap<String, usize>,
    /// What was there each time a process had died.
    snapshots: Vec<Snapshot>,
    said: Vec<Said>,
    /// What others were told: nobody asks for it again.
    promised: Vec<Said>,
    pub troubles: Vec<(Trouble, String)>,
    /// Errors may make a file be written again, and cost attempts.
    pub with_errors: bool,
    /// Threads run beside each other: one may be killed before it tells that it began.
    pub racy: bool,
}

impl<'s> Case<'s> {
    pub fn new(scenario: &'s Scenario) -> Self {
        let world = World::empty();
        (scenario.prepare)(&world);
        let promised = Snapshot::take(&world, &BTreeMap::new()).promises(scenario);
        Self {
            world,
            scenario,
            runs: BTreeMap::new(),
            snapshots: Vec::new(),
            said: Vec::new(),
            promised,
            troubles: Vec::new(),
            with_errors: false,
            racy: false,
        }
    }

    /// These jobs were accepted, by whoever it was.
    pub fn promise(&mut self, ids: impl IntoIterator<Item = String>) {
        self.promised.extend(ids.into_iter().map(Said::Stored));
    }

    /// A process has ended: whatever it was told is there, and whatever others were.
    pub fn ended(&mut self, ran: &Ran) {
        for id in ran.runs() {
            *self.runs.entry(id.clone()).or_default() += 1;
        }
        if ran.stderr.contains("panicked") {
            self.troubles.push((Trouble::Wrong, format!("a panic: {}", ran.stderr)));
        }
        let snapshot = Snapshot::take(&self.world, &self.runs);
        snapshot.check(self.scenario, self.promised.iter().chain(&ran.said), &mut self.troubles);
        self.snapshots.push(snapshot);
        self.said.extend(ran.said.iter().cloned());
    }

    pub fn last(&self) -> &Snapshot {
        self.snapshots.last().expect("a process has ended")
    }

    /// Finishes the work with a real worker and looks at everything.
    pub fn finish(mut self) -> Vec<(Trouble, String)> {
        if let Err(error) = self.work() {
            self.troubles.push((Trouble::Lost, format!("the work cannot be finished: {error}")));
        }
        self.has_ended();
        self.nothing_twice();
        let litter = self.world.litter();
        if !litter.is_empty() {
            self.troubles.push((Trouble::Litter, format!("{litter:?}")));
        }
        if let Some(said) = self.world.unsound() {
            self.troubles.push((Trouble::Wrong, said));
        }
        let (tree, end) = (self.world.tree(), self.scenario.end());
        if tree != end {
            let names = |tree: &crate::world::Tree| tree.keys().cloned().collect::<Vec<_>>();
            self.troubles.push((Trouble::Lost, format!("files: {:?} instead of {:?}", names(&tree), names(&end))));
        }
        self.troubles
    }

    fn work(&mut self) -> jobq::Result<()> {
        let queue = Arc::new(self.world.reopened(self.scenario.creates)?);
        self.all_or_nothing(&queue)?;
        (self.scenario.again)(&queue)?;
        let found = Found::default();
        // What was put off is due, but one thing may lead to another.
        for _ in 0..3 {
            self.drain(&queue, &found)?;
        }
        for (id, value) in self.said.iter().filter_map(checkpoint) {
            let decided = self.snapshots.iter().any(|snapshot| snapshot.is_decided(id));
            if !decided && !found.lock().unwrap().iter().any(|(job, found)| job == id && found >= value) {
                self.troubles.push((Trouble::Lost, format!("no attempt has found checkpoint {value} of {id}")));
            }
        }
        let sums = queue.reconcile(&ReconcileOptions { deep: true, ..ReconcileOptions::default() }, |_, _| true)?;
        if sums.findings + sums.in_flight > 0 {
            self.troubles.push((Trouble::Wrong, format!("the disk is not as the queue knows it: {sums:?}")));
        }
        Ok(())
    }

    /// A commit is there with all its files, or with none.
    fn all_or_nothing(&mut self, queue: &Queue) -> jobq::Result<()> {
        let tree = self.world.tree();
        for change in self.scenario.changes {
            let accepted = match queue.get(change.id) {
                Ok(job) => job.status == Status::Completed,
                Err(error) if error.is_not_found() => false,
                Err(error) => return Err(error),
            };
            if change.is_done(&tree) != Some(accepted) {
                let words = format!("commit {}: completed: {accepted}, files: {:?}", change.id, change.is_done(&tree));
                self.troubles.push((Trouble::Wrong, words));
            }
        }
        for (batch, whole) in self.scenario.batches(&self.last().rows) {
            if !whole {
                self.troubles.push((Trouble::Wrong, format!("half of a batch: {batch}")));
            }
        }
        Ok(())
    }

    fn drain(&mut self, queue: &Arc<Queue>, found: &Found) -> jobq::Result<()> {
        let runs = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&runs);
        let options = WorkerOptions { concurrency: 2, drain: true, ..WorkerOptions::default() };
        let worker = Worker::new(Arc::clone(queue), jobs::registry(found), options)?.observed_by(move |event| {
            if let WorkerEvent::AttemptStarted { job_id, .. } = event {
                told.lock().unwrap().push(job_id.clone());
            }
        });
        worker.run(&Shutdown::new())?;
        for id in runs.lock().unwrap().drain(..) {
            *self.runs.entry(id).or_default() += 1;
        }
        Ok(())
    }

    /// Every job that was to be has completed, and no other is there.
    fn has_ended(&mut self) {
        let sql = self.world.sql();
        let mut statement = sql.prepare("SELECT id, status, attempts, last_error FROM jobs").unwrap();
        let rows = statement.query_map([], |row| {
            Ok((
                row.get::<_, String>(0)?,
                (row.get::<_, String>(1)?, row.get::<_, u32>(2)?, row.get::<_, Option<String>>(3)?),
            ))
        });
        let rows: BTreeMap<_, _> = rows.unwrap().collect::<rusqlite::Result<_>>().unwrap();
        let expected: BTreeSet<String> = self.scenario.jobs().into_iter().collect();
        let handled: BTreeSet<String> = self.scenario.handled().into_iter().collect();
        for id in &expected {
            match rows.get(id) {
                None => self.troubles.push((Trouble::Lost, format!("{id} is not there: {:?}", rows.keys()))),
                Some((status, _, why)) if status != "completed" => {
                    self.troubles.push((Trouble::Lost, format!("{id} is {status} ({why:?})")));
                }
                Some((_, attempts, _)) => {
                    let runs = self.runs.get(id).copied().unwrap_or(0);
                    // Each time a handler begins is an attempt, and nothing else is.
                    let told = runs == *attempts as usize || (self.racy && runs + 1 == *attempts as usize);
                    if handled.contains(id) && (runs == 0 || !told) && !self.with_errors {
                        self.troubles
                            .push((Trouble::Wrong, format!("{id} has run {runs} times in {attempts} attempts")));
                    }
                }
            }
        }
        for id in rows.keys().filter(|id| !expected.contains(*id)) {
            self.troubles.push((Trouble::Doubled, format!("a job that nobody has asked for: {id}")));
        }
    }

    /// Nothing has been decided or completed twice, no handler was called after
    /// that, and what was in place was not put there again.
    fn nothing_twice(&mut self) {
        let sql = self.world.sql();
        let often = "SELECT job_id, type, count(*) FROM job_events WHERE type IN ('queued', 'decided', 'completed')
                     GROUP BY job_id, type HAVING count(*) > 1";
        let mut statement = sql.prepare(often).unwrap();
        let rows = statement.query_map([], |row| {
            Ok(format!("{} {} {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
        });
        for twice in rows.unwrap() {
            self.troubles.push((Trouble::Doubled, format!("events: {}", twice.unwrap())));
        }
        for snapshot in &self.snapshots {
            for id in snapshot.rows.keys().filter(|id| snapshot.is_decided(id)) {
                let (then, now) = (snapshot.runs.get(id), self.runs.get(id));
                if then != now {
                    let words = format!("{id} was decided; its handler had run {then:?} times, then {now:?}");
                    self.troubles.push((Trouble::Doubled, words));
                }
            }
            if self.with_errors {
                continue;
            }
            let end = self.scenario.end();
            for (path, inode) in &snapshot.inodes {
                let now = std::fs::metadata(self.world.root().join(path))
                    .map(|meta| std::os::unix::fs::MetadataExt::ino(&meta));
                if snapshot.tree.get(path) == end.get(path) && now.ok() != Some(*inode) {
                    self.troubles.push((Trouble::Doubled, format!("{path} was in place and was written again")));
                }
            }
        }
    }
}

fn checkpoint(said: &Said) -> Option<(&String, &u64)> {
    if let Said::Checkpoint(id, value) = said { Some((id, value)) } else { None }
}

impl Snapshot {
    /// Its handler must not be called any more.
    pub fn is_decided(&self, id: &str) -> bool {
        self.rows.get(id).is_some_and(|row| row.decided || row.status == "completed")
    }
}
