//! Looks at the tables themselves after every step: the same as the reference,
//! and true whatever the reference says.

use std::collections::HashMap;

use jobq::store::Store as _;
use jobq::{EventQuery, Filter, Gate, Status};
use rusqlite::Connection;

use crate::op::{HOLD_KEYS, JobNo, LANES, WORKERS, number_of};
use crate::reference::{RefJob, Reference};
use crate::subject::Subject;

/// A row as far as both sides know it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    no: JobNo,
    status: Status,
    gate: Option<Gate>,
    attempts: u32,
    token: i64,
    heartbeat: i64,
    owner: Option<u32>,
    decided: bool,
    cancel_requested: bool,
    waiting_on: Option<JobNo>,
    run_at: Option<i64>,
    ended_at: Option<i64>,
    events: i64,
}

/// A row of `job_holds`: key, job, whether the job is at work on it.
type HoldRow = (String, JobNo, bool);

pub struct Inspector {
    conn: Connection,
}

/// What must never go back, remembered from step to step.
#[derive(Default)]
pub struct Memory {
    tokens: HashMap<JobNo, i64>,
    newest_seq: i64,
}

impl Inspector {
    pub fn new(conn: Connection) -> Self {
        Self { conn }
    }

    pub fn compare(&self, subject: &mut Subject<'_>, reference: &Reference, memory: &mut Memory) -> Result<(), String> {
        let rows = self.rows().map_err(|e| format!("the tables cannot be read: {e}"))?;
        for (seq, row) in &rows {
            if subject.seqs.insert(row.no, *seq).is_some_and(|before| before != *seq) {
                return Err(format!("job {} has changed its place in the order", row.no));
            }
            let before = memory.tokens.insert(row.no, row.token);
            if before.is_some_and(|token| token > row.token) {
                return Err(format!("job {}: its token went back to {}", row.no, row.token));
            }
            if before.is_none() {
                if *seq <= memory.newest_seq {
                    return Err(format!("job {} was accepted before jobs that were there already", row.no));
                }
                memory.newest_seq = *seq;
            }
        }
        let expected: Vec<Row> = reference.jobs.iter().map(|job| expected_row(reference, job)).collect();
        let actual: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
        if actual != expected {
            return Err(first_difference(&actual, &expected));
        }
        self.compare_holds(subject, reference)
    }

    fn rows(&self) -> rusqlite::Result<Vec<(i64, Row)>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT seq, id, status, gate, attempts, token, heartbeat, locked_by, outcome IS NOT NULL,
                    cancel_requested, waiting_on, run_at, completed_at, event_seq FROM jobs ORDER BY seq",
        )?;
        let rows = statement.query_map([], |row| {
            let number = |text: Option<&str>| text.map(number_of);
            let status = row.get_ref(2)?.as_str()?.parse().expect("the schema allows only these words");
            let gate = row.get_ref(3)?.as_str_or_null()?.map(|word| word.parse().expect("as above"));
            let shown = Row {
                no: number_of(row.get_ref(1)?.as_str()?),
                status,
                gate,
                attempts: row.get(4)?,
                token: row.get(5)?,
                heartbeat: row.get(6)?,
                owner: number(row.get_ref(7)?.as_str_or_null()?),
                decided: row.get(8)?,
                cancel_requested: row.get(9)?,
                waiting_on: number(row.get_ref(10)?.as_str_or_null()?),
                run_at: row.get(11)?,
                ended_at: row.get(12)?,
                events: row.get(13)?,
            };
            Ok((row.get(0)?, shown))
        })?;
        rows.collect()
    }

    fn compare_holds(&self, subject: &Subject<'_>, reference: &Reference) -> Result<(), String> {
        let actual = self.holds().map_err(|e| format!("the holds cannot be read: {e}"))?;
        for (index, (key, no, active)) in actual.iter().enumerate() {
            if *active && actual[index + 1..].iter().any(|other| other.0 == *key && other.2) {
                return Err(format!("job {no} is not the only one at work on {key}"));
            }
        }
        let mut expected: Vec<HoldRow> = Vec::new();
        for key in 0..HOLD_KEYS {
            let holders = reference.jobs.iter().filter(|job| job.unfinished() && job.holds.contains(&key));
            expected.extend(holders.map(|job| (subject.hold_key(key), job.no, job.status == Status::Claimed)));
        }
        if actual == expected { Ok(()) } else { Err(format!("holds are {actual:?}\nexpected  {expected:?}")) }
    }

    fn holds(&self) -> rusqlite::Result<Vec<HoldRow>> {
        let mut statement = self.conn.prepare_cached("SELECT key, job_id, active FROM job_holds ORDER BY key, seq")?;
        let rows =
            statement.query_map([], |row| Ok((row.get(0)?, number_of(row.get_ref(1)?.as_str()?), row.get(2)?)))?;
        rows.collect()
    }

    /// What is too dear to look at after every step: the story of each job,
    /// what the disk should hold, and the store's own way of reading.
    pub fn compare_history(&self, subject: &Subject<'_>, reference: &Reference) -> Result<(), String> {
        for job in &reference.jobs {
            let query = EventQuery { job_id: Some(subject.id(job.no)), after: 0, limit: 10_000 };
            let events = subject.store.events(&query).map_err(|e| format!("events of job {}: {e}", job.no))?;
            let told: Vec<(i64, &str, u32)> =
                events.iter().map(|event| (event.seq, event.event_type.as_str(), event.attempt)).collect();
            let expected: Vec<(i64, &str, u32)> =
                (1..).zip(&job.events).map(|(number, (event, attempt))| (number, *event, *attempt)).collect();
            if told != expected {
                return Err(format!("events of job {} are {told:?}\nexpected {expected:?}", job.no));
            }
        }
        for key in LANES..HOLD_KEYS {
            let latest = self.latest_on_disk(&subject.path(key)).map_err(|e| format!("effects: {e}"))?;
            if latest != reference.disk[usize::from(key)] {
                let expected = reference.disk[usize::from(key)];
                return Err(format!("path {key} was last written by {latest:?}, expected {expected:?}"));
            }
        }
        for worker in 0..WORKERS {
            let on_record = self.has_owner(&subject.worker_name(worker)).map_err(|e| format!("owners: {e}"))?;
            if on_record != reference.owners_on_record.contains(&worker) {
                return Err(format!("worker {worker} is {}on record as an owner", if on_record { "" } else { "not " }));
            }
        }
        let listed = subject.store.list(&Filter { limit: 10_000, ..Filter::default() }).map_err(|e| e.to_string())?;
        let listed: Vec<(JobNo, Status)> = listed.iter().rev().map(|job| (number_of(&job.id), job.status)).collect();
        let expected: Vec<(JobNo, Status)> = reference.jobs.iter().map(|job| (job.no, job.status)).collect();
        if listed == expected { Ok(()) } else { Err(format!("listed are {listed:?}\nexpected   {expected:?}")) }
    }

    fn latest_on_disk(&self, path: &str) -> rusqlite::Result<Option<i64>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT inode FROM effects WHERE path = ?1 AND state = 'applied' ORDER BY applied_in DESC",
        )?;
        let mut rows = statement.query([path])?;
        rows.next()?.map(|row| row.get(0)).transpose()
    }

    fn has_owner(&self, name: &str) -> rusqlite::Result<bool> {
        self.conn.prepare_cached("SELECT 1 FROM owners WHERE locked_by = ?1")?.exists([name])
    }

    /// After everything has been pruned nothing of any job is left.
    pub fn expect_nothing_left(&self) -> Result<(), String> {
        for table in ["jobs", "job_holds", "retry_guards", "job_events"] {
            let sql = format!("SELECT count(*) FROM {table}");
            let rows: i64 = self
                .conn
                .prepare_cached(&sql)
                .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
                .map_err(|e| format!("{table} cannot be counted: {e}"))?;
            if rows != 0 {
                return Err(format!("{rows} rows are left in {table} although every job has been pruned"));
            }
        }
        Ok(())
    }
}

fn expected_row(reference: &Reference, job: &RefJob) -> Row {
    Row {
        no: job.no,
        status: job.status,
        gate: reference.gate(job),
        attempts: job.attempts,
        token: job.token,
        heartbeat: job.heartbeat,
        owner: job.owner.map(u32::from),
        decided: job.decided.is_some(),
        cancel_requested: job.cancel_requested,
        waiting_on: job.waiting_on,
        run_at: job.run_at,
        ended_at: job.ended_at,
        events: i64::try_from(job.events.len()).unwrap_or(i64::MAX),
    }
}

fn first_difference(actual: &[Row], expected: &[Row]) -> String {
    match actual.iter().zip(expected).find(|(a, e)| a != e) {
        Some((actual, expected)) => format!("the store has {actual:?}\nexpected      {expected:?}"),
        None => format!("the store has {} jobs, expected {}", actual.len(), expected.len()),
    }
}
