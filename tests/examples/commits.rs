//! `requirements`: files and jobs accepted as one, by the library and by
//! `jobq commit` from two languages.

// It is a program of its own too; here its story is told to the test.
#[expect(dead_code, reason = "`main` is for `cargo run`")]
#[path = "../../examples/requirements.rs"]
mod requirements;

use std::fs::read_to_string;
use std::path::Path;

use jobq::handlers::ClaudeExtraction;
use jobq::{Filter, Gate, Job, Queue, Status};

use super::programs::{Example, JOBQ, ended, node, python};

const TEXT: &str = "Every invoice has a number. Numbers have no gaps – ever. Numbers never change.";

#[test]
fn in_rust() {
    let folder = tempfile::tempdir().unwrap();
    requirements::story(folder.path()).unwrap();
    check(folder.path());
}

#[test]
fn in_python() {
    tells_the_same(python("requirements.py"));
}

#[test]
fn in_node() {
    tells_the_same(node("requirements.mjs"));
}

fn tells_the_same(example: Option<Example>) {
    let Some(example) = example else { return };
    let folder = tempfile::tempdir().unwrap();
    let story = example.run(folder.path());
    let told: Vec<&str> =
        story.lines().filter_map(|line| line.split_once(": ")).map(|(what, _)| what).take(4).collect();
    assert_eq!(told, ["saved", "left window saved", "right window refused", "right window saved"], "{story}");
    assert!(story.contains("was expected to have sha256"), "{story}");
    check(folder.path());
    example.leaves_nothing_behind();
}

/// What every language leaves: the same bytes, and the jobs of three saves. The
/// refused one has left none.
fn check(folder: &Path) {
    let expected = format!(
        "{{\n  \"id\": \"REQ-1\",\n  \"title\": \"Invoices are numbered\",\n  \"text\": \"{TEXT}\",\n  \"revision\": 3\n}}\n"
    );
    assert_eq!(read_to_string(folder.join("data/REQ-1.json")).unwrap(), expected);
    let companion = read_to_string(folder.join("out/REQ-1.md")).unwrap();
    assert_eq!(companion, format!("# Invoices are numbered\n\n{TEXT}\n"));

    let jobs = jobs(folder);
    let states: Vec<_> = jobs.iter().map(|job| (job.job_type.as_str(), job.status)).collect();
    let one_save = [
        ("write_files", Status::Completed),
        ("create_file", Status::Completed),
        ("claude_extraction", Status::Pending),
    ];
    assert_eq!(states, one_save.repeat(3));
    // One extraction for each text, and they keep their order.
    let extractions = jobs.iter().filter(|job| job.job_type == "claude_extraction");
    let (gates, texts): (Vec<_>, Vec<_>) = extractions.map(|job| (job.gate, text_to_extract(job))).unzip();
    assert_eq!(gates, [Some(Gate::Ready), Some(Gate::Held), Some(Gate::Held)]);
    assert!(texts[0].ends_with("has a number.") && texts[1].ends_with("– ever."), "{texts:?}");
    assert_eq!(texts[2], TEXT);
}

fn jobs(folder: &Path) -> Vec<Job> {
    let mut jobs = Queue::open(folder).unwrap().list(&Filter::default()).unwrap();
    jobs.reverse();
    jobs
}

fn text_to_extract(job: &Job) -> String {
    let payload: ClaudeExtraction = job.payload.parse().unwrap();
    payload.prompt.split_once("\n\n").unwrap().1.to_owned()
}

#[test]
fn an_answer_that_is_lost_is_asked_for_again_and_nothing_is_done_twice() {
    let examples = [python("requirements.py"), node("requirements.mjs")];
    for example in examples.into_iter().flatten() {
        let (folder, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let calls = aside.path().join("calls");
        // Stands in for jobq on a disk that fails.
        let stand_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples/outcome_unknown.sh");
        let mut command = example.command();
        command.arg(folder.path()).env("JOBQ", stand_in).env("JOBQ_REAL", JOBQ).env("JOBQ_CALLS", &calls);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let calls = read_to_string(calls).unwrap();
        let calls: Vec<&str> = calls.lines().collect();
        assert_eq!(calls, ["lost after", "lost before", "told", "told", "told", "told"]);
        check(folder.path());
    }
}

#[test]
fn two_languages_at_once_lose_nothing() {
    let (Some(python), Some(node)) = (python("requirements.py"), node("requirements.mjs")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let children = [python.start(folder.path()), node.start(folder.path())];
    for child in children {
        ended(child);
    }
    let text = read_to_string(folder.path().join("data/REQ-1.json")).unwrap();
    assert!(text.contains("\"revision\": 6\n"), "{text}");
    for sentence in ["Every invoice has a number.", "Numbers have no gaps – ever.", "Numbers never change."] {
        assert_eq!(text.matches(sentence).count(), 2, "{text}");
    }
    let jobs = jobs(folder.path());
    let of = |kind: &str| jobs.iter().filter(|job| job.job_type == kind).collect::<Vec<_>>();
    assert_eq!(of("write_files").len(), 6, "a refused save has left a job");
    assert!(of("create_file").iter().all(|job| job.status == Status::Completed));
    let last = text_to_extract(of("claude_extraction")[5]);
    assert!(text.contains(&format!("\"text\": \"{last}\"")), "{text}");
    assert!(read_to_string(folder.path().join("out/REQ-1.md")).unwrap().ends_with(&format!("\n{last}\n")));
}
