//! Which files jobs may change, as an application sets it.

use std::fs;
use std::io;
use std::sync::Arc;

use jobq::clock::ManualClock;
use jobq::effects::Act;
use jobq::handlers::CreateFile;
use jobq::{
    FilePolicy, JobTypes, ProgramHandlers, ProgramSettings, Queue, QueueOptions, Registry, Shutdown, Status, Worker,
    WorkerOptions,
};

use super::world::World;

fn with_policy(world: &World, policy: FilePolicy) -> jobq::Result<Queue> {
    QueueOptions::in_folder(world.root()).files(policy).open()
}

fn writable(globs: &[&str]) -> FilePolicy {
    FilePolicy { writable: Some(globs.iter().map(|glob| (*glob).to_owned()).collect()), ..FilePolicy::default() }
}

#[test]
fn what_is_decided_is_applied_whatever_the_policy_says_later() {
    let world = World::new();
    world.interpose(|act, _| if act == Act::Create { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) });
    let commit = world.save("data/a.txt", "accepted").unwrap();
    assert!(!commit.applied);
    world.clear();
    let now = world.queue.get(&commit.id).unwrap().run_at.unwrap();
    let options = QueueOptions::in_folder(world.root()).clock(Arc::new(ManualClock::at(now)));
    let queue = options.files(writable(&[])).open().unwrap();
    assert_eq!(world.read("data/a.txt"), "accepted");
    assert!(queue.commit(|tx| tx.write("data/b.txt", "later")).unwrap_err().is_invalid());
}

#[test]
fn a_policy_that_is_not_made_of_globs_is_refused() {
    let world = World::new();
    let error = with_policy(&world, writable(&["data/["])).err().unwrap();
    assert!(error.is_invalid() && error.message().contains("data/["), "{error}");
}

#[test]
fn an_application_protects_what_it_runs_and_allows_the_rest() {
    let world = World::new();
    let policy = |allow: &[&str]| FilePolicy {
        allow: allow.iter().map(|glob| (*glob).to_owned()).collect(),
        command_words: vec!["tools/build.sh".to_owned()],
        ..FilePolicy::default()
    };
    let queue = with_policy(&world, policy(&[])).unwrap();
    for path in ["tools/build.sh", "a/.git/config"] {
        let error = queue.enqueue(CreateFile::text(path, "x")).unwrap_err();
        assert!(error.is_invalid() && error.message().contains("FilePolicy::allow"), "{error}");
        assert!(queue.commit(|tx| tx.write(path, "x")).unwrap_err().is_invalid());
    }
    // What is only read and expected is nobody's business.
    queue
        .commit(|tx| {
            tx.expect("tools/build.sh", jobq::Expect::Absent)?;
            tx.write("b.txt", "x")
        })
        .unwrap();
    let queue = with_policy(&world, policy(&["**/.git/*", "tools/build.sh"])).unwrap();
    for path in ["tools/build.sh", "a/.git/config"] {
        queue.commit(|tx| tx.write(path, "x")).unwrap();
    }
}

/// The queue was opened before anybody knew the command.
#[test]
fn a_worker_protects_the_commands_of_its_own_programs() {
    let world = World::new();
    let handlers = world.path(".jobq/handlers");
    fs::create_dir_all(&handlers).unwrap();
    fs::write(handlers.join("build.schema.json"), "{}").unwrap();
    let queue = Arc::new(QueueOptions::in_folder(world.root()).types(JobTypes::builtin()).open().unwrap());
    let build = ProgramSettings::command(["sh", "tools/build.sh"]);
    let programs = ProgramHandlers::in_folder(&handlers).with("build", build);
    let job = queue.enqueue(CreateFile::text("tools/build.sh", "x")).unwrap().id;
    let registry = Registry::builtin().with_programs(&programs);
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(Arc::clone(&queue), registry, options).unwrap().run(&Shutdown::new()).unwrap();
    let job = queue.get(&job).unwrap();
    assert_eq!(job.status, Status::Failed);
    assert!(job.last_error.unwrap().contains("jobq reads or runs it for a handler"));
}
