//! A command that goes on until something happens.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Lines, Read as _};
use std::process::{Child, ChildStdout, Stdio};

use super::harness::Scratch;
use super::tmux::wait_until;

/// A command that goes on, and what it prints.
pub fn start(q: &Scratch, args: &[&str]) -> (Running, Lines<BufReader<ChildStdout>>) {
    let mut child = q.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (Running(child), lines)
}

/// Gone when this is dropped.
pub struct Running(pub Child);

impl Running {
    /// How it ended, once it has, and what it said.
    #[track_caller]
    pub fn end(mut self) -> (Option<i32>, String) {
        let child = RefCell::new(&mut self.0);
        wait_until("its end", || child.borrow_mut().try_wait().unwrap().is_some());
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
