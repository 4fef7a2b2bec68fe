//! `doctor`: a healthy queue is called so, and every check is seen to find what
//! it is for, with the damage made for real.

#[path = "support/skipped.rs"]
mod skipped;

mod support;

mod doctor {
    mod database;
    mod jobs;
    mod leases;
    mod leftovers;
    mod locked;
    mod place;
    mod untouched;
    mod world;
}
