//! JSON files: how they look, and how nobody's change is lost.

use std::cell::Cell;
use std::collections::BTreeMap;

use jobq::{ErrorKind, Expect, sha256_hex};

use super::world::{World, job};

#[test]
fn a_value_is_written_readably_and_always_the_same_way() {
    let world = World::new();
    let value = BTreeMap::from([("title", serde_json::json!("Größe\n")), ("list", serde_json::json!([1, {}]))]);
    world.queue.commit(|tx| tx.write_json("a.json", &value)).unwrap();
    let text = "{\n  \"list\": [\n    1,\n    {}\n  ],\n  \"title\": \"Größe\\n\"\n}\n";
    assert_eq!(world.read("a.json"), text);
    let read = world.queue.read_json::<serde_json::Value>("a.json").unwrap();
    assert_eq!(read.value.unwrap()["list"][0], 1);
    assert_eq!(read.expect, Expect::Sha256(sha256_hex(text.as_bytes())));
}

#[test]
fn what_cannot_be_read_is_told_by_its_path() {
    let world = World::new();
    let absent = world.queue.read_json::<u32>("none.json").unwrap();
    assert_eq!((absent.value, absent.expect), (None, Expect::Absent));
    world.edit("bad.json", "{");
    world.edit("other.json", "\"text\"");
    std::os::unix::fs::symlink("other.json", world.path("link.json")).unwrap();
    for path in ["bad.json", "other.json", "link.json", "../x", ".jobq/jobq.db"] {
        let error = world.queue.read_json::<u32>(path).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains(path.trim_start_matches("../")), "{error}");
    }
}

/// Its `.jobq` is made only when it is needed, and that may be now.
#[test]
fn the_first_thing_done_with_an_applications_database_can_be_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let queue = jobq::QueueOptions::at(folder.path().join("app.db")).create(true).open().unwrap();
    assert_eq!(queue.read_json::<u32>("n.json").unwrap().expect, Expect::Absent);
    queue.update_json("n.json", |value: Option<u32>, _| Ok(value.unwrap_or(0) + 1)).unwrap();
    assert_eq!(queue.read_json::<u32>("n.json").unwrap().value, Some(1));
}

#[test]
fn an_update_starts_over_when_somebody_was_faster() {
    let world = World::new();
    let calls = Cell::new(0);
    let commit = world.queue.update_json("n.json", |value: Option<u32>, tx| {
        calls.set(calls.get() + 1);
        if calls.get() < 3 {
            world.edit("n.json", &format!("{}", calls.get() * 10));
        }
        tx.enqueue(job("once"))?;
        Ok(value.unwrap_or(0) + 1)
    });
    assert_eq!((calls.get(), commit.unwrap().jobs.len()), (3, 1));
    assert_eq!(world.read("n.json"), "21\n");
    assert_eq!(world.jobs().len(), 2, "what was refused has left nothing");
}

#[test]
fn an_update_does_not_insist_on_what_will_not_help() {
    let world = World::new();
    let calls = Cell::new(0);
    let error = world.queue.update_json("n.json", |_: Option<u32>, _| {
        calls.set(calls.get() + 1);
        Err::<u32, _>(jobq::Error::new(ErrorKind::PathBusy, "the closure's own refusal"))
    });
    assert_eq!((error.unwrap_err().kind(), calls.get()), (ErrorKind::PathBusy, 1));
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let numbered = |number: u32| world.queue.update_json("n.json", |_: Option<u32>, tx| tx.id(id).map(|()| number));
    numbered(1).unwrap();
    assert_eq!(numbered(2).unwrap_err().kind(), ErrorKind::Conflict, "another commit has the id");
}
