//! `sync_aws` from the queue to a server that speaks AWS's protocol (`ministack`),
//! through a proxy that adds what real networks and the real AWS do.
#![cfg(feature = "aws")]

#[path = "support/skipped.rs"]
mod skipped;

mod aws {
    mod doubt;
    mod failures;
    mod faults;
    mod killed;
    mod many;
    mod meanwhile;
    mod ministack;
    mod profile_files;
    mod proxy;
    mod remote;
    mod secrets;
    mod settings;
    mod syncs;
    mod waiting;
    mod wire;
    mod world;
}
