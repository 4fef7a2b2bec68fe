//! Threads for the calls of async code. They are the queue's own: those that a
//! runtime has for blocking work may all be taken by the application, and its work
//! may wait for the very call that would wait behind it.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread stays without work.
const IDLE: Duration = Duration::from_secs(10);

type Call = Box<dyn FnOnce() + Send>;

/// Started when they are needed, up to a bound; they end when there has been
/// nothing to do for a while, or with this.
pub(super) struct Threads(Arc<Line>);

struct Line {
    most: usize,
    idle: Duration,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    threads: usize,
    /// Those that wait for a call, or have been woken for one and have not taken it.
    idle: usize,
    closed: bool,
}

impl Threads {
    /// At most so many. A call beyond that waits for one to end.
    pub(super) fn at_most(most: usize) -> Self {
        Self::that_stay(most, IDLE)
    }

    fn that_stay(most: usize, idle: Duration) -> Self {
        Self(Arc::new(Line { most, idle, state: Mutex::default(), work: Condvar::new() }))
    }

    /// Has it called, in its turn. An error means that it will
    /// not be, because there is no thread and none can be started.
    pub(super) fn call(&self, call: Call) -> io::Result<()> {
        let mut state = self.0.lock();
        state.calls.push_back(call);
        if state.idle >= state.calls.len() {
            self.0.work.notify_one();
        } else if state.threads < self.0.most {
            let line = Arc::clone(&self.0);
            match std::thread::Builder::new().name("jobq-call".to_owned()).spawn(move || line.run()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    state.calls.pop_back();
                    return Err(error);
                }
                // Those that are there get to it.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

impl Drop for Threads {
    /// Nobody is waited for: the last to have the queue may be one of them.
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.work.notify_all();
    }
}

impl Line {
    fn run(&self) {
        let mut state = self.lock();
        loop {
            if let Some(call) = state.calls.pop_front() {
                drop(state);
                // What it leaves may panic when it is dropped; that must not cost the others a thread.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
                    std::mem::forget(panic);
                }
                state = self.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let (woken, wait) = self.work.wait_timeout(state, self.idle).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if wait.timed_out() && state.calls.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Weak, mpsc};
    use std::time::Instant;

    use super::*;

    fn wait_for(what: &str, condition: impl Fn() -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn there_are_as_many_as_may_be_and_every_call_has_its_turn() {
        let threads = Threads::at_most(3);
        let (at_it, most, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), mpsc::channel());
        let (open, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        for number in 0..10 {
            let (at_it, most, gate, done) = (Arc::clone(&at_it), Arc::clone(&most), Arc::clone(&gate), done.0.clone());
            let call = move || {
                most.fetch_max(at_it.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let _ = gate.lock().unwrap().recv();
                at_it.fetch_sub(1, Ordering::SeqCst);
                done.send(number).unwrap();
            };
            threads.call(Box::new(call)).unwrap();
        }
        wait_for("three at once", || at_it.load(Ordering::SeqCst) == 3);
        drop(open);
        let mut called: Vec<i32> = (0..10).map(|_| done.1.recv().unwrap()).collect();
        called.sort_unstable();
        assert_eq!(called, (0..10).collect::<Vec<_>>());
        assert_eq!((most.load(Ordering::SeqCst), threads.0.lock().threads), (3, 3));
    }

    #[test]
    fn a_thread_without_work_takes_the_next_call_and_ends_when_there_is_none() {
        let threads = Threads::that_stay(8, Duration::from_secs(3600));
        for _ in 0..5 {
            let (done, is_done) = mpsc::channel();
            threads.call(Box::new(move || done.send(()).unwrap())).unwrap();
            is_done.recv().unwrap();
            wait_for("it is idle", || threads.0.lock().idle == 1);
        }
        assert_eq!(threads.0.lock().threads, 1);
        let brief = Threads::that_stay(8, Duration::from_millis(1));
        brief.call(Box::new(|| {})).unwrap();
        wait_for("it ends", || brief.0.lock().threads == 0);
        let (done, is_done) = mpsc::channel();
        brief.call(Box::new(move || done.send(()).unwrap())).unwrap();
        is_done.recv().unwrap();
    }

    #[test]
    fn they_end_with_whoever_has_them_even_if_that_ends_on_one_of_them() {
        let lives = |line: &Weak<Line>| line.strong_count() > 0;
        for on_one_of_them in [false, true] {
            let threads = Arc::new(Threads::that_stay(8, Duration::from_secs(3600)));
            let line = Arc::downgrade(&threads.0);
            let held = on_one_of_them.then(|| Arc::clone(&threads));
            let (go, may_go) = mpsc::channel::<()>();
            let call = move || {
                let _ = may_go.recv();
                drop(held);
            };
            threads.call(Box::new(call)).unwrap();
            threads.call(Box::new(|| {})).unwrap();
            drop(threads);
            assert!(lives(&line), "a call is not left alone");
            drop(go);
            wait_for("all of them end", || !lives(&line));
        }
    }
}
