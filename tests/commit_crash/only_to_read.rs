//! SQLite opens a file that cannot be opened for writing to be read, without a
//! word: the database, its log, and the log's index. When that was a moment's
//! trouble, whoever has it so goes on.

use std::process::Command;

use jobq::handlers::CreateFile;

use super::strace;
use super::world::World;

#[test]
fn a_worker_goes_on_after_any_file_of_the_database_could_once_not_be_opened() {
    if !strace::is_there() {
        return;
    }
    for file in ["jobq.db", "jobq.db-wal", "jobq.db-shm"] {
        let world = World::new();
        // Somebody else has it open, so the log is there when the worker comes.
        let other = world.open();
        other.enqueue(CreateFile::text("made", file)).unwrap();
        let worker = world.jobq(&["worker", "--drain"]);
        let mut traced = Command::new("strace");
        traced.args(["-f", "-qq", "--inject=openat:error=EIO:when=1", "--trace=openat", "-P"]);
        traced.arg(world.root().join(".jobq").join(file)).arg("-o").arg(world.outside("log"));
        traced.arg("--").arg(worker.get_program()).args(worker.get_args()).current_dir("/");
        let said = traced.output().unwrap();
        let calls = std::fs::read_to_string(world.outside("log")).unwrap();
        assert!(calls.contains("(INJECTED)"), "{file}: {calls}");
        assert!(said.status.success(), "{file}: {said:?}");
        assert_eq!(std::fs::read_to_string(world.root().join("made")).unwrap(), file);
        drop(other);
    }
}
