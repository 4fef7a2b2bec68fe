//! A disk that does not play along, after the commit was accepted or before.

use std::io;

use jobq::effects::Act;
use jobq::{Gate, Status};
use rustix::io::Errno;

use super::world::{World, job};

/// Fails what is done for a path with this error.
fn failing(at: Act, path: &'static str, errno: Errno) -> impl FnMut(Act, &str) -> io::Result<()> + Send {
    move |act, what| if act == at && what.ends_with(path) { Err(errno.into()) } else { Ok(()) }
}

fn two_files(world: &World) -> jobq::Result<jobq::Accepted> {
    world.queue.commit(|tx| {
        tx.write("a", "new a")?;
        tx.write("b", "new b")?;
        tx.enqueue(job("after both"))
    })
}

#[test]
fn what_cannot_be_staged_is_not_accepted() {
    for (act, errno) in [(Act::Stage, Errno::NOSPC), (Act::SyncFile, Errno::IO), (Act::SyncFolder, Errno::IO)] {
        let world = World::new();
        world.interpose(move |done, what| if done == act && what != ".jobq" { Err(errno.into()) } else { Ok(()) });
        let error = world.unchanged(|_| two_files(&world)).unwrap_err();
        assert_eq!(error.is_disk_full(), errno == Errno::NOSPC, "{error}");
        world.clear();
        assert!(two_files(&world).unwrap().applied, "{act:?}: it works when the disk does");
    }
}

/// No room, no permission: accepted all the same, and applied when that is possible.
#[test]
fn what_cannot_be_applied_now_is_accepted_and_applied_later() {
    for errno in [Errno::NOSPC, Errno::ACCESS, Errno::ROFS] {
        let world = World::new();
        world.interpose(failing(Act::Create, "b", errno));
        let commit = two_files(&world).unwrap();
        assert_eq!((commit.status, commit.applied), (Status::Claimed, false));
        assert!(commit.reason.as_ref().unwrap().contains('b'), "{commit:?}");
        let waiting = world.queue.get(&commit.jobs[0].id).unwrap();
        assert_eq!(waiting.gate, Some(Gate::Waiting));
        let parent = world.queue.get(&commit.id).unwrap();
        assert!(parent.locked_by.is_none() && parent.last_error.is_some(), "nobody's, with its reason");
        assert_eq!(world.save("b", "another").unwrap_err().kind(), jobq::ErrorKind::PathBusy, "its paths stay held");

        world.clear();
        let now = parent.run_at.unwrap();
        let clock = std::sync::Arc::new(jobq::clock::ManualClock::at(now));
        let later = jobq::QueueOptions::in_folder(world.root()).clock(clock).open().unwrap();
        assert_eq!(later.get(&commit.id).unwrap().status, Status::Completed, "by whoever opens the queue");
        assert_eq!((world.read("a"), world.read("b")), ("new a".into(), "new b".into()));
        assert_eq!(later.get(&commit.jobs[0].id).unwrap().gate, Some(Gate::Ready));
        assert_eq!(later.get(&commit.id).unwrap().attempts, 1);
    }
}

/// What one of them has accepted is not litter because another does not know it.
#[test]
fn databases_in_one_folder_leave_each_others_contents_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| jobq::QueueOptions::at(folder.path().join(name)).create(true);
    let names = [".jobq/jobq.db", "app.db", "jobq.db", ".jobq/app.db"];
    let mut commits = Vec::new();
    for name in names {
        let queue = at(name).watched(|act, _| if act == Act::Create { Err(Errno::NOSPC.into()) } else { Ok(()) });
        let file = name.replace('/', "-");
        let commit = queue.open().unwrap().commit(|tx| tx.write(&format!("out/{file}"), name)).unwrap();
        assert!(!commit.applied);
        commits.push((name, file, commit.id));
    }
    for name in names {
        drop(at(name).open().unwrap());
    }
    for (name, file, id) in commits {
        let clock = std::sync::Arc::new(jobq::clock::ManualClock::at(i64::MAX / 2));
        let job = at(name).clock(clock).open().unwrap().get(&id).unwrap();
        assert_eq!(job.status, Status::Completed, "{name}: {:?}", job.last_error);
        assert_eq!(std::fs::read_to_string(folder.path().join("out").join(file)).unwrap(), name);
    }
}

/// Whoever knows the database by another name has the same lock files and staged contents.
#[test]
fn a_link_to_a_database_leads_to_all_that_belongs_to_it() {
    let world = World::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("app.db");
    std::os::unix::fs::symlink(world.path(".jobq/jobq.db"), &link).unwrap();
    let linked = jobq::QueueOptions::at(&link).open().unwrap();
    assert_eq!((linked.root(), linked.state_folder()), (world.root(), world.queue.state_folder()));
    assert!(linked.commit(|tx| tx.write("a", "new a")).unwrap().applied);
    assert_eq!(world.read("a"), "new a");
}

/// Another program gets between the renames of one commit.
#[test]
fn a_commit_that_comes_half_way_says_what_is_done_and_what_is_not() {
    let world = World::new();
    let target = world.path("b");
    world.interpose(
        move |act, what| {
            if act == Act::Create && what == "b" { std::fs::write(&target, "an editor's") } else { Ok(()) }
        },
    );
    let error = two_files(&world).unwrap_err();
    world.clear();
    assert!(!error.is_stale(), "something has happened");
    let message = error.to_string();
    assert!(message.contains("on disk: a") && message.contains("not done: b"), "{message}");
    assert!(message.contains("jobq retry"), "{message}");
    assert_eq!((world.read("a"), world.read("b")), ("new a".into(), "an editor's".into()));
    let id = error.id().unwrap().to_owned();
    let parent = world.queue.get(&id).unwrap();
    assert_eq!(parent.status, Status::Failed);
    assert!(parent.last_error.unwrap().starts_with("partial: "));
    let child = world.jobs().pop().unwrap();
    assert!(child.blocked.as_ref().unwrap().contains("failed"), "{child:?}");
    let blocked = world.queue.stats().unwrap().blocked;
    assert_eq!((blocked[0].id.as_str(), blocked[0].jobs), (id.as_str(), 1));

    assert_eq!(world.queue.retry(&id).unwrap().status, Status::Failed, "the editor's text is still there");
    assert_eq!(world.read("b"), "an editor's");
    // Nothing that others wait on is pruned, and what waits is unfinished.
    let all = jobq::PruneRequest { job_type: None, ended_before: i64::MAX, failed: true, forget: true };
    assert_eq!(world.queue.prune(all).unwrap(), 0);
    assert_eq!(world.queue.retry_accepting_disk(&id).unwrap().status, Status::Completed);
    assert_eq!(world.read("b"), "new b");
    assert_eq!(world.queue.get(&child.id).unwrap().gate, Some(Gate::Ready));
    assert_eq!(world.staged(), [""; 0]);
}

#[test]
fn one_commit_that_cannot_be_applied_does_not_stop_the_others() {
    let world = World::new();
    world.interpose(failing(Act::Create, "stuck", Errno::NOSPC));
    let stuck = world.save("stuck", "1").unwrap();
    assert!(!stuck.applied);
    for number in 0..5 {
        assert!(world.save(&format!("{number}"), "fine").unwrap().applied);
    }
    // Five that a dead process has left behind, and the one that cannot be applied among them.
    let world = world.reopen();
    assert_eq!(world.queue.get(&stuck.id).unwrap().status, Status::Claimed);
    assert!(world.save("another", "fine").unwrap().applied);
}
