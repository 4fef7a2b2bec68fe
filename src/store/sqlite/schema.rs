//! The schema's version: creating, migrating, refusing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::connection::sql_error;
use crate::error::{Error, ErrorKind, Result};
use crate::site;

/// The version this build writes. A test compares it with `schema.sql`.
pub const SCHEMA_VERSION: i64 = 5;

const SCHEMA: &str = include_str!("../../../schema.sql");

/// One step from a version to the next.
struct Migration {
    from: i64,
    sql: &'static str,
}

/// Forward only, in order, each in the transaction that also moves the number.
const MIGRATIONS: &[Migration] = &[
    Migration { from: 1, sql: include_str!("../../../migrations/0002_retry_guards.sql") },
    Migration { from: 2, sql: include_str!("../../../migrations/0003_effects_by_path.sql") },
    Migration { from: 3, sql: include_str!("../../../migrations/0004_type_pauses.sql") },
    Migration { from: 4, sql: include_str!("../../../migrations/0005_forged_rows.sql") },
];

/// What a database is made of, `type name`, each with its text without comments and white space.
pub(super) fn objects(conn: &Connection) -> Result<BTreeMap<String, String>> {
    // What SQLite makes by itself has no text, or a name of its own.
    let named = r"SELECT type || ' ' || name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\'";
    let mut statement = conn.prepare(named).map_err(sql_error)?;
    // A damaged text need not be one.
    let lossy = |row: &Row<'_>, column: usize| -> rusqlite::Result<String> {
        Ok(String::from_utf8_lossy(row.get_ref(column)?.as_bytes()?).into_owned())
    };
    let read = statement.query_map([], |row| Ok((lossy(row, 0)?, bare(&lossy(row, 1)?)))).map_err(sql_error)?;
    read.collect::<rusqlite::Result<_>>().map_err(sql_error)
}

/// The same of a database that has nothing but jobq's.
pub(super) fn own_objects() -> Result<BTreeMap<String, String>> {
    let conn = Connection::open_in_memory().map_err(sql_error)?;
    conn.execute_batch(SCHEMA).map_err(sql_error)?;
    objects(&conn)
}

/// Of jobq's objects, at the current version: those that are missing, and those that are others than a new database
/// has. What else is there is the application's.
pub(super) fn faults(conn: &Connection) -> Result<Vec<String>> {
    let found = objects(conn)?;
    let fault = |(object, text): (String, String)| match found.get(&object) {
        None => Some(format!("{object} is missing")),
        Some(found) if *found != text => Some(format!("{object} is not as jobq made it")),
        Some(_) => None,
    };
    Ok(own_objects()?.into_iter().filter_map(fault).collect())
}

/// Whoever made a database could add triggers, which bring back what `attach` ends.
pub(super) fn refuse_altered(conn: &Connection) -> Result<()> {
    let own = own_objects()?;
    let mut statement = conn
        .prepare(
            "SELECT 'table ' || lower(tbl_name), type || ' ' || name FROM main.sqlite_schema WHERE type = 'trigger'",
        )
        .map_err(sql_error)?;
    let triggers = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let mut found = faults(conn)?;
    for trigger in triggers.map_err(sql_error)? {
        let (table, trigger) = trigger.map_err(sql_error)?;
        found.extend((own.contains_key(&table) && !own.contains_key(&trigger)).then_some(trigger));
    }
    let Some(first) = found.first() else { return Ok(()) };
    let next = "if somebody else made this queue, delete .jobq and run `jobq init`";
    Err(Error::new(ErrorKind::NotTrusted, format!("the schema was altered ({first}), so nothing was changed; {next}")))
}

/// Migrated databases have other comments and another layout than new ones.
fn bare(sql: &str) -> String {
    sql.lines().flat_map(|line| line.split("--").next().unwrap_or_default().split_whitespace()).collect()
}

/// The version of the database, or `None` when jobq's tables are not there.
pub(super) fn version(conn: &Connection) -> Result<Option<i64>> {
    let there: bool = conn
        .query_row("SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE name = 'jobq_meta')", [], |row| row.get(0))
        .map_err(sql_error)?;
    if !there {
        return Ok(None);
    }
    read_version(conn).map(Some)
}

/// The version.
pub(super) fn read_version(conn: &Connection) -> Result<i64> {
    let mut statement =
        conn.prepare_cached("SELECT value FROM main.jobq_meta WHERE key = 'schema_version'").map_err(sql_error)?;
    let text: Option<String> = statement.query_row([], |row| row.get(0)).optional().map_err(sql_error)?;
    text.and_then(|t| t.parse().ok()).ok_or_else(no_version)
}

fn no_version() -> Error {
    Error::new(ErrorKind::Corrupt, "jobq_meta has no readable schema_version")
}

/// The folder jobs may touch, if one is on record.
pub(super) fn root(conn: &Connection) -> Result<Option<String>> {
    let mut statement = conn.prepare_cached("SELECT value FROM jobq_meta WHERE key = 'root'").map_err(sql_error)?;
    statement.query_row([], |row| row.get(0)).optional().map_err(sql_error)
}

/// The identity of the state folder in which the queue was made (`site.rs`).
pub(super) fn site(conn: &Connection) -> Result<Option<String>> {
    let recorded = "SELECT value FROM main.jobq_meta WHERE key = 'state_folder'";
    conn.query_row(recorded, [], |row| row.get(0)).optional().map_err(sql_error)
}

/// Records the state folder as the one in which the queue was made.
pub(super) fn record_site(conn: &Connection, identity: &str) -> Result<()> {
    let record = "INSERT OR REPLACE INTO main.jobq_meta (key, value) VALUES ('state_folder', ?1)";
    conn.execute(record, [identity]).map_err(sql_error).map(drop)
}

/// Whether jobs were accepted. What they did could not be found again from another folder, and what was accepted for
/// one must not be done in another. Rows of a type that nobody knows yet, or of plain SQL, were meant for a folder, too.
pub(super) fn is_used(conn: &Connection) -> Result<bool> {
    let accepted = "SELECT EXISTS (SELECT 1 FROM effects) OR EXISTS (SELECT 1 FROM jobs)";
    conn.query_row(accepted, [], |row| row.get(0)).map_err(sql_error)
}

/// The folder that a process goes by.
pub(super) struct OwnRoot {
    /// As it would be on record; empty for the one that needs no record.
    pub(super) name: String,
    /// What that is relative to.
    pub(super) home: PathBuf,
}

impl OwnRoot {
    /// Also by another name.
    fn is(&self, on_record: &str) -> bool {
        let real = |name: &str| std::fs::canonicalize(self.home.join(name)).ok();
        self.name == on_record || real(&self.name).is_some_and(|own| real(on_record) == Some(own))
    }
}

/// Whether jobs of this queue do what they do in the folder that this process goes by. One process must not accept what
/// another does elsewhere.
pub(super) fn expect_root(conn: &Connection, own: &OwnRoot, on_record: Option<&str>) -> Result<()> {
    match on_record {
        Some(root) if own.is(root) => Ok(()),
        None if own.name.is_empty() || !is_used(conn)? => Ok(()),
        other => Err(another_root(other)),
    }
}

/// The same at the beginning of a transaction that may accept something. The first such puts it on record.
pub(super) fn settle_root(conn: &Connection, own: &OwnRoot, on_record: Option<&str>) -> Result<()> {
    expect_root(conn, own, on_record)?;
    if on_record.is_none() && !own.name.is_empty() {
        conn.execute("INSERT INTO main.jobq_meta (key, value) VALUES ('root', ?1)", [&own.name]).map_err(sql_error)?;
    }
    Ok(())
}

fn another_root(on_record: Option<&str>) -> Error {
    let root = on_record.unwrap_or("the folder of the queue");
    let text =
        format!("the folder that jobs may touch was put on record by another process: {root}; open the queue again");
    Error::new(ErrorKind::Schema, text)
}

/// Refuses a database that a newer jobq has written, before anything changes.
pub(super) fn refuse_newer(found: i64) -> Result<()> {
    if found <= SCHEMA_VERSION {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Schema,
        format!(
            "the database has schema version {found}, this jobq knows {SCHEMA_VERSION}; install a newer jobq (nothing was changed)"
        ),
    ))
}

/// Temporary tables of the caller's connection would be written instead of ours.
pub(super) fn refuse_shadowed(conn: &Connection) -> Result<()> {
    let shadow: Option<String> = conn
        .query_row(
            "SELECT t.name FROM temp.sqlite_schema t JOIN main.sqlite_schema m ON m.name = t.name
              WHERE t.name IN
                    ('jobs', 'job_holds', 'job_events', 'retry_guards', 'effects', 'owners', 'type_pauses', 'jobq_meta')",
            [],
            |row| row.get(0),
        )
        .optional()
        .map_err(sql_error)?;
    match shadow {
        None => Ok(()),
        Some(name) => Err(Error::new(
            ErrorKind::Schema,
            format!("a temporary table {name} of this connection hides jobq's own; drop it first"),
        )),
    }
}

/// For a running process: the schema is still the one it was built for. Returns the root that is on record, in one
/// statement, because this is asked in every transaction.
pub(super) fn expect_current(conn: &Connection) -> Result<Option<String>> {
    let mut statement = conn
        .prepare_cached(
            "SELECT value, (SELECT value FROM main.jobq_meta WHERE key = 'root')
               FROM main.jobq_meta WHERE key = 'schema_version'",
        )
        .map_err(sql_error)?;
    let read = statement.query_row([], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional();
    let (found, root) = read.map_err(sql_error)?.ok_or_else(no_version)?;
    let found: i64 = found.parse().map_err(|_| no_version())?;
    if found == SCHEMA_VERSION {
        return Ok(root);
    }
    Err(Error::new(
        ErrorKind::Schema,
        format!(
            "the database moved on to schema version {found} while this process (version {SCHEMA_VERSION}) was running; restart it with the newer jobq"
        ),
    ))
}

/// Makes jobq's tables in an empty or foreign database.
pub(super) fn create(conn: &Connection, state: Option<&Path>) -> Result<()> {
    in_transaction(conn, || {
        // Another process may have been faster.
        if version(conn)?.is_none() {
            refuse_foreign(conn)?;
            conn.execute_batch(SCHEMA).map_err(sql_error)?;
            if let Some(identity) = state.and_then(site::identity) {
                record_site(conn, &identity)?;
            }
        }
        Ok(())
    })
}

/// Refuses a database in which another program's tables have the names of ours.
pub(super) fn refuse_foreign(conn: &Connection) -> Result<()> {
    let taken: Option<String> = conn
        .query_row(
            "SELECT name FROM main.sqlite_schema
              WHERE name IN ('jobs', 'job_holds', 'job_events', 'retry_guards', 'effects', 'owners', 'type_pauses')",
            [],
            |row| row.get(0),
        )
        .optional()
        .map_err(sql_error)?;
    let Some(name) = taken else { return Ok(()) };
    let why = format!("this database has a table `{name}` of another program, which jobq's would have the name of");
    Err(Error::new(ErrorKind::Schema, format!("{why}; give jobq a file of its own (nothing was changed)")))
}

/// Takes an older database forward, step by step.
pub(super) fn migrate(conn: &Connection) -> Result<()> {
    loop {
        let done = in_transaction(conn, || {
            let found = read_version(conn)?;
            refuse_newer(found)?;
            if found == SCHEMA_VERSION {
                return Ok(true);
            }
            let Some(step) = MIGRATIONS.iter().find(|m| m.from == found) else {
                return Err(Error::new(ErrorKind::Schema, format!("no migration leads from schema version {found}")));
            };
            conn.execute_batch(step.sql).map_err(sql_error)?;
            conn.execute("UPDATE jobq_meta SET value = ?1 WHERE key = 'schema_version'", [(found + 1).to_string()])
                .map_err(sql_error)?;
            tracing::info!(from = found, to = found + 1, "migrated the database");
            Ok(false)
        })?;
        if done {
            return Ok(());
        }
    }
}

fn in_transaction<T>(conn: &Connection, work: impl FnOnce() -> Result<T>) -> Result<T> {
    conn.execute_batch("BEGIN IMMEDIATE").map_err(sql_error)?;
    match work() {
        Ok(value) => conn.execute_batch("COMMIT").map_err(sql_error).map(|()| value),
        Err(error) => {
            let _ = conn.execute_batch("ROLLBACK");
            Err(error)
        }
    }
}
