//! Work that tokio does not know of. Its paused clock leaps to the next timer whenever the runtime has nothing to do, and
//! every timeout around such work would elapse at once. It does not leap while a blocking task is outstanding.

use std::cell::RefCell;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a thread for blocking work is kept before others have their turn: it may be the only one, and the work may
/// wait for what stands behind it. The end of the runtime waits no longer than this, either.
const TURN: Duration = Duration::from_millis(10);

thread_local! {
    /// The call of async code that this thread is at.
    static CALL: RefCell<Weak<AtWork>> = const { RefCell::new(Weak::new()) };
}

/// As long as this lives and is not paused, the clock of a runtime does not leap.
pub(crate) struct AtWork {
    runtime: Handle,
    /// A blocking task is outstanding until this is dropped.
    task: Mutex<Option<Sender<Infallible>>>,
}

impl AtWork {
    /// For the runtime around the caller, or around the call that it is in, if there is one whose clock can be paused.
    /// Paused itself at first.
    pub(crate) fn here() -> Option<Arc<Self>> {
        let of_call = || CALL.with_borrow(Weak::upgrade).map(|call| call.runtime.clone());
        let runtime = Handle::try_current().ok().or_else(of_call)?;
        let can_be_paused = runtime.runtime_flavor() == RuntimeFlavor::CurrentThread;
        can_be_paused.then(|| Arc::new(Self { runtime, task: Mutex::new(None) }))
    }

    pub(crate) fn resume(&self) {
        let mut task = self.lock();
        if task.is_none() {
            let (at_work, is_over) = mpsc::channel();
            // Where no thread can be had it panics. The work is done all the same.
            let begun = catch_unwind(AssertUnwindSafe(|| be_outstanding(&self.runtime, is_over)));
            *task = begun.ok().map(|()| at_work);
        }
    }

    pub(crate) fn pause(&self) {
        *self.lock() = None;
    }

    pub(super) fn is_of(&self, runtime: &Handle) -> bool {
        self.runtime.id() == runtime.id()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Sender<Infallible>>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody waits for the task to begin: it counts from now on, even if all threads are taken.
fn be_outstanding(runtime: &Handle, is_over: Receiver<Infallible>) {
    let again = runtime.clone();
    drop(runtime.spawn_blocking(move || {
        if is_over.recv_timeout(TURN) == Err(RecvTimeoutError::Timeout) {
            be_outstanding(&again, is_over);
        }
    }));
}

/// A call of async code, which is made on another thread. The clock of the runtime here does not leap before it has
/// been made, nor as long as the other one is kept, whichever is shorter.
pub(crate) fn at_work(call: impl FnOnce() + Send) -> (impl FnOnce() + Send, Option<Arc<AtWork>>) {
    let kept = AtWork::here();
    let made = kept.as_ref().map_or_else(Weak::new, Arc::downgrade);
    tell(&made, AtWork::resume);
    let call = move || {
        CALL.set(Weak::clone(&made));
        call();
        CALL.set(Weak::new());
        // Last: the runtime must not be taken for idle before it has the answer.
        tell(&made, AtWork::pause);
    };
    (call, kept)
}

/// Waits, in a call or not, for what may itself wait for the clock.
pub(crate) fn asleep<T>(wait: impl FnOnce() -> T) -> T {
    let call = CALL.with_borrow(Weak::clone);
    tell(&call, AtWork::pause);
    let waited = wait();
    tell(&call, AtWork::resume);
    waited
}

/// Nothing, if nobody wants it any more.
fn tell(at_work: &Weak<AtWork>, what: fn(&AtWork)) {
    if let Some(at_work) = at_work.upgrade() {
        what(&at_work);
    }
}
