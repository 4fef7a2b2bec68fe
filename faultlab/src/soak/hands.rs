//! The eight, each in a process of its own: they use jobq as an application does.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use jobq::handlers::{CreateFileHandler, DeleteFileHandler};
use jobq::{
    Context, ErrorKind, Handler, HandlerError, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown, Worker,
    WorkerOptions,
};

use super::Soak;
use super::ledger::{self, Committed, ENDED, ENOUGH, Enqueued, Ledger, RAN, TROUBLES};
use super::plan::{COMMITTERS, Count, ENQUEUERS, Item, MILESTONE, Note};

/// The first argument of such a process.
pub const WORD: &str = "soak-hand";

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Role {
    Enqueuer(u32),
    Committer(u32),
    Worker(u32),
    /// A worker that ends when there is nothing left to do.
    Drain,
}

impl Role {
    pub fn is_worker(self) -> bool {
        matches!(self, Role::Worker(_))
    }

    pub fn arguments(self, soak: &Soak) -> Vec<String> {
        let (role, number) = match self {
            Role::Enqueuer(number) => ("enqueuer", number),
            Role::Committer(number) => ("committer", number),
            Role::Worker(number) => ("worker", number),
            Role::Drain => ("drain", 0),
        };
        let folder = soak.folder.to_str().unwrap().to_owned();
        vec![WORD.to_owned(), role.to_owned(), number.to_string(), folder, soak.seed.to_string(), soak.jobs.to_string()]
    }
}

pub fn of_these_arguments() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, role, number, folder, seed, jobs] = &arguments[..] else { return None };
    if word != WORD {
        return None;
    }
    // Nobody else would end it if the tormentor is killed.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let soak = Soak { folder: PathBuf::from(folder), seed: seed.parse().unwrap(), jobs: jobs.parse().unwrap() };
    let number = number.parse().unwrap();
    let done = match role.as_str() {
        "enqueuer" => enqueue(&soak, number),
        "committer" => commit(&soak, number),
        "worker" => work(&soak, false, if number == 0 { WorkerOptions::default().lease } else { SHORT_LEASE }),
        _ => work(&soak, true, WorkerOptions::default().lease),
    };
    if let Err(error) = done {
        ledger::note(&soak, TROUBLES, &format!("{role} {number}: {:?}: {error}", error.kind()));
        return Some(ExitCode::FAILURE);
    }
    Some(ExitCode::SUCCESS)
}

/// Whoever is stopped in the middle of a transaction keeps all others waiting;
/// with several stopped one after the other that can be long.
fn patiently<T>(mut attempt: impl FnMut() -> jobq::Result<T>) -> jobq::Result<T> {
    loop {
        match attempt() {
            Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::OutcomeUnknown) => {}
            answer => return answer,
        }
    }
}

fn open(soak: &Soak, registry: &Registry) -> jobq::Result<Queue> {
    patiently(|| QueueOptions::in_folder(soak.folder.join("root")).types(registry.types()).open())
}

/// How far an enqueuer may be ahead of the workers.
const AHEAD: u64 = 40 * MILESTONE;

fn enqueue(soak: &Soak, enqueuer: u32) -> jobq::Result<()> {
    let queue = open(soak, &registry(soak))?;
    let Enqueued { acknowledged: mut next, mut open } = Enqueued::of(soak, enqueuer);
    let notes = Ledger::open(soak, &ledger::of_producer(enqueuer));
    let share = soak.jobs * 7 / 8 / u64::from(ENQUEUERS);
    // What was asked for has to be answered, whatever else is enough.
    while open.is_some() || next < share || !ledger::exists(soak, ENOUGH) {
        let count = open.take().unwrap_or_else(|| {
            // One by one when it has its share, and goes on for company.
            let count = if next < share && fastrand::bool() { fastrand::u64(1..=2 * MILESTONE) } else { 1 };
            notes.note(&format!("ask {count}"));
            count
        });
        let jobs = || (next..next + count).map(|number| Item::of(soak, enqueuer, number).job());
        patiently(|| queue.enqueue_many(jobs()))?;
        notes.note(&format!("ack {count}"));
        next += count;
        if next >= share {
            ledger::note(soak, &ledger::share_of(enqueuer), "");
        }
        let ahead = if next < share { AHEAD } else { MILESTONE };
        if let Some(behind) = next.checked_sub(ahead) {
            let milestone = Item::of(soak, enqueuer, behind - behind % MILESTONE).key;
            patiently(|| queue.wait(&milestone, Duration::MAX))?;
        }
    }
    Ok(())
}

fn commit(soak: &Soak, committer: u32) -> jobq::Result<()> {
    let queue = open(soak, &registry(soak))?;
    let Committed { acknowledged: mut next, mut open } = Committed::of(soak, committer);
    let notes = Ledger::open(soak, &ledger::of_producer(committer));
    // Three jobs each.
    let share = soak.jobs / 8 / 3 / u64::from(COMMITTERS);
    // What was asked for has to be answered, whatever else is enough.
    while open.is_some() || next < share || !ledger::exists(soak, ENOUGH) {
        let count = Count::of(committer, next);
        // What was asked for before this process was there is asked for again, to the letter.
        let known = open.take().map(|value| {
            patiently(|| {
                queue.commit(|tx| {
                    count.fill(tx, value)?;
                    tx.write_json(&count.path, &value)?;
                    tx.expect(&count.path, Count::before(value))
                })
            })
        });
        match known {
            Some(Ok(_)) => {}
            Some(Err(error)) if !error.is_stale() && !error.is_path_busy() => return Err(error),
            // It never was accepted, and now never will be.
            Some(Err(_)) | None => {
                patiently(|| {
                    queue.update_json(&count.path, |value: Option<u64>, tx| {
                        let value = value.unwrap_or(0) + 1;
                        notes.note(&format!("ask {value}"));
                        count.fill(tx, value)?;
                        Ok(value)
                    })
                })?;
            }
        }
        notes.note("ack");
        next += 1;
        if next >= share {
            ledger::note(soak, &ledger::share_of(committer), "");
            patiently(|| queue.wait(&count.note_id, Duration::MAX))?;
        }
    }
    Ok(())
}

/// Of all workers but the first: who is stopped for longer is taken for frozen by the others,
/// and what it does when it goes on must count for nothing.
pub const SHORT_LEASE: Duration = Duration::from_millis(250);

fn work(soak: &Soak, drain: bool, lease: Duration) -> jobq::Result<()> {
    let registry = registry(soak);
    let queue = Arc::new(open(soak, &registry)?);
    let options = WorkerOptions { concurrency: 2, drain, lease, ..WorkerOptions::default() };
    Worker::new(queue, registry, options)?.run(&Shutdown::new()).map(drop)
}

fn registry(soak: &Soak) -> Registry {
    let ran = Arc::new(Ledger::open(soak, RAN));
    let soak = soak.clone();
    Registry::builtin()
        .with(Noting { ran: Arc::clone(&ran), soak })
        .with(Noted { handler: CreateFileHandler, ran: Arc::clone(&ran) })
        .with(Noted { handler: DeleteFileHandler, ran })
}

/// Its lines in the ledger, one when it begins and one when it ends, are all it does.
struct Noting {
    ran: Arc<Ledger>,
    soak: Soak,
}

impl Handler for Noting {
    type Payload = Note;

    fn run(&self, ctx: &Context, note: Note) -> Result<Outcome, HandlerError> {
        self.ran.note(&format!("{} {}", note.key, ctx.attempt()));
        if let Some((path, value)) = &note.counted {
            let text = std::fs::read_to_string(ctx.root().join(path)).unwrap_or_default();
            if !text.trim().parse::<u64>().is_ok_and(|now| now >= *value) {
                let line = format!("{}: ran when {path} was {text:?}, before the {value} of its commit", note.key);
                ledger::note(&self.soak, TROUBLES, &line);
            }
        }
        if note.slow {
            std::thread::sleep(Duration::from_millis(fastrand::u64(50..500)));
        }
        self.ran.note(&format!("{} {}{ENDED}", note.key, ctx.attempt()));
        Ok(Outcome::done())
    }
}

/// A handler of jobq's own, and its lines in the ledger.
struct Noted<H> {
    handler: H,
    ran: Arc<Ledger>,
}

impl<H: Handler> Handler for Noted<H> {
    type Payload = H::Payload;

    fn run(
        &self,
        ctx: &Context,
        payload: H::Payload,
    ) -> Result<Outcome<<H::Payload as Payload>::Output>, HandlerError> {
        self.ran.note(&format!("{} {}", ctx.job_id(), ctx.attempt()));
        let outcome = self.handler.run(ctx, payload);
        self.ran.note(&format!("{} {}{ENDED}", ctx.job_id(), ctx.attempt()));
        outcome
    }
}
