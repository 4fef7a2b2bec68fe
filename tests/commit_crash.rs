//! The atomic commit, proved by crashes: real processes that are killed at every
//! system call that changes a file, stopped, raced and edited under. The program
//! is run under strace, which counts its calls and kills or stops it at the one
//! that is asked for.

mod support;

mod commit_crash {
    mod aftermath;
    mod alive;
    mod child;
    mod counter;
    mod disk;
    mod editor;
    mod power_cut;
    mod recovering;
    mod sites;
    mod strace;
    mod world;
}
