//! The worker, as it is used: real processes that are stopped, killed and
//! starved, on a real disk. The test program starts itself; see `child`.

#[path = "support/skipped.rs"]
mod skipped;

mod worker {
    mod act;
    mod child;
    mod clocks;
    mod database;
    mod days;
    mod faulty;
    mod frozen;
    mod full_disk;
    mod harness;
    mod inside;
    mod killed;
    mod leftovers;
    mod order;
    mod outcomes;
    mod poison;
    mod pruning;
    mod retention;
    mod sharing;
    mod shutdown;
    mod throttle;
    mod unruly;
    mod wakes;
}
