//! What is typed: ids, options and patterns with something else in them.

use super::case::Case;

const WRONG: &[(&[&str], &str)] = &[
    (&[], "Usage"),
    (&["nope"], "nope"),
    (&["enqueue"], "required"),
    (&["enqueue", "../evil"], "type: "),
    (&["enqueue", ""], "type: "),
    (&["enqueue", "a\nb"], "type: "),
    (&["enqueue", "t", "{}", "--priority", "1e9"], "--priority"),
    (&["enqueue", "t", "{}", "--delay", "\u{1b}[31m"], "--delay"),
    (&["enqueue", "t", "{}", "--timeout", "9999999999999999999999y"], "--timeout"),
    (&["enqueue", "t", "{}", "--timeout", "101y"], "timeout"),
    (&["enqueue", "t", "{}", "--key", "\u{7}"], "idempotency_key"),
    (&["enqueue", "t", "{}", "--key", "a", "--no-key"], "--no-key"),
    (&["enqueue", "t", "{}", "--lane", "\u{9b}31m"], "lane"),
    (&["enqueue", "t", "{}", "--id", "../../outside/secret.txt"], "id"),
    (&["enqueue", "t", "{}", "--correlation-id", "a\rb"], "correlation_id"),
    (&["enqueue", "t", "{}", "--run-at", "\u{1b}c"], "run_at"),
    (&["list", "--status", "\u{1b}[31m"], "--status"),
    (&["list", "--limit", "0"], "--limit"),
    (&["list", "--limit", "99999999999"], "--limit"),
    (&["list", "--since", "yesterday"], "--since"),
    (&["events", "--after", "x"], "--after"),
    (&["worker", "--concurrency", "0"], "--concurrency"),
    (&["worker", "--concurrency", "99999999999999999999"], "--concurrency"),
    (&["worker", "--lease", "0s"], "--lease"),
    (&["worker", "--poll-interval", "0s"], "--poll-interval"),
    (&["worker", "--drain", "--types", "../evil"], "evil"),
    (&["prune", "--older-than", "-1d"], "--older-than"),
    (&["reconcile", "--path", "[\u{1b}"], "path: "),
    (&["reconcile", "--path", "a***"], "path: "),
    (&["completions", "\u{1b}[31m"], "SHELL"),
];

/// Jobs that there are not.
const UNKNOWN: &[&str] = &[
    "nobody",
    "../../etc/passwd",
    "\u{1b}[31m",
    "%",
    "_",
    "' OR 1=1 --",
    "*",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "\u{202e}",
];

pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = WRONG.iter().map(|(args, word)| Case::refused(args, word)).collect();
    for (number, id) in UNKNOWN.iter().enumerate() {
        let command = ["show", "cancel", "retry", "events"][number % 4];
        cases.push(Case::refused(&[command, "--", id], "no job").code(3));
    }
    cases.push(Case::refused(&["show", "--", ""], "id"));
    // Bytes that are no text.
    cases.push(Case::refused(&["enqueue"], "UTF-8").argument(b"\xff\xfe"));
    cases.push(Case::refused(&["enqueue", "t"], "UTF-8").argument(b"{\"a\":\"\xff\"}"));
    cases.push(Case::refused(&["blame"], "UTF-8").argument(b"\xff"));
    cases.push(Case::refused(&["show"], "UTF-8").argument(b"\xff"));
    // Queues that are none.
    cases.push(Case::refused(&["list", "--db", "t.txt"], "t.txt").file("t.txt", "no database").code(5));
    cases.push(Case::refused(&["list", "--db", "/dev/null"], "/dev/null").code(3));
    cases.push(Case::refused(&["list", "--db", "nowhere/x.db"], "nowhere").code(3));
    cases
}
