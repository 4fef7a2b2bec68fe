//! The line in front of the writer's seat: who waits, for what, and how they
//! are woken.
//!
//! Waking is what groups are made or unmade by. A bell wakes all who wait at it
//! with one system call, so those who join the line share one; the first of
//! them will lead the next group and has its own, because it must be woken
//! before and without the others.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::super::tx::Tx;
use crate::error::{Error, ErrorKind, Result};

/// Signs of life go first: a lease must not be lost to a long queue.
#[derive(Default)]
pub(super) struct Line {
    urgent: VecDeque<Arc<dyn Waiting>>,
    normal: VecDeque<Arc<dyn Waiting>>,
    /// Of those who join now.
    bell: Arc<Bell>,
    someone_leads: bool,
    /// How many callers there were when the last group was durable: those it
    /// answers, who may well come again, and those who wait already.
    callers: usize,
}

impl Line {
    pub(super) fn next(&mut self) -> Option<Arc<dyn Waiting>> {
        self.urgent.pop_front().or_else(|| self.normal.pop_front())
    }

    pub(super) fn next_before(&mut self, time: Instant) -> Option<Arc<dyn Waiting>> {
        let early = |queue: &VecDeque<Arc<dyn Waiting>>| queue.front().is_some_and(|first| first.since() <= time);
        if early(&self.urgent) {
            return self.urgent.pop_front();
        }
        if early(&self.normal) { self.normal.pop_front() } else { None }
    }

    /// Puts an operation in line; its caller then waits until it is answered or
    /// leads.
    pub(super) fn join<T, F>(&mut self, urgent: bool, subject: String, work: F) -> Arc<Operation<T, F>>
    where
        T: Send + 'static,
        F: FnMut(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        let leads = !std::mem::replace(&mut self.someone_leads, true);
        let first = self.urgent.is_empty() && self.normal.is_empty();
        let operation = Arc::new(Operation {
            subject,
            since: Instant::now(),
            phase: AtomicU32::new(if leads { LEADS } else { QUEUED }),
            bell: if urgent || first { Arc::default() } else { Arc::clone(&self.bell) },
            work: Mutex::new(work),
            answer: Mutex::new(None),
        });
        let queue = if urgent { &mut self.urgent } else { &mut self.normal };
        queue.push_back(operation.clone());
        operation
    }

    /// From now on, who joins belongs to the next group.
    pub(super) fn close_group(&mut self) {
        self.bell = Arc::default();
    }

    pub(super) fn callers(&self) -> usize {
        self.callers
    }

    /// The seat goes to whoever is first in line, or is left free.
    pub(super) fn hand_over(&mut self, answered: usize) {
        self.callers = answered + self.urgent.len() + self.normal.len();
        match self.urgent.front().or_else(|| self.normal.front()) {
            Some(first) => {
                first.set_phase(LEADS);
                first.bell().ring();
            }
            None => self.someone_leads = false,
        }
    }
}

/// Wakes all who wait at it.
#[derive(Default)]
pub(super) struct Bell(AtomicU32);

impl Bell {
    pub(super) fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
        atomic_wait::wake_all(&raw const self.0);
    }
}

/// In line.
const QUEUED: u32 = 0;
/// The previous leader has left; this caller takes the seat.
const LEADS: u32 = 1;
const ANSWERED: u32 = 2;

/// How an operation ran; its answer says more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ran {
    Well,
    Refused,
    /// SQLite has met a page that it cannot use. It then refuses the COMMIT of all that was done in the
    /// same transaction, also after that was undone, in a way that leaves open what has become of it.
    IntoDamage,
}

/// An operation in line. Runs again if its group fell apart.
pub(super) trait Waiting: Send + Sync {
    fn run(&self, tx: &Tx<'_>) -> Ran;
    fn refuse(&self, error: Error);
    fn subject(&self) -> &str;
    fn since(&self) -> Instant;
    fn bell(&self) -> &Arc<Bell>;
    /// True if its caller may be asleep at the bell.
    fn set_phase(&self, phase: u32) -> bool;
}

pub(super) struct Operation<T, F> {
    subject: String,
    since: Instant,
    phase: AtomicU32,
    bell: Arc<Bell>,
    work: Mutex<F>,
    answer: Mutex<Option<Result<T>>>,
}

impl<T, F> Operation<T, F> {
    /// Waits until it is answered or leads. True if it leads.
    pub(super) fn wait(&self) -> bool {
        loop {
            let rung = self.bell.0.load(Ordering::Acquire);
            match self.phase.load(Ordering::Acquire) {
                QUEUED => atomic_wait::wait(&self.bell.0, rung),
                phase => return phase == LEADS,
            }
        }
    }

    pub(super) fn is_among(&self, group: &[Arc<dyn Waiting>]) -> bool {
        group.iter().any(|other| std::ptr::addr_eq(Arc::as_ptr(other), self))
    }

    pub(super) fn answer(&self) -> Result<T> {
        let answer = lock(&self.answer).take();
        answer.unwrap_or_else(|| Err(Error::new(ErrorKind::Internal, "a write was answered without an answer")))
    }
}

impl<T: Send, F: FnMut(&Tx<'_>) -> Result<T> + Send> Waiting for Operation<T, F> {
    fn run(&self, tx: &Tx<'_>) -> Ran {
        let mut work = lock(&self.work);
        let answer = catch_unwind(AssertUnwindSafe(|| work(tx))).unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Internal,
                format!("{}: a panic inside a write; the database was not changed", self.subject),
            ))
        });
        let ran = match &answer {
            Ok(_) => Ran::Well,
            Err(error) if error.kind() == ErrorKind::Corrupt => Ran::IntoDamage,
            Err(_) => Ran::Refused,
        };
        *lock(&self.answer) = Some(answer);
        ran
    }

    fn refuse(&self, error: Error) {
        *lock(&self.answer) = Some(Err(error));
    }

    fn subject(&self) -> &str {
        &self.subject
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    fn set_phase(&self, phase: u32) -> bool {
        self.phase.swap(phase, Ordering::AcqRel) == QUEUED
    }
}

/// Tells everyone in the group that the answer is there.
pub(super) fn announce(group: &[Arc<dyn Waiting>]) {
    let mut bells: Vec<&Arc<Bell>> = Vec::new();
    for operation in group {
        let bell = operation.bell();
        if operation.set_phase(ANSWERED) && bells.last().is_none_or(|last| !Arc::ptr_eq(last, bell)) {
            bells.push(bell);
        }
    }
    for bell in bells {
        bell.ring();
    }
}

/// A panic is caught around every operation and around every group, and the
/// connection goes with a group that panicked, so what a lock guards is sound.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
