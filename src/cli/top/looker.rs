//! The thread that reads the queue and does what was asked for, so that keys are
//! heard while the database is slow.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel};
use std::time::{Duration, Instant};

use jobq::{Queue, Result, printable};

use super::model::{Happened, Notice, Request, Seen};
use super::page::Detail;
use super::snapshot::Snapshot;
use crate::cli::ids::{Ids, Known};
use crate::cli::locate::{Place, now};
use crate::cli::output::counted;
use crate::cli::{cancel, retry};

/// Looking takes at most one part in this many of the time.
const SHARE: u32 = 10;

pub(super) struct Looker {
    pub(super) place: Place,
    /// To look; opened anew after trouble.
    pub(super) queue: Option<Queue>,
    pub(super) every: Duration,
    /// The job on the page.
    pub(super) inspected: Option<String>,
    /// What was found out about ids: most of them are there at the next look, too.
    pub(super) known: Known,
}

impl Looker {
    /// Until nobody asks any more.
    pub(super) fn run(mut self, requests: &Receiver<Request>, tell: &SyncSender<Happened>) {
        loop {
            let begun = Instant::now();
            let looked = self.look();
            if tell.send(Happened::Looked(Box::new(looked))).is_err() {
                return;
            }
            // A look at a queue that has piled up takes its time; others need the disk, too.
            let pause = self.every.max(begun.elapsed() * (SHARE - 1));
            let notice = match requests.recv_timeout(pause) {
                Ok(Request::Inspect(id)) => {
                    self.inspected = id;
                    continue;
                }
                Ok(Request::Rest) => {
                    let (kept, until_dropped) = channel();
                    // If nobody hears it, nobody keeps it.
                    let _ = tell.send(Happened::AtRest(kept));
                    let _ = until_dropped.recv();
                    continue;
                }
                Ok(Request::Retry(id)) => self.act(|queue| retry(queue, &id)),
                Ok(Request::Cancel(id)) => self.act(|queue| cancel(queue, &id)),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            if tell.send(Happened::Acted(notice)).is_err() {
                return;
            }
        }
    }

    fn look(&mut self) -> std::result::Result<Seen, String> {
        self.try_look().map_err(|error| {
            self.queue = None;
            error.to_string()
        })
    }

    fn try_look(&mut self) -> Result<Seen> {
        let queue = match self.queue.take() {
            // One that was deleted, replaced or moved away could be read for ever.
            Some(queue) if queue.still_there().is_ok() => queue,
            _ => {
                // What is short enough in one database may not be in another.
                self.known.clear();
                self.place.open_as_it_is()?
            }
        };
        let queue = self.queue.insert(queue);
        let mut ids = Ids::knowing(queue, std::mem::take(&mut self.known));
        let snapshot = Snapshot::of(queue, &mut ids)?;
        self.known = ids.known();
        let inspected = match &self.inspected {
            None => None,
            Some(id) => match Detail::of(queue, id) {
                Err(error) if !error.is_not_found() => return Err(error),
                read => Some(read.map_err(|error| error.to_string())),
            },
        };
        Ok(Seen { root: root_of(queue), snapshot, inspected })
    }

    /// As the command of the same name does it, with a queue opened for it.
    fn act(&mut self, act: impl FnOnce(&Queue) -> Result<String>) -> Notice {
        self.queue = None;
        let done = self.place.open().and_then(|queue| act(&queue));
        let refused = done.is_err();
        let text = done.unwrap_or_else(|error| error.to_string());
        Notice { text, refused, at: now() }
    }
}

/// For the person.
pub(super) fn root_of(queue: &Queue) -> String {
    printable(&queue.root().to_string_lossy())
}

fn retry(queue: &Queue, id: &str) -> Result<String> {
    let job = retry::retry(queue, id, false)?;
    Ok(format!("retried {id}: {}", job.status))
}

fn cancel(queue: &Queue, id: &str) -> Result<String> {
    let done = queue.cancel(id)?;
    let what = cancel::in_words(done.outcome);
    Ok(match done.cancelled_waiters.len() {
        0 => format!("{id}: {what}"),
        waiters => format!("{id}: {what} (and {} that waited on it)", counted(waiters as u64, "job", "jobs")),
    })
}
