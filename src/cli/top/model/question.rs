//! What the person is asked before a job is changed.

use jobq::Status;
use ratatui::crossterm::event::KeyCode;

use super::Request;
use crate::cli::top::snapshot::Row;

/// What is done to a job only after a yes: a key that is held down would go on with
/// whatever takes the job's place.
pub(in crate::cli::top) struct Question {
    pub(in crate::cli::top) verb: Verb,
    pub(in crate::cli::top) row: Row,
}

impl Question {
    pub(super) fn request(self) -> Request {
        match self.verb {
            Verb::Retry => Request::Retry(self.row.id),
            Verb::Cancel => Request::Cancel(self.row.id),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::cli::top) enum Verb {
    Retry,
    Cancel,
}

impl Verb {
    pub(super) fn of(code: KeyCode) -> Option<Self> {
        match code {
            KeyCode::Char('r') => Some(Self::Retry),
            KeyCode::Char('c') => Some(Self::Cancel),
            _ => None,
        }
    }

    /// Why it cannot be done to a job of this status, as far as that alone tells.
    pub(super) fn refusal(self, status: Status) -> Option<&'static str> {
        match (self, status) {
            (Self::Retry, Status::Claimed) => Some("a running job cannot be retried; c asks it to stop"),
            (Self::Retry, Status::Pending) => Some("a pending job cannot be retried: it has yet to run"),
            (Self::Retry, Status::Completed) => {
                Some("a completed job cannot be retried; `jobq enqueue` queues the same once more")
            }
            (Self::Cancel, Status::Completed) => Some("a completed job cannot be cancelled"),
            (Self::Cancel, Status::Cancelled) => Some("it is cancelled already"),
            (Self::Retry | Self::Cancel, _) => None,
        }
    }
}
