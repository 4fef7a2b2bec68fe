//! What Claude Code says when it fails, and what is done about it.

use jobq::{NewJob, Status};

use super::world::{World, ask};

/// A prompt that must turn up nowhere.
const PROMPT: &str = "Say nothing of the merger with our friends, nor of \"authentication failed\" (API Error: 401)";
/// Nor must a part of it.
const PART: &str = "merger";

#[test]
fn some_failures_are_tried_again_and_some_are_not() {
    for (behaviour, is_retried, named) in [
        ("overloaded", true, "overloaded: claude failed (API status 529)"),
        ("exit", true, "exit code 3; stderr: something went wrong\u{fffd}[31m"),
        ("garbage", true, "no_answer: claude printed no result but"),
        ("half", true, "no_answer: claude printed no result but"),
        ("nothing", true, "no_answer: claude printed nothing"),
        ("signal", true, "signal 9 (SIGKILL)"),
        ("echo", true, "[prompt]"),
        ("part", true, "input was: [prompt]..."),
        ("blame", true, "claude_failed: claude failed: exit code 1: while answering: [prompt]"),
        ("update", true, "claude_failed: claude failed: exit code 1: Execution error: update check: HTTP 404"),
        ("unauthorised", false, "not_allowed: claude failed (API status 401)"),
    ] {
        let world = World::new(behaviour);
        let id = world.enqueue(
            NewJob::of(&ask(PROMPT)).max_attempts(2).backoff(jobq::Backoff { base_ms: 3_600_000, max_ms: 3_600_000 }),
        );
        let said = world.drain();
        let job = world.queue.get(&id).unwrap();
        let error = job.last_error.unwrap_or_default();
        let expected = if is_retried { Status::Pending } else { Status::Failed };
        assert_eq!((job.status, job.attempts), (expected, 1), "{behaviour}: {error}");
        assert!(error.contains(named), "{behaviour}: {error}");
        assert!(error.len() < 2_000 && !error.contains('\u{1b}'), "{behaviour}: {error}");
        assert!(!error.contains(PART) && !said.contains(PART), "{behaviour}: {error}\n{said}");
        let told: Vec<String> = world.events(&id).iter().map(|event| format!("{event:?}")).collect();
        assert!(!told.concat().contains(PART), "{behaviour}: {told:?}");
        assert!(!world.root().join("out").exists(), "{behaviour}: nothing was written");
    }
}

/// In all workers of the database, and nothing but the type.
#[test]
fn a_limit_pauses_the_type_for_the_time_it_says() {
    let world = World::new("limited success");
    let limited = world.enqueue(ask("one?"));
    world.drain();
    let other = world.enqueue(jobq::handlers::ClaudeExtraction::new("REQ-2", "two?", "out/b.md"));
    let file = world.enqueue(jobq::handlers::CreateFile::text("c", ""));
    world.drain();
    assert_eq!(world.calls().len(), 1, "nobody has asked again");
    let status = |id: &str| world.queue.get(id).unwrap().status;
    assert_eq!((status(&limited), status(&other)), (Status::Pending, Status::Pending));
    assert_eq!(status(&file), Status::Completed, "others go on");
}

/// However long a limit lasts, it uses no attempts up, and who ends its pause lets the jobs go on.
#[test]
fn a_limit_costs_no_attempt_and_is_over_when_someone_says_so() {
    let world = World::new("limited limited limited success");
    let at_once = jobq::Backoff { base_ms: 0, max_ms: 0 };
    let id = world.enqueue(NewJob::of(&ask("one?")).max_attempts(1).backoff(at_once));
    for _ in 0..3 {
        world.drain();
        let job = world.queue.get(&id).unwrap();
        assert_eq!((job.status, job.attempts), (Status::Pending, 0), "{:?}", job.last_error);
        assert!(world.command(&["handlers", "--resume", "claude_extraction"]).output().unwrap().status.success());
    }
    world.drain();
    let job = world.queue.get(&id).unwrap();
    assert_eq!((job.status, job.attempts), (Status::Completed, 1), "{:?}", job.last_error);
    assert_eq!(world.calls().len(), 4);
}

#[test]
fn output_without_end_does_not_hide_the_answer() {
    let world = World::new("huge");
    let job = world.one_attempt(&ask("p"));
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert_eq!(world.read("out/a.md"), "after all that");
}
