//! A database and a folder are what they are, by whatever name or connection one comes to them.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use jobq::{ErrorKind, JobTypes, NewJob, Payload, Queue, QueueOptions};
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

fn app(queue: &Queue) -> Connection {
    Connection::open(queue.database()).unwrap()
}

fn mail() -> NewJob {
    NewJob::raw("send_mail", "{}")
}

/// The application has had it open for longer than the queue, and goes on with what nobody else can see.
#[test]
fn the_callers_transaction_must_be_on_the_file_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let before = Queue::init(folder.path()).unwrap();
    let mut app = app(&before);
    app.query_row("SELECT count(*) FROM jobs", [], |row| row.get::<_, i64>(0)).unwrap();
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", before.database().display()));
    }
    let queue = Queue::init(folder.path()).unwrap();
    let error = queue.enqueue_in(&app.transaction().unwrap(), mail()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDatabase, "{error}");
    assert!(error.to_string().contains("this connection is another file"), "{error}");
}

#[test]
fn the_callers_transaction_must_be_on_the_database_of_the_queue() {
    let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let root = one.path().join("o");
    std::fs::create_dir(&root).unwrap();
    let queue = QueueOptions::in_folder(one.path()).create(true).root(&root).open().unwrap();
    let mut app = app(&Queue::init(other.path()).unwrap());
    let transaction = app.transaction().unwrap();
    assert_eq!(queue.enqueue_in(&transaction, mail()).unwrap_err().kind(), ErrorKind::NoDatabase);
    transaction.commit().unwrap();
    let root: i64 = app.query_row("SELECT count(*) FROM jobq_meta WHERE key = 'root'", [], |row| row.get(0)).unwrap();
    assert_eq!(root, 0, "what one queue goes by is nothing to another");
    assert!(queue.enqueue_in(&Connection::open_in_memory().unwrap().transaction().unwrap(), mail()).is_err());
}

static TAKEN_AWAY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// What is looked at is looked at within a transaction, if plain SQL has inserted it.
#[derive(Serialize, Deserialize)]
struct Thief {}
impl Payload for Thief {
    const TYPE: &'static str = "thief";
    type Output = ();
    fn validate(&self) -> jobq::Result<()> {
        if let Some(path) = TAKEN_AWAY.lock().unwrap_or_else(PoisonError::into_inner).take() {
            std::fs::rename(&path, path.with_extension("taken")).unwrap();
        }
        Ok(())
    }
}

/// It is durable, and nobody finds it: asked again with the same id, by the database that is there.
#[test]
fn what_is_committed_to_a_file_that_was_taken_away_meanwhile_is_not_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let types = JobTypes::builtin().with::<Thief>();
    let queue = QueueOptions::in_folder(folder.path()).create(true).types(types).open().unwrap();
    app(&queue).execute("INSERT INTO jobs (id, type, payload) VALUES ('thief', 'thief', '{}')", []).unwrap();
    *TAKEN_AWAY.lock().unwrap() = Some(queue.database().to_owned());
    let error = queue.enqueue(mail()).unwrap_err();
    assert!(error.is_outcome_unknown() && error.to_string().contains("is no longer there"), "{error}");
    assert_eq!(queue.enqueue(mail()).unwrap_err().kind(), ErrorKind::NoDatabase);
}

/// Two that name it differently are no strangers to each other.
#[test]
fn one_folder_by_two_names_is_one_root() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("o")).unwrap();
    std::os::unix::fs::symlink("o", folder.path().join("link")).unwrap();
    drop(Queue::init(folder.path()).unwrap());
    let looking = |root: &str| {
        QueueOptions::in_folder(folder.path()).root(folder.path().join(root)).recover(false).open().unwrap()
    };
    let (one, other) = (looking("link"), looking("o"));
    one.enqueue(mail()).unwrap();
    other.enqueue(mail()).unwrap();
}

/// Such as the newest of many that are kept.
#[test]
fn a_root_that_is_a_link_may_lead_elsewhere_later() {
    let folder = tempfile::tempdir().unwrap();
    let open =
        || QueueOptions::in_folder(folder.path()).create(true).root(folder.path().join("current")).open().unwrap();
    for release in ["r1", "r2"] {
        std::fs::create_dir(folder.path().join(release)).unwrap();
        let _ = std::fs::remove_file(folder.path().join("current"));
        std::os::unix::fs::symlink(release, folder.path().join("current")).unwrap();
        open().commit(|tx| tx.write("a.txt", release)).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join(release).join("a.txt")).unwrap(), release);
    }
}

/// Of a queue that is moved with all that is in its folder.
#[test]
fn a_root_below_the_queue_moves_along_by_whatever_way_it_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::create_dir_all(real.join("o")).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    drop(QueueOptions::in_folder(&real).create(true).root(link.join("o")).open().unwrap());
    let moved = folder.path().join("moved");
    std::fs::rename(&real, &moved).unwrap();
    assert_eq!(Queue::open(&moved).unwrap().root(), moved.join("o"));
}

/// Its jobs would change its settings, its handlers, and what tells that its workers live.
#[test]
fn a_root_is_not_in_the_queues_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    drop(Queue::init(folder.path()).unwrap());
    std::fs::create_dir_all(folder.path().join(".jobq/owners")).unwrap();
    std::os::unix::fs::symlink(".jobq/owners", folder.path().join("innocent")).unwrap();
    for root in [".jobq", ".jobq/handlers", "innocent"] {
        let refused = QueueOptions::in_folder(folder.path()).root(folder.path().join(root)).open();
        let error = refused.map(drop).unwrap_err();
        assert!(error.kind() == ErrorKind::Invalid && error.to_string().contains("own folder"), "{root}: {error}");
    }
    let refused = QueueOptions::at(folder.path().join("app.db")).create(true).root(folder.path().join(".jobq")).open();
    assert_eq!(refused.map(drop).unwrap_err().kind(), ErrorKind::Invalid);
}
