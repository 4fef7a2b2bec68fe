//! The command line, through the front door: what scripts rely on.

#[path = "support/skipped.rs"]
mod skipped;

mod cli {
    mod bad_input;
    mod batch;
    mod commit;
    mod config;
    mod confined;
    mod doctor;
    mod extract;
    mod gone;
    mod handlers;
    mod harness;
    mod jobs;
    mod manual;
    mod next_steps;
    mod places;
    mod progress;
    mod pty;
    mod reconcile;
    mod replaced;
    mod rights;
    mod roots;
    mod running;
    mod screen;
    mod site;
    mod slips;
    mod terminal;
    mod throttle;
    mod tmux;
    mod top;
    mod trust;
    mod unavailable;
    mod unheard;
    mod worker;
}
