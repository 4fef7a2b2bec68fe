//! A disk that remembers: one file of a FUSE filesystem, for a loop device. All
//! that is written to it, and every flush, is noted in order.
//!
//! The kernel may do a flush only after the writes that it is to cover, so what
//! is noted before a flush is safe with it. Whoever serves the disk must never
//! wait for the filesystem that is on it.

use std::ffi::OsStr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner, OpenFlags,
    ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};

use super::disk::{Act, Image};

/// The name of the one file.
pub const NAME: &str = "disk";
const DISK: INodeNo = INodeNo(2);
const FOR_EVER: Duration = Duration::from_secs(86_400);

#[derive(Clone)]
pub struct Served(Arc<Mutex<State>>);

struct State {
    now: Image,
    acts: Vec<Act>,
}

impl Served {
    pub fn new(now: Image) -> Self {
        Self(Arc::new(Mutex::new(State { now, acts: Vec::new() })))
    }

    /// How many things have been done to it.
    pub fn position(&self) -> usize {
        self.state().acts.len()
    }

    /// All that was done to it; from here on it remembers nothing.
    pub fn take(&self) -> Vec<Act> {
        std::mem::take(&mut self.state().acts)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nobody panics with it")
    }

    fn write_down(&self, offset: u64, bytes: Vec<u8>) {
        let mut state = self.state();
        state.now.put(offset, &bytes);
        state.acts.push(Act::Write { offset, bytes });
    }

    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let size = self.state().now.size;
        let (kind, perm, size) =
            if ino == DISK { (FileType::RegularFile, 0o600, size) } else { (FileType::Directory, 0o700, 0) };
        FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&FOR_EVER, &self.attributes(DISK), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &self.attributes(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // Nothing is kept by the kernel: it comes here when it is written.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let state = self.state();
        let length = state.now.size.saturating_sub(offset).min(size.into());
        let bytes = state.now.get(offset, usize::try_from(length).expect("it was 32 bits"));
        drop(state);
        reply.data(&bytes);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.write_down(offset, data.to_vec());
        reply.written(u32::try_from(data.len()).expect("a request is smaller"));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // That is what `close` is called here.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.state().acts.push(Act::Flush);
        reply.ok();
    }

    fn fallocate(&self, _: &Request, _: INodeNo, _: FileHandle, offset: u64, length: u64, _: i32, reply: ReplyEmpty) {
        // A loop device asks for zeros this way, and when it discards.
        self.write_down(offset, vec![0; usize::try_from(length).expect("a disk is smaller")]);
        reply.ok();
    }
}
