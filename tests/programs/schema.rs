//! Schemas: which payloads a type takes, whoever queues them.

use jobq::{NewJob, Status};

use super::harness::{Place, assert_failed, opened_again, until};

const SCHEMA: &str = r#"{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}"#;

fn place() -> Place {
    let place = Place::new();
    place.handler("greet", "true");
    std::fs::write(place.handlers().join("greet.schema.json"), SCHEMA).unwrap();
    place
}

#[test]
fn a_payload_that_does_not_meet_its_schema_is_not_queued() {
    let place = place();
    let output = place.jobq().args(["enqueue", "greet", r#"{"name":7}"#]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/name") && said.contains("string"), "{said}");
    // An application in Rust that knows nothing of this type.
    let error = opened_again(&place).enqueue(NewJob::raw("greet", "{}")).unwrap_err();
    assert!(error.to_string().contains("\"name\""), "{error}");
    opened_again(&place).enqueue(NewJob::raw("greet", r#"{"name":"ada"}"#)).unwrap();
}

#[test]
fn a_schema_is_enough_for_a_type_to_be_judged() {
    let place = Place::new();
    std::fs::write(place.handlers().join("elsewhere.schema.json"), SCHEMA).unwrap();
    assert!(opened_again(&place).enqueue(NewJob::raw("elsewhere", "{}")).is_err());
}

#[test]
fn a_process_that_lives_long_learns_of_a_new_schema() {
    let place = Place::new();
    place.handler("greet", "true");
    place.queue.enqueue(NewJob::raw("greet", "{}").no_key()).unwrap();
    std::fs::write(place.handlers().join("greet.schema.json"), SCHEMA).unwrap();
    until("the schema is known", || place.queue.enqueue(NewJob::raw("greet", "{}").no_key()).is_err());
}

#[test]
fn rows_of_plain_sql_are_judged_too() {
    let place = place();
    let db = rusqlite::Connection::open(place.path(".jobq/jobq.db")).unwrap();
    db.execute(
        "INSERT INTO jobs (id, type, payload) VALUES ('a', 'greet', '{}'), ('b', 'greet', '{\"name\":\"b\"}')",
        [],
    )
    .unwrap();
    place.drain();
    assert_failed(&place.job("a"), &["schema", "\"name\""]);
    assert_eq!(place.job("b").status, Status::Completed);
}

#[test]
fn a_job_is_judged_again_when_it_runs() {
    let place = Place::new();
    place.handler("greet", "touch ran");
    let id = place.enqueue(NewJob::raw("greet", "{}"));
    std::fs::write(place.handlers().join("greet.schema.json"), SCHEMA).unwrap();
    place.drain();
    let job = place.job(&id);
    assert_failed(&job, &["invalid_input", "schema"]);
    assert_eq!((job.attempts, job.max_attempts), (1, 3), "no other attempt would help");
    assert!(!place.path("ran").exists());
}

#[test]
fn a_broken_schema_is_named_and_fails_nobody_s_rows() {
    let place = place();
    let file = place.handlers().join("greet.schema.json");
    std::fs::write(&file, "{ not json").unwrap();
    let output = place.jobq().args(["enqueue", "greet", "{}"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("greet.schema.json"), "{said}");
    let db = rusqlite::Connection::open(place.path(".jobq/jobq.db")).unwrap();
    db.execute("INSERT INTO jobs (id, type, payload) VALUES ('a', 'greet', '{\"name\":\"a\"}')", []).unwrap();
    place.drain();
    assert_eq!(place.job("a").status, Status::Pending, "it waits until the schema is in order");
    std::fs::write(&file, SCHEMA).unwrap();
    place.drain();
    assert_eq!(place.job("a").status, Status::Completed);
}
