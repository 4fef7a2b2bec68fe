//! Several threads at work on a list; what comes of it is taken in order.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError, mpsc};

/// Does this with all items, several at once. Results are taken one after the other in the order of the items, while
/// others are under way; `false` or an error from there ends it.
pub(super) fn in_order<T: Send, R: Send, E>(
    items: Vec<T>,
    threads: usize,
    work: impl Fn(T) -> R + Sync,
    mut take: impl FnMut(R) -> Result<bool, E>,
) -> Result<bool, E> {
    let next = Mutex::new(items.into_iter().enumerate());
    // As many wait to be taken as are under way: nobody works far ahead of one who may not want any more.
    let (done, results) = mpsc::sync_channel(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (done, next, work) = (done.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let item = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, item)) = item else { return };
                    // Nobody takes it any more.
                    if done.send((place, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        let mut early = BTreeMap::new();
        let mut expected = 0;
        for (place, result) in results {
            early.insert(place, result);
            while let Some(result) = early.remove(&expected) {
                expected += 1;
                if !take(result)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_threads_are_at_work_and_results_are_in_order() {
        let all_there = Barrier::new(4);
        let mut taken = Vec::new();
        let work = |n: usize| {
            // Nobody gets past here alone.
            all_there.wait();
            n * 10
        };
        let ended = in_order((0..100).collect(), 4, work, |n| {
            taken.push(n);
            Ok::<_, Infallible>(true)
        });
        assert_eq!((ended, taken), (Ok(true), (0..100).map(|n| n * 10).collect()));
    }

    #[test]
    fn it_ends_when_it_is_told_to() {
        for end in [Ok(false), Err("no")] {
            let worked = AtomicUsize::new(0);
            let work = |_: usize| worked.fetch_add(1, Ordering::Relaxed);
            let ended = in_order((0..1_000).collect(), 1, work, |_| end);
            assert_eq!(ended, end);
            // The one that was taken, one that waits for that, and one more that finds no place.
            assert!(worked.into_inner() <= 3);
        }
    }
}
