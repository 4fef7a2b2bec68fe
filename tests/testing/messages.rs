//! What assertions that fail have to say.

use std::panic::Location;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

use jobq::handlers::{ClaudeExtraction, CreateFile, DeleteFile};
use jobq::testing::TestQueue;
use jobq::{NewJob, Registry};

use super::{Say, Then, World, message, say, world};

#[test]
fn what_is_there_instead_is_told() {
    let World { queue, .. } = world();
    let missing = || drop(queue.assert_enqueued(&say("hello", &[])));
    assert_eq!(message(missing), r#"no say with {"word":"hello","then":[]} is queued; the queue is empty"#);
    queue.enqueue(say("done", &[])).unwrap();
    queue.run_all();
    queue.enqueue(CreateFile::text("a", "\u{1b}")).unwrap();
    queue.enqueue(NewJob::raw("say", r#"{ "then": [], "word": "good bye" }"#).delay(Duration::from_secs(10))).unwrap();
    assert_eq!(
        message(missing),
        "no say with {\"word\":\"hello\",\"then\":[]} is queued; there are:\n  \
         say [pending, due in 10s] { \"then\": [], \"word\": \"good bye\" }\n  \
         create_file [pending] {\"path\":\"a\",\"content\":\"\\u001b\",\"overwrite\":false}\n  \
         say [completed] {\"word\":\"done\",\"then\":[]}"
    );
    assert_eq!(queue.assert_enqueued(&say("good bye", &[])).job_type, "say", "however it is written");
    assert!(message(|| drop(queue.assert_enqueued_where(|job: &Say| job.word == "hello"))).starts_with("no say like"));
    queue.assert_enqueued_where(|job: &Say| job.word.starts_with("good"));
    assert_eq!(queue.all_enqueued::<Say>(), [say("good bye", &[])]);
    queue.refute_enqueued_where(|job: &Say| job.word == "hello");
    let refused = message(|| queue.refute_enqueued::<Say>());
    assert!(refused.starts_with(r#"a say with { "then": [], "word": "good bye" } is queued; there"#), "{refused}");
}

/// Those that could be meant come first, and of what has run the newest.
#[test]
fn what_has_run_does_not_hide_what_is_queued() {
    let World { queue, .. } = world();
    for number in 0..30 {
        queue.enqueue(say(&format!("done {number}"), &[])).unwrap();
    }
    queue.run_all();
    queue.enqueue(CreateFile::text("a", "a")).unwrap();
    queue.enqueue(say("near", &[])).unwrap();
    let told = message(|| drop(queue.assert_enqueued(&say("far", &[]))));
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[1].contains("near") && lines[2].contains("create_file"), "{told}");
    assert!(lines[3].contains("done 29") && lines[20].contains("done 12"), "{told}");
    assert_eq!(lines[21..], ["  and 12 more"]);
}

#[test]
fn why_a_job_has_not_run_is_told() {
    let World { queue, .. } = world();
    let first = queue.enqueue(NewJob::of(&say("first", &[])).delay(Duration::from_secs(100)).lane("lane")).unwrap().id;
    queue.enqueue(NewJob::of(&say("after", &[])).after(&first)).unwrap();
    queue.enqueue(NewJob::of(&say("behind", &[])).lane("lane")).unwrap();
    queue.run_all();
    let told = message(|| queue.refute_enqueued::<Say>());
    let why = |word: &str| told.lines().skip(1).find(|line| line.contains(word)).unwrap();
    assert!(why("\"first\"").starts_with("  say [pending, due in 1m 40s] {"), "{told}");
    assert!(why("\"after\"").starts_with(&format!("  say [pending, waits on {first} (pending)] {{")), "{told}");
    assert!(why("\"behind\"").starts_with(&format!("  say [pending, behind {first} on ")), "{told}");

    let World { queue, .. } = world();
    queue.enqueue(say("wait", &[Then::Pause])).unwrap();
    queue.run_all();
    queue.enqueue(say("next", &[])).unwrap();
    let told = message(|| queue.refute_enqueued_where(|job: &Say| job.word == "next"));
    let next = told.lines().last().unwrap();
    assert!(next.starts_with("  say [pending, paused until ") && next.contains("busy]"), "{told}");
}

#[test]
fn a_job_that_nobody_here_can_run_is_told_of() {
    let queue = TestQueue::new(Registry::builtin());
    queue.enqueue(NewJob::raw("say", r#"{"word":"hello"}"#)).unwrap();
    assert_eq!(queue.run_all().completed, 0);
    let told = message(|| queue.refute_enqueued::<Say>());
    assert!(told.ends_with("\n  say [pending, no handler is registered for it] {\"word\":\"hello\"}"), "{told}");
}

#[test]
fn a_job_of_a_type_that_runs_programs_is_told_of() {
    let queue = TestQueue::new(Registry::builtin());
    queue.enqueue(ClaudeExtraction::new("r", "p", "x/a.json")).unwrap();
    assert_eq!(queue.run_all().attempts.len(), 0);
    let told = message(|| drop(queue.assert_enqueued(&say("hello", &[]))));
    assert!(told.contains("claude_extraction [pending, its type runs programs, which `run_all` does not] {"), "{told}");
}

/// Where a thread has panicked. Other tests panic meanwhile.
static WHERE: Mutex<Vec<(ThreadId, String)>> = Mutex::new(Vec::new());

fn place(of: impl FnOnce()) -> String {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let place = info.location().map(Location::to_string).unwrap_or_default();
        WHERE.lock().unwrap().push((thread::current().id(), place));
        before(info);
    }));
    message(of);
    let mut found = WHERE.lock().unwrap();
    let at = found.iter().rposition(|(thread, _)| *thread == thread::current().id()).unwrap();
    found.remove(at).1
}

#[test]
fn the_place_that_is_told_is_the_test_s() {
    let World { queue, .. } = world();
    let here = file!();
    assert!(place(|| drop(queue.assert_enqueued(&say("a", &[])))).starts_with(here));
    assert!(place(|| drop(queue.assert_enqueued_where(|_: &Say| true))).starts_with(here));
    // Payloads that do not parse are let in where nobody knows the type.
    let queue = TestQueue::new(Registry::new());
    queue.enqueue(NewJob::raw("say", "{}")).unwrap();
    queue.enqueue(NewJob::raw("delete_file", r#"{"path":"a"}"#)).unwrap();
    assert!(place(|| drop(queue.all_enqueued::<Say>())).starts_with(here));
    assert!(place(|| drop(queue.assert_enqueued_where(|_: &Say| true))).starts_with(here));
    assert!(place(|| queue.refute_enqueued::<Say>()).starts_with(here));
    assert!(place(|| queue.refute_enqueued::<DeleteFile>()).starts_with(here));
}

#[test]
fn the_place_of_a_run_that_fails_is_the_test_s() {
    let failing = || {
        let World { queue, .. } = world();
        std::fs::remove_file(queue.database()).unwrap();
        queue
    };
    let queue = failing();
    let line = line!() + 1;
    let told = place(|| drop(queue.run_all()));
    assert!(told.starts_with(&format!("{}:{line}:", file!())), "{told}");
    #[cfg(feature = "tokio")]
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let queue = failing();
        let line = line!() + 1;
        let told = place(|| drop(runtime.block_on(async { queue.run_all_async().await })));
        assert!(told.starts_with(&format!("{}:{line}:", file!())), "{told}");

        // What is between the test and the run is what panics, so the place is told beside.
        let (queue, hour) = (failing(), Duration::from_secs(3600));
        let line = line!() + 1;
        let within = || drop(runtime.block_on(async { tokio::time::timeout(hour, queue.run_all_async()).await }));
        let told = message(within);
        assert!(told.contains(&format!("(in the run of {}:{line}:", file!())), "{told}");
    }
}
