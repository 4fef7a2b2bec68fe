//! What is not accepted leaves nothing: no file, no job, nothing staged.

use jobq::handlers::{CreateFile, WriteFiles};
use jobq::{Draft, Error, ErrorKind, NewJob, Result};

use super::world::{World, job, save};

#[test]
fn an_error_of_the_closure_means_that_nothing_happened() {
    let world = World::new();
    world.edit("kept", "as it was");
    let refused = world.unchanged(|queue| {
        queue.commit(|tx| {
            tx.remove("kept")?;
            save(tx, "x", "1")?;
            Err(Error::new(ErrorKind::Internal, "changed my mind"))
        })
    });
    assert_eq!(refused.unwrap_err().to_string(), "changed my mind");
}

#[test]
fn one_file_is_changed_once() {
    let world = World::new();
    let twice: [fn(&mut Draft) -> Result<()>; 4] = [
        |tx| tx.write("x", "1").and_then(|()| tx.write("x", "2")),
        |tx| tx.write("a/x", "1").and_then(|()| tx.write("a//./x", "2")),
        |tx| tx.write("x", "1").and_then(|()| tx.remove("x")),
        |tx| tx.write("x", "1").and_then(|()| tx.write("x/y", "2")),
    ];
    for fill in twice {
        let error = world.unchanged(|queue| queue.commit(fill)).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains('x'), "{error}");
    }
}

#[test]
fn what_could_never_be_done_is_refused_at_once() {
    let world = World::new();
    std::fs::create_dir(world.path("folder")).unwrap();
    std::os::unix::fs::symlink("/etc", world.path("link")).unwrap();
    for path in ["../x", "/etc/x", ".jobq/x", "", "folder", "link/x", "link", "a\0b", &"n".repeat(300)] {
        for remove in [false, true] {
            let fill = |tx: &mut Draft| {
                tx.enqueue(job("never"))?;
                if remove { tx.remove(path) } else { tx.write(path, "x") }
            };
            let error = world.unchanged(|queue| queue.commit(fill)).unwrap_err();
            assert!(error.is_invalid(), "{path:?}: {error}");
        }
    }
    let empty = world.unchanged(|queue| queue.commit(|_| Ok(()))).unwrap_err();
    assert!(empty.is_invalid() && empty.to_string().contains("empty"), "{empty}");
}

#[test]
fn one_unsound_job_refuses_all_of_it() {
    let world = World::new();
    let unsound: [fn() -> NewJob; 5] = [
        || CreateFile::text("../out", "x").into(),
        || NewJob::raw("note", "{}"),
        || NewJob::raw("note", "no json"),
        || job("bad id").id("job-1"),
        || job("elsewhere").after("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    ];
    for unsound in unsound {
        let fill = |tx: &mut Draft| {
            save(tx, "x", "1")?;
            tx.enqueue(unsound())
        };
        let error = world.unchanged(|queue| queue.commit(fill)).unwrap_err();
        assert!(error.is_invalid() && error.item() == Some(1), "{error}");
    }
}

#[test]
fn a_path_that_a_job_has_is_busy_and_the_job_is_named() {
    let world = World::new();
    let holder = world.queue.enqueue(CreateFile::text("out/a.txt", "x")).unwrap().id;
    let error = world.unchanged(|_| world.save("out/a.txt", "mine")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PathBusy);
    assert!(error.to_string().contains(&holder) && error.to_string().contains("out/a.txt"), "{error}");
    assert!(error.id().is_some_and(|id| error.to_string().contains(id)), "the commit is named too");
    world.queue.cancel(&holder).unwrap();
    world.save("out/a.txt", "mine").unwrap();
}

#[test]
fn the_work_of_a_commit_cannot_be_queued_by_hand() {
    let world = World::new();
    let payload = WriteFiles { files: Vec::new(), jobs_sha256: None };
    let error = world.unchanged(|queue| queue.enqueue(payload)).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("commit"), "{error}");
    let conn = crate::support::raw(world.queue.database());
    conn.execute("INSERT INTO jobs (id, type, payload) VALUES ('plain', 'write_files', '{\"files\":[]}')", []).unwrap();
    crate::support::claim(world.queue.store(), 1);
    let job = world.queue.get("plain").unwrap();
    assert_eq!(job.status, jobq::Status::Failed);
    assert!(job.last_error.unwrap().contains("jobq commit"));
}

/// Looked at before any check of it: what a commit's jobs mean is a part of what the commit is.
#[test]
fn a_job_nested_without_end_is_refused_and_not_followed() {
    let world = World::new();
    let deep = |levels: usize| "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels);
    for levels in [129, 100_000] {
        let payload = deep(levels);
        let commit = world.unchanged(|queue| {
            queue.commit(|tx| {
                save(tx, "x", "1")?;
                tx.enqueue(NewJob::raw("t", payload))
            })
        });
        let error = commit.unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("job 2: payload: is nested deeper"), "{error}");
    }
    // Nobody checks what plain SQL inserts until its type is known; it is compared all the same.
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let row = "INSERT INTO jobs (id, type, payload) VALUES (?1, 't', ?2)";
    rusqlite::Connection::open(world.path(".jobq/jobq.db")).unwrap().execute(row, [id, &deep(100_000)]).unwrap();
    let error = world.queue.enqueue(NewJob::raw("t", "{}").id(id)).unwrap_err();
    assert!(error.is_conflict(), "{error}");
}
