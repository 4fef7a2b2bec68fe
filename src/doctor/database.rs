//! The database: can it be read, is it ours, is it whole, can it be written.

use super::processes::{self, Process};
use super::{Check, PATIENCE, Places, Verdict, or_bad};
use crate::error::{Error, ErrorKind, Result};
use crate::store::sqlite::{Health, MOST_LOG, SCHEMA_VERSION, is_trustworthy, log_index_of, log_of};

const MIB: u64 = 1024 * 1024;

/// Where SQLite's locks are. On the index of the log: the writer's, and those of
/// readers that have a snapshot. On the file: whoever writes without a log.
const WRITER: std::ops::RangeInclusive<u64> = 120..=120;
const READERS: std::ops::RangeInclusive<u64> = 123..=127;
const WITHOUT_LOG: std::ops::RangeInclusive<u64> = 0x4000_0000..=0x4000_01ff;

/// How far the tables can be relied on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tables {
    /// Not ours, or not as this build knows them.
    Foreign,
    /// What they say may be wrong.
    Damaged,
    Whole,
}

pub(super) fn look(health: &Health, places: &Places, deep: bool, tell: &mut dyn FnMut(Check)) -> Tables {
    tell(or_bad("database", readable(health, places)));
    let version = health.schema_version();
    let is_ours = matches!(version, Ok(Some(SCHEMA_VERSION)));
    let has_none = matches!(version, Ok(None));
    tell(or_bad("schema", version.and_then(|version| schema(version, health, places))));
    let integrity = or_bad("integrity", integrity(health, deep));
    let is_whole = integrity.verdict == Verdict::Ok;
    tell(integrity);
    // As long as all of it is the application's, so is the way it writes.
    if !has_none {
        tell(or_bad("pragmas", pragmas(health)));
    }
    tell(log(places));
    tell(or_bad("write_lock", write_lock(health, places)));
    match (is_ours, is_whole) {
        (false, _) => Tables::Foreign,
        (true, false) => Tables::Damaged,
        (true, true) => Tables::Whole,
    }
}

pub(super) fn sqlite(number: i32, version: &str) -> Check {
    if is_trustworthy(number) {
        return Check::ok("sqlite", format_args!("SQLite {version}"));
    }
    Check::bad(
        "sqlite",
        format_args!("SQLite {version} is older than 3.51.3 and can lose committed jobs"),
        "build jobq with its default feature `bundled`",
    )
}

/// It could not even be opened.
pub(super) fn unreadable(places: &Places, error: &Error) -> Check {
    let message = format!("{}: {error}", places.db.display());
    let holders = writers(places);
    match error.kind() {
        ErrorKind::Busy if !holders.is_empty() => Check::bad(
            "database",
            format_args!("{message}; it is held by {}", processes::list(&holders)),
            "end that process, or wait for it",
        ),
        ErrorKind::Corrupt => Check::bad("database", message, "keep a copy of it and restore from a backup"),
        _ => Check::bad("database", message, "check that it is there and who may read it"),
    }
}

fn readable(health: &Health, places: &Places) -> Result<Check> {
    let shown = places.db.display();
    Ok(if !health.is_read_only()? {
        Check::ok("database", format_args!("{shown} can be read and written"))
    } else if is_on_read_only_filesystem(places) {
        Check::warn(
            "database",
            format_args!("{shown} can be read, but not written: its filesystem is mounted read-only"),
            "that is enough for this look; for any other copy it to where you may write, or mount it read-write",
        )
    } else {
        Check::bad(
            "database",
            format_args!("{shown} can be read, but not written: nothing can be queued or run"),
            "check its permissions and those of its folder",
        )
    })
}

/// Somebody's choice, and nobody's mistake.
fn is_on_read_only_filesystem(places: &Places) -> bool {
    rustix::fs::statvfs(&places.db).is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

fn schema(version: Option<i64>, health: &Health, places: &Places) -> Result<Check> {
    const NAME: &str = "schema";
    Ok(match version {
        Some(SCHEMA_VERSION) => {
            let faults = health.schema_faults()?;
            if faults.is_empty() {
                return Ok(Check::ok(NAME, format_args!("schema version {SCHEMA_VERSION}")));
            }
            Check::bad(
                NAME,
                format_args!("{}: what jobq promises rests on it", faults.join(", ")),
                "stop everybody who has the queue open and restore from a backup, or put it back as a new queue has it (`jobq init NEW && sqlite3 NEW/.jobq/jobq.db .schema`)",
            )
        }
        Some(older @ ..SCHEMA_VERSION) => Check::warn(
            NAME,
            format_args!("schema version {older}; this jobq knows {SCHEMA_VERSION}, so the jobs were not looked at"),
            "any other jobq command takes it forward; then ask again",
        ),
        Some(newer) => Check::bad(
            NAME,
            format_args!("schema version {newer}, and this jobq knows {SCHEMA_VERSION}; the jobs were not looked at"),
            "install a newer jobq",
        ),
        None => Check::bad(
            NAME,
            "this is a database without jobq's tables",
            format_args!("`jobq --db {} init` adds them", places.db.display()),
        ),
    })
}

fn integrity(health: &Health, deep: bool) -> Result<Check> {
    let found = health.damage(deep)?;
    Ok(match found.as_slice() {
        [] if deep => Check::ok("integrity", "every page, row and index entry is in order"),
        [] => Check::ok("integrity", "every page is in order; --deep looks at indexes and payloads, too"),
        found => Check::bad(
            "integrity",
            format_args!("the database is damaged: {}", first_lines(found)),
            "stop all workers, keep a copy of .jobq, and restore from a backup or save what `sqlite3 .jobq/jobq.db .dump` can read",
        ),
    })
}

/// SQLite tells of a tree in one text of many lines.
fn first_lines(found: &[String]) -> String {
    const ENOUGH: usize = 3;
    let mut lines = found.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with("***"));
    let first: Vec<&str> = lines.by_ref().take(ENOUGH).collect();
    let more = lines.count();
    if more == 0 { first.join("; ") } else { format!("{}; and {more} more", first.join("; ")) }
}

fn pragmas(health: &Health) -> Result<Check> {
    let mode = health.journal_mode()?;
    health.syncs_fully()?;
    // A file that is read without its log reports none.
    if mode == "wal" || health.is_read_only()? {
        return Ok(Check::ok("pragmas", format_args!("journal_mode={mode}, synchronous=FULL, as read back")));
    }
    Ok(Check::warn(
        "pragmas",
        format_args!("journal_mode is {mode}: another program has changed it, or made this file"),
        "the next jobq command sets it back to WAL; if that happens again, find the program that changes it",
    ))
}

fn log(places: &Places) -> Check {
    let size = log_of(&places.db).metadata().map_or(0, |meta| meta.len());
    let message = format!("the write-ahead log has {} MiB", size / MIB);
    if size <= MOST_LOG {
        return Check::ok("wal", message);
    }
    let mut readers = processes::holding(&log_index_of(&places.db), &READERS, false);
    readers.retain(|reader| reader.pid != std::process::id());
    if readers.is_empty() {
        return Check::warn(
            "wal",
            format_args!("{message}, and nobody is seen reading"),
            "it shrinks with the next writes, or when the last process closes the database",
        );
    }
    Check::warn(
        "wal",
        format_args!("{message}; it cannot shrink while somebody reads an old state: {}", processes::list(&readers)),
        "end the read transactions that stay open there",
    )
}

fn write_lock(health: &Health, places: &Places) -> Result<Check> {
    const NAME: &str = "write_lock";
    if health.is_read_only()? {
        return Ok(Check::ok(NAME, "nobody can write here, so nobody waits to"));
    }
    if health.lock_moves_on(PATIENCE)? {
        return Ok(Check::ok(NAME, "a writer gets its turn"));
    }
    let holders = writers(places);
    let long = format!("the database has been locked for writing for {} s", PATIENCE.as_secs());
    if let Some(Process { pid, .. }) = holders.iter().find(|holder| holder.stopped) {
        return Ok(Check::bad(
            NAME,
            format_args!("{long}, by {}", processes::list(&holders)),
            format_args!(
                "`kill -CONT {pid}` lets it go on; `kill -KILL {pid}` ends it, and what it had not committed is undone"
            ),
        ));
    }
    if holders.is_empty() {
        let advice =
            "ask again; if it stays so, find who has the database open (`fuser`, or another container or machine)";
        return Ok(Check::warn(NAME, format_args!("{long}, by a process that is not seen from here"), advice));
    }
    let advice = "ask again; if it stays so, that process keeps a transaction open: end it";
    Ok(Check::warn(NAME, format_args!("{long}, by {}", processes::list(&holders)), advice))
}

fn writers(places: &Places) -> Vec<Process> {
    let mut found = processes::holding(&log_index_of(&places.db), &WRITER, true);
    for process in processes::holding(&places.db, &WITHOUT_LOG, true) {
        if !found.contains(&process) {
            found.push(process);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_sqlite_that_loses_jobs_is_bad() {
        assert_eq!(sqlite(3_051_002, "3.51.2").verdict, Verdict::Bad);
        assert_eq!(sqlite(3_051_003, "3.51.3").verdict, Verdict::Ok);
    }
}
