//! What is going on when the power goes: two who enqueue, commit and prune, and a
//! worker, in one process. Each says what it is about to do and what it was told,
//! and goes on when that is noted.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use jobq::handlers::{CreateFile, DeleteFile};
use jobq::{
    NewJob, PruneRequest, Queue, QueueOptions, Registry, Retention, Shutdown, Status, Worker, WorkerEvent,
    WorkerOptions, sha256_hex,
};

use super::notes::{Change, Note, Operation, PlannedJob};

/// Works in a root folder whose queue is not there yet.
pub fn run(root: &Path, seed: u64, steps: usize) {
    let desk = Arc::new(Desk::default());
    let queue = open(root, &desk);
    let (worker, shutdown) = (worker(&queue, &desk, false), Shutdown::new());
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| worker.run(&shutdown).unwrap());
        let [first, second] = ["a", "b"].map(|name| {
            let (queue, desk) = (&queue, &desk);
            scope.spawn(move || Client::new(name, queue, desk, seed).work(steps))
        });
        let ended = [first.join(), second.join()];
        shutdown.request();
        worker.join().unwrap();
        assert!(ended.iter().all(Result::is_ok), "one of the clients has panicked");
    });
}

/// Brings to its end what others had accepted; and, if it works, does what they have left to do.
pub fn recover(root: &Path, works: bool) {
    let desk = Arc::new(Desk::default());
    let queue = open(root, &desk);
    if works {
        worker(&queue, &desk, true).run(&Shutdown::new()).unwrap();
    }
}

fn open(root: &Path, desk: &Desk) -> Arc<Queue> {
    let queue = QueueOptions::in_folder(root).create(true).types(Registry::builtin().types()).open().unwrap();
    desk.note(&Note::Opened);
    Arc::new(queue)
}

fn worker(queue: &Arc<Queue>, desk: &Arc<Desk>, drain: bool) -> Worker {
    let options = WorkerOptions { concurrency: 2, drain, retention: Retention::forever(), ..WorkerOptions::default() };
    let told = Arc::clone(desk);
    let worker = Worker::new(Arc::clone(queue), Registry::builtin(), options).unwrap();
    worker.observed_by(move |event| match event {
        WorkerEvent::Decided { job_id } => told.note(&Note::Decided(job_id.clone())),
        WorkerEvent::Attempt(attempt) if attempt.status == Some(Status::Completed) => {
            told.note(&Note::Completed(attempt.job_id.clone()));
        }
        _ => {}
    })
}

/// Where notes are taken.
#[derive(Default)]
struct Desk {
    line: Mutex<()>,
    next: Mutex<usize>,
    /// Held to be read by whoever waits for an answer.
    answered: RwLock<()>,
}

impl Desk {
    /// Returns when it is written down.
    fn note(&self, note: &Note) {
        let _line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, note).unwrap();
        out.write_all(b"\n").and_then(|()| out.flush()).unwrap();
        let mut answer = String::new();
        assert!(std::io::stdin().lock().read_line(&mut answer).unwrap() > 0, "nobody takes notes any more");
    }
}

struct Client<'a> {
    name: &'static str,
    queue: &'a Queue,
    desk: &'a Desk,
    random: Rng,
    /// Paths that jobs change, and those that commits change: a commit is refused
    /// where a job is still to come.
    outputs: Vec<String>,
    models: Vec<String>,
    written: usize,
}

impl<'a> Client<'a> {
    fn new(name: &'static str, queue: &'a Queue, desk: &'a Desk, seed: u64) -> Self {
        let random = Rng::with_seed(seed ^ u64::from(name.as_bytes()[0]));
        Self { name, queue, desk, random, outputs: Vec::new(), models: Vec::new(), written: 0 }
    }

    fn work(mut self, steps: usize) {
        let mut last = None;
        for step in 0..steps {
            match self.random.u32(0..15) {
                0..=3 => last = Some(self.enqueue(1)),
                4..=5 => last = Some(self.enqueue(2 + step % 4)),
                6..=10 => last = self.commit().or(last),
                11 => self.prune(),
                _ => self.sync(),
            }
        }
        if let Some(last) = last {
            // So that most of what is asked for is also done; where it has been deleted since, it was.
            match self.queue.wait(&last, Duration::from_secs(60)) {
                Ok(job) => assert!(job.is_some_and(|job| job.status == Status::Completed), "{last} is not done"),
                Err(error) => assert!(error.is_not_found(), "{error}"),
            }
        }
    }

    /// Jobs alone: files made in new folders, overwritten, removed. The id of the last.
    fn enqueue(&mut self, count: usize) -> String {
        let (planned, jobs): (Vec<_>, Vec<_>) = (0..count).map(|_| self.file_job()).unzip();
        let last = planned[count - 1].id.clone();
        let queue = self.queue;
        self.ask(if count == 1 { "enqueue" } else { "enqueue_many" }, planned, || {
            // Both ways in are used.
            match <[NewJob; 1]>::try_from(jobs) {
                Ok([job]) => queue.enqueue(job).map(drop),
                Err(jobs) => queue.enqueue_many(jobs).map(drop),
            }
        });
        last
    }

    /// Some files and some jobs. The id of its last job.
    fn commit(&mut self) -> Option<String> {
        let id = self.id();
        let mut changes: Vec<(String, Option<String>)> = Vec::new();
        for _ in 0..self.random.usize(1..5) {
            let path = Self::place(&mut self.random, &mut self.models, &format!("model/{}", self.name));
            if !changes.iter().any(|(known, _)| *known == path) {
                let content = (self.random.u32(0..5) > 0).then(|| self.content(&path));
                changes.push((path, content));
            }
        }
        let described = changes.iter().map(|(path, content)| change(path, content.as_deref())).collect();
        let mut planned = vec![PlannedJob { id: id.clone(), changes: described }];
        let (described, jobs): (Vec<_>, Vec<_>) = (0..self.random.usize(0..3)).map(|_| self.file_job()).unzip();
        planned.extend(described);
        let last = (!jobs.is_empty()).then(|| planned[planned.len() - 1].id.clone());
        let queue = self.queue;
        self.ask("commit", planned, || {
            let accepted = queue.commit(|draft| {
                draft.id(&id)?;
                for (path, content) in changes {
                    match content {
                        Some(content) => draft.write(&path, content)?,
                        None => draft.remove(&path)?,
                    }
                }
                jobs.into_iter().try_for_each(|job| draft.enqueue(job))
            })?;
            assert!(accepted.applied, "{accepted:?}");
            Ok(())
        });
        last
    }

    /// Deletes what is done, and brings the log into the database.
    fn prune(&mut self) {
        let everything_answered = self.desk.answered.write().unwrap_or_else(PoisonError::into_inner);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let ended_before = i64::try_from(now.as_millis()).unwrap();
        self.desk.note(&Note::Pruning);
        drop(everything_answered);
        let request = PruneRequest { job_type: None, ended_before, failed: false, forget: false };
        while self.queue.prune(request.clone()).unwrap() > 0 {}
        let how = ["PASSIVE", "RESTART", "TRUNCATE"][self.random.usize(0..3)];
        let conn = rusqlite::Connection::open(self.queue.database()).unwrap();
        // One that has to let others go first has still copied what it could.
        conn.query_row(&format!("PRAGMA wal_checkpoint({how})"), [], |_| Ok(())).unwrap();
    }

    /// As any other program may at any time. What is changed after it has nothing
    /// to do any more, for the filesystem, with what was synced before.
    fn sync(&self) {
        let root = std::fs::File::open(self.queue.root()).unwrap();
        rustix::fs::syncfs(&root).unwrap();
    }

    fn ask(&self, name: &str, jobs: Vec<PlannedJob>, call: impl FnOnce() -> jobq::Result<()>) {
        let _waiting = self.desk.answered.read().unwrap_or_else(PoisonError::into_inner);
        let number = {
            let mut next = self.desk.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            *next
        };
        self.desk.note(&Note::Begun(Operation { number, name: name.to_owned(), jobs }));
        call().unwrap();
        self.desk.note(&Note::Accepted(number));
    }

    fn file_job(&mut self) -> (PlannedJob, NewJob) {
        let path = Self::place(&mut self.random, &mut self.outputs, &format!("out/{}", self.name));
        let content = (self.random.u32(0..5) > 0).then(|| self.content(&path));
        let planned = PlannedJob { id: self.id(), changes: vec![change(&path, content.as_deref())] };
        let job: NewJob = match content {
            Some(content) => CreateFile { overwrite: true, ..CreateFile::text(path, content) }.into(),
            None => DeleteFile::at(path).into(),
        };
        let job = job.id(&planned.id).no_key();
        (planned, job)
    }

    /// A path in a folder that is not there yet, or one that was used before.
    fn place(random: &mut Rng, known: &mut Vec<String>, below: &str) -> String {
        if known.is_empty() || random.u32(0..5) < 2 {
            let folder = known.len();
            known.push(format!("{below}/{folder}/{}.txt", random.u32(0..10)));
            return known[folder].clone();
        }
        known[random.usize(0..known.len())].clone()
    }

    /// Nothing that was ever written before; most of it is short.
    fn content(&mut self, path: &str) -> String {
        self.written += 1;
        let size = match self.random.u32(0..20) {
            0 => 30_000..60_000,
            1..=3 => 4_000..12_000,
            _ => 10..200,
        };
        let line = format!("{} {path} {}\n", self.written, self.name);
        line.repeat(self.random.usize(size) / line.len() + 1)
    }

    fn id(&mut self) -> String {
        let mut part = |digits: usize| format!("{:0digits$x}", self.random.u64(..1 << (4 * digits)));
        format!("{}-{}-4{}-8{}-{}", part(8), part(4), part(3), part(3), part(12))
    }
}

fn change(path: &str, content: Option<&str>) -> Change {
    Change { path: path.to_owned(), sha256: content.map(|content| sha256_hex(content.as_bytes())) }
}
