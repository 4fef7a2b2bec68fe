//! What a commit that is accepted does.

use jobq::handlers::{CreateFile, WriteFiles};
use jobq::{Draft, EnqueueOutcome, Gate, NewJob, Status, sha256_hex};

use super::world::{World, job};
use crate::support::event_types;

#[test]
fn the_root_is_where_it_was_when_the_queue_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let queue = jobq::QueueOptions::in_folder(folder.path()).create(true).root("target").open().unwrap();
    // The process may change its folder before its first commit.
    assert_eq!(queue.root(), std::path::absolute("target").unwrap());
}

#[test]
fn files_are_in_place_and_jobs_are_ready_when_it_returns() {
    let world = World::new();
    world.edit("old.txt", "old");
    world.edit("data/a.txt", "first");
    let commit = world
        .queue
        .commit(|tx| {
            tx.write("data/a.txt", "second")?;
            tx.write("new/deep/b.bin", vec![b'b', b'\n'])?;
            tx.remove("old.txt")?;
            tx.enqueue(job("one"))?;
            tx.enqueue(job("two"))
        })
        .unwrap();
    assert!(commit.applied && !commit.existing && commit.reason.is_none());
    let disk: Vec<_> = world.disk().into_iter().collect();
    let expected = [("data/a.txt", "second"), ("new/deep/b.bin", "b\n")];
    assert_eq!(disk, expected.map(|(path, content)| (path.to_owned(), content.to_owned())));
    let jobs = world.jobs();
    assert_eq!(jobs.iter().map(|job| job.job_type.as_str()).collect::<Vec<_>>(), ["write_files", "note", "note"]);
    assert_eq!(jobs[0].id, commit.id);
    for (listed, answered) in jobs[1..].iter().zip(&commit.jobs) {
        assert_eq!((&listed.id, listed.gate), (&answered.id, Some(Gate::Ready)));
        assert_eq!(listed.correlation_id.as_deref(), Some(commit.id.as_str()), "what belongs together can be found");
        assert_eq!(answered.outcome, EnqueueOutcome::Inserted);
    }
    assert_eq!(world.staged(), [""; 0]);
}

#[test]
fn the_job_that_writes_is_visible_and_has_hashes_but_no_contents() {
    let world = World::new();
    let fill = |tx: &mut Draft| tx.write("a.txt", "a secret of this test").and_then(|()| tx.enqueue(job("told")));
    let commit = world.queue.commit(fill).unwrap();
    let job = world.queue.get(&commit.id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Completed, 1));
    let payload: WriteFiles = job.payload().unwrap();
    assert_eq!(payload.files[0].sha256.as_deref(), Some(&*sha256_hex(b"a secret of this test")));
    assert_eq!(payload.files[0].size, Some(21));
    assert_eq!(world.queue.result::<WriteFiles>(&commit.id).unwrap().unwrap().jobs, commit.jobs);
    assert_eq!(event_types(&world.queue, &commit.id), ["queued", "claimed", "decided", "completed"]);
    for entry in std::fs::read_dir(world.path(".jobq")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(8).any(|part| part == b"a secret"), "{}", path.display());
        }
    }
}

#[test]
fn the_same_side_effect_runs_again_for_new_content() {
    let world = World::new();
    let companion = || CreateFile::text("out/a.txt", "the same");
    for content in ["one", "two"] {
        let commit = world.queue.commit(|tx| {
            tx.write("a.txt", content)?;
            tx.enqueue(companion())?;
            tx.enqueue(job("the same"))
        });
        let jobs = commit.unwrap().jobs;
        assert!(jobs.iter().all(|job| job.outcome == EnqueueOutcome::Inserted), "{jobs:?}");
    }
    // A key that was given is kept, and finds the job that has it.
    let keyed = || job("keyed").key("k");
    let first = world.queue.commit(|tx| tx.enqueue(keyed())).unwrap();
    let again = world.queue.commit(|tx| tx.write("b", "").and_then(|()| tx.enqueue(keyed()))).unwrap();
    assert_eq!((&again.jobs[0].id, again.jobs[0].outcome), (&first.jobs[0].id, EnqueueOutcome::Existing));
}

#[test]
fn without_files_it_is_a_batch_and_without_jobs_a_write() {
    let world = World::new();
    let batch = world.queue.commit(|tx| tx.enqueue(job("a")).and_then(|()| tx.enqueue(job("b")))).unwrap();
    assert_eq!((batch.status, batch.applied, batch.jobs.len()), (Status::Completed, true, 2));
    assert_eq!(world.jobs().len(), 2, "nothing else stands for it");
    let write = world.queue.commit(|tx| tx.write("x", "1").and_then(|()| tx.write("y", "2"))).unwrap();
    assert_eq!((write.applied, write.jobs.len(), world.disk().len()), (true, 0, 2));
}

#[test]
fn jobs_of_a_commit_may_wait_on_each_other() {
    let world = World::new();
    let first = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let commit = world.queue.commit(|tx| {
        tx.write("x", "1")?;
        tx.enqueue(job("first").id(first))?;
        tx.enqueue(job("second").after(first))
    });
    let jobs = commit.unwrap().jobs;
    assert_eq!(jobs[0].id, first);
    assert_eq!(world.queue.get(first).unwrap().gate, Some(Gate::Ready));
    assert_eq!(world.queue.get(&jobs[1].id).unwrap().waiting_on.as_deref(), Some(first));
}

#[test]
fn many_threads_commit_at_once() {
    let world = World::new();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let queue = &world.queue;
            scope.spawn(move || {
                for round in 0..20 {
                    let commit = queue.commit(|tx| {
                        tx.write(&format!("{thread}/{round}.txt"), format!("{thread} {round}"))?;
                        tx.enqueue(NewJob::raw("later", format!(r#"{{"n":{round}}}"#)))
                    });
                    assert!(commit.unwrap().applied);
                }
            });
        }
    });
    assert_eq!(world.disk().len(), 160);
    assert_eq!(world.disk()["7/19.txt"], "7 19");
    assert_eq!(world.jobs().len(), 320);
    assert_eq!(world.staged(), [""; 0]);
}

#[test]
fn a_queue_that_is_closed_leaves_no_trace_of_the_process() {
    let world = World::new();
    world.save("x", "1").unwrap();
    let owners = world.queue.owners_folder();
    assert_eq!(std::fs::read_dir(&owners).unwrap().count(), 1);
    let world = world.reopen();
    // The old one signed off when it was dropped, after the new one was opened.
    assert_eq!(std::fs::read_dir(&owners).unwrap().count(), 0);
    let conn = crate::support::raw(world.queue.database());
    assert_eq!(crate::support::count(&conn, "SELECT count(*) FROM owners"), 0);
}
