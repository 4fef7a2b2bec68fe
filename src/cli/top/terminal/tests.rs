//! At a real terminal: what a program that takes it over leaves behind, however it
//! ends. The program is this test once more, with the terminal as its own.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use super::*;

const HOW: &str = "JOBQ_TEST_TERMINAL_ENDS";

/// What was written to the terminal, and whether it echoes what is typed, before
/// and after.
fn at_a_terminal(how: &str) -> (String, [bool; 2]) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    let side = File::options().read(true).write(true).open(&name).unwrap();
    tcsetwinsize(&side, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let echoes = || {
        let modes = tcgetattr(&side).unwrap().local_modes;
        modes.contains(LocalModes::ECHO) && modes.contains(LocalModes::ICANON) && modes.contains(LocalModes::ISIG)
    };
    let stdio = || Stdio::from(side.try_clone().unwrap());
    let before = echoes();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "cli::top::terminal::tests::the_program_at_the_terminal"]);
    let mut child = command
        .env(HOW, how)
        .env("RUST_BACKTRACE", "0")
        .stdin(stdio())
        .stdout(stdio())
        .stderr(stdio())
        .spawn()
        .unwrap();
    drop(command);
    child.wait().unwrap();
    let after = echoes();
    drop(side);
    let mut written = Vec::new();
    // Once nobody has the other side open, reading is an error.
    let _ = File::from(person).read_to_end(&mut written);
    (String::from_utf8_lossy(&written).into_owned(), [before, after])
}

/// Nothing by itself; what the others start.
#[test]
fn the_program_at_the_terminal() {
    let Ok(how) = std::env::var(HOW) else { return };
    let mut screen = Screen::enter(Arc::default()).unwrap();
    screen.draw(|frame| frame.render_widget("drawn", frame.area())).unwrap();
    match how.as_str() {
        "stuck" => std::process::exit(0),
        "panic" => panic!("a bug"),
        "panic elsewhere" => {
            assert!(std::thread::spawn(|| panic!("a bug")).join().is_err());
            screen.draw(|frame| frame.render_widget("drawn late", frame.area())).unwrap();
        }
        "error" => {
            let failed = || -> io::Result<()> {
                let _screen = screen;
                Err(io::Error::other("the terminal is gone"))
            };
            failed().unwrap_err();
        }
        _ => drop(screen),
    }
}

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
const HIDE: &str = "\u{1b}[?25l";
const SHOW: &str = "\u{1b}[?25h";

#[track_caller]
fn assert_given_back(written: &str) {
    let at = |what: &str| written.rfind(what).unwrap_or_else(|| panic!("no {what:?} in {written:?}"));
    assert!(at(ENTER) < at("drawn") && at("drawn") < at(LEAVE), "{written:?}");
    assert!(at(HIDE) < at(SHOW) && at(LEAVE) < at(SHOW), "the cursor is shown: {written:?}");
    assert_eq!(written.matches(LEAVE).count(), 1, "once: {written:?}");
}

/// That the tests below would notice.
#[test]
fn a_terminal_that_is_not_given_back_is_seen_to_be_so() {
    let (written, echoes) = at_a_terminal("stuck");
    assert_eq!(echoes, [true, false]);
    assert!(written.contains(ENTER) && !written.contains(LEAVE), "{written:?}");
}

#[test]
fn the_terminal_is_given_back_at_the_end_and_after_an_error() {
    for how in ["end", "error"] {
        let (written, echoes) = at_a_terminal(how);
        assert_eq!(echoes, [true, true], "{how}");
        assert_given_back(&written);
    }
}

#[test]
fn a_panic_is_told_on_a_terminal_that_was_given_back() {
    for how in ["panic", "panic elsewhere"] {
        let (written, echoes) = at_a_terminal(how);
        assert_eq!(echoes, [true, true], "{how}");
        assert_given_back(&written);
        let told = written.find("a bug").unwrap_or_else(|| panic!("{how}: nothing was told: {written:?}"));
        assert!(written.find(LEAVE).unwrap() < told, "{how}: {written:?}");
        assert!(!written.contains("drawn late"), "{how}: nothing is drawn over it");
    }
}
