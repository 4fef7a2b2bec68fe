//! The write-ahead log in few calls: a layer between SQLite and its own file
//! layer ("VFS") that keeps what is written to the log until it is synced.
//!
//! SQLite writes every page of a transaction by two calls, a header of 24 bytes
//! and the page; on a disk that syncs in a tenth of a millisecond those calls
//! take as long as the sync. They all go to one stretch of the file, and until
//! the sync at the end of the COMMIT nobody but the connection itself looks at
//! them. So they are collected here and written by one call right before the
//! sync. What is in the file afterwards is the same, byte by byte.
//!
//! Why this is safe:
//! - other connections find what is in the log by its index, which SQLite
//!   changes after the sync; `synchronous` is FULL on every connection that
//!   uses this, so there is a sync in every COMMIT;
//! - whatever asks about the file (read, size, truncate) first writes what was
//!   kept, so the connection sees what it has written;
//! - if that fails, the caller hears of it, and the lost stretch can neither be
//!   synced nor jumped over until it has been written again (`lost`);
//! - a process that dies has written less, as if it had died earlier.
//!
//! Only logs are treated so. All other files are the layer's below, as they are.

#![expect(unsafe_code, reason = "the layer below is C, and so is the one who calls")]

use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use rusqlite::ffi::{
    SQLITE_IOERR_WRITE, SQLITE_OK, SQLITE_OPEN_WAL, sqlite3_file, sqlite3_filename, sqlite3_int64, sqlite3_io_methods,
    sqlite3_vfs, sqlite3_vfs_find, sqlite3_vfs_register,
};

/// More than this is not kept. SQLite's own layer takes no more in one call (it looks at 17 bits of the size), and
/// two calls for some thirty pages are few enough.
const MOST_KEPT: usize = (128 << 10) - 1;

/// A log as SQLite sees it; the file of the layer below lies right behind it.
#[repr(C)]
struct Log {
    file: sqlite3_file,
    kept: Vec<u8>,
    /// Where in the file `kept` begins.
    at: sqlite3_int64,
    /// From here on something is missing in the file that SQLite takes for written.
    lost: Option<sqlite3_int64>,
}

/// The name of the layer, or `None` where it cannot be had: then SQLite's own is as good, only slower.
pub(super) fn layer() -> Option<&'static CStr> {
    const NAME: &CStr = c"jobq-log";
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    // SAFETY: the default layer lives as long as the program and is only copied. The copy is leaked, so it lives as
    // long, and SQLite links it into its own list.
    let registered = REGISTERED.get_or_init(|| unsafe {
        let below = sqlite3_vfs_find(std::ptr::null());
        if below.is_null() {
            return false;
        }
        let mut ours = *below;
        ours.szOsFile += c_int::try_from(size_of::<Log>()).unwrap_or_default();
        ours.zName = NAME.as_ptr();
        ours.pNext = std::ptr::null_mut();
        ours.xOpen = Some(open);
        // Nothing but `open` looks at it, and the layer below is always given its own.
        ours.pAppData = below.cast();
        sqlite3_vfs_register(Box::leak(Box::new(ours)), 0) == SQLITE_OK
    });
    registered.then_some(NAME)
}

unsafe extern "C" fn open(
    ours: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: `ours` is what `layer` has registered. `file` has room for a `Log` and a file of the layer below. That
    // one is opened in its place behind the log; if it fails it has no methods, and then SQLite must not see any.
    unsafe {
        let vfs: *mut sqlite3_vfs = (*ours).pAppData.cast();
        let Some(open_below) = (*vfs).xOpen else { return SQLITE_IOERR_WRITE };
        if flags & SQLITE_OPEN_WAL == 0 {
            return open_below(vfs, name, file, flags, out);
        }
        (*file).pMethods = std::ptr::null();
        let log: *mut MaybeUninit<Log> = file.cast();
        let below: *mut sqlite3_file = log.add(1).cast();
        let code = open_below(vfs, name, below, flags, out);
        if code == SQLITE_OK {
            let file = sqlite3_file { pMethods: &raw const METHODS };
            (*log).write(Log { file, kept: Vec::new(), at: 0, lost: None });
        }
        code
    }
}

impl Log {
    fn below(&mut self) -> *mut sqlite3_file {
        // SAFETY: `open` has put it there.
        unsafe { (&raw mut *self).add(1).cast() }
    }

    fn keep(&mut self, bytes: &[u8], at: sqlite3_int64) -> c_int {
        match self.lost {
            Some(lost) if at > lost => return SQLITE_IOERR_WRITE,
            _ => self.lost = None,
        }
        let is_next = at == self.at + length(&self.kept);
        if !self.kept.is_empty() && (!is_next || self.kept.len() + bytes.len() > MOST_KEPT) {
            let code = self.write_out();
            if code != SQLITE_OK {
                return code;
            }
        }
        if self.kept.is_empty() {
            self.at = at;
        }
        self.kept.extend_from_slice(bytes);
        SQLITE_OK
    }

    /// After this the file is what SQLite takes it for, or an error says that it is not.
    fn write_out(&mut self) -> c_int {
        if self.lost.is_some() {
            return SQLITE_IOERR_WRITE;
        }
        if self.kept.is_empty() {
            return SQLITE_OK;
        }
        let (below, size) = (self.below(), c_int::try_from(self.kept.len()).unwrap_or(c_int::MAX));
        // SAFETY: `below` is open, and `kept` has as many bytes as are said.
        let code =
            unsafe { called(below, |m| m.xWrite, |write| write(below, self.kept.as_ptr().cast(), size, self.at)) };
        if code != SQLITE_OK {
            self.lost = Some(self.at);
        }
        self.kept.clear();
        code
    }
}

fn length(bytes: &[u8]) -> sqlite3_int64 {
    sqlite3_int64::try_from(bytes.len()).unwrap_or(sqlite3_int64::MAX)
}

/// A method of the layer below.
///
/// SAFETY: `file` is open.
unsafe fn called<F>(
    file: *mut sqlite3_file,
    which: impl FnOnce(&sqlite3_io_methods) -> Option<F>,
    call: impl FnOnce(F) -> c_int,
) -> c_int {
    // SAFETY: an open file has methods.
    which(unsafe { &*(*file).pMethods }).map_or(SQLITE_IOERR_WRITE, call)
}

/// The log that SQLite means.
///
/// SAFETY: `file` was opened by [`open`] as a log, and SQLite uses it from one thread at a time.
unsafe fn log<'f>(file: *mut sqlite3_file) -> &'f mut Log {
    unsafe { &mut *file.cast() }
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    // Without what only databases have: shared memory, and pages that are mapped.
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

// SAFETY of all of them: SQLite calls them for a file that `open` has opened as a log, with arguments that are right
// for the method, and they go on to the method of the same name of the layer below.

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let log = log(file);
        let kept = log.write_out();
        let below = log.below();
        let closed = called(below, |m| m.xClose, |close| close(below));
        // SQLite frees the place without asking for a destructor.
        std::ptr::drop_in_place(log);
        if kept == SQLITE_OK { closed } else { kept }
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, size: c_int, at: sqlite3_int64) -> c_int {
    unsafe {
        let log = log(file);
        let below = log.below();
        // What lies before the lost stretch can be read: a reader of this connection may be in the midst of it.
        if log.lost.is_some_and(|lost| at + sqlite3_int64::from(size) <= lost) {
            return called(below, |m| m.xRead, |read| read(below, to, size, at));
        }
        match log.write_out() {
            SQLITE_OK => called(below, |m| m.xRead, |read| read(below, to, size, at)),
            code => code,
        }
    }
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, size: c_int, at: sqlite3_int64) -> c_int {
    unsafe { log(file).keep(std::slice::from_raw_parts(from.cast(), usize::try_from(size).unwrap_or_default()), at) }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    unsafe {
        let log = log(file);
        // What is cut off need not have been written.
        if log.lost.is_some_and(|lost| size <= lost) {
            log.lost = None;
        }
        match log.write_out() {
            SQLITE_OK => called(log.below(), |m| m.xTruncate, |truncate| truncate(log.below(), size)),
            code => code,
        }
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    unsafe {
        let log = log(file);
        match log.write_out() {
            SQLITE_OK => called(log.below(), |m| m.xSync, |sync| sync(log.below(), flags)),
            code => code,
        }
    }
}

unsafe extern "C" fn file_size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    unsafe {
        let log = log(file);
        match log.write_out() {
            SQLITE_OK => called(log.below(), |m| m.xFileSize, |ask| ask(log.below(), size)),
            code => code,
        }
    }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    unsafe { called(log(file).below(), |m| m.xLock, |lock| lock(log(file).below(), level)) }
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    unsafe { called(log(file).below(), |m| m.xUnlock, |unlock| unlock(log(file).below(), level)) }
}

unsafe extern "C" fn check_reserved_lock(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    unsafe { called(log(file).below(), |m| m.xCheckReservedLock, |check| check(log(file).below(), out)) }
}

unsafe extern "C" fn file_control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    unsafe { called(log(file).below(), |m| m.xFileControl, |control| control(log(file).below(), operation, argument)) }
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    unsafe { called(log(file).below(), |m| m.xSectorSize, |size| size(log(file).below())) }
}

unsafe extern "C" fn device_characteristics(file: *mut sqlite3_file) -> c_int {
    unsafe { called(log(file).below(), |m| m.xDeviceCharacteristics, |ask| ask(log(file).below())) }
}

#[cfg(test)]
mod tests;
