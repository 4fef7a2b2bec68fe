//! Many cases of one scenario, several at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most of the time a case waits for a process or the disk.
pub const AT_ONCE: usize = 4;

/// Tries each case and returns the answers in their order. A panic is the answer
/// of its case alone, by its words.
pub fn each<C: Sync, A: Send>(cases: &[C], attempt: impl Fn(&C) -> A + Sync) -> Vec<Result<A, String>> {
    several(AT_ONCE, cases, attempt)
}

/// The same, so many at a time.
pub fn several<C: Sync, A: Send>(
    at_once: usize,
    cases: &[C],
    attempt: impl Fn(&C) -> A + Sync,
) -> Vec<Result<A, String>> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(cases.iter().map(|_| None).collect::<Vec<_>>());
    let work = || {
        while let Some((index, case)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            cases.get(index).map(|case| (index, case))
        } {
            let answer = catch_unwind(AssertUnwindSafe(|| attempt(case))).map_err(|panic| words(&*panic));
            answers.lock().unwrap()[index] = Some(answer);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    answers.into_inner().unwrap().into_iter().map(|answer| answer.expect("each was tried")).collect()
}

/// What somebody has panicked with.
pub fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    said.unwrap_or("a panic without words").to_owned()
}
