//! A layer below SQLite that passes everything on to the real one, except the
//! call it was told to fail or to hold up.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};

use rusqlite::ffi::{
    SQLITE_OK, sqlite3_file, sqlite3_filename, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    OpenDatabase,
    ReadDatabase,
    WriteDatabase,
    WriteLog,
    SyncLog,
    Other,
}

/// The calls that fail: from the `first`-th (counted from 1) on, `times` of them.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub call: Call,
    pub first: usize,
    pub times: usize,
    pub code: c_int,
}

#[derive(Default)]
struct Faults {
    db: PathBuf,
    fault: Option<Fault>,
    calls: HashMap<Call, usize>,
    fired: usize,
    /// The next sync of the log waits while this is set.
    sync_barred: bool,
    sync_waits: bool,
    files: HashMap<usize, PathBuf>,
}

static FAULTS: Mutex<Option<Faults>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

/// SQLite's methods for a file with ours in front. SQLite sees the first field.
#[repr(C)]
struct Layer {
    methods: sqlite3_io_methods,
    below: *const sqlite3_io_methods,
}

fn faults() -> MutexGuard<'static, Option<Faults>> {
    let mut guard = FAULTS.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_default();
    guard
}

fn with<T>(work: impl FnOnce(&mut Faults) -> T) -> T {
    work(faults().get_or_insert_default())
}

/// From here on calls are counted and this one fails, for this database.
pub fn arm(db: &Path, fault: Fault) {
    with(|f| {
        db.clone_into(&mut f.db);
        f.fault = Some(fault);
        f.calls.clear();
        f.fired = 0;
    });
}

/// Calls are counted for this database; none fails.
pub fn watch(db: &Path) {
    arm(db, Fault { call: Call::Other, first: usize::MAX, times: 0, code: SQLITE_OK });
}

/// All is well again.
pub fn heal() {
    with(|f| f.fault = None);
    open_sync();
}

pub fn fired() -> usize {
    with(|f| f.fired)
}

pub fn calls(call: Call) -> usize {
    with(|f| f.calls.get(&call).copied().unwrap_or(0))
}

/// The next writer that wants its COMMIT on disk waits there.
pub fn bar_sync(db: &Path) {
    watch(db);
    with(|f| f.sync_barred = true);
}

pub fn open_sync() {
    with(|f| f.sync_barred = false);
    CHANGED.notify_all();
}

/// Returns when a writer waits at the bar.
pub fn until_sync_waits() {
    let mut guard = faults();
    while !guard.as_ref().is_some_and(|f| f.sync_waits) {
        guard = CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
}

/// The code a call has to return, if it is to fail.
fn verdict(file: *mut sqlite3_file, read: bool, sync: bool) -> Option<c_int> {
    let mut guard = faults();
    let f = guard.as_mut()?;
    let path = f.files.get(&(file as usize))?.clone();
    let log = path.to_string_lossy().strip_suffix("-wal").map(PathBuf::from);
    let call = match (log.as_deref().unwrap_or(&path) == f.db, log.is_some()) {
        (false, _) => return None,
        (true, true) if sync => Call::SyncLog,
        (true, true) if !read => Call::WriteLog,
        (true, false) if read => Call::ReadDatabase,
        (true, false) if !sync => Call::WriteDatabase,
        (true, _) => Call::Other,
    };
    let number = {
        let calls = f.calls.entry(call).or_default();
        *calls += 1;
        *calls
    };
    let code =
        f.fault.filter(|fault| fault.call == call && number >= fault.first && number - fault.first < fault.times);
    if code.is_some() {
        f.fired += 1;
    }
    if call == Call::SyncLog && f.sync_barred {
        f.sync_waits = true;
        CHANGED.notify_all();
        while guard.as_ref().is_some_and(|f| f.sync_barred) {
            guard = CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(f) = guard.as_mut() {
            f.sync_waits = false;
        }
    }
    code.map(|fault| fault.code)
}

/// Makes this layer the one every connection of this program uses.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the default VFS exists, lives as long as the program and is
        // only copied; the copy is leaked, so it lives as long too.
        unsafe {
            let below = sqlite3_vfs_find(std::ptr::null());
            let mut ours = *below;
            ours.zName = c"faulty".as_ptr();
            ours.pNext = std::ptr::null_mut();
            ours.xOpen = Some(open);
            assert_eq!(sqlite3_vfs_register(Box::leak(Box::new(ours)), 1), SQLITE_OK);
        }
    });
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: arguments are SQLite's own and go on unchanged to the VFS that
    // was the default before ours. A file that it opened gets a table of
    // methods that is leaked and begins as SQLite expects.
    unsafe {
        let below = sqlite3_vfs_find(c"unix".as_ptr());
        let code = ((*below).xOpen.unwrap())(below, name, file, flags, out);
        if code == SQLITE_OK && !name.is_null() {
            let path = PathBuf::from(CStr::from_ptr(name).to_string_lossy().into_owned());
            with(|f| {
                if path == f.db {
                    *f.calls.entry(Call::OpenDatabase).or_default() += 1;
                }
                f.files.insert(file as usize, path);
            });
            let below = (*file).pMethods;
            let mut methods = *below;
            methods.xClose = Some(close);
            methods.xRead = Some(read);
            methods.xWrite = Some(write);
            methods.xSync = Some(sync);
            (*file).pMethods = (&raw const *Box::leak(Box::new(Layer { methods, below }))).cast();
        }
        code
    }
}

/// SAFETY: `file` was opened by [`open`].
unsafe fn below(file: *mut sqlite3_file) -> sqlite3_io_methods {
    unsafe { *(*(*file).pMethods.cast::<Layer>()).below }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    with(|f| f.files.remove(&(file as usize)));
    // SAFETY: SQLite calls this for files whose methods `open` replaced.
    unsafe { (below(file).xClose.unwrap())(file) }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, size: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: as in `close`.
    verdict(file, true, false).unwrap_or_else(|| unsafe { (below(file).xRead.unwrap())(file, to, size, at) })
}

unsafe extern "C" fn write(file: *mut sqlite3_file, from: *const c_void, size: c_int, at: sqlite3_int64) -> c_int {
    // SAFETY: as in `close`.
    verdict(file, false, false).unwrap_or_else(|| unsafe { (below(file).xWrite.unwrap())(file, from, size, at) })
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: as in `close`.
    verdict(file, false, true).unwrap_or_else(|| unsafe { (below(file).xSync.unwrap())(file, flags) })
}
