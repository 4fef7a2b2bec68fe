//! effectum keeps its writing connection to itself. SQLite can call a function for every connection that is opened; this
//! one remembers the first, so that its pragmas can be read, and the level changed, without changing effectum.

use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicPtr, Ordering};

use peers_common::give_up;
use rusqlite::{Connection, ffi};

static FIRST: AtomicPtr<ffi::sqlite3> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn opened(
    db: *mut ffi::sqlite3,
    _: *mut *const c_char,
    _: *const ffi::sqlite3_api_routines,
) -> c_int {
    // Its readers come later.
    let _ = FIRST.compare_exchange(std::ptr::null_mut(), db, Ordering::SeqCst, Ordering::SeqCst);
    ffi::SQLITE_OK
}

/// The next connection to be opened is the one that `with` uses.
pub fn remember_the_next() {
    // SAFETY: the function is there as long as the program.
    unsafe { ffi::sqlite3_auto_extension(Some(opened)) };
}

/// Only while effectum's writer waits for work: its connection has no lock of its own.
pub fn with<T>(use_it: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> T {
    let db = FIRST.load(Ordering::SeqCst);
    if db.is_null() {
        give_up("no connection was opened");
    }
    // SAFETY: the queue that owns it is open, nothing else uses it now (see above), and it is not closed here.
    let connection = unsafe { Connection::from_handle(db) };
    connection.and_then(|c| use_it(&c)).unwrap_or_else(|e| give_up(&e.to_string()))
}
