//! Processes that die with claims, for real: their jobs come back at once, and
//! attempts that were never started are given back.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, Store as _};
use jobq::{
    EventQuery, JobTypes, NewJob, Payload, Queue, QueueOptions, Registry, Shutdown, Status, Worker, WorkerOptions,
};
use serde::{Deserialize, Serialize};

const FOLDER: &str = "JOBQ_DEAD_OWNER_FOLDER";

#[derive(Serialize, Deserialize)]
struct Work {
    n: u32,
}

impl Payload for Work {
    const TYPE: &'static str = "work";
    type Output = ();
}

fn open(folder: &std::path::Path) -> Queue {
    QueueOptions::in_folder(folder).create(true).types(JobTypes::new().with::<Work>()).open().unwrap()
}

fn claim(queue: &Queue, lock: &OwnerLock) -> Vec<jobq::store::ClaimedJob> {
    let request = ClaimRequest {
        owner: lock.owner().clone(),
        types: vec!["work".into()],
        limit: 10,
        limits: jobq::store::Limits::new(),
    };
    queue.store().claim(request).unwrap()
}

/// Not a test by itself: the process that claims two jobs, starts one, and is
/// killed. Without the variable it has nothing to do.
#[test]
fn the_process_that_will_be_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let queue = open(folder.as_ref());
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let claimed = claim(&queue, &lock);
    lock.start(0, claimed[0].lease.seq, claimed[0].lease.token).unwrap();
    println!("\nclaimed {}", claimed.len());
    // Until the end of standard input, which never comes: the parent kills first.
    let _ = std::io::stdin().lines().count();
}

fn claimer(folder: &std::path::Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process_that_will_be_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "claimed 2"), "the child claimed both jobs");
    child
}

fn events(queue: &Queue, id: &str) -> Vec<String> {
    let query = EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 100 };
    queue.events(&query).unwrap().into_iter().map(|e| e.event_type).collect()
}

#[test]
fn a_killed_process_loses_its_jobs_at_once_and_only_what_it_started_counts() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    let started = queue.enqueue(Work { n: 1 }).unwrap().id;
    let unstarted = queue.enqueue(Work { n: 2 }).unwrap().id;
    let mut child = claimer(folder.path());
    let alive = queue.reclaim().unwrap();
    assert!(alive.pending.is_empty(), "a process that lives keeps its jobs");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut back = queue.reclaim().unwrap().pending;
    back.sort();
    assert_eq!(back, [started.clone(), unstarted.clone()]);
    let attempts = |id: &str| queue.get(id).unwrap().attempts;
    assert_eq!((attempts(&started), attempts(&unstarted)), (1, 0));
    assert_eq!(events(&queue, &started), ["queued", "claimed", "worker_lost", "reclaimed"]);
    assert_eq!(queue.reclaim().unwrap(), jobq::store::Reclaimed::default(), "once");
    assert_eq!(std::fs::read_dir(queue.owners_folder()).unwrap().count(), 0, "its lock file is gone");
}

#[test]
fn a_job_that_keeps_killing_its_process_fails_and_its_neighbour_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    let poison = queue.enqueue(NewJob::of(&Work { n: 1 }).max_attempts(2)).unwrap().id;
    let neighbour = queue.enqueue(Work { n: 2 }).unwrap().id;
    for _ in 0..2 {
        let mut child = claimer(folder.path());
        child.kill().unwrap();
        child.wait().unwrap();
        queue.reclaim().unwrap();
    }
    let job = queue.get(&poison).unwrap();
    assert_eq!(job.status, Status::Failed);
    assert!(job.last_error.unwrap().starts_with("worker_lost"));
    let job = queue.get(&neighbour).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Pending, 0));
}

#[test]
fn a_lock_file_name_that_leads_out_of_the_folder_is_never_followed() {
    let folder = tempfile::tempdir().unwrap();
    let queue = open(folder.path());
    queue.enqueue(Work { n: 1 }).unwrap();
    queue.enqueue(Work { n: 2 }).unwrap();
    let victim = folder.path().join("victim.lock");
    std::fs::write(&victim, "precious").unwrap();
    let mut child = claimer(folder.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let sql = rusqlite::Connection::open(folder.path().join(".jobq/jobq.db")).unwrap();
    sql.execute("UPDATE owners SET lock_file = '../../victim.lock'", []).unwrap();
    assert!(queue.reclaim().unwrap().pending.is_empty(), "such an owner is judged by its lease only");
    sql.execute("UPDATE owners SET boot_id = 'an earlier one'", []).unwrap();
    assert_eq!(queue.reclaim().unwrap().pending.len(), 2, "dead by its boot");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn of_a_process_that_died_idle_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin();
    let types = registry.types().with::<Work>();
    let queue = Arc::new(QueueOptions::in_folder(folder.path()).create(true).types(types).open().unwrap());
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let mut locks = vec![lock.owner().locked_by.clone()];
    queue.enqueue(Work { n: 1 }).unwrap();
    queue.store().release(claim(&queue, &lock).remove(0).lease).unwrap();
    drop(lock);
    // Another one lives, and is as idle.
    let alive = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    queue.store().release(claim(&queue, &alive).remove(0).lease).unwrap();
    locks.push(alive.owner().locked_by.clone());
    locks.sort();
    let sql = rusqlite::Connection::open(folder.path().join(".jobq/jobq.db")).unwrap();
    let on_record = || {
        let mut names = sql.prepare("SELECT locked_by FROM owners ORDER BY locked_by").unwrap();
        let names = names.query_map([], |row| row.get(0)).unwrap();
        names.collect::<rusqlite::Result<Vec<String>>>().unwrap()
    };
    assert_eq!(on_record(), locks);
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    assert_eq!(on_record(), [alive.owner().locked_by.clone()]);
    assert_eq!(std::fs::read_dir(queue.owners_folder()).unwrap().count(), 1, "nor its lock file");
}

#[test]
fn of_an_owner_without_a_lock_file_nothing_stays_on_record_unless_it_has_something() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin();
    let types = registry.types().with::<Work>();
    let queue = Arc::new(QueueOptions::in_folder(folder.path()).create(true).types(types).open().unwrap());
    let owner = |queue: &Queue, keeps: bool| {
        let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
        let lease = claim(queue, &lock).remove(0).lease;
        if !keeps {
            queue.store().release(lease).unwrap();
        }
        std::fs::remove_file(queue.owners_folder().join(&lock.owner().lock_file)).unwrap();
        lock.owner().locked_by.clone()
    };
    queue.enqueue(Work { n: 1 }).unwrap();
    let [idle, elsewhere] = [owner(&queue, false), owner(&queue, false)];
    let busy = owner(&queue, true);
    let sql = rusqlite::Connection::open(folder.path().join(".jobq/jobq.db")).unwrap();
    sql.execute("UPDATE owners SET machine_id = 'another' WHERE locked_by = ?1", [&elsewhere]).unwrap();
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    let is_there = |name: &str| {
        let sought = "SELECT EXISTS (SELECT 1 FROM owners WHERE locked_by = ?1)";
        sql.query_row(sought, [name], |row| row.get::<_, bool>(0)).unwrap()
    };
    assert_eq!([&idle, &elsewhere, &busy].map(|name| is_there(name)), [false, true, true]);
    // Whoever has claimed something since it was looked at stays on record.
    assert_eq!(queue.store().forget_owners(vec![busy.clone(), elsewhere]).unwrap(), 1);
    assert!(is_there(&busy));
}

#[test]
fn things_in_the_way_of_lock_files_stop_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin();
    let types = registry.types().with::<Work>();
    let queue = Arc::new(QueueOptions::in_folder(folder.path()).create(true).types(types).open().unwrap());
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    queue.enqueue(Work { n: 1 }).unwrap();
    queue.store().release(claim(&queue, &lock).remove(0).lease).unwrap();
    let idle = queue.owners_folder().join(&lock.owner().lock_file);
    drop(lock);
    let [folder_in_the_way, pipe] = ["a.lock", "b.lock"].map(|name| queue.owners_folder().join(name));
    std::fs::create_dir(&folder_in_the_way).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let job = queue.enqueue(jobq::handlers::CreateFile::text("a.txt", "a")).unwrap();
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap();
    let (send, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(worker.run(&Shutdown::new()).map(drop)));
    ended.recv_timeout(Duration::from_secs(30)).expect("it ends").unwrap();
    assert_eq!(queue.get(&job.id).unwrap().status, Status::Completed);
    assert_eq!((idle.exists(), pipe.exists(), folder_in_the_way.exists()), (false, false, true));
}

#[test]
fn a_worker_can_be_told_to_wait_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::builtin();
    let types = registry.types().with::<Work>();
    let queue = Arc::new(QueueOptions::in_folder(folder.path()).create(true).types(types).open().unwrap());
    let for_ever = Duration::MAX;
    let options =
        WorkerOptions { poll_interval: for_ever, lease: for_ever, grace: Some(for_ever), ..WorkerOptions::default() };
    let job = queue.enqueue(jobq::handlers::CreateFile::text("a.txt", "a")).unwrap();
    let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap();
    let shutdown = Shutdown::new();
    let asked = shutdown.clone();
    let thread = std::thread::spawn(move || worker.run(&asked));
    let ended = queue.wait(&job.id, Duration::from_secs(30)).unwrap();
    shutdown.request();
    thread.join().unwrap().unwrap();
    assert_eq!(ended.unwrap().status, Status::Completed);
}
