//! Create, delete, create of one path, with running and finishing in between
//! at every possible moment: no request may be dropped as a duplicate when the
//! file would end up other than the last request says.

use std::collections::HashMap;

use jobq::store::{Ending, Lease, Store as _};
use jobq::{EnqueueOutcome, Job};

use super::Harness;
use super::draft::{Draft, create, delete};
use super::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    CreateOne,
    CreateTwo,
    Delete,
}

const REQUESTS: [Request; 3] = [Request::CreateOne, Request::CreateTwo, Request::Delete];

impl Request {
    fn draft(self, id: &str, path: &str) -> Draft {
        match self {
            Self::CreateOne => create(id, path, "one"),
            Self::CreateTwo => create(id, path, "two"),
            Self::Delete => delete(id, path),
        }
    }

    /// What the path holds once it has been carried out.
    fn leaves(self) -> Option<&'static str> {
        match self {
            Self::CreateOne => Some("one"),
            Self::CreateTwo => Some("two"),
            Self::Delete => None,
        }
    }
}

/// What else happens to jobs besides being claimed and completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    /// Every first attempt is given back.
    Released,
    /// Every first attempt fails and is due again at once.
    Rescheduled,
    /// Whatever runs when a request arrives has just been called off.
    CancelledBeforeEachRequest,
}

/// One path, the jobs on it as the test believes them to be, and the file.
struct Story<'w, H: Harness> {
    world: &'w World<H>,
    path: String,
    running: Option<(Lease, Job)>,
    called_off: bool,
    /// Unfinished jobs in order of acceptance.
    unfinished: Vec<(String, Request)>,
    requests: HashMap<String, Request>,
    file: Option<&'static str>,
    trouble: Trouble,
}

impl<H: Harness> Story<'_, H> {
    fn ask(&mut self, number: usize, request: Request) {
        if self.trouble == Trouble::CancelledBeforeEachRequest
            && let Some((lease, _)) = &self.running
        {
            self.world.cancel(&lease.id);
            self.called_off = true;
        }
        let id = format!("{}-{number}", self.path);
        let answer = self.world.enqueue(request.draft(&id, &self.path));
        let newest = self.unfinished.last().cloned();
        // A job that was called off does not stand for anything any more.
        let newest_runs = !(self.called_off && self.unfinished.len() == 1);
        match newest {
            Some((newest, same)) if same == request && newest_runs => {
                assert_eq!((answer.outcome, answer.id), (EnqueueOutcome::Existing, newest));
            }
            _ => {
                assert_eq!((answer.outcome, answer.id.as_str()), (EnqueueOutcome::Inserted, id.as_str()));
                self.unfinished.push((id.clone(), request));
                self.requests.insert(id, request);
            }
        }
    }

    /// Claims if nothing runs, else ends what runs. False when all is done.
    fn step(&mut self) -> bool {
        let Some((lease, job)) = self.running.take() else {
            let mut claims = self.world.claim_as("w1", 10);
            assert!(claims.len() <= 1, "one at a time on {}", self.path);
            self.running = claims.pop().map(|claim| (claim.lease, claim.job));
            return self.running.is_some();
        };
        assert_eq!(lease.id, self.unfinished[0].0, "in order of acceptance");
        match self.trouble {
            Trouble::Released if job.token == 1 => self.world.release(&lease),
            Trouble::Rescheduled if job.attempts == 1 => assert_eq!(self.world.reschedule(&lease, 0), Ending::Done),
            _ if self.called_off => {
                self.world.store.acknowledge_cancel(lease).unwrap();
                self.unfinished.remove(0);
                self.called_off = false;
            }
            _ => {
                self.world.complete(&lease);
                self.file = self.requests[&lease.id].leaves();
                self.unfinished.remove(0);
            }
        }
        true
    }
}

fn tell<H: Harness>(world: &World<H>, path: String, plan: &[(Request, usize)], trouble: Trouble) {
    let mut story = Story {
        world,
        path,
        running: None,
        called_off: false,
        unfinished: Vec::new(),
        requests: HashMap::new(),
        file: None,
        trouble,
    };
    for (number, &(request, steps_after)) in plan.iter().enumerate() {
        story.ask(number, request);
        for _ in 0..steps_after {
            story.step();
        }
    }
    while story.step() {}
    assert!(story.unfinished.is_empty(), "{plan:?} with {trouble:?} left {:?}", story.unfinished);
    let last = plan.last().unwrap().0;
    assert_eq!(story.file, last.leaves(), "{plan:?} with {trouble:?}: the last request decides");
}

/// All triples of requests, and after each but the last every number of steps
/// up to the one that finishes everything before the next request arrives.
fn every_interleaving<H: Harness>(trouble: Trouble) {
    let world = World::<H>::new();
    // Claim and complete; with a first attempt that comes to nothing, twice that.
    let steps = if matches!(trouble, Trouble::Released | Trouble::Rescheduled) { 4 } else { 2 };
    let mut told = 0;
    for triple in triples() {
        for after_first in 0..=steps {
            for after_second in 0..=2 * steps {
                let plan = [(triple[0], after_first), (triple[1], after_second), (triple[2], 0)];
                tell(&world, format!("file-{told}"), &plan, trouble);
                told += 1;
            }
        }
    }
    assert_eq!(told, 14 * (steps + 1) * (2 * steps + 1));
}

/// The two contents are interchangeable, so the first one named is always "one".
fn triples() -> Vec<[Request; 3]> {
    let all = REQUESTS.iter().flat_map(|&a| REQUESTS.iter().flat_map(move |&b| REQUESTS.map(|c| [a, b, c])));
    let first_is_one =
        |triple: &[Request; 3]| triple.iter().find(|&&request| request != Request::Delete) != Some(&Request::CreateTwo);
    all.filter(first_is_one).collect()
}

pub fn no_request_is_lost_when_jobs_simply_complete<H: Harness>() {
    every_interleaving::<H>(Trouble::None);
}

pub fn no_request_is_lost_when_jobs_are_released<H: Harness>() {
    every_interleaving::<H>(Trouble::Released);
}

pub fn no_request_is_lost_when_jobs_are_rescheduled<H: Harness>() {
    every_interleaving::<H>(Trouble::Rescheduled);
}

pub fn no_request_is_lost_when_jobs_are_called_off<H: Harness>() {
    every_interleaving::<H>(Trouble::CancelledBeforeEachRequest);
}
