//! What happens, and what is to be done about it.

use std::sync::mpsc::Sender;

use jobq::clock::Millis;
use ratatui::crossterm::event::KeyEvent;

use crate::cli::top::page::Detail;
use crate::cli::top::snapshot::Snapshot;

/// Something that has happened.
pub(in crate::cli::top) enum Happened {
    Key(KeyEvent),
    /// The terminal has this size now.
    Resized(u16, u16),
    /// The queue was looked at, or why it could not be.
    Looked(Box<Result<Seen, String>>),
    /// What was asked for has been done, or refused.
    Acted(Notice),
    /// A signal.
    ToldToQuit,
    /// A signal, too.
    ToldToStop,
    /// And this: somebody has stopped the process, and now it goes on.
    Continued,
    /// The queue is not in use, and will not be for as long as this is kept.
    AtRest(Sender<()>),
    /// Something without which there is nothing more to show.
    Broken(String),
}

pub(in crate::cli::top) struct Seen {
    /// That of the database that is there now.
    pub(in crate::cli::top) root: String,
    pub(in crate::cli::top) snapshot: Snapshot,
    /// The job on the page, if there is one.
    pub(in crate::cli::top) inspected: Option<Result<Detail, String>>,
}

/// What is to be done about it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli::top) enum Todo {
    Ask(Request),
    /// Draw everything anew: something else has written on the screen.
    Redraw,
    Quit,
}

/// What the queue is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli::top) enum Request {
    /// Show this job with every look from now on, or none.
    Inspect(Option<String>),
    Retry(String),
    Cancel(String),
    /// Leave the queue alone. A process that is stopped while it is in use keeps its locks, and everybody waits.
    Rest,
}

/// A line for the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli::top) struct Notice {
    pub(in crate::cli::top) text: String,
    pub(in crate::cli::top) refused: bool,
    pub(in crate::cli::top) at: Millis,
}
