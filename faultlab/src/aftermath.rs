//! What must be so when the work was finished after a fault, whatever it was.

mod end;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jobq::{Queue, ReconcileOptions, Shutdown, Status, Worker, WorkerEvent, WorkerOptions};

use crate::jobs::{self, Found};
use crate::report::Trouble;
use crate::said::{Ran, Said};
use crate::scenarios::Scenario;
use crate::snapshot::Snapshot;
use crate::starts;
use crate::world::World;

/// A world in which faults happen, and what is known of it.
pub struct Case<'s> {
    pub world: World,
    pub scenario: &'s Scenario,
    /// How often each handler was called.
    runs: BTreeMap<String, usize>,
    /// What was there each time a process had died.
    snapshots: Vec<Snapshot>,
    /// What all of them were told.
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
        // A claim is over when another may have taken the job back.
        self.said.retain(|said| !matches!(said, Said::Claimed(_)));
        self.said.extend(ran.said.iter().cloned());
        self.look();
    }

    /// Whatever anybody was ever told is there.
    fn look(&mut self) {
        let snapshot = Snapshot::take(&self.world, &self.runs);
        snapshot.check(self.scenario, self.promised.iter().chain(&self.said), &mut self.troubles);
        self.snapshots.push(snapshot);
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
        let alone = starts::none();
        let queue = self.world.reopened(self.scenario.creates)?;
        self.all_or_nothing(&queue)?;
        drop((queue, alone));
        self.opened();
        let queue = Arc::new(self.world.reopened(false)?);
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

    /// Somebody has opened the queue and done nothing else. Looked at before anything
    /// is asked for again, which would hide that it was lost, and before any worker has
    /// cleaned up: what the dead have left is gone, but for the locks of those whose
    /// jobs a worker has yet to take back.
    fn opened(&mut self) {
        self.said.retain(|said| !matches!(said, Said::Claimed(_)));
        self.look();
        let owners = self.world.owners();
        let mut litter = self.world.litter();
        litter.retain(|name| !owners.iter().any(|owner| *name == format!("owners/{owner}.lock")));
        if !litter.is_empty() {
            self.troubles.push((Trouble::Litter, format!("when the queue was opened: {litter:?}")));
        }
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
