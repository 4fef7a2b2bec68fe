//! A terminal that leaves room for the `^C` that it echoes.

use std::io;

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

/// How often a bar is drawn, per second.
const HERTZ: u8 = 20;

/// Bars are filled up to the width. At the last column `^C` would begin a new line, and the one with the bar would
/// not be the one that is cleared.
#[derive(Debug)]
struct Narrow(Term);

/// Where bars are drawn.
pub(crate) fn target() -> ProgressDrawTarget {
    let term = Term::buffered_stderr();
    // Where nobody sees it, nothing is drawn.
    if !term.is_term() {
        return ProgressDrawTarget::hidden();
    }
    ProgressDrawTarget::term_like_with_hz(Box::new(Narrow(term)), HERTZ)
}

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        TermLike::width(&self.0).saturating_sub(2).max(1)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}
