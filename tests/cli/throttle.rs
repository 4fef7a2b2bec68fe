//! Paused types, limits and costs as people and scripts see them.

use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, Ending, Failure, Limits, Store as _};
use jobq::{Queue, QueueOptions};
use serde_json::json;

use super::harness::Scratch;
use super::pty::Terminal;

const FILE: &str = "create_file";

fn create(q: &Scratch, name: &str) -> String {
    q.enqueue(&[FILE, &format!(r#"{{"path":"{name}.txt","content":""}}"#), "--max-attempts", "1"])
}

fn status(q: &Scratch, id: &str) -> String {
    q.json(&["show", id])[0]["status"].as_str().unwrap().to_owned()
}

/// This process, as one that has claimed a file job.
pub fn claim(q: &Scratch) -> (Queue, OwnerLock, jobq::store::Lease) {
    let queue = QueueOptions::at(q.db()).recover(false).open().unwrap();
    let lock = OwnerLock::acquire(&queue.owners_folder()).unwrap();
    let (owner, types) = (lock.owner().clone(), vec![FILE.to_owned()]);
    let request = ClaimRequest { owner, types, limit: 1, limits: Limits::new() };
    let lease = queue.store().claim(request).unwrap().remove(0).lease;
    (queue, lock, lease)
}

/// Fails the job, as a handler does that is told to wait a minute.
fn pause(q: &Scratch) {
    let (queue, _lock, lease) = claim(q);
    let failure = Failure::new("rate_limited", "too many\u{1b}requests")
        .pausing_type(std::time::Duration::from_secs(60))
        .leaving(r#"{"total_cost_usd":0.25,"text":"no JSON"}"#);
    assert_eq!(queue.store().fail(lease, failure).unwrap(), Ending::Done);
}

#[test]
fn a_paused_type_is_shown_wherever_its_jobs_are() {
    let q = Scratch::new();
    let failed = create(&q, "first");
    assert_eq!(q.json(&["stats"])[0]["paused"], json!([]));
    pause(&q);
    let waits = create(&q, "second");
    q.ok(&["worker", "--drain"]);
    assert_eq!((status(&q, &waits).as_str(), q.path().join("second.txt").exists()), ("pending", false));
    let paused = &q.json(&["stats"])[0]["paused"][0];
    assert_eq!((&paused["type"], &paused["reason"]), (&json!(FILE), &json!("rate_limited: too many\u{1b}requests")));
    let until = paused["until"].as_str().unwrap();
    assert!(paused["since"].as_str().unwrap() < until);
    let shown = &q.json(&["show", &waits])[0]["blocked"];
    assert_eq!(shown, &json!(format!("paused until {until}: rate_limited: too many\u{1b}requests")));
    for args in [vec!["list"], vec!["show", &waits], vec!["stats"]] {
        let text = q.ok(&args);
        assert!(text.contains(&format!("paused until {until}")), "{args:?}: {text}");
        assert!(text.contains("rate_limited: too many") && !text.contains('\u{1b}'), "{args:?}: {text}");
    }
    for args in [vec!["list"], vec!["stats"], vec!["handlers"]] {
        let text = Terminal::wide(200, &q, &args).screen().join("\n");
        assert!(text.contains("paused for another ") && !text.contains(until), "people are told how long: {text}");
    }
    let failed = &q.json(&["show", &failed])[0];
    assert_eq!(
        failed["result"],
        json!({ "total_cost_usd": 0.25, "text": "no JSON" }),
        "what it left although it failed"
    );
    assert_eq!(failed["events"][2]["data"]["type_paused_until"], json!(until));
    q.sql().execute("UPDATE type_pauses SET until = 1", []).unwrap();
    q.ok(&["worker", "--drain"]);
    assert_eq!((status(&q, &waits).as_str(), q.json(&["stats"])[0]["paused"].clone()), ("completed", json!([])));
    let kept: i64 = q.sql().query_row("SELECT count(*) FROM type_pauses", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 0, "what is over is forgotten");
}

#[test]
fn what_jobs_cost_is_summed() {
    let q = Scratch::new();
    create(&q, "free");
    q.ok(&["worker", "--drain"]);
    assert_eq!(q.json(&["stats"])[0]["costs"], json!([]));
    assert!(!q.ok(&["stats"]).contains("cost"), "most have nothing to pay for");
    create(&q, "dear");
    pause(&q);
    let expected = json!([{ "type": FILE, "jobs": 1, "at_least": false, "total_cost_usd": 0.25 }]);
    assert_eq!(q.json(&["stats"])[0]["costs"], expected);
    let text = q.ok(&["stats"]);
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains("What did jobs cost?")).collect();
    assert_eq!(lines[1..], ["  TYPE         JOBS     USD", "  create_file     1  0.2500"], "{text}");
}

#[test]
fn the_settings_limit_how_many_jobs_of_a_type_run_at_once() {
    let q = Scratch::new();
    let config = q.path().join(".jobq/config.toml");
    std::fs::write(&config, "[handlers.create_file]\nconcurrency = 0\n").unwrap();
    let error = q.refused(2, &["worker", "--drain"]);
    assert!(error.contains("handlers.create_file.concurrency: must be at least 1"), "{error}");
    std::fs::write(&config, "[handlers.create_file]\nconcurrency = 1\n[handlers.unheard_of]\nconcurrency = 9\n")
        .unwrap();
    let ids = ["one", "two"].map(|name| create(&q, name));
    let (queue, _lock, lease) = claim(&q);
    q.ok(&["worker", "--drain"]);
    assert_eq!(ids.each_ref().map(|id| status(&q, id)), ["claimed", "pending"], "there is one running already");
    queue.store().release(lease).unwrap();
    q.ok(&["worker", "--drain"]);
    assert_eq!(ids.each_ref().map(|id| status(&q, id)), ["completed", "completed"]);
    std::fs::write(&config, "").unwrap();
    let more = ["three", "four"].map(|name| create(&q, name));
    let _held = claim(&q);
    q.ok(&["worker", "--drain"]);
    assert_eq!(
        more.each_ref().map(|id| status(&q, id)),
        ["claimed", "completed"],
        "without the setting there is no limit"
    );
}
