use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::*;

/// A log that is open, as SQLite would have it.
struct Opened {
    // In words, so that it is aligned as SQLite's own memory is.
    place: Vec<u64>,
    _folder: tempfile::TempDir,
}

impl Opened {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // It gets the rights of its database.
        std::fs::write(folder.path().join("some"), "").unwrap();
        let path = folder.path().join("some-wal");
        // As `sqlite3_filename` asks for: followed by what has no parameters.
        let mut name = path.as_os_str().as_encoded_bytes().to_vec();
        name.extend([0; 4]);
        let vfs = unsafe { sqlite3_vfs_find(layer().unwrap().as_ptr()) };
        let bytes = usize::try_from(unsafe { (*vfs).szOsFile }).unwrap();
        let mut place = vec![0_u64; bytes.div_ceil(8)];
        let flags = SQLITE_OPEN_WAL | rusqlite::ffi::SQLITE_OPEN_CREATE | rusqlite::ffi::SQLITE_OPEN_READWRITE;
        let name: &'static [u8] = name.leak();
        let code = unsafe { open(vfs, name.as_ptr().cast(), place.as_mut_ptr().cast(), flags, std::ptr::null_mut()) };
        assert_eq!(code, SQLITE_OK);
        Self { place, _folder: folder }
    }

    fn log(&mut self) -> &mut Log {
        unsafe { log(self.place.as_mut_ptr().cast()) }
    }

    fn read(&mut self, at: i64, size: usize) -> Result<Vec<u8>, c_int> {
        let mut bytes = vec![0; size];
        let size = c_int::try_from(size).unwrap();
        match unsafe { read(self.place.as_mut_ptr().cast(), bytes.as_mut_ptr().cast(), size, at) } {
            SQLITE_OK => Ok(bytes),
            code => Err(code),
        }
    }

    fn sync(&mut self) -> c_int {
        unsafe { sync(self.place.as_mut_ptr().cast(), 2) }
    }

    fn size(&mut self) -> i64 {
        let mut size = -1;
        assert_eq!(unsafe { file_size(self.place.as_mut_ptr().cast(), &raw mut size) }, SQLITE_OK);
        size
    }

    /// What the disk would do when it is full.
    fn lose(&mut self) {
        let log = self.log();
        log.lost = Some(log.at);
        log.kept.clear();
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        unsafe { close(self.place.as_mut_ptr().cast()) };
    }
}

#[test]
fn what_is_asked_for_is_written_before() {
    let mut opened = Opened::new();
    assert_eq!(opened.log().keep(b"abc", 0), SQLITE_OK);
    assert_eq!(opened.log().keep(b"def", 3), SQLITE_OK);
    assert_eq!(opened.log().kept, b"abcdef");
    assert_eq!(opened.read(2, 3).unwrap(), b"cde");
    assert!(opened.log().kept.is_empty());
    // Elsewhere: what was kept goes first, in its own place.
    assert_eq!(opened.log().keep(b"X", 1), SQLITE_OK);
    assert_eq!(opened.log().keep(b"Y", 5), SQLITE_OK);
    assert_eq!(opened.read(0, 6).unwrap(), b"aXcdeY");
    assert_eq!(opened.log().keep(b"gh", 6), SQLITE_OK);
    assert_eq!(opened.size(), 8);
    assert_eq!(unsafe { truncate(opened.place.as_mut_ptr().cast(), 4) }, SQLITE_OK);
    assert_eq!((opened.size(), opened.sync()), (4, SQLITE_OK));
}

#[test]
fn more_than_goes_into_one_call_is_written_in_several() {
    let mut opened = Opened::new();
    let page = vec![7; 65_536];
    for n in 0..5 {
        assert_eq!(opened.log().keep(&page, n * 65_536), SQLITE_OK);
        assert!(opened.log().kept.len() <= MOST_KEPT);
    }
    assert_eq!(opened.sync(), SQLITE_OK);
    assert_eq!(opened.size(), 5 * 65_536);
    assert_eq!(opened.read(3 * 65_536 + 9, 2).unwrap(), [7, 7]);
}

/// Otherwise a COMMIT could be durable with a hole in what it has written.
#[test]
fn a_lost_stretch_is_neither_synced_nor_jumped_over() {
    let mut opened = Opened::new();
    assert_eq!(opened.log().keep(b"abcd", 0), SQLITE_OK);
    assert_eq!(opened.sync(), SQLITE_OK);
    assert_eq!(opened.log().keep(b"ef", 4), SQLITE_OK);
    opened.lose();
    assert_eq!(opened.sync(), SQLITE_IOERR_WRITE);
    assert_eq!(opened.log().keep(b"gh", 6), SQLITE_IOERR_WRITE);
    assert_eq!(opened.read(4, 2), Err(SQLITE_IOERR_WRITE));
    assert_eq!(opened.read(0, 4).unwrap(), b"abcd", "what came before is whole");
    // Written again from its beginning, or cut off, it is not lost any more.
    assert_eq!(opened.log().keep(b"EF", 4), SQLITE_OK);
    assert_eq!((opened.sync(), opened.size()), (SQLITE_OK, 6));
    opened.lose();
    assert_eq!(unsafe { truncate(opened.place.as_mut_ptr().cast(), 4) }, SQLITE_OK);
    assert_eq!(opened.sync(), SQLITE_OK);
}

fn connect(path: &Path, vfs: Option<&CStr>) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let conn = match vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs),
        None => Connection::open_with_flags(path, flags),
    }
    .unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = 10").unwrap();
    conn
}

/// Also a transaction that is larger than the cache, parts of which are written, read and written again before its end.
#[test]
fn others_see_what_was_committed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.db");
    let ours = connect(&path, layer());
    let other = connect(&path, None);
    ours.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)").unwrap();
    let sum = |conn: &Connection| {
        conn.query_row("SELECT count(*), total(length(text)) FROM t", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?))
        })
        .unwrap()
    };
    let fill = "INSERT INTO t (text) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
                SELECT hex(randomblob(500)) FROM n";
    for round in 1..=3 {
        let before = sum(&other);
        ours.execute_batch(&format!("BEGIN IMMEDIATE; {fill}; UPDATE t SET text = text || 'x'; {fill}")).unwrap();
        assert_eq!(sum(&other), before);
        ours.execute_batch(if round == 2 { "ROLLBACK" } else { "COMMIT" }).unwrap();
        assert_eq!(sum(&other), sum(&ours));
        other.execute_batch("DELETE FROM t WHERE n % 3 = 0; PRAGMA wal_checkpoint(PASSIVE)").unwrap();
        assert_eq!(sum(&other), sum(&ours));
    }
    drop(ours);
    let healthy: String = other.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(healthy, "ok");
}
