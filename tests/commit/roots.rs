//! The folder jobs may touch belongs to the queue: whoever applies what another
//! has accepted does it in the same place.

use jobq::effects::Act;
use jobq::{ErrorKind, Queue, QueueOptions, Status};
use rustix::io::Errno;

#[test]
fn what_was_accepted_for_one_root_is_never_applied_in_another() {
    let folder = tempfile::tempdir().unwrap();
    let (home, other) = (folder.path().join("home"), folder.path().join("other"));
    std::fs::create_dir_all(&other).unwrap();
    let full = |act: Act, _: &str| if act == Act::Create { Err(Errno::NOSPC.into()) } else { Ok(()) };
    let queue = QueueOptions::in_folder(&home).create(true).root(&other).watched(full).open().unwrap();
    let commit = queue.commit(|tx| tx.write("file", "content")).unwrap();
    assert!(!commit.applied);
    let due = queue.get(&commit.id).unwrap().run_at.unwrap();
    drop(queue);
    // Nobody has to name it again, and nobody can name another one.
    let clock = std::sync::Arc::new(jobq::clock::ManualClock::at(due));
    let queue = QueueOptions::in_folder(&home).clock(clock).open().unwrap();
    assert_eq!(queue.get(&commit.id).unwrap().status, Status::Completed);
    assert_eq!(queue.root(), other);
    assert_eq!(std::fs::read_to_string(other.join("file")).unwrap(), "content");
    assert!(!home.join("file").exists());
    for wrong in [&home, &folder.path().to_owned()] {
        let error = QueueOptions::in_folder(&home).root(wrong).open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::WrongState);
        assert!(error.to_string().contains("other"), "{error}");
    }
    QueueOptions::in_folder(&home).root(folder.path().join("home/../other")).open().unwrap();
}

#[test]
fn a_root_is_named_before_the_first_file_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let sub = folder.path().join("sub");
    std::fs::create_dir(&sub).unwrap();
    Queue::init(folder.path()).unwrap().commit(|tx| tx.write("file", "x")).unwrap();
    assert_eq!(QueueOptions::in_folder(folder.path()).root(&sub).open().err().unwrap().kind(), ErrorKind::WrongState);
    assert_eq!(Queue::open(folder.path()).unwrap().root(), folder.path());
    QueueOptions::in_folder(folder.path()).root(folder.path()).open().unwrap();
}

#[test]
fn a_root_below_its_queue_moves_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (before, after) = (folder.path().join("before"), folder.path().join("after"));
    std::fs::create_dir_all(before.join("data")).unwrap();
    QueueOptions::in_folder(&before).create(true).root(before.join("data")).open().unwrap();
    std::fs::rename(&before, &after).unwrap();
    let queue = Queue::open(&after).unwrap();
    queue.commit(|tx| tx.write("file", "x")).unwrap();
    assert!(after.join("data/file").exists());
}
