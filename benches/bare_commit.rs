//! The same steps by hand, with nothing that a queue would add.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};

/// A JSON document of 1 KiB.
pub(crate) fn content() -> String {
    format!("{{\n  \"text\": \"{}\"\n}}\n", "x".repeat(1024 - 18))
}

/// One thread that writes, records, renames, syncs and records again.
pub(crate) struct Bare {
    conn: Connection,
    folder: PathBuf,
}

impl Bare {
    pub(crate) fn open(root: &Path) -> Self {
        let folder = root.join("data");
        std::fs::create_dir_all(&folder).unwrap();
        let conn = Connection::open(root.join("bare.db")).unwrap();
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 8000;
             CREATE TABLE jobs (id INTEGER PRIMARY KEY, status TEXT NOT NULL, payload TEXT NOT NULL);
             CREATE INDEX jobs_status ON jobs (status);",
        )
        .unwrap();
        Self { conn, folder }
    }

    pub(crate) fn commit(&self, numbers: std::ops::Range<usize>) {
        let content = content();
        let mut insert = self.conn.prepare("INSERT INTO jobs (status, payload) VALUES ('accepted', ?1)").unwrap();
        let mut update = self.conn.prepare("UPDATE jobs SET status = 'applied' WHERE id = ?1").unwrap();
        for n in numbers {
            let temporary = self.folder.join(format!(".{n}.tmp"));
            let mut file = File::create(&temporary).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            file.sync_all().unwrap();
            insert.execute(params![format!("{{\"n\":{n}}}")]).unwrap();
            let id = self.conn.last_insert_rowid();
            std::fs::rename(&temporary, self.folder.join(format!("{n}.json"))).unwrap();
            File::open(&self.folder).unwrap().sync_all().unwrap();
            update.execute([id]).unwrap();
        }
    }
}
