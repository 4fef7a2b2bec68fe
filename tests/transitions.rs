//! The triggers of `schema.sql` against the state machine of `state.rs`: what
//! one allows the other allows, pair by pair, for writers that know no jobq.

#[path = "transitions/fixed.rs"]
mod fixed;
mod support;

use jobq::state::{State, Status, Verb, transition};
use rusqlite::{Connection, params};
use support::rows;

fn database() -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(include_str!("../schema.sql")).unwrap();
    conn
}

const TOKEN: i64 = 7;
const ATTEMPTS: i64 = 2;

/// Puts a job straight into a state, past the triggers. False when the table's
/// own CHECKs make that state impossible.
fn put(conn: &Connection, id: &str, state: State) -> bool {
    let triggers = rows(conn, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'jobs'");
    for trigger in &triggers {
        conn.execute_batch(&format!("DROP TRIGGER {}", trigger[0])).unwrap();
    }
    let finished = state.status.is_finished();
    let inserted = conn.execute(
        "INSERT INTO jobs (id, type, payload, payload_hash, status, gate, token, attempts, locked_by, completed_at,
                           outcome)
         VALUES (?1, 'note', '{}', 'hash', ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            id,
            state.status.as_str(),
            (state.status == Status::Pending).then_some("ready"),
            TOKEN,
            ATTEMPTS,
            (state.status == Status::Claimed).then_some("owner"),
            finished.then_some(1),
            state.decided.then_some("{}"),
        ],
    );
    for trigger in &triggers {
        conn.execute_batch(&trigger[1]).unwrap();
    }
    if inserted.is_ok() {
        let queued = "INSERT INTO job_events (job_id, seq, attempt, type, at) VALUES (?1, 1, 0, 'queued', 1)";
        conn.execute(queued, [id]).unwrap();
    }
    inserted.is_ok()
}

fn states() -> impl Iterator<Item = State> {
    Status::ALL.into_iter().flat_map(|status| [false, true].map(|decided| State { status, decided }))
}

/// The columns a transition may move along with the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Move {
    token: i64,
    attempts: i64,
    locked_by: Option<&'static str>,
}

impl Move {
    fn every_way_to(to: State) -> Vec<Self> {
        let owners: &[_] = if to.status == Status::Claimed { &[Some("owner"), Some("other"), None] } else { &[None] };
        let mut ways = Vec::new();
        for token in [TOKEN - 1, TOKEN, TOKEN + 1, TOKEN + 2] {
            for attempts in [0, ATTEMPTS - 1, ATTEMPTS, ATTEMPTS + 1] {
                ways.extend(owners.iter().map(|&locked_by| Self { token, attempts, locked_by }));
            }
        }
        ways
    }

    /// Whether this is how the verb moves these columns.
    fn is_by(self, verb: Verb, from: State) -> bool {
        let same_token = self.token == TOKEN;
        match verb {
            Verb::Claim => self.token == TOKEN + 1 && self.attempts == ATTEMPTS + 1 && self.locked_by.is_some(),
            Verb::TakeOver => self.token == TOKEN + 1 && self.attempts == ATTEMPTS,
            Verb::Decide => same_token && self.locked_by == Some("owner"),
            // A decided job comes back as nobody's, to be taken over.
            Verb::Retry if from.decided => same_token && self.locked_by.is_none(),
            Verb::Retry => same_token && self.attempts == 0,
            _ => same_token,
        }
    }

    /// Staying where it is: the token stays too, and a lease changes hands only
    /// by being let go of, once the job is decided.
    fn is_staying(self, state: State) -> bool {
        let owner = if state.status == Status::Claimed { Some("owner") } else { None };
        self.token == TOKEN && (self.locked_by == owner || (state.decided && self.locked_by.is_none()))
    }
}

fn allowed_by_the_state_machine(from: State, to: State, how: Move) -> bool {
    (from == to && how.is_staying(from))
        || Verb::ALL.into_iter().any(|verb| transition(from, verb) == Some(to) && how.is_by(verb, from))
}

fn row_of(conn: &Connection, id: &str) -> Vec<Vec<String>> {
    rows(conn, &format!("SELECT * FROM jobs WHERE id = '{id}'"))
}

fn update(conn: &Connection, id: &str, to: State, how: Move) -> rusqlite::Result<usize> {
    conn.execute(
        "UPDATE jobs SET status = ?2, gate = ?3, token = ?4, attempts = ?5, locked_by = ?6,
                completed_at = CASE WHEN ?7 THEN coalesce(completed_at, 1) END,
                outcome = CASE WHEN ?8 THEN coalesce(outcome, '{}') END
          WHERE id = ?1",
        params![
            id,
            to.status.as_str(),
            (to.status == Status::Pending).then_some("ready"),
            how.token,
            how.attempts,
            how.locked_by,
            to.status.is_finished(),
            to.decided,
        ],
    )
}

#[test]
fn the_triggers_allow_exactly_what_the_state_machine_allows() {
    let mut differences = Vec::new();
    let mut pairs = 0;
    for from in states() {
        for to in states() {
            let conn = database();
            if !put(&conn, "job", from) {
                assert_eq!(from, State { status: Status::Pending, decided: true }, "the one state no row can be in");
                continue;
            }
            pairs += 1;
            let before = row_of(&conn, "job");
            for how in Move::every_way_to(to) {
                conn.execute_batch("BEGIN").unwrap();
                let verdict = update(&conn, "job", to, how);
                if verdict.is_err() {
                    assert_eq!(row_of(&conn, "job"), before, "{from:?} to {to:?} by {how:?} was refused");
                } else {
                    assert_eq!(verdict, Ok(1));
                }
                conn.execute_batch("ROLLBACK").unwrap();
                if verdict.is_ok() != allowed_by_the_state_machine(from, to, how) {
                    differences.push(format!("{from:?} to {to:?} by {how:?}: the triggers say {verdict:?}"));
                }
            }
        }
    }
    assert_eq!(pairs, 9 * 10);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn every_verb_is_possible_somewhere() {
    for verb in Verb::ALL {
        assert!(states().any(|from| transition(from, verb).is_some()), "{verb:?}");
    }
}
