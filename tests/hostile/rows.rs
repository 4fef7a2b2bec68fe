//! Rows that another program has inserted with plain SQL.

use serde_json::json;

use super::case::nested;
use super::paths;
use super::run::Seed;
use super::world::World;

/// The columns beside the three that every row has, their SQL, and what is said.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("holds", "'x'", "holds"),
    ("holds", "'[]x'", "holds"),
    ("holds", "'{}'", "holds"),
    ("holds", "'[1]'", "holds"),
    ("holds", "'[\"path:x\"]'", "holds"),
    ("holds", "'[\"lane:\"]'", "lane"),
    ("holds", "'[\"lane:a\nb\"]'", "holds"),
    ("holds", "'[\"lane:\\u001b\"]'", "lane"),
    ("holds", "'' || replace(hex(zeroblob(50000)), '00', '[')", "holds"),
    ("holds", "CAST(x'ff' AS TEXT)", "not UTF-8"),
    ("waiting_on", "'nobody'", "waiting_on"),
    ("waiting_on", "''", "waiting_on"),
    ("waiting_on", "'../../x'", "waiting_on"),
    ("waiting_on", "char(27) || '[31m'", "waiting_on"),
    ("waiting_on", "CAST(x'ff' AS TEXT)", "not UTF-8"),
    ("idempotency_key", "CAST(x'ff' AS TEXT)", "not UTF-8"),
];

/// Columns of any value, with which a good row completes all the same.
const HARMLESS: &[(&str, &str)] = &[
    ("priority", "2147483647"),
    ("priority", "-2147483648"),
    ("max_attempts", "4294967295"),
    ("timeout", "9223372036854775807"),
    ("run_at", "-9223372036854775808"),
    ("run_at", "0"),
    ("correlation_id", "char(27) || '[31m' || char(0) || 'x'"),
    ("correlation_id", "CAST(x'ff' AS TEXT)"),
    ("idempotency_key", "char(27) || ']0;owned' || char(7)"),
    ("idempotency_key", "replace(hex(zeroblob(50000)), '00', 'k')"),
    ("created_at", "9223372036854775807"),
    ("created_at", "-9223372036854775808"),
    ("backoff_base", "9223372036854775807"),
    ("backoff_max", "9223372036854775807"),
];

/// Names that lead somewhere, or nowhere.
const IDS: &[&str] = &[
    "../x",
    "..",
    ".",
    "a/b",
    "/etc/passwd",
    "../../outside/secret.txt",
    "a b",
    "ä",
    "a\nb",
    "\u{1b}[31m",
    "%",
    "*",
    "a.b",
];

pub fn seeds(world: &World) -> Vec<Seed> {
    let conn = world.sql();
    let good = |n: usize| json!({"path": format!("row-{n}.txt"), "content": "good"}).to_string();
    let mut seeds = Vec::new();
    let mut insert = |id: &str, kind: &str, payload: &str, seed: Seed| {
        conn.execute("INSERT INTO jobs (id, type, payload) VALUES (?1, ?2, ?3)", [id, kind, payload]).unwrap();
        seeds.push(seed);
    };
    for id in IDS {
        insert(id, "create_file", &good(0), Seed::failed(*id, format!("id {id:?}"), "id: is at most 64 letters"));
    }
    let long = "x".repeat(65);
    insert(&long, "create_file", &good(0), Seed::failed(&long, "a long id", "id: is at most 64 letters"));
    for (n, path) in paths::wrong().iter().enumerate() {
        let (id, payload) = (format!("path-{n}"), json!({"path": path, "content": "x"}).to_string());
        insert(&id, "create_file", &payload, Seed::failed(&id, format!("path {path:.80?}"), "path: "));
    }
    let payloads =
        ["", "x", "[]", "null", "{", "{}", r#"{"path":"a"}"#, &nested(129), &nested(300_000), "\0", "\u{1b}[31m"];
    for (n, payload) in payloads.into_iter().enumerate() {
        let id = format!("payload-{n}");
        insert(&id, "create_file", payload, Seed::failed(&id, format!("payload {payload:.80?}"), "invalid_input: "));
    }
    insert(
        "commits",
        "write_files",
        r#"{"files":[{"path":"x"}]}"#,
        Seed::failed("commits", "a commit by plain SQL", "write_files jobs are made by a commit"),
    );
    // Nobody knows these types: the rows wait, whatever is in them, and can be looked at.
    for (n, kind) in ["../evil", "\u{1b}[31m", "a\0b", "t"].into_iter().enumerate() {
        let (id, status) = (format!("type-{n}"), "pending");
        let seed = Seed { what: format!("type {kind:?}"), id: id.clone(), status, word: String::new(), makes: None };
        insert(&id, kind, &nested(100_000), seed);
    }
    for (n, (column, value, word)) in COLUMNS.iter().enumerate() {
        let id = format!("column-{n}");
        let sql = format!("INSERT INTO jobs (id, type, payload, {column}) VALUES (?1, 'create_file', ?2, {value})");
        conn.execute(&sql, [&id, &good(1000 + n)]).unwrap();
        seeds.push(Seed::failed(id, format!("{column} = {value}"), *word));
    }
    for (n, (column, value)) in HARMLESS.iter().enumerate() {
        let id = format!("harmless-{n}");
        let sql = format!("INSERT INTO jobs (id, type, payload, {column}) VALUES (?1, 'create_file', ?2, {value})");
        conn.execute(&sql, [&id, &good(n)]).unwrap();
        let makes = Some(format!("row-{n}.txt"));
        seeds.push(Seed { what: format!("{column} = {value}"), id, status: "completed", word: String::new(), makes });
    }
    seeds
}
