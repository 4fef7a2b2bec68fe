//! Extractions through the library: queued with the files they come from, and not
//! asked for again while their answer stands.

#[path = "support/answering.rs"]
mod answering;

use std::path::PathBuf;
use std::time::Duration;

use jobq::extract::Template;
use jobq::handlers::{ClaudeExtraction, CreateFile, DeleteFile, Format};
use jobq::{NewJob, PruneRequest, Queue, Retention, Status};
use serde_json::json;

use answering::{answer_all, answer_all_keeping};

struct World {
    queue: Queue,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { queue: Queue::init(folder.path()).unwrap(), folder }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn stands(&self, extraction: &ClaudeExtraction) -> Option<String> {
        self.queue.standing_extraction(extraction).unwrap()
    }

    /// Queued and answered.
    fn done(extraction: &ClaudeExtraction) -> (Self, String) {
        let world = Self::new();
        let id = world.queue.enqueue(extraction.clone()).unwrap().id;
        assert_eq!(world.stands(extraction), None, "it is only queued");
        answer_all(world.folder.path());
        assert_eq!(world.stands(extraction).as_ref(), Some(&id));
        (world, id)
    }
}

fn extraction() -> ClaudeExtraction {
    ClaudeExtraction::new("REQ-1", "what follows?", "out/a.md")
}

#[test]
fn a_requirement_and_its_extraction_are_accepted_as_one() {
    let world = World::new();
    let requirement = json!({"id": "REQ-1", "text": "Invoices are numbered."});
    let template = Template::parse("What follows from: {{ text }}", "out/{{ id }}.md").unwrap();
    let extraction = template.fill(&requirement, None).unwrap();
    let commit = world.queue.commit(|tx| {
        tx.write_json("requirements/REQ-1.json", &requirement)?;
        tx.enqueue(extraction.clone())
    });
    let job = commit.unwrap().jobs.remove(0).id;
    assert!(world.path("requirements/REQ-1.json").exists());
    answer_all(world.folder.path());
    let answer = std::fs::read_to_string(world.path("out/REQ-1.md")).unwrap();
    assert_eq!(answer, "answer to What follows from: Invoices are numbered.");
    // It has no key to be found by.
    assert_eq!(world.stands(&extraction), Some(job));
}

#[test]
fn only_the_same_question_stands() {
    let (world, _) = World::done(&extraction());
    for other in [
        ClaudeExtraction::new("REQ-2", "what follows?", "out/a.md"),
        ClaudeExtraction::new("REQ-1", "what else?", "out/a.md"),
        ClaudeExtraction::new("REQ-1", "what follows?", "out/b.md"),
        ClaudeExtraction { format: Some(Format::Json), ..extraction() },
    ] {
        assert_eq!(world.stands(&other), None, "{other:?}");
    }
    for same in [
        ClaudeExtraction { prompt_hash: None, ..extraction() },
        ClaudeExtraction { format: Some(Format::Text), ..extraction() },
        ClaudeExtraction { target_path: "./out//a.md".into(), ..extraction() },
    ] {
        assert!(world.stands(&same).is_some(), "{same:?}");
    }
}

#[test]
fn an_answer_that_was_changed_or_removed_does_not_stand() {
    let (world, _) = World::done(&extraction());
    let file = world.path("out/a.md");
    let content = std::fs::read(&file).unwrap();
    // Another file with the same content will do.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(world.stands(&extraction()), None, "it is gone");
    std::fs::write(&file, &content).unwrap();
    assert!(world.stands(&extraction()).is_some());
    std::fs::write(&file, "somebody else's").unwrap();
    assert_eq!(world.stands(&extraction()), None, "it was changed");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(world.path("elsewhere"), &content).unwrap();
    std::os::unix::fs::symlink(world.path("elsewhere"), &file).unwrap();
    assert_eq!(world.stands(&extraction()), None, "it is a link");
}

#[test]
fn an_answer_that_another_job_has_replaced_does_not_stand() {
    let same_content = CreateFile { overwrite: true, ..CreateFile::text("out/a.md", "answer to what follows?") };
    let others: [NewJob; 3] = [
        ClaudeExtraction::new("REQ-1", "what else?", "out/a.md").into(),
        DeleteFile::at("out/a.md").into(),
        same_content.into(),
    ];
    for other in others {
        let (world, _) = World::done(&extraction());
        let other = world.queue.enqueue(other).unwrap();
        assert_eq!(world.stands(&extraction()), None, "{} is about to change it", other.job_type);
        answer_all(world.folder.path());
        assert_eq!(world.queue.get(&other.id).unwrap().status, Status::Completed);
        assert_eq!(world.stands(&extraction()), None, "{} has written it", other.job_type);
    }
}

#[test]
fn the_job_is_what_says_that_the_prompt_was_paid_for() {
    let (world, _) = World::done(&extraction());
    let file = world.queue.enqueue(CreateFile::text("b", "")).unwrap().id;
    answer_all(world.folder.path());
    let nothing_is_kept = Retention { completed: Some(Duration::ZERO), ..Retention::default() };
    // Each takes a part of what is old with it.
    let others_are_gone = (0..20).any(|_| {
        answer_all_keeping(world.folder.path(), nothing_is_kept.clone());
        world.queue.get(&file).is_err_and(|e| e.is_not_found())
    });
    assert!(others_are_gone, "workers delete other jobs");
    assert!(world.stands(&extraction()).is_some(), "workers keep extractions");
    let everything = PruneRequest { job_type: None, ended_before: i64::MAX, failed: false, forget: false };
    assert_eq!(world.queue.prune(everything).unwrap(), 1);
    assert_eq!(world.stands(&extraction()), None);
}
