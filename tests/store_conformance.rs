//! What any store has to pass, run against every store there is.

mod conformance;

use std::sync::Arc;
use std::time::Duration;

use jobq::JobTypes;
use jobq::clock::Clock;
use jobq::store::sqlite::{SqliteOptions, SqliteStore};

use crate::conformance::{Harness, memory_folder};

/// A database file in a folder of its own.
struct Sqlite;

impl Harness for Sqlite {
    type S = SqliteStore;
    type Place = tempfile::TempDir;

    fn open(clock: Arc<dyn Clock>, types: JobTypes) -> (SqliteStore, tempfile::TempDir) {
        let folder = memory_folder();
        let path = folder.path().join("jobq.db");
        let store = SqliteStore::open(SqliteOptions {
            path,
            create: true,
            busy_timeout: Duration::from_secs(5),
            types,
            clock,
            state: None,
        })
        .expect("a fresh store opens");
        (store, folder)
    }
}

conformance!(sqlite, crate::Sqlite);
