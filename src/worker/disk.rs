//! A look at the disk when a worker starts, beside its work: what completed jobs
//! left and somebody else has changed since is logged and told, nothing more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::Shared;
use super::report::WorkerEvent;
use crate::reconcile::ReconcileOptions;

/// The look, on a thread of its own; it ends when it has seen all, or is told to.
pub(super) struct DiskLook {
    thread: JoinHandle<()>,
    enough: Arc<AtomicBool>,
}

impl DiskLook {
    pub(super) fn start(shared: &Arc<Shared>) -> Option<Self> {
        let enough = Arc::new(AtomicBool::new(false));
        let (shared, stop) = (Arc::clone(shared), Arc::clone(&enough));
        let look = move || {
            // One thread: the jobs have the others.
            let options = ReconcileOptions { threads: 1, ..ReconcileOptions::default() };
            let go_on = || !stop.load(Ordering::Acquire) && !shared.shutting_down.load(Ordering::Acquire);
            match shared.queue.reconcile(&options, |_, _| go_on()) {
                Ok(sums) if go_on() => shared.tell(&WorkerEvent::Reconciled(sums)),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "the disk could not be compared with what jobs left"),
            }
        };
        let thread = std::thread::Builder::new().name("jobq-disk".to_owned()).spawn(look);
        let thread = thread.inspect_err(|error| tracing::warn!(%error, "the disk is not looked at")).ok()?;
        Some(Self { thread, enough })
    }

    /// The worker leaves.
    pub(super) fn end(self) {
        self.enough.store(true, Ordering::Release);
        let _ = self.thread.join();
    }
}
