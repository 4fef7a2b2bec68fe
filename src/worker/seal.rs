//! What must be so before an end may be decided.

use super::execute::Finished;
use crate::effects::Files;
use crate::store::Step;

/// What is about to be decided must be durable in the stage, and know what is
/// there now. What is not is not decided.
pub(super) fn seal_stage(files: &Files, round: &mut [Finished]) {
    let decides = |end: &Finished| matches!(end.step, Step::Decide(_));
    if round.iter().any(|end| decides(end) && !end.sealed) {
        let synced = files.sync_stage();
        for end in round.iter_mut().filter(|end| decides(end) && !end.sealed) {
            // A sync for others may have failed since these files were planned. This one proves nothing for them then.
            match synced.clone().and_then(|()| files.confirm_staged(end.effects())) {
                Ok(()) => end.sealed = true,
                Err(error) => end.come_to_nothing(error.into()),
            }
        }
    }
    for end in round.iter_mut().filter(|end| decides(end)) {
        if let Err(error) = end.look_again(files) {
            end.come_to_nothing(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::effects::{Act, Content, Expect, FileEffect};
    use crate::handler::Run;
    use crate::new_job::NewJob;
    use crate::queue::Queue;
    use crate::store::{Decision, Lease};

    /// Files whose folders cannot be synced while the flag is up.
    fn faulty(root: &Path) -> (Files, Arc<AtomicBool>) {
        let fails = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&fails);
        let files = Files::open(root, &root.join(".jobq"), "owner-1").unwrap().watched(move |act, _| {
            let fails = act == Act::SyncFolder && flag.load(Ordering::SeqCst);
            if fails { Err(io::Error::other("the disk is broken")) } else { Ok(()) }
        });
        (files, fails)
    }

    /// An attempt that has come to putting a file, staged and planned.
    fn planned(files: &Files, queue: &Queue, name: &str) -> Finished {
        let id = queue.enqueue(NewJob::raw("t", format!(r#"{{"name":"{name}"}}"#))).unwrap().id;
        let job = queue.get(&id).unwrap();
        let lease = Lease { id, seq: job.seq, token: 1 };
        let staged = files.stage_bytes(&lease, 0, name.as_bytes()).unwrap();
        let put = FileEffect::Put { path: name.into(), content: Content::Staged(staged), expect: Expect::Any };
        let effects = files.plan_all(vec![put]).unwrap();
        let step = Step::Decide(Decision { effects, ..Decision::default() });
        Finished::without_running(Arc::new(Run::new(lease)), Arc::new(job), Some(0), step)
    }

    #[test]
    fn what_a_failed_sync_has_left_in_doubt_is_not_sealed_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        let (files, fails) = faulty(folder.path());
        let before = planned(&files, &queue, "before");
        files.sync_stage().unwrap();
        let during = planned(&files, &queue, "during");
        // As it happens when another round fails while this end is on its way.
        fails.store(true, Ordering::SeqCst);
        files.sync_stage().unwrap_err();
        fails.store(false, Ordering::SeqCst);
        let after = planned(&files, &queue, "after");

        let mut round = [before, during, after];
        seal_stage(&files, &mut round);
        let [before, during, after] = round;
        for end in [before, after] {
            assert!(end.sealed && matches!(end.step, Step::Decide(_)) && end.failure.is_none());
        }
        assert!(!during.sealed && matches!(during.step, Step::Reschedule { .. }));
        assert!(during.failure.unwrap().message.contains("stage it anew"));
    }

    #[test]
    fn nothing_is_decided_whose_own_sync_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        let (files, fails) = faulty(folder.path());
        let mut round = [planned(&files, &queue, "a"), planned(&files, &queue, "b")];
        fails.store(true, Ordering::SeqCst);
        seal_stage(&files, &mut round);
        for end in round {
            assert!(!end.sealed && matches!(end.step, Step::Reschedule { .. }));
            assert!(end.failure.unwrap().message.contains("cannot sync the stage folder"));
        }
    }
}
