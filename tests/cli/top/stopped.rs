//! A view that is stopped, and continued or ended, in the foreground or not.

use rustix::process::{Signal, kill_process};

use super::super::tmux::Tmux;
use super::ends::{assert_given_back, pid};
use super::{AND_TELL, FAILURE, Jobs, jobs, selected, status};

/// As a key it stops the script around it, too, which the shell waits for.
#[test]
fn ctrl_z_and_its_signal_give_the_terminal_to_the_shell_until_it_is_continued() {
    let Jobs { q, .. } = jobs();
    for by_key in [true, false] {
        let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
        let modes = tmux.modes();
        let exec = if by_key { "" } else { "exec " };
        tmux.line(&format!("sh -c 'echo $$ > .jobq/pid; {exec}jobq top{AND_TELL}'"));
        for _ in 0..2 {
            tmux.wait_for_all(&[FAILURE, "q quit"]);
            if by_key {
                tmux.keys(&["C-z"]);
            } else {
                kill_process(pid(&q), Signal::TSTP).unwrap();
            }
            tmux.wait_for("Stopped");
            assert_given_back(&tmux, &modes);
            // Of which nobody tells who is not in the foreground.
            tmux.resize(130, 30);
            tmux.line("fg");
            tmux.wait_for_all(&[FAILURE, "CANCELLED 1H"]);
            assert_eq!(tmux.about("#{alternate_on} #{cursor_flag}"), "1 0");
            tmux.resize(80, 24);
            tmux.wait_until("less room", |screen| screen.contains(FAILURE) && !screen.contains("CANCELLED 1H"));
        }
        tmux.keys(&["q"]);
        tmux.wait_for("ready>");
        assert_given_back(&tmux, &modes);
    }
}

/// Where no shell waits, nobody could continue it.
#[test]
fn ctrl_z_does_nothing_where_there_is_no_shell_to_go_back_to() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    tmux.line("exec jobq top");
    tmux.wait_for_all(&[FAILURE, "q quit"]);
    tmux.keys(&["C-z"]);
    tmux.keys(&["?"]);
    tmux.wait_for("jobq top: keys and columns");
    assert_eq!(tmux.about("#{alternate_on} #{cursor_flag}"), "1 0");
}

/// For a shell with a job that is stopped, or is about to be: waits for that.
const UNTIL_STOPPED: &str = "until jobs -s | grep -q .; do sleep 0.05; done";

/// As shells do it: a signal to end, and one to go on, so that it hears of the first.
const KILL: &str =
    "clear; kill %1; while jobs %1 2> .jobq/none | grep -q .; do sleep 0.05; done; echo has $((1 - 1)) jobs";

#[track_caller]
fn assert_ends(tmux: &Tmux<'_>, modes_before: &str) {
    tmux.line(KILL);
    tmux.wait_for_line("has 0 jobs");
    assert_given_back(tmux, modes_before);
}

#[test]
fn one_that_is_stopped_can_be_ended_without_coming_back() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    let modes = tmux.modes();
    for goes_on in ["true", "bg"] {
        tmux.line("clear; jobq top");
        tmux.wait_for_all(&[FAILURE, "q quit"]);
        tmux.keys(&["C-z"]);
        tmux.wait_for("Stopped");
        // In the background it wants the terminal, and is stopped for that.
        tmux.line(&format!("{goes_on}; {UNTIL_STOPPED}; echo still $((0 + 1))"));
        tmux.wait_for_line("still 1");
        assert_ends(&tmux, &modes);
    }
}

#[test]
fn one_that_was_never_in_the_foreground_can_be_ended() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    let modes = tmux.modes();
    tmux.line(&format!("jobq top & {UNTIL_STOPPED}; echo still $((0 + 1))"));
    tmux.wait_for_line("still 1");
    assert_ends(&tmux, &modes);
    // It has a process group of its own, and nobody who would bring that to the foreground.
    tmux.line(&format!("bash -c 'timeout 1 jobq top{AND_TELL}'"));
    tmux.wait_for_line("ended with 124");
    assert_given_back(&tmux, &modes);
}

/// By a signal that no program hears of, so that the shell has the terminal as the view has left it.
#[test]
fn one_that_was_stopped_without_being_told_takes_the_terminal_again() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    let modes = tmux.modes();
    tmux.line("sh -c 'echo $$ > .jobq/pid; exec jobq top'");
    for by_way_of_the_background in [false, true] {
        tmux.wait_for_all(&[FAILURE, "q quit"]);
        kill_process(pid(&q), Signal::STOP).unwrap();
        tmux.wait_for("Stopped");
        tmux.line("echo typed and $((40 + 2))");
        tmux.wait_for("typed and 42");
        if by_way_of_the_background {
            tmux.line(&format!("bg; {UNTIL_STOPPED}; echo still $((0 + 1))"));
            tmux.wait_for_line("still 1");
        }
        tmux.resize(130, 30);
        tmux.line("fg");
        tmux.wait_until("all of it again", |screen| {
            !screen.contains("typed") && [FAILURE, "CANCELLED 1H", "q quit"].iter().all(|text| screen.contains(text))
        });
        // Without Enter, and not to be seen as itself.
        tmux.keys(&["?"]);
        tmux.wait_for("jobq top: keys and columns");
        assert_eq!(tmux.about("#{alternate_on} #{cursor_flag}"), "1 0");
        tmux.keys(&["?"]);
        tmux.resize(80, 24);
    }
    tmux.keys(&["q"]);
    tmux.wait_for("ready>");
    assert_given_back(&tmux, &modes);
}

#[test]
fn one_that_was_stopped_without_being_told_can_be_ended() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    let modes = tmux.modes();
    for goes_on in ["true", "bg"] {
        tmux.line("clear; sh -c 'echo $$ > .jobq/pid; exec jobq top'");
        tmux.wait_for_all(&[FAILURE, "q quit"]);
        kill_process(pid(&q), Signal::STOP).unwrap();
        tmux.wait_for("Stopped");
        tmux.line(&format!("{goes_on}; {UNTIL_STOPPED}; echo still $((0 + 1))"));
        tmux.wait_for_line("still 1");
        assert_ends(&tmux, &modes);
    }
}

/// Somebody keeps the database meanwhile, and so the person is impatient.
#[test]
fn what_was_asked_for_is_done_before_it_stops_and_it_stops_once() {
    let Jobs { q, failed, pending } = jobs();
    std::fs::write(q.path().join(".jobq/config.toml"), "busy_timeout = \"1h\"\n").unwrap();
    let Some(tmux) = Tmux::start(&q, 100, 24) else { return };
    let modes = tmux.modes();
    tmux.line("jobq top --interval 20ms");
    tmux.wait_for_all(&[FAILURE, "q quit", &failed]);
    let sql = q.sql();
    sql.execute_batch("BEGIN IMMEDIATE").unwrap();
    tmux.keys(&["r", "y"]);
    tmux.wait_for("working");
    tmux.keys(&["C-z", "C-z", "C-z", "Tab"]);
    tmux.wait_until("the selected one", |screen| selected(screen).contains("create_file"));
    tmux.keys(&["c", "y", "?"]);
    tmux.wait_for("jobq top: keys and columns");
    sql.execute_batch("COMMIT").unwrap();
    tmux.wait_for("Stopped");
    assert_eq!((status(&q, &failed).as_str(), status(&q, &pending).as_str()), ("pending", "cancelled"));
    tmux.line("clear; fg");
    tmux.wait_for("jobq top: keys and columns");
    // Keys are heard in turn: those that were pressed before this one have been.
    tmux.keys(&["?"]);
    tmux.wait_for_all(&[FAILURE, "q quit"]);
    tmux.keys(&["q"]);
    tmux.wait_for("ready>");
    assert_given_back(&tmux, &modes);
    tmux.line("jobs; echo has $((1 - 1)) jobs");
    tmux.wait_until("no jobs", |screen| screen.contains("has 0 jobs") && !screen.contains("Stopped"));
}
