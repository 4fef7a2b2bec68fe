//! Making callers wait together, so that one transaction takes them all.

use std::sync::mpsc;

use jobq::{EnqueueOutcome, NewJob, Queue};

use super::{Bench, support, vfs};

/// What one caller does; `Ok` once it was told that this is durable.
pub type Caller<'a> = Box<dyn FnOnce() -> jobq::Result<()> + Send + 'a>;

pub fn enqueue(queue: &Queue, job: NewJob) -> Caller<'_> {
    Box::new(move || {
        let answer = queue.enqueue(job)?;
        // A job that was there already would be one that was committed behind our back.
        assert_eq!(answer.outcome, EnqueueOutcome::Inserted, "job {}", answer.id);
        Ok(())
    })
}

/// A job for [`together`] to cancel: a write that looks at nothing else.
pub fn opener(queue: &Queue) -> String {
    queue.enqueue(NewJob::of(&support::note("opener")).no_key()).unwrap().id
}

/// Runs the callers as one group, in this order: while the COMMIT of another
/// write is held up at the disk they queue behind it, and are let go together.
/// `trouble` begins when that COMMIT is still on its way.
pub fn together(
    bench: &Bench,
    queue: &Queue,
    opener: &str,
    callers: Vec<Caller<'_>>,
    trouble: impl FnOnce(),
) -> Vec<jobq::Result<()>> {
    vfs::bar_sync(&bench.db);
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| queue.cancel(opener));
        vfs::until_sync_waits();
        let mut waiting = Vec::new();
        for caller in callers {
            let (announce, announced) = mpsc::channel();
            waiting.push(scope.spawn(move || {
                announce.send(thread_id()).unwrap();
                caller()
            }));
            until_blocked(&announced.recv().unwrap());
        }
        trouble();
        vfs::open_sync();
        opener.join().unwrap().expect("the trouble is not meant for the first one");
        waiting.into_iter().map(|caller| caller.join().unwrap()).collect()
    })
}

fn thread_id() -> String {
    std::fs::read_link("/proc/thread-self").map(|link| link.display().to_string()).unwrap_or_default()
}

/// A caller that has got in line sleeps until it is answered. Where the system
/// cannot tell, being about to call has to do.
fn until_blocked(thread: &str) {
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{thread}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    // Seen asleep several times in a row: not just waiting its turn to get in line.
    let mut asleep = 0;
    while asleep < 20 {
        match state() {
            Some('S') => asleep += 1,
            Some(_) => asleep = 0,
            None => return,
        }
        std::thread::yield_now();
    }
}
