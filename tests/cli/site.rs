//! A queue whose folder was copied is only read until its user says what it is.

use std::io;
use std::path::Path;
use std::process::Command;

use jobq::effects::Act;
use jobq::{Attach, ErrorKind, Queue, QueueOptions};

use super::harness::Scratch;

const WAITS: &str = "00000000-0000-4000-8000-000000000001";
const RUNS: &str = "00000000-0000-4000-8000-000000000002";
const DECIDED: &str = "00000000-0000-4000-8000-000000000003";

/// A queue with a job that waits, one that runs, and a decided commit.
fn busy() -> Scratch {
    let q = Scratch::new();
    q.enqueue(&["create_file", r#"{"path":"waits.txt","content":"hi"}"#, "--id", WAITS]);
    q.enqueue(&["send_mail", "{}", "--id", RUNS]);
    q.sql()
        .execute_batch(
            "UPDATE jobs SET gate = 'ready', timeout = 1, backoff_base = 1, backoff_max = 1, payload_hash = ''
              WHERE type = 'send_mail' AND gate = 'new';
             UPDATE jobs SET status = 'claimed', gate = NULL, token = 1, attempts = 1, locked_by = 'me', locked_at = 1
              WHERE type = 'send_mail'",
        )
        .unwrap();
    let full = |act, _: &str| if act == Act::Create { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) };
    let queue = QueueOptions::in_folder(q.path()).recover(false).watched(full).open().unwrap();
    let accepted = queue.commit(|tx| {
        tx.id(DECIDED)?;
        tx.write("decided.txt", "hi")
    });
    assert!(!accepted.unwrap().applied);
    q
}

fn shell(folder: &Path, command: &str) {
    assert!(Command::new("sh").args(["-ec", command]).current_dir(folder).status().unwrap().success(), "{command}");
}

/// What came of a queue in three ways.
fn copies() -> Vec<(&'static str, Scratch)> {
    let ways = [
        (
            "tar",
            "tar -cf q.tar .jobq && rm -r .jobq && mkdir new && tar -xf q.tar -C new && rm q.tar && mv new/.jobq .",
        ),
        ("cp", "cp -a .jobq copy && rm -r .jobq && mv copy .jobq"),
        (
            "git",
            "git init -q . && git add -f .jobq && git -c user.name=a -c user.email=a@example.org commit -qm all && \
                 rm -r .jobq && git clone -q . new && mv new/.jobq .",
        ),
    ];
    let copied = |(way, command)| {
        let q = busy();
        shell(q.path(), command);
        (way, q)
    };
    ways.into_iter().map(copied).collect()
}

#[track_caller]
fn status(q: &Scratch, id: &str) -> String {
    q.json(&["show", id])[0]["status"].as_str().unwrap().to_owned()
}

#[test]
fn a_copied_queue_is_read_and_every_change_names_the_way_on() {
    for (way, q) in copies() {
        let before = q.json(&["list"]);
        assert_eq!(before.len(), 3, "{way}");
        q.ok(&["stats"]);
        let doctor = q.run(&["doctor"]);
        assert!(doctor.code == 1 && doctor.stdout.contains("site attach"), "{way}: {}", doctor.stdout);
        for args in [
            vec!["init"],
            vec!["enqueue", "send_mail", "{}"],
            vec!["worker", "--drain"],
            vec!["--root", ".", "worker", "--drain"],
            vec!["cancel", WAITS],
            vec!["prune", "--older-than", "1s"],
        ] {
            let error = q.refused(5, &args);
            assert!(error.contains("site attach --new") && error.contains("site attach --move"), "{way}: {error}");
        }
        assert_eq!(q.json(&["list"]), before, "{way}");
        assert!(!q.path().join("decided.txt").exists() && !q.path().join("waits.txt").exists());
    }
}

#[test]
fn the_library_refuses_a_copied_queue_and_reads_it_on_request() {
    let (_, q) = copies().remove(0);
    let refused = Queue::open(q.path()).map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotTrusted);
    let queue = QueueOptions::in_folder(q.path()).recover(false).open().unwrap();
    assert_eq!(queue.get(WAITS).unwrap().id, WAITS);
    assert_eq!(queue.cancel(WAITS).unwrap_err().kind(), ErrorKind::NotTrusted);
    assert_eq!(queue.commit(|tx| tx.write("a", "b")).unwrap_err().kind(), ErrorKind::NotTrusted);
    assert!(QueueOptions::in_folder(q.path()).attach(Attach::Move).unwrap());
    Queue::open(q.path()).unwrap();
}

#[test]
fn after_a_move_the_jobs_go_on() {
    for (way, q) in copies() {
        assert!(q.ok(&["site", "attach", "--move"]).contains("belongs to this folder now"), "{way}");
        assert!(q.ok(&["site", "attach", "--move"]).contains("nothing was changed"), "{way}");
        q.ok(&["reclaim"]);
        q.ok(&["worker", "--drain"]);
        assert!(q.path().join("decided.txt").exists() && q.path().join("waits.txt").exists(), "{way}");
        assert!(q.ok(&["doctor", "--json"]).contains(r#""check":"site","verdict":"ok""#), "{way}");
    }
}

#[test]
fn a_new_site_ends_what_the_original_does() {
    for (way, q) in copies() {
        q.ok(&["site", "attach", "--new"]);
        for (id, ended) in [(WAITS, "cancelled"), (RUNS, "cancelled"), (DECIDED, "failed")] {
            assert_eq!(status(&q, id), ended, "{way}: {id}");
        }
        let error = q.refused(4, &["retry", DECIDED]);
        assert!(error.contains("withdrawn"), "{way}: {error}");
        q.ok(&["worker", "--drain"]);
        assert!(!q.path().join("decided.txt").exists() && !q.path().join("waits.txt").exists(), "{way}");
        assert_eq!(std::fs::read_dir(q.path().join(".jobq/stage")).unwrap().count(), 0, "{way}");
        q.enqueue(&["create_file", r#"{"path":"waits.txt","content":"new"}"#]);
        q.ok(&["worker", "--drain"]);
        assert_eq!(std::fs::read_to_string(q.path().join("waits.txt")).unwrap(), "new", "{way}");
    }
}

/// A plan that failed is applied by a retry, and this one may be a stranger's.
#[test]
fn a_new_site_applies_no_plan_that_failed_in_the_original() {
    let (_, q) = copies().remove(0);
    std::fs::write(q.path().join("decided.txt"), "in the way").unwrap();
    q.ok(&["site", "attach", "--move"]);
    q.ok(&["reclaim"]);
    assert_eq!(status(&q, DECIDED), "failed");
    std::fs::remove_file(q.path().join("decided.txt")).unwrap();
    shell(q.path(), "cp -a .jobq copy && rm -r .jobq && mv copy .jobq");
    q.ok(&["site", "attach", "--new"]);
    assert!(q.refused(4, &["retry", DECIDED]).contains("withdrawn"));
    q.run(&["retry", "--all-failed"]);
    q.ok(&["worker", "--drain"]);
    assert!(!q.path().join("decided.txt").exists());
}

#[test]
fn a_database_with_altered_triggers_is_attached_by_nobody() {
    for alteration in [
        "CREATE TRIGGER mine AFTER INSERT ON JOBQ_META BEGIN UPDATE jobs SET priority = 9; END",
        "DROP TRIGGER jobs_transition",
    ] {
        let (_, q) = copies().remove(0);
        q.sql().execute_batch(alteration).unwrap();
        for how in ["--new", "--move"] {
            let error = q.refused(5, &["site", "attach", how]);
            assert!(error.contains("trigger ") && error.contains("jobq init"), "{error}");
        }
    }
    let (_, q) = copies().remove(0);
    q.sql().execute_batch("CREATE TABLE a (b); CREATE TRIGGER own AFTER INSERT ON a BEGIN SELECT 1; END").unwrap();
    q.ok(&["site", "attach", "--move"]);
}

#[test]
fn a_queue_of_an_older_version_is_attached_before_it_is_used() {
    let q = Scratch::new();
    std::fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/version_4.db"), q.db()).unwrap();
    let before = std::fs::read(q.db()).unwrap();
    assert!(q.refused(5, &["list"]).contains("site attach --move"));
    assert_eq!(std::fs::read(q.db()).unwrap(), before);
    q.ok(&["site", "attach", "--move"]);
    q.ok(&["list"]);
    q.ok(&["enqueue", "send_mail", "{}"]);
}

#[test]
fn attach_changes_nothing_where_the_queue_was_made_or_renamed() {
    let q = busy();
    for how in ["--new", "--move"] {
        assert_eq!(q.json(&["site", "attach", how])[0]["attached"], false);
    }
    assert_eq!(status(&q, WAITS), "pending");
    let project = Scratch::empty();
    std::fs::rename(q.path().join(".jobq"), project.path().join(".jobq")).unwrap();
    project.ok(&["cancel", WAITS]);
    q.refused(3, &["site", "attach", "--new"]);
    for args in [vec!["site", "attach"], vec!["site", "attach", "--new", "--move"]] {
        project.refused(2, &args);
    }
}

#[test]
fn a_queue_without_a_recorded_folder_is_a_copy() {
    let q = Scratch::new();
    q.sql().execute("DELETE FROM jobq_meta WHERE key = 'state_folder'", []).unwrap();
    assert!(q.refused(5, &["enqueue", "send_mail", "{}"]).contains("site attach"));
    q.ok(&["site", "attach", "--move"]);
    q.enqueue(&["send_mail", "{}"]);
}

/// The database of an application is copied alone: the state folder beside it is missing.
#[test]
fn a_copied_application_database_is_attached_like_any_other() {
    let q = Scratch::empty();
    q.ok(&["--db", "app.db", "init"]);
    shell(q.path(), "mkdir copy && cp app.db copy/app.db");
    assert!(q.refused(5, &["--db", "copy/app.db", "enqueue", "send_mail", "{}"]).contains("site attach"));
    q.ok(&["--db", "copy/app.db", "site", "attach", "--new"]);
    q.ok(&["--db", "copy/app.db", "enqueue", "send_mail", "{}"]);
}
