//! The database itself.

use std::os::unix::fs::FileExt as _;

use jobq::doctor::Verdict;

use super::world::World;
use crate::support::note;

/// Writes nonsense into the first page of the table of jobs.
fn overwrite_jobs(world: &World, offset: u64) {
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'jobs'";
    let page = world.sql().query_row(root, [], |row| row.get::<_, u32>(0)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(world.db()).unwrap();
    file.write_all_at(&[0xA5; 64], u64::from(page - 1) * 4096 + offset).unwrap();
}

#[test]
fn flipped_bytes_in_a_page_are_found() {
    let world = World::new();
    let queue = world.queue();
    queue.enqueue_many((0..500).map(|n| jobq::NewJob::of(&note(&n.to_string())))).unwrap();
    drop(queue);
    world.close();
    // Where the cells of the page are, behind its header.
    overwrite_jobs(&world, 12);
    let findings = world.examine();
    findings.says("integrity", Verdict::Bad, &["damaged", "backup"]);
    assert!(!findings.get("integrity").message.contains('\u{fffd}'), "on one line");
    assert!(!findings.has("stage"), "which staged files are needed cannot be told");
    assert!(!findings.has("leases"), "that nothing was found means nothing");
    assert_eq!(findings.worst, Verdict::Bad);
    assert_eq!(world.examine_deeply().get("integrity").verdict, Verdict::Bad);
}

/// Rows of such a table come again and again.
#[test]
fn the_deep_look_at_a_damaged_table_ends() {
    let world = World::new();
    let queue = world.queue();
    queue.enqueue_many((0..3).map(|n| jobq::NewJob::of(&note(&n.to_string())))).unwrap();
    drop(queue);
    world.close();
    overwrite_jobs(&world, 8);
    let findings = world.examine_deeply();
    findings.says("integrity", Verdict::Bad, &["damaged"]);
    findings.says("payloads", Verdict::Bad, &["cannot be told"]);
}

#[test]
fn an_index_with_wrong_entries_is_found_by_the_deep_look() {
    let world = World::new();
    let id = world.queue().enqueue(note("a")).unwrap().id;
    let conn = world.sql();
    // As many entries as rows, but not theirs.
    conn.execute_batch("PRAGMA writable_schema = ON").unwrap();
    let index = "type = 'index' AND name = 'jobs_by_type'";
    let sql: String =
        conn.query_row(&format!("SELECT sql FROM sqlite_schema WHERE {index}"), [], |row| row.get(0)).unwrap();
    let wrong = sql.replace("(type)", "(id)");
    conn.execute(&format!("UPDATE sqlite_schema SET sql = ?1 WHERE {index}"), [&wrong]).unwrap();
    drop(conn);
    world.sql().execute_batch("REINDEX jobs_by_type").unwrap();
    let conn = world.sql();
    conn.execute_batch("PRAGMA writable_schema = ON").unwrap();
    conn.execute(&format!("UPDATE sqlite_schema SET sql = ?1 WHERE {index}"), [&sql]).unwrap();
    drop(conn);
    world.examine().says("integrity", Verdict::Ok, &[]);
    world.examine_deeply().only("integrity", Verdict::Bad, &["jobs_by_type"]);
    assert_eq!(world.queue().get(&id).unwrap().id, id);
}

#[test]
fn a_payload_that_was_changed_on_disk_is_named() {
    let world = World::new();
    let queue = world.queue();
    let [before, damaged, after] =
        ["before", "the-one-that-changes", "after"].map(|text| queue.enqueue(note(text)).unwrap().id);
    drop(queue);
    world.close();
    let mut bytes = std::fs::read(world.db()).unwrap();
    let sought = b"the-one-that-changes";
    let place = bytes.windows(sought.len()).position(|window| window == sought).unwrap();
    bytes[place] ^= 1;
    std::fs::write(world.db(), bytes).unwrap();
    assert_eq!(world.examine().troubles(), [""; 0], "only the deep look reads payloads");
    let findings = world.examine_deeply();
    findings.only("payloads", Verdict::Bad, &["1 payload", &damaged]);
    let said = &findings.get("payloads").message;
    assert!(!said.contains(&before) && !said.contains(&after), "{said}");
}

#[test]
fn more_damaged_payloads_than_fit_a_page_are_all_counted() {
    let world = World::new();
    let queue = world.queue();
    queue.enqueue_many((0..2_500).map(|n| jobq::NewJob::of(&note(&n.to_string())))).unwrap();
    drop(queue);
    world.sql().execute_batch("UPDATE jobs SET payload_hash = 'x' WHERE seq % 100 = 0").unwrap();
    world.examine_deeply().only("payloads", Verdict::Bad, &["25 payloads", "and 5 more"]);
}

#[test]
fn a_file_that_is_no_database_is_bad_and_left_alone() {
    let world = World::new();
    let _ = std::fs::remove_file(world.state().join("jobq.db-wal"));
    let text = "this is not a database, it only has its name; ".repeat(10);
    std::fs::write(world.db(), &text).unwrap();
    let findings = world.examine();
    findings.only("database", Verdict::Bad, &["not a SQLite database"]);
    assert_eq!(std::fs::read_to_string(world.db()).unwrap(), text);
    std::fs::remove_file(world.db()).unwrap();
    assert_eq!(world.examine().get("database").verdict, Verdict::Bad);
    assert!(!world.db().exists(), "looking does not make one");
}

#[test]
fn a_database_of_another_version_is_told_and_not_migrated() {
    let world = World::new();
    let set = |version: &str| {
        let sql = "UPDATE jobq_meta SET value = ?1 WHERE key = 'schema_version'";
        assert_eq!(world.sql().execute(sql, [version]), Ok(1));
    };
    set("99");
    world.examine().only("schema", Verdict::Bad, &["99", "newer jobq"]);
    set("1");
    let findings = world.examine();
    findings.only("schema", Verdict::Warn, &["version 1"]);
    assert!(!findings.has("leases"), "its tables may be others");
    let version = "SELECT value FROM jobq_meta WHERE key = 'schema_version'";
    assert_eq!(world.sql().query_row(version, [], |row| row.get::<_, String>(0)).unwrap(), "1");
}

#[test]
fn objects_of_the_schema_that_are_gone_or_altered_are_named() {
    for (kind, name) in [
        ("TRIGGER", "jobs_transition"),
        ("INDEX", "jobs_ready"),
        ("VIEW", "jobq_outstanding"),
        ("TABLE", "retry_guards"),
    ] {
        let world = World::new();
        world.sql().execute_batch(&format!("DROP {kind} {name}")).unwrap();
        let missing = format!("{} {name} is missing", kind.to_lowercase());
        world.examine().says("schema", Verdict::Bad, &[&missing, "backup", ".schema"]);
    }
    let world = World::new();
    world
        .sql()
        .execute_batch(
            "DROP TRIGGER jobs_delete; DROP TRIGGER jobs_fixed;
             CREATE TRIGGER jobs_fixed BEFORE UPDATE OF seq ON jobs BEGIN SELECT 1; END;",
        )
        .unwrap();
    let said = ["trigger jobs_delete is missing", "trigger jobs_fixed is not as jobq made it"];
    world.examine().only("schema", Verdict::Bad, &said);
}

/// A letter that was changed on disk; SQLite itself has no objection.
#[test]
fn a_damaged_text_of_the_schema_is_found() {
    let world = World::new();
    let mut bytes = std::fs::read(world.db()).unwrap();
    let sought = b"jobq: illegal transition";
    let place = bytes.windows(sought.len()).position(|window| window == sought).unwrap();
    bytes[place + 6] ^= 1;
    std::fs::write(world.db(), bytes).unwrap();
    world.examine_deeply().only("schema", Verdict::Bad, &["trigger jobs_transition is not as"]);
}

/// Layout and comments do not matter, and what the application has there is its own.
#[test]
fn a_schema_with_neighbours_and_another_layout_is_in_order() {
    let world = World::new();
    let conn = world.sql();
    let text = "SELECT sql FROM sqlite_schema WHERE name = 'jobs_by_type'";
    let index: String = conn.query_row(text, [], |row| row.get(0)).unwrap();
    conn.execute_batch(&format!("DROP INDEX jobs_by_type; {} -- put back", index.replace(' ', "\n  "))).unwrap();
    conn.execute_batch(
        "CREATE TABLE mine (x); CREATE TRIGGER mine_too AFTER INSERT ON jobs BEGIN DELETE FROM mine; END",
    )
    .unwrap();
    assert_eq!(world.examine().troubles(), [""; 0]);
}

#[test]
fn a_database_without_our_tables_is_told() {
    let world = World::new();
    let db = world.root().join("app.db");
    rusqlite::Connection::open(&db).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    let findings = super::world::Findings::of(&jobq::doctor::Doctor::at(&db));
    findings.says("schema", Verdict::Bad, &["init", "app.db"]);
    assert!(!findings.has("pragmas"), "how the application writes is its own choice");
}

#[test]
fn another_journal_mode_is_told() {
    let world = World::new();
    let mode: String = world.sql().query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete");
    world.examine().only("pragmas", Verdict::Warn, &["delete", "WAL"]);
    drop(world.queue());
    world.examine().says("pragmas", Verdict::Ok, &["journal_mode=wal", "synchronous=FULL"]);
}
