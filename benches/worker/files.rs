//! Durable files: `create_file` end to end beside a bare loop that writes a
//! temporary file, syncs it, renames it and syncs the folder.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use jobq::NewJob;
use jobq::handlers::CreateFile;

use crate::table::{line, per_second};
use crate::{Sizes, drain, open};

const THREADS: usize = 4;

pub(crate) fn run(sizes: &Sizes) {
    let (mut floor_rate, mut rate) = (Vec::new(), Vec::new());
    // Removed at the end only: ext4 without a journal looks at every inode that was freed in the last minutes before
    // it makes a file, and then that is what is measured.
    let mut folders = Vec::new();
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let bare_folder = folder.path().join("bare");
        std::fs::create_dir(&bare_folder).unwrap();
        floor_rate.push(per_second(sizes.files, || bare(&bare_folder, sizes.files)));
        let queue = open(folder.path());
        let content = "x".repeat(1024);
        queue
            .enqueue_many((0..sizes.files).map(|n| NewJob::of(&CreateFile::text(format!("out/{n}"), &content))))
            .unwrap();
        rate.push(per_second(sizes.files, || assert_eq!(drain(&queue, THREADS), sizes.files as u64)));
        folders.push(folder);
    }
    drop(folders);
    line("create_file of 1 KiB, concurrency 4 (files/s)", &rate, &floor_rate, 0.8);
}

fn bare(folder: &Path, count: usize) {
    let next = AtomicUsize::new(0);
    let content = "x".repeat(1024);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= count {
                        return;
                    }
                    let temporary = folder.join(format!(".{n}.tmp"));
                    let mut file = File::create(&temporary).unwrap();
                    file.write_all(content.as_bytes()).unwrap();
                    file.sync_all().unwrap();
                    std::fs::rename(&temporary, folder.join(n.to_string())).unwrap();
                    File::open(folder).unwrap().sync_all().unwrap();
                }
            });
        }
    });
}
