//! However it ends, the terminal is as before.

use rustix::process::{Pid, Signal, kill_process};

use super::super::harness::Scratch;
use super::super::tmux::{Tmux, wait_until};
use super::{AND_TELL, FAILURE, Jobs, jobs};

#[track_caller]
pub(super) fn assert_given_back(tmux: &Tmux<'_>, modes_before: &str) {
    assert_eq!(tmux.about("#{alternate_on} #{cursor_flag}"), "0 1", "the screen of before, with a cursor");
    assert_eq!(tmux.modes(), modes_before);
    tmux.line("clear; true");
    tmux.wait_until("an empty screen", |screen| screen.trim() == "ready>");
    tmux.line("echo typed and $((40 + 2))");
    tmux.wait_for_line("typed and 42");
    tmux.wait_for_line("ready> echo typed and $((40 + 2))");
}

#[test]
fn signals_end_it_and_the_terminal_is_as_before() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    let modes = tmux.modes();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        tmux.line("clear");
        tmux.line(&format!("sh -c 'echo $$ > .jobq/pid; exec jobq top'{AND_TELL}"));
        tmux.wait_for(FAILURE);
        assert_eq!(tmux.about("#{alternate_on} #{cursor_flag}"), "1 0");
        kill_process(pid(&q), signal).unwrap();
        tmux.wait_for_line("ended with 0");
        assert_given_back(&tmux, &modes);
    }
}

/// Not by a panic: there is nobody left to be told, and trying would be one.
#[test]
fn it_ends_when_its_terminal_goes_away() {
    let Jobs { q, .. } = jobs();
    let Some(tmux) = Tmux::start(&q, 80, 24) else { return };
    // Ours survives the terminal, to tell how it was.
    tmux.line("trap '' HUP; jobq top; echo $? > .jobq/code.new; mv .jobq/code.new .jobq/code");
    tmux.wait_for(FAILURE);
    let code = q.path().join(".jobq/code");
    assert!(!code.exists());
    drop(tmux);
    wait_until("its end", || code.exists());
    let code = std::fs::read_to_string(code).unwrap();
    assert!(["0", "5"].contains(&code.trim()), "{code}");
}

pub(super) fn pid(q: &Scratch) -> Pid {
    Pid::from_raw(std::fs::read_to_string(q.path().join(".jobq/pid")).unwrap().trim().parse().unwrap()).unwrap()
}
