//! Counting instead of timing: the steps SQLite's machine takes for one
//! statement are the same on every computer.

use jobq::store::sqlite::hot_statements;
use rusqlite::types::Value;
use rusqlite::{Connection, StatementStatus, params_from_iter};

use super::{PILES, Pile, READY, database, pile_up};

const PILE: u32 = 20_000;
const NOW: i64 = 1_000_000_000_000;
/// More would be a cost that grows with the pile: it is four thousand times what is claimed.
const TOLERATED: f64 = 1.5;

#[derive(Debug)]
struct Cost {
    steps: f64,
    full_scan_steps: i32,
    rows: usize,
}

/// Runs a hot statement for real and undoes it.
fn cost(conn: &Connection, name: &str, values: &[Value]) -> Cost {
    let sql = hot_statements().into_iter().find(|(n, _)| *n == name).expect(name).1;
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut statement = conn.prepare(&sql).unwrap();
    // What a statement asks for beyond these is a type.
    let types = std::iter::repeat_with(|| text("note")).take(statement.parameter_count() - values.len());
    let mut rows = statement.query(params_from_iter(values.iter().cloned().chain(types))).unwrap();
    let mut number = 0;
    while rows.next().unwrap().is_some() {
        number += 1;
    }
    drop(rows);
    let steps = f64::from(statement.get_status(StatementStatus::VmStep));
    let full_scan_steps = statement.get_status(StatementStatus::FullscanStep);
    drop(statement);
    conn.execute_batch("ROLLBACK").unwrap();
    Cost { steps, full_scan_steps, rows: number }
}

fn text(text: &str) -> Value {
    Value::from(text.to_owned())
}

/// Name, parameters and number of rows that come back.
fn statements() -> Vec<(&'static str, Vec<Value>, usize)> {
    let (now, limit) = (Value::from(NOW), Value::from(5));
    let claim = vec![limit.clone(), text("note")];
    let three = [claim.clone(), vec![text("other"), text("third")]].concat();
    vec![
        ("claim", claim, 5),
        ("paused types", Vec::new(), 1),
        ("running of a type", vec![text("limited"), Value::from(LIMIT)], 1),
        ("claim, three types", three, 5),
        ("take over", vec![text("worker"), now.clone(), limit.clone()], 0),
        ("promote due", vec![now.clone(), limit.clone()], 0),
        ("promote early", vec![now, limit.clone()], 0),
        ("list", vec![limit.clone(), Value::from(i64::MAX)], 5),
        ("list by status", vec![limit.clone(), Value::from(i64::MAX)], 5),
        ("list by type", vec![limit.clone(), Value::from(i64::MAX)], 5),
        ("list by status and type", vec![limit, Value::from(i64::MAX)], 5),
    ]
}

fn compare(lone: &Connection, crowded: &Connection, what: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (name, values, rows) in statements() {
        let (least, most) = (cost(lone, name, &values), cost(crowded, name, &values));
        assert_eq!((least.rows, most.rows), (rows, rows), "{name} beside {what}");
        assert!(least.steps > 0.0, "{name}: the counter counts");
        if most.steps > least.steps * TOLERATED {
            found.push(format!("{name}: {} steps alone, {} beside {PILE} {what}", least.steps, most.steps));
        }
        if most.full_scan_steps > least.full_scan_steps {
            found.push(format!("{name}: {} steps of a full scan beside {PILE} {what}", most.full_scan_steps));
        }
    }
    found
}

/// How many of the limited type may run at once.
const LIMIT: u32 = 3;
const RUNNING: Pile =
    Pile { name: "running", columns: "status, gate, locked_by, type", values: "'claimed', NULL, 'worker', 'limited'" };

/// A few rows to claim and a few to list; a pause, and a type that is at its limit.
fn few(conn: &Connection) {
    pile_up(conn, READY, 10);
    pile_up(conn, Pile { name: "few failed", ..PILES[1] }, 10);
    pile_up(conn, RUNNING, LIMIT);
    conn.execute("INSERT INTO type_pauses VALUES ('paused', ?1, ?2, 'rate_limited: wait')", [NOW + 60_000, NOW])
        .unwrap();
}

fn lone() -> Connection {
    let conn = database();
    few(&conn);
    conn
}

#[test]
fn a_claim_costs_the_same_beside_any_pile() {
    let mut found = Vec::new();
    for pile in PILES {
        let crowded = lone();
        pile_up(&crowded, pile, PILE);
        found.extend(compare(&lone(), &crowded, pile.name));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// What a claim and a look do about a type that has a limit: some of its rows, then a count.
#[test]
fn a_type_at_its_limit_costs_the_same_however_many_wait() {
    let claim = vec![Value::from(5), text("limited")];
    let count = vec![text("limited"), Value::from(LIMIT)];
    let at_limit = |waiting: u32| {
        let conn = lone();
        pile_up(&conn, Pile { name: "limited", ..PILES[8] }, waiting);
        ["claim", "running of a type"].map(|name| {
            let values = if name == "claim" { &claim } else { &count };
            cost(&conn, name, values).steps
        })
    };
    for (few, many) in at_limit(10).into_iter().zip(at_limit(PILE)) {
        assert!(few > 0.0 && many <= few * TOLERATED, "{few} steps, and {many} beside {PILE}");
    }
}

#[test]
fn a_claim_costs_the_same_beside_all_piles_at_once_and_with_statistics() {
    let crowded = database();
    for pile in PILES {
        pile_up(&crowded, pile, PILE);
    }
    // The claimable rows come last, behind everything else.
    few(&crowded);
    let mut found = compare(&lone(), &crowded, "rows of every kind");
    super::analyze(&crowded);
    found.extend(compare(&lone(), &crowded, "rows of every kind, with statistics"));
    // Many that can be claimed cost no more than the few that are taken.
    pile_up(&crowded, Pile { name: "more", ..READY }, PILE);
    found.extend(compare(&lone(), &crowded, "rows of every kind and as many claimable"));
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}
