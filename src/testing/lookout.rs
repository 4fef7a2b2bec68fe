//! What takes suspiciously long in a run: a queue that cannot be used, a job or a hook at work.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::patience::PATIENCE;
use super::watch::Watch;

const LOOK: Duration = Duration::from_secs(1);

/// Looks at a run every now and then, until it is dropped.
pub(super) struct Lookout {
    end: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Lookout {
    pub(super) fn of(watch: Watch) -> Self {
        let (end, ended) = mpsc::channel::<Infallible>();
        let look = move || {
            #[cfg(feature = "tokio")]
            let mut before = Vec::new();
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                #[cfg(feature = "tokio")]
                let clock_stands = watch.clocks.stand_still_since(&mut before);
                #[cfg(not(feature = "tokio"))]
                let clock_stands = false;
                watch.look(Instant::now(), clock_stands);
            }
        };
        // Without a thread nothing is told.
        let thread = thread::Builder::new().name("jobq-lookout".to_owned()).spawn(look).ok();
        Self { end: Some(end), thread }
    }
}

impl Drop for Lookout {
    fn drop(&mut self) {
        drop(self.end.take());
        // It has the queue, whose folder may go next.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Of a job.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Handler,
    Hook,
}

/// What is to be done about it.
#[derive(Debug, PartialEq)]
pub(super) enum Overdue {
    Say(String),
    GiveUp(String),
}

/// What a run is at, and since when.
#[derive(Default)]
pub(super) struct AtIt {
    /// The queue cannot be used.
    trouble: Option<(Instant, String)>,
    work: Option<Work>,
}

struct Work {
    job: Arc<String>,
    part: Part,
    since: Instant,
    is_said: bool,
}

impl AtIt {
    /// It is tried again and again, so it is told the first time.
    pub(super) fn trouble(&mut self, error: &str, now: Instant) -> Option<Overdue> {
        if self.trouble.is_some() {
            return None;
        }
        self.trouble = Some((now, error.to_owned()));
        Some(Overdue::Say(format!("a run cannot use its queue: {error}; is a transaction of the test open?")))
    }

    pub(super) fn trouble_is_over(&mut self) {
        self.trouble = None;
    }

    pub(super) fn begins(&mut self, job: &Arc<String>, part: Part, now: Instant) {
        self.work = Some(Work { job: Arc::clone(job), part, since: now, is_said: false });
    }

    /// One that was given up may end when the next has begun.
    pub(super) fn ends(&mut self, job: &Arc<String>) {
        self.work.take_if(|work| Arc::ptr_eq(&work.job, job));
    }

    pub(super) fn look(&mut self, now: Instant, clock_stands: bool) -> Option<Overdue> {
        let (is_over, patience) =
            (|since: Instant| now.saturating_duration_since(since) >= PATIENCE, PATIENCE.as_secs());
        if let Some((_, error)) = self.trouble.as_ref().filter(|(since, _)| is_over(*since)) {
            return Some(Overdue::GiveUp(format!(
                "a test needs a queue that can be used, and for {patience} seconds this one could not: {error}; is a \
                 transaction of the test open? Jobs cannot be run before it has ended"
            )));
        }
        let Work { job, part, is_said, .. } = self.work.as_mut().filter(|work| !work.is_said && is_over(work.since))?;
        let what = match (part, clock_stands) {
            // It has its timeout, and may compute.
            (Part::Handler, false) => return None,
            (Part::Handler, true) => format!(
                "{job} has been at work for {patience} seconds, and the run keeps tokio's paused clock still meanwhile; \
                 if it waits for that clock, neither goes on: only while an `AsyncHandler` waits does the clock leap"
            ),
            (Part::Hook, false) => {
                format!("the hook of {job} has been at work for {patience} seconds, and the run waits for it")
            }
            (Part::Hook, true) => format!(
                "the hook of {job} has been at work for {patience} seconds; the run waits for it, and keeps tokio's paused \
                 clock still meanwhile: if it waits for that clock, neither goes on"
            ),
        };
        *is_said = true;
        Some(Overdue::Say(what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_said_once_and_is_the_end_unless_it_is_over_in_time() {
        let (mut at_it, begun) = (AtIt::default(), Instant::now());
        assert!(matches!(at_it.trouble("locked", begun), Some(Overdue::Say(what)) if what.contains("locked")));
        assert_eq!(at_it.trouble("locked", begun + LOOK), None);
        at_it.trouble_is_over();
        assert_eq!(at_it.look(begun + PATIENCE, false), None);
        at_it.trouble("locked", begun + LOOK);
        assert_eq!(at_it.look(begun + PATIENCE, false), None);
        let end = at_it.look(begun + LOOK + PATIENCE, false);
        assert!(matches!(end, Some(Overdue::GiveUp(why)) if why.contains("locked")));
    }

    #[test]
    fn who_is_at_work_for_long_is_said_once_a_handler_only_if_a_clock_stands_still() {
        let (mut at_it, begun) = (AtIt::default(), Instant::now());
        let (one, other) = (Arc::new("one".to_owned()), Arc::new("other".to_owned()));
        let mut says = |part, clock_stands| {
            at_it.begins(&one, part, begun);
            assert_eq!(at_it.look(begun + LOOK, clock_stands), None);
            let said = at_it.look(begun + PATIENCE, clock_stands);
            assert!(said.is_none() || at_it.look(begun + PATIENCE * 2, clock_stands).is_none());
            said.is_some()
        };
        let said =
            [says(Part::Handler, false), says(Part::Handler, true), says(Part::Hook, false), says(Part::Hook, true)];
        assert_eq!(said, [false, true, true, true]);
        at_it.begins(&other, Part::Hook, begun);
        at_it.ends(&one);
        assert!(at_it.look(begun + PATIENCE, false).is_some(), "another has ended");
        at_it.begins(&other, Part::Hook, begun);
        at_it.ends(&other);
        assert_eq!(at_it.look(begun + PATIENCE, false), None);
    }
}
