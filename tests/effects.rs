//! Changing a user's files: only beneath the root, only as planned, all of it
//! again after a crash, and durable before it is said.

#[path = "effects/any_path.rs"]
mod any_path;
#[path = "effects/applying.rs"]
mod applying;
#[path = "effects/attacks.rs"]
mod attacks;
#[path = "effects/conflicts.rs"]
mod conflicts;
#[path = "effects/disk_trouble.rs"]
mod disk_trouble;
#[path = "effects/meanwhile.rs"]
mod meanwhile;
#[path = "effects/mounts.rs"]
mod mounts;
#[path = "effects/own_database.rs"]
mod own_database;
#[path = "effects/planning.rs"]
mod planning;
#[path = "effects/races.rs"]
mod races;
#[path = "effects/redo.rs"]
mod redo;
#[path = "effects/stage_sync.rs"]
mod stage_sync;
#[path = "effects/staging.rs"]
mod staging;
mod support;
#[path = "effects/sweeping.rs"]
mod sweeping;
#[path = "effects/syncing.rs"]
mod syncing;
#[path = "effects/through_the_store.rs"]
mod through_the_store;
#[path = "effects/traps.rs"]
mod traps;
#[path = "effects/world.rs"]
mod world;
