//! What must be so after a crash, whatever it has left.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jobq::{Queue, Registry, Shutdown, Status, Worker, WorkerEvent, WorkerOptions};
use serde_json::Value;

use super::world::{ID, JOBS, World, after, before, jobs, tree};

impl World {
    /// After a crash and whatever came after it: all of the commit or nothing,
    /// no litter, a sound database; submitted again, it is there once. Returns
    /// whether it had been accepted.
    pub fn all_or_nothing(&self) -> bool {
        let queue = self.open();
        let job = match queue.get(ID) {
            Ok(job) => Some(job),
            Err(error) if error.is_not_found() => None,
            Err(error) => panic!("{error}"),
        };
        let accepted = job.is_some();
        if let Some(job) = job {
            assert_eq!(job.status, Status::Completed, "{job:?}");
        }
        let jobs = jobs(&queue);
        assert_eq!(jobs.len(), if accepted { JOBS.len() } else { 0 }, "{jobs:?}");
        assert!(jobs.iter().all(|job| job.status == Status::Pending && job.blocked.is_none()), "{jobs:?}");
        drop(queue);
        assert_eq!(self.tree(), if accepted { after() } else { before() }, "accepted: {accepted}");
        assert_eq!(self.litter(), Vec::<String>::new());
        self.is_sound();
        self.submitted_again();
        accepted
    }

    /// The same commit again, by its id: there once, with the same jobs, which
    /// run once.
    fn submitted_again(&self) {
        let said = self.committer("commit").output().unwrap();
        assert!(said.status.success(), "{said:?}");
        let answer: Value = serde_json::from_slice(&said.stdout).unwrap();
        assert_eq!(
            (&answer["id"], &answer["status"], &answer["applied"]),
            (&ID.into(), &"completed".into(), &true.into())
        );
        let named: Vec<_> = answer["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect();
        assert_eq!(named, JOBS);
        assert_eq!(self.tree(), after());
        assert_eq!(self.litter(), Vec::<String>::new());
        let once = |id: &str| (id.to_owned(), vec!["completed"]);
        assert_eq!(drained(self.open()), JOBS.map(once).into_iter().collect());
        let mut expected = after();
        expected.extend(tree(&[("out/", ""), ("out/1.txt", "one"), ("out/2.txt", "two")]));
        assert_eq!(self.tree(), expected);
        let rows: i64 = self.sql().query_row("SELECT count(*) FROM jobs", [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 3);
        self.is_sound();
        self.applied_once(ID);
    }

    fn is_sound(&self) {
        let said: String = self.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(said, "ok");
    }

    /// One acceptance and one end, and every effect is recorded as applied.
    pub fn applied_once(&self, id: &str) {
        let sql = self.sql();
        let count = |sql_text: &str| sql.query_row(sql_text, [id], |row| row.get::<_, i64>(0)).unwrap();
        for event in ["decided", "completed"] {
            let events = count(&format!("SELECT count(*) FROM job_events WHERE job_id = ?1 AND type = '{event}'"));
            assert_eq!(events, 1, "{event} events of {id}");
        }
        assert_eq!(count("SELECT count(*) FROM effects WHERE job_id = ?1 AND state <> 'applied'"), 0);
    }
}

/// Runs what there is to run; tells how each attempt ended, by job.
pub fn drained(queue: Queue) -> BTreeMap<String, Vec<&'static str>> {
    let queue = Arc::new(queue);
    let ends = Arc::new(Mutex::new(BTreeMap::<String, Vec<&str>>::new()));
    let told = Arc::clone(&ends);
    let options = WorkerOptions { concurrency: 1, drain: true, ..WorkerOptions::default() };
    let worker = Worker::new(queue, Registry::builtin(), options).unwrap().observed_by(move |event| {
        if let WorkerEvent::Attempt(report) = event {
            let end = if report.error.is_none() { "completed" } else { "failed" };
            told.lock().unwrap().entry(report.job_id.clone()).or_default().push(end);
        }
    });
    worker.run(&Shutdown::new()).unwrap();
    let mut ends = ends.lock().unwrap();
    std::mem::take(&mut *ends)
}
