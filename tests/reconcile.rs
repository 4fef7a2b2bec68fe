//! The queue and the disk, side by side.

mod support;

mod reconcile {
    mod damage;
    mod in_flight;
    mod latest;
    mod repair;
    mod watching;
    mod world;
}
