//! A database that is deleted or replaced under a command that goes on: it is
//! noticed, and nothing more is told of the file that nobody else can see.

use std::cell::RefCell;

use super::harness::Scratch;
use super::running::{Running, start};
use super::tmux::{Tmux, wait_until};

/// What happens to the database.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Deleted,
    MadeAnew,
    MovedOver,
    /// With all of its folder.
    MovedAway,
}

impl Fate {
    fn strike(self, q: &Scratch) {
        let folder = q.path().join(".jobq");
        match self {
            Self::Deleted => remove(q),
            Self::MadeAnew => {
                remove(q);
                q.ok(&["init"]);
            }
            Self::MovedOver => {
                let other = Scratch::new();
                // A copy first: it may be of another filesystem.
                let beside = folder.join("restored");
                std::fs::copy(other.db(), &beside).unwrap();
                std::fs::rename(beside, q.db()).unwrap();
            }
            Self::MovedAway => std::fs::rename(&folder, q.path().join("away")).unwrap(),
        }
    }

    fn is_told_in(self, said: &str) -> bool {
        let (gone, replaced) = (said.contains("is no longer there"), said.contains("was replaced by another file"));
        match self {
            Self::Deleted | Self::MovedAway => gone,
            Self::MovedOver => replaced,
            // It may be noticed before the new one is there.
            Self::MadeAnew => gone || replaced,
        }
    }
}

const FATES: [Fate; 4] = [Fate::Deleted, Fate::MadeAnew, Fate::MovedOver, Fate::MovedAway];

/// The database, and what SQLite keeps beside it.
fn remove(q: &Scratch) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(q.path().join(format!(".jobq/jobq.db{end}")));
    }
}

/// It has noticed, and says to what it happened, and what to do.
#[track_caller]
fn notices(command: Running, fate: Fate, q: &Scratch, what_to_do: &str) {
    let (code, said) = command.end();
    let db = q.db();
    assert_eq!(code, Some(3), "{fate:?}: {said}");
    assert!(said.contains(db.to_str().unwrap()) && fate.is_told_in(&said), "{fate:?}: {said}");
    assert!(said.contains(what_to_do), "{fate:?}: {said}");
}

#[test]
fn a_worker_ends_and_says_what_became_of_its_database() {
    for fate in FATES {
        let q = Scratch::new();
        let (worker, mut lines) = start(&q, &["worker", "--poll-interval", "20ms"]);
        assert!(lines.next().unwrap().unwrap().contains("worker_started"));
        fate.strike(&q);
        notices(worker, fate, &q, "start again");
        let last = lines.map_while(Result::ok).last().unwrap();
        assert!(last.contains("worker_stopped"), "{fate:?}: {last}");
    }
}

/// What was put in its place is heard of, so that the poll need not come.
#[test]
fn a_worker_hears_that_its_database_was_made_anew() {
    let q = Scratch::new();
    let (worker, mut lines) = start(&q, &["worker", "--poll-interval", "1h"]);
    q.enqueue(&["create_file", r#"{"path":"a","content":"1"}"#]);
    // Then it has nothing to do, and listens.
    lines.by_ref().map_while(Result::ok).find(|line| line.contains(r#""completed""#)).unwrap();
    remove(&q);
    // Until it listens, nothing is heard; so it is made anew again and again.
    let child = RefCell::new(worker);
    wait_until("its end", || {
        q.ok(&["init"]);
        q.enqueue(&["create_file", r#"{"path":"b","content":"1"}"#]);
        child.borrow_mut().0.try_wait().unwrap().is_some()
    });
    notices(child.into_inner(), Fate::MadeAnew, &q, "start again");
    assert!(!q.path().join("b").exists());
    q.ok(&["worker", "--drain"]);
    assert!(q.path().join("b").exists());
}

#[test]
fn whoever_follows_events_is_told_that_no_more_will_come() {
    for fate in FATES {
        let q = Scratch::new();
        let id = q.enqueue(&["send_mail", "{}"]);
        let (follower, mut lines) = start(&q, &["events", "--follow", "--json"]);
        assert!(lines.next().unwrap().unwrap().contains(&id));
        fate.strike(&q);
        notices(follower, fate, &q, "start again");
    }
}

#[test]
fn whoever_watches_the_disk_is_told_that_nothing_more_is_known() {
    for fate in FATES {
        let q = Scratch::new();
        let (watch, mut lines) = start(&q, &["reconcile", "--watch", "--every", "20ms"]);
        assert!(lines.next().unwrap().unwrap().contains("watching"));
        fate.strike(&q);
        notices(watch, fate, &q, "start again");
    }
}

#[test]
fn whoever_waits_for_a_job_is_told_that_its_end_will_not_be_seen() {
    for fate in FATES {
        let q = Scratch::new();
        let (waiting, lines) = start(&q, &["enqueue", "send_mail", "{}", "--wait"]);
        wait_until("the job", || q.count() == 1);
        fate.strike(&q);
        notices(waiting, fate, &q, "start again");
        drop(lines);
    }
}

/// `jobq events --follow | head -1`, and then nothing happens.
#[test]
fn a_follower_ends_when_nobody_reads_any_more() {
    let q = Scratch::new();
    q.enqueue(&["send_mail", "{}"]);
    let (follower, mut lines) = start(&q, &["events", "--follow"]);
    lines.next().unwrap().unwrap();
    drop(lines);
    assert_eq!(follower.end(), (Some(0), String::new()));
}

#[test]
fn the_live_view_shows_the_database_that_is_there_now() {
    for fate in [Fate::MadeAnew, Fate::MovedOver] {
        let q = Scratch::new();
        q.enqueue(&["send_mail", "{}"]);
        let Some(tmux) = Tmux::start(&q, 100, 24) else { return };
        tmux.line("jobq top --interval 20ms");
        tmux.wait_for("1 pending");
        fate.strike(&q);
        tmux.wait_for("0 pending");
    }
}

/// That has a folder of its own for its jobs.
#[test]
fn the_live_view_names_the_root_of_the_database_that_is_there_now() {
    let q = Scratch::new();
    let elsewhere = q.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    q.ok(&["--db", ".jobq/restored", "--root", "elsewhere", "init"]);
    let Some(tmux) = Tmux::start(&q, 160, 24) else { return };
    tmux.line("jobq top --interval 20ms");
    tmux.wait_for_all(&["q quit", q.path().to_str().unwrap()]);
    std::fs::rename(q.path().join(".jobq/restored"), q.db()).unwrap();
    tmux.wait_for(elsewhere.to_str().unwrap());
}
