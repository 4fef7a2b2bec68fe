//! What a program says on its third descriptor.

use jobq::{EventQuery, Filter, NewJob, Status};

use super::harness::{Place, assert_failed};

#[test]
fn progress_is_told_and_a_checkpoint_is_there_in_the_next_attempt() {
    let place = Place::new();
    place.handler(
        "steps",
        r#"if [ -z "$JOBQ_CHECKPOINT" ]; then
             echo '{"progress":40,"message":"first half"}' >&$JOBQ_FD
             echo '{"checkpoint":{"done":[1,2]}}' >&$JOBQ_FD
             exit 1
           fi
           echo "{\"seen\":$JOBQ_CHECKPOINT,\"attempt\":$JOBQ_ATTEMPT}""#,
    );
    let id = place.enqueue(NewJob::raw("steps", "{}").max_attempts(2));
    place.drain();
    let job = place.job(&id);
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert_eq!(job.result.unwrap().as_str(), r#"{"seen":{"done":[1,2]},"attempt":2}"#);
    let events = place.queue.events(&EventQuery { job_id: Some(id), limit: 100, ..EventQuery::default() }).unwrap();
    let told = events.iter().filter(|event| event.event_type == "progress");
    let told: Vec<_> = told.map(|event| event.data.as_ref().unwrap().as_str().to_owned()).collect();
    assert_eq!(told, [r#"{"percent":40,"message":"first half"}"#]);
}

#[test]
fn a_checkpoint_may_be_anything_and_be_taken_back() {
    let place = Place::new();
    place.handler("forgets", r#"echo '{"checkpoint":[1]}' >&$JOBQ_FD; echo '{"checkpoint":null}' >&$JOBQ_FD"#);
    let job = place.run_once("forgets", "{}");
    assert_eq!((job.status, job.checkpoint.unwrap().as_str()), (Status::Completed, "null"));
}

#[test]
fn follow_ups_are_queued_with_completion_and_not_before() {
    let place = Place::new();
    let line = r#"echo '{"enqueue":{"type":"create_file","payload":{"path":"next.txt","content":"n"},"priority":7}}' >&$JOBQ_FD"#;
    place.handler("fails", &format!("{line}; exit 65"));
    assert_failed(&place.run_once("fails", "{}"), &[]);
    let created = || place.queue.list(&Filter { job_type: Some("create_file".into()), ..Filter::default() }).unwrap();
    assert!(created().is_empty(), "the job has failed");
    place.handler("works", line);
    assert_eq!(place.run_once("works", "{}").status, Status::Completed);
    let created = created();
    assert_eq!((created.len(), created[0].priority), (1, 7));
    assert_eq!(place.read("next.txt"), "n", "and it has run");
}

#[test]
fn lines_may_come_in_pieces_and_the_last_needs_no_end() {
    let place = Place::new();
    place.handler(
        "pieces",
        r#"printf a > "$JOBQ_STAGE/a"; printf b > "$JOBQ_STAGE/b"
           printf '{"put":"out/a",' >&$JOBQ_FD; sleep 0.05; printf '"from":"a"}\n\n  \n{"put":"out/b","from":"b"}' >&$JOBQ_FD"#,
    );
    assert_eq!(place.run_once("pieces", "{}").status, Status::Completed);
    assert_eq!((place.read("out/a"), place.read("out/b")), ("a".to_owned(), "b".to_owned()));
}

#[test]
fn a_line_that_says_nothing_known_fails_the_job_and_ends_the_program() {
    let place = Place::new();
    let cases = [
        ("hello", "line 2"),
        ("{}", "one thing"),
        (r#"{"progres":40}"#, "progres"),
        (r#"{"progress":1,"remove":"a"}"#, "one thing"),
        (r#"{"message":"m","remove":"a"}"#, "message without progress"),
        (r#"{"put":"a"}"#, "put and from"),
        (r#"{"remove":"a","from":"a"}"#, "put and from"),
        (r#"{"put":"../a","from":"a"}"#, ".."),
        (r#"{"put":"a","from":"/etc/passwd"}"#, "absolute"),
        (r#"{"remove":".jobq/jobq.db"}"#, ".jobq"),
        (r#"{"enqueue":{"type":"x"}}"#, "payload"),
        (r#"{"enqueue":{"type":"x","payload":{},"delay":"soon"}}"#, "delay"),
        (r#"{"checkpoint":"LONG"}"#, "checkpoint"),
    ];
    for (number, (line, word)) in cases.into_iter().enumerate() {
        let line = line.replace("LONG", &"x".repeat(100_000));
        std::fs::write(place.path("line"), line).unwrap();
        // It would run for ever, so that it ends is the doing of the line.
        place.handler("says", "echo '{\"progress\":1}' >&$JOBQ_FD; cat line >&$JOBQ_FD; echo >&$JOBQ_FD; sleep 1000");
        let job = place.run_once("says", &format!("{{\"n\":{number}}}"));
        assert_failed(&job, &["protocol_error", "line 2 on JOBQ_FD", word]);
    }
    place.assert_no_litter();
}

#[test]
fn a_follow_up_job_whose_payload_has_a_key_twice_fails_its_job() {
    let place = Place::new();
    place.handler("twice", r#"echo '{"enqueue":{"type":"x","payload":{"a":1,"a":2}}}' >&$JOBQ_FD"#);
    assert_failed(&place.run_once("twice", "{}"), &["invalid_outcome", "follow-up job 1", "has the key \"a\" twice"]);
    assert_eq!(place.queue.list(&jobq::Filter::default()).unwrap().len(), 1);
}

#[test]
fn a_line_without_an_end_costs_no_memory() {
    let place = Place::new();
    place.handler("endless", "yes | tr -d '\\n' >&$JOBQ_FD");
    assert_failed(&place.run_once("endless", "{}"), &["protocol_error", "longer than"]);
}

#[test]
fn what_can_be_declared_has_a_bound_and_so_has_a_message() {
    let place = Place::new();
    let lines = |line: &str, number: usize| format!("yes '{line}' | head -n {number} >&$JOBQ_FD || true");
    for (kind, line) in [("follow-up jobs", r#"{"enqueue":{"type":"t","payload":{}}}"#), ("files", r#"{"remove":"a"}"#)]
    {
        place.handler("declares", &format!("{}\nsleep 1000", lines(line, 10_001)));
        let job = place.run_once("declares", &format!("{{\"kind\":\"{kind}\"}}"));
        assert_failed(&job, &["protocol_error", "line 10001", "10000", kind]);
    }
    place.handler("talks", "printf '{\"progress\":1,\"message\":\"%0100000d\"}\\n' 7 >&$JOBQ_FD");
    let job = place.run_once("talks", "{}");
    let events = place.queue.events(&EventQuery { job_id: Some(job.id), limit: 100, ..EventQuery::default() }).unwrap();
    let told = events.iter().find(|event| event.event_type == "progress").unwrap();
    assert_eq!(told.data.as_ref().unwrap().as_str(), format!(r#"{{"percent":1,"message":"{}"}}"#, "0".repeat(1000)));
}
