//! What becomes of an answer.

use jobq::handlers::{ClaudeExtraction, CreateFile, Format};
use jobq::{NewJob, Status, sha256_hex};
use serde_json::json;

use super::world::{World, ask, completed};

#[test]
fn an_answer_becomes_a_file_and_the_result_says_what_it_cost() {
    let world = World::new("success");
    let job = world.one_attempt(&ask("what follows?"));
    let text = "the answer to: what follows?";
    let expected = json!({
        "path": "out/a.md", "sha256": sha256_hex(text.as_bytes()), "size": text.len(), "requirement_id": "REQ-1",
        "prompt_hash": sha256_hex(b"what follows?"), "session_id": "session-1", "total_cost_usd": 0.25,
        "usage": {"input_tokens": 10, "output_tokens": 20}, "num_turns": 1, "duration_ms": 1200,
    });
    assert_eq!(completed(&job), expected);
    assert_eq!(world.read("out/a.md"), text);
    assert_eq!(world.queue.standing_extraction(&ask("what follows?")).unwrap(), Some(job.id));
}

#[test]
fn an_answer_takes_the_place_of_what_is_there() {
    let world = World::new("success");
    world.enqueue(CreateFile::text("out/a.md", "an earlier answer"));
    world.enqueue(ask("one?"));
    world.enqueue(ask("two?"));
    world.drain();
    assert_eq!(world.read("out/a.md"), "the answer to: two?", "in the order they were queued");
}

#[test]
fn json_is_freed_from_its_fence() {
    let world = World::new("json");
    let job = world.one_attempt(&ClaudeExtraction { format: Some(Format::Json), ..ask("as JSON") });
    assert_eq!(completed(&job)["size"], 8);
    assert_eq!(world.read("out/a.md"), "{\"a\": 1}");
    // Without the format an answer is any text.
    world.one_attempt(&ask("as you like"));
    assert!(world.read("out/a.md").starts_with("```json"));
}

#[test]
fn an_answer_that_is_not_json_is_kept_and_asked_for_again() {
    let world = World::new("prose json");
    std::fs::create_dir(world.root().join("out")).unwrap();
    std::fs::write(world.root().join("out/a.md"), "what was there").unwrap();
    let asked = ClaudeExtraction { format: Some(Format::Json), ..ask("as JSON") };
    let job = world.one_attempt(&asked);
    assert_eq!(job.status, Status::Failed);
    assert!(job.last_error.as_ref().unwrap().contains("not_json"), "{:?}", job.last_error);
    let result: serde_json::Value = job.result.expect("what it left").parse().unwrap();
    assert_eq!(result, json!({"raw": "I would rather not.", "total_cost_usd": 0.25}));
    assert_eq!(world.read("out/a.md"), "what was there");
    let again = world.one_attempt(&asked);
    assert_eq!(completed(&again)["path"], "out/a.md");
}

#[test]
fn what_failed_attempts_have_cost_is_in_the_sum() {
    let world = World::new("overloaded prose json");
    let asked = ClaudeExtraction { format: Some(Format::Json), ..ask("as JSON") };
    let backoff = jobq::Backoff { base_ms: 1, max_ms: 1 };
    let id = world.enqueue(NewJob::of(&asked).max_attempts(3).backoff(backoff));
    let _worker = world.worker();
    let job = world.ended(&id);
    assert_eq!(completed(&job)["total_cost_usd"], 1.0, "0.50 + 0.25 + 0.25");
    assert_eq!(job.attempts, 3);
}
