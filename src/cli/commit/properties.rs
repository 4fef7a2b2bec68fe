//! Any document is refused as a whole, or does exactly what it says.

use std::collections::BTreeMap;
use std::path::Path;

use jobq::{Filter, Queue};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};

use super::*;

/// Names that get in each other's way, and some that are none.
fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![4 => "[ab]", 1 => Just("..".to_owned()), 1 => Just(".".to_owned()), 1 => Just(".jobq".to_owned()),
                           1 => Just(String::new())];
    vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn write() -> impl Strategy<Value = Value> {
    let content = prop_oneof![
        "[xy]{0,2}".prop_map(|text| json!({ "text": text })),
        any::<i16>().prop_map(|number| json!({ "json": { "n": [number] } })),
        "[A-Za-z0-9+/=]{0,4}".prop_map(|text| json!({ "base64": text })),
        Just(json!({})),
        Just(json!({ "text": "x", "json": 1 })),
    ];
    let expect = prop_oneof![4 => Just(None), 2 => Just(Some("absent".to_owned())), 1 => Just(Some("0".repeat(64)))];
    (path(), content, expect).prop_map(|(path, mut write, expect)| {
        write["path"] = path.into();
        if let Some(expect) = expect {
            write["expect"] = expect.into();
        }
        write
    })
}

fn document() -> impl Strategy<Value = Value> {
    let remove = path().prop_map(|path| json!({ "path": path }));
    let job = prop_oneof![
        any::<u8>().prop_map(|n| json!({ "type": "t", "payload": { "n": n } })),
        path().prop_map(|path| json!({ "type": "delete_file", "payload": { "path": path } })),
        Just(json!({ "type": "t" })),
    ];
    // Small lists: most documents should be in order.
    (vec(write(), 0..3), vec(remove, 0..2), vec(job, 0..2), 0..20_u8).prop_map(|(writes, removes, jobs, odd)| match odd
    {
        0 => json!({ "writes": jobs, "jobs": writes }),
        1 => json!([writes, removes]),
        2 => json!({ "id": "no-id", "writes": writes }),
        _ => json!({ "writes": writes, "removes": removes, "jobs": jobs }),
    })
}

fn submit(queue: &Queue, text: &str) -> Result<Accepted> {
    let document: Document = serde_json::from_str(text).map_err(|e| Error::invalid("commit", e))?;
    queue.commit(|draft| fill(draft, document))
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path == folder.join(".jobq") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// What an accepted document has done to these files.
fn done(mut files: BTreeMap<String, Vec<u8>>, document: &Value) -> BTreeMap<String, Vec<u8>> {
    let list = |name: &str| document[name].as_array().cloned().unwrap_or_default();
    let path = |change: &Value| jobq::normalise_path(change["path"].as_str().unwrap()).unwrap();
    for write in list("writes") {
        let content = match (&write["text"], &write["base64"]) {
            (Value::String(text), _) => text.clone().into_bytes(),
            (_, Value::String(text)) => base64::engine::general_purpose::STANDARD.decode(text).unwrap(),
            _ => (serde_json::to_string_pretty(&write["json"]).unwrap() + "\n").into_bytes(),
        };
        if write["expect"] == "absent" {
            assert!(!files.contains_key(&path(&write)), "it was expected to be absent: {write}");
        }
        assert_ne!(write["expect"].as_str(), Some(&*"0".repeat(64)), "nothing has that hash");
        files.insert(path(&write), content);
    }
    for remove in list("removes") {
        files.remove(&path(&remove));
    }
    files
}

fn cases(usual: u32) -> Config {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    Config { cases: given.unwrap_or(usual), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(cases(60))]

    /// Several in a row, in one place: what one leaves the next finds.
    #[test]
    fn a_document_does_what_it_says_or_nothing(documents in vec(document(), 1..6)) {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        for document in documents {
            let jobs = |queue: &Queue| queue.list(&Filter { limit: 1_000, ..Filter::default() }).unwrap().len();
            let (before, queued) = (files(folder.path()), jobs(&queue));
            match submit(&queue, &document.to_string()) {
                Ok(accepted) => {
                    prop_assert!(accepted.applied, "{document}");
                    prop_assert_eq!(files(folder.path()), done(before, &document), "{}", document);
                    let own = usize::from(document["writes"] != json!([]) || document["removes"] != json!([]));
                    let asked = document["jobs"].as_array().map_or(0, Vec::len);
                    prop_assert_eq!(jobs(&queue), queued + own + asked, "{}", document);
                }
                Err(error) => {
                    prop_assert!(!error.to_string().contains("panic"), "{document}: {error}");
                    prop_assert_eq!((files(folder.path()), jobs(&queue)), (before, queued), "{}", document);
                }
            }
        }
    }

    /// Whatever the text is.
    #[test]
    fn any_text_has_an_answer(text in prop_oneof!["\\PC{0,40}", "[\\[\\]{}\",:0-9a-z \\\\]{0,40}"]) {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::init(folder.path()).unwrap();
        prop_assert!(submit(&queue, &text).is_err());
        prop_assert!(files(folder.path()).is_empty());
    }
}
