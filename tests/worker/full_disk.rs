//! A disk without room: a small filesystem of its own, filled to the brim.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use jobq::handlers::CreateFile;
use jobq::{NewJob, Status};

use super::child::Setup;
use super::harness::{Process, World, until};

const JOBS: usize = 40;
const SIZE: usize = 64 * 1024;

/// A filesystem that is soon full.
struct Small(PathBuf);

impl Small {
    /// `None` without the right to mount.
    fn mount(folder: &Path) -> Option<Self> {
        std::fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=24m,nr_inodes=500", "jobq-test"])
            .arg(folder)
            .output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(folder.to_owned()))
    }

    /// Leaves this much room.
    fn fill(&self, room: usize) {
        let mut file = std::fs::File::create(self.0.join("filler")).unwrap();
        let block = [1; 4096];
        while file.write_all(&block).is_ok() {}
        let full = file.metadata().unwrap().len();
        file.set_len(full.saturating_sub(room as u64)).unwrap();
    }

    /// Leaves room for this many files and folders.
    fn fill_with_names(&self, room: usize) {
        let folder = self.0.join("fillers");
        std::fs::create_dir(&folder).unwrap();
        let name = |n: usize| folder.join(n.to_string());
        let count = (0..10_000).take_while(|n| std::fs::write(name(*n), "").is_ok()).count();
        for n in 0..room {
            std::fs::remove_file(name(count - 1 - n)).unwrap();
        }
    }

    fn make_room(&self) {
        let _ = std::fs::remove_file(self.0.join("filler"));
        let _ = std::fs::remove_dir_all(self.0.join("fillers"));
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: what a failed test still has open goes with its process.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// `room`: what is left when the worker begins.
fn trial(room: usize) {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("root")) else {
        crate::skipped::skipped("a full disk", "it takes root to mount a small filesystem");
        return;
    };
    let world = World::at(folder);
    let content = |n: usize| format!("{n:08}").repeat(SIZE / 8);
    let jobs = (0..JOBS).map(|n| NewJob::of(&CreateFile::text(format!("{}/{n}.txt", n % 3), content(n))));
    // The payloads are in the database, so they need their room before there is none.
    let ids = world.queue.enqueue_many(jobs).unwrap();
    small.fill(room);
    let mut worker = Process::start(&Setup { concurrency: 4, ..world.setup("worker") });
    worker.hear("trouble");
    for job in &ids {
        assert_ne!(world.queue.get(&job.id).unwrap().status, Status::Failed);
    }
    small.make_room();
    until("all jobs have ended", || world.queue.stats().unwrap().outstanding.is_empty());
    worker.stop();
    for (n, job) in ids.iter().enumerate() {
        let job = world.queue.get(&job.id).unwrap();
        assert_eq!((job.status, job.attempts), (Status::Completed, 1), "{:?}", job.last_error);
        assert_eq!(world.read(&format!("{}/{n}.txt", n % 3)).unwrap(), content(n));
    }
    assert!(worker.hear_out().iter().any(|line| line == "trouble_over"), "it says that it goes on");
    assert_eq!((world.staged(), world.lock_files()), (Vec::new(), Vec::new()));
}

#[test]
fn without_any_room_jobs_wait_and_nothing_is_lost() {
    trial(0);
}

#[test]
fn with_room_for_the_database_only_jobs_wait_and_nothing_is_lost() {
    trial(500 * 1024);
}

/// There is room to stage the content, and none for the folders it is to go to.
#[test]
fn without_room_to_apply_the_worker_says_so_until_there_is_some() {
    let folder = tempfile::tempdir().unwrap();
    let Some(small) = Small::mount(&folder.path().join("root")) else {
        crate::skipped::skipped("no room at apply", "it takes root to mount a small filesystem");
        return;
    };
    let world = World::at(folder);
    let path = "folder/".repeat(50) + "f.txt";
    let id = world.enqueue(CreateFile::text(&path, "text"));
    small.fill_with_names(20);
    let mut worker = Process::start(&world.setup("worker"));
    assert!(worker.hear("trouble ").contains("the disk is full"));
    // It is tried again in vain: that is no reason to say that all is well.
    assert!(worker.hear("trouble ").contains("the disk is full"));
    assert!(!worker.heard.iter().any(|line| line == "trouble_over"), "{:?}", worker.heard);
    small.make_room();
    world.completed(&id);
    worker.hear("trouble_over");
    assert_eq!(world.read(&path).as_deref(), Some("text"));
    worker.stop();
}
