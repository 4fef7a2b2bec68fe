//! Handlers in other languages, put where their readers put them.

use std::path::Path;
use std::process::Command;

use jobq::{Filter, Job, NewJob, Queue, Status};

use super::programs::{Example, JOBQ, node, python};

const HANDLERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/handlers");

struct Place {
    folder: tempfile::TempDir,
    queue: Queue,
}

impl Place {
    fn with(names: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        let handlers = folder.path().join(".jobq/handlers");
        std::fs::create_dir(&handlers).unwrap();
        for name in names {
            std::fs::copy(Path::new(HANDLERS).join(name), handlers.join(name)).unwrap();
        }
        Self { folder, queue }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// Runs all there is with an interpreter that a handler's first line finds.
    fn run(&self, job_type: &str, payload: &str, interpreter: Option<&Example>) -> Job {
        let id = self.queue.enqueue(NewJob::raw(job_type, payload).max_attempts(1)).unwrap().id;
        let mut path = std::env::var("PATH").unwrap_or_default();
        if let Some(folder) = interpreter.and_then(Example::interpreter_folder) {
            path = format!("{}:{path}", folder.display());
        }
        let worker = Command::new(JOBQ)
            .args(["worker", "--drain", "--root"])
            .arg(self.folder.path())
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(worker.status.success(), "{worker:?}");
        self.queue.get(&id).unwrap()
    }
}

fn assert_completed(job: &Job, result: &str) {
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert_eq!(job.result.as_ref().unwrap().as_str(), result);
}

#[test]
fn in_shell() {
    let place = Place::with(&["word_count", "word_count.schema.json"]);
    place.write("notes.txt", "three little words\n");
    assert_completed(&place.run("word_count", r#"{"file":"notes.txt"}"#, None), r#"{"words":3}"#);
    assert_eq!(place.read("reports/notes.txt.txt"), "notes.txt has 3 words\n");
    assert!(place.queue.enqueue(NewJob::raw("word_count", r#"{"file":"../x"}"#)).is_err(), "its schema says so");
    assert_eq!(place.run("word_count", r#"{"file":"missing"}"#, None).status, Status::Failed);
}

#[test]
fn in_python() {
    let Some(python) = python("handlers/split_requirements") else { return };
    let place = Place::with(&["split_requirements"]);
    place.write("all.json", r#"[{"id":"REQ-1","title":"One"},{"id":"REQ-2","title":"Two"}]"#);
    let job = place.run("split_requirements", r#"{"file":"all.json"}"#, Some(&python));
    assert_completed(&job, r#"{"requirements": 2}"#);
    assert_eq!(job.checkpoint.unwrap().as_str(), r#"{"seen": 2, "attempts": 1}"#);
    assert_eq!(place.read("requirements/REQ-2.json"), "{\n  \"id\": \"REQ-2\",\n  \"title\": \"Two\"\n}\n");
    assert!(!place.folder.path().join("all.json").exists(), "it was to be removed");
    let queued = place.queue.list(&Filter { job_type: Some("word_count".into()), ..Filter::default() }).unwrap();
    assert_eq!(queued.len(), 2);
    let wrong = place.run("split_requirements", "{}", Some(&python));
    assert!(wrong.last_error.unwrap().contains("exit code 65"));
    let later = place.run("split_requirements", r#"{"file":"later.json"}"#, Some(&python));
    assert!(later.last_error.unwrap().contains("exit code 75: later.json is not there yet"));
}

#[test]
fn in_node() {
    let Some(node) = node("handlers/publish_page") else { return };
    let place = Place::with(&["publish_page"]);
    place.write("REQ-1.json", r#"{"id":"REQ-1","title":"One"}"#);
    let job = place.run("publish_page", r#"{"file":"REQ-1.json"}"#, Some(&node));
    // Queued without a key, it is known by its id.
    assert_completed(&job, &format!(r#"{{"page":"site/REQ-1.html","key":"{}"}}"#, job.id));
    assert_eq!(place.read("site/REQ-1.html"), "<h1>One</h1>\n");
}
