//! What a worker promises when everything around it misbehaves.

#[path = "support/skipped.rs"]
mod skipped;

#[path = "worker_trouble/world.rs"]
#[macro_use]
mod world;

#[path = "worker_trouble/damaged.rs"]
mod damaged;
#[path = "worker_trouble/database.rs"]
mod database;
#[path = "worker_trouble/ends.rs"]
mod ends;
#[path = "worker_trouble/files.rs"]
mod files;
#[path = "worker_trouble/hooks.rs"]
mod hooks;
#[path = "worker_trouble/leaving.rs"]
mod leaving;
#[path = "worker_trouble/outcomes.rs"]
mod outcomes;
#[path = "worker_trouble/replaced.rs"]
mod replaced;
#[path = "worker_trouble/rows.rs"]
mod rows;
#[path = "worker_trouble/told.rs"]
mod told;
