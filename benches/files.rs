//! Durable files: `create_file` end to end beside a bare loop that writes a
//! temporary file, syncs it, renames it and syncs the folder.

use jobq::NewJob;
use jobq::handlers::CreateFile;

use crate::drain::{drain, open};
use crate::table::{Goal, Table, per_second};
use crate::{Sizes, bare_files};

const THREADS: usize = 4;

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    let (mut floor_rate, mut rate) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let content = "x".repeat(1024);
        let bare = || bare_files::write(&folder.path().join("bare"), sizes.files, &content);
        floor_rate.push(per_second(sizes.files, bare));
        let queue = open(folder.path());
        queue
            .enqueue_many((0..sizes.files).map(|n| NewJob::of(&CreateFile::text(format!("out/{n}"), &content))))
            .unwrap();
        rate.push(per_second(sizes.files, || assert_eq!(drain(&queue, THREADS), sizes.files as u64)));
        table.keep(folder);
    }
    let name = "create_file of 1 KiB, concurrency 4; bare, 4 threads";
    table.ratio(name, "files/s", &rate, &floor_rate, Goal::AtLeast(1.0));
}
