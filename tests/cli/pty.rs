//! A program at a terminal, and what it leaves on the screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::harness::Scratch;

/// This is the side with the person.
pub struct Terminal {
    person: File,
    pub child: Child,
    /// Everything that was written to the terminal so far.
    pub shown: String,
}

impl Terminal {
    /// With all of a program's streams on a terminal of 80 columns.
    pub fn of(q: &Scratch, args: &[&str]) -> Self {
        Self::wide(80, q, args)
    }

    pub fn wide(columns: u16, q: &Scratch, args: &[&str]) -> Self {
        let (person, side) = open(columns);
        Self::start(q.command(args).stdin(side()).stdout(side()).stderr(side()), person)
    }

    /// With standard output as the command has it.
    pub fn beside(command: &mut Command) -> Self {
        let (person, side) = open(80);
        Self::start(command.stdin(side()).stderr(side()), person)
    }

    /// With standard error as the command has it.
    pub fn silent(command: &mut Command) -> Self {
        let (person, side) = open(80);
        Self::start(command.stdin(side()).stdout(side()), person)
    }

    /// With standard input as the command has it.
    pub fn fed(command: &mut Command) -> Self {
        let (person, side) = open(80);
        Self::start(command.stdout(side()).stderr(side()), person)
    }

    fn start(command: &mut Command, person: File) -> Self {
        let child = command.env("TERM", "xterm").spawn().unwrap();
        // The command has handles of the terminal, which must be gone with the program.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { person, child, shown: String::new() }
    }

    /// Whether there was more to read.
    #[track_caller]
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let mut waiting = [PollFd::new(&self.person, PollFlags::IN)];
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        if poll(&mut waiting, Some(&patience)).unwrap() == 0 {
            // Whoever waits for more than is coming is not left waiting.
            let _ = self.child.kill();
            panic!("nothing more is shown: {}", self.shown);
        }
        // Once nobody has the other side open, reading is an error.
        let count = self.person.read(&mut buffer).unwrap_or(0);
        self.shown.push_str(&String::from_utf8_lossy(&buffer[..count]));
        count > 0
    }

    /// Waits until this was shown.
    #[track_caller]
    pub fn until(&mut self, word: &str) {
        while !self.shown.contains(word) {
            assert!(self.read(), "it ended without {word:?}: {}", self.shown);
        }
    }

    /// Types this when the question is there.
    pub fn answer(&mut self, question: &str, typed: &str) {
        while !self.shown.ends_with(question) {
            assert!(self.read(), "it ended without a question: {}", self.shown);
        }
        self.person.write_all(typed.as_bytes()).unwrap();
    }

    /// What was shown until it ended, and its exit code.
    pub fn end(mut self) -> (String, i32) {
        while self.read() {}
        (self.shown, self.child.wait().unwrap().code().unwrap())
    }

    /// What is on the screen when it has ended.
    pub fn screen(self) -> Vec<String> {
        screen(&self.end().0)
    }
}

fn open(columns: u16) -> (File, impl Fn() -> Stdio) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    tcsetwinsize(&person, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap().into_string().unwrap();
    let side = move || Stdio::from(File::options().read(true).write(true).open(&name).unwrap());
    (File::from(person), side)
}

/// The lines that are left when everything was drawn: what a bar has cleared is gone.
/// Knows what is used here: returns, cleared lines, and moves up.
pub fn screen(shown: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![Vec::<char>::new()], 0_usize, 0_usize);
    let mut chars = shown.chars();
    while let Some(c) = chars.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                row += 1;
                column = 0;
                lines.resize(lines.len().max(row + 1), Vec::new());
            }
            '\u{1b}' => {
                let mut sequence = String::new();
                while !sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                    sequence.push(chars.next().unwrap());
                }
                match sequence.as_str() {
                    "[2K" => lines[row].clear(),
                    "[1A" => row = row.saturating_sub(1),
                    _ => {}
                }
            }
            c => {
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = c;
                column += 1;
            }
        }
    }
    let lines = lines.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}
