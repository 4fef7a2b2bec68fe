//! The atomic commit, proved by crashes: real processes that are killed at every
//! system call that changes a file, stopped, raced and edited under. The program
//! is run under strace, which counts its calls and kills or stops it at the one
//! that is asked for.

#[path = "support/skipped.rs"]
mod skipped;

#[path = "support/strace.rs"]
mod strace;
mod support;

mod commit_crash {
    use super::strace;

    mod aftermath;
    mod alive;
    mod child;
    mod counter;
    mod disk;
    mod editor;
    mod failed_sync;
    mod only_to_read;
    mod power_cut;
    mod recovering;
    mod world;
}
