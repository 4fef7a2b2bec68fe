//! What a program says on its descriptor and prints as its result.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use super::case::{nested, shown};
use super::paths;
use super::run::Seed;
use super::world::World;

/// Says what lies in a file, and prints what lies in another.
const SAYS: &str = r#"#!/bin/sh
n=$(tr -cd 0-9)
printf staged > "$JOBQ_STAGE/staged"
ln -s "$JOBQ_ROOT/../outside/secret.txt" "$JOBQ_STAGE/link"
ln -s "$JOBQ_ROOT/../outside" "$JOBQ_STAGE/folder-link"
mkdir "$JOBQ_STAGE/folder"
cat "../said/$n" >&$JOBQ_FD
cat "../printed/$n"
"#;

/// Lines, and a word about each.
const WRONG: &[(&str, &str)] = &[
    ("hello", "line 1"),
    ("{}", "one thing"),
    ("[]", "line 1"),
    ("null", "line 1"),
    ("7", "line 1"),
    ("{", "line 1"),
    ("{\"progress\":1", "line 1"),
    ("{\"progress\":1}{\"progress\":2}", "trailing"),
    ("{\"progress\":\"forty\"}", "line 1"),
    ("{\"progress\":1e999}", "line 1"),
    ("{\"progress\":NaN}", "line 1"),
    ("{\"progress\":1,\"progress\":2}", "duplicate"),
    ("{\"progress\":1,\"message\":7}", "line 1"),
    ("{\"message\":\"m\",\"remove\":\"a\"}", "message without progress"),
    ("{\"progress\":1}\n{\"progress\":2}\nstop", "line 3"),
    ("{\"unknown\":1}", "unknown"),
    ("{\"\\u001b[31m\":1}", "unknown field"),
    ("\u{1b}[31m", "line 1"),
    ("{\"put\":\"a\"}", "put and from"),
    ("{\"from\":\"staged\"}", "one thing"),
    ("{\"put\":\"a\",\"from\":\"staged\",\"remove\":\"a\"}", "one thing"),
    ("{\"put\":7,\"from\":\"staged\"}", "line 1"),
    ("{\"put\":\"a\",\"from\":\"link\"}", "symbolic link"),
    ("{\"put\":\"a\",\"from\":\"folder-link/secret.txt\"}", "folder-link"),
    ("{\"put\":\"a\",\"from\":\"folder\"}", "a folder"),
    ("{\"put\":\"a\",\"from\":\"nowhere\"}", "is not in the stage folder"),
    ("{\"put\":\"a\",\"from\":\"staged\"}\n{\"put\":\"b\",\"from\":\"staged\"}", "named before"),
    ("{\"put\":\"a\",\"from\":\"staged\"}\n{\"remove\":\"a\"}", "a"),
    ("{\"remove\":\"folder-there\"}", "folder-there"),
    ("{\"put\":\"link-there/x\",\"from\":\"staged\"}", "link-there"),
    ("{\"remove\":\"link-there/secret.txt\"}", "link-there"),
    ("{\"remove\":null}", "one thing"),
    ("{\"enqueue\":{}}", "type"),
    ("{\"enqueue\":7}", "a job object"),
    ("{\"enqueue\":{\"type\":\"../x\",\"payload\":{}}}", "type"),
    ("{\"enqueue\":{\"type\":\"create_file\",\"payload\":{\"path\":\"../x\",\"content\":\"\"}}}", "path"),
    ("{\"enqueue\":{\"type\":\"t\",\"payload\":{},\"delay\":\"soon\"}}", "delay"),
    ("{\"enqueue\":{\"type\":\"t\",\"payload\":[]}}", "payload"),
    ("{\"enqueue\":{\"type\":\"write_files\",\"payload\":{\"files\":[]}}}", "write_files"),
];

/// Results that cannot be kept.
const RESULTS: &[&str] = &["{\"a\":1e999}", "{\"a\":NaN}", "{\"a\":", "{\"a\":\"\\ud800\"}", "{\"a\":1}\n{\"b\":"];

pub fn seeds(world: &World) -> Vec<Seed> {
    for folder in ["said", "printed"] {
        std::fs::create_dir(world.beside(folder)).unwrap();
    }
    world.write("folder-there/f", "old");
    std::os::unix::fs::symlink(world.outside(), world.root().join("link-there")).unwrap();
    let program = world.write(".jobq/handlers/says", SAYS);
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();

    let mut lines: Vec<(Vec<u8>, Vec<u8>, String)> = Vec::new();
    let said = |text: &[u8], word: &str| (text.to_vec(), Vec::new(), word.to_owned());
    lines.extend(WRONG.iter().map(|(line, word)| said(format!("{line}\n").as_bytes(), word)));
    for path in paths::wrong() {
        let path = serde_json::to_string(&path).unwrap();
        lines.push(said(format!("{{\"put\":{path},\"from\":\"staged\"}}\n").as_bytes(), "path: "));
    }
    for path in paths::wrong().into_iter().step_by(4) {
        let path = serde_json::to_string(&path).unwrap();
        lines.push(said(format!("{{\"put\":\"a\",\"from\":{path}}}\n").as_bytes(), "path: "));
        lines.push(said(format!("{{\"remove\":{path}}}\n").as_bytes(), "path: "));
    }
    lines.push(said(b"{\"progress\":1,\"message\":\"\xff\"}\n", "is not UTF-8"));
    lines.push(said(b"\0\0\0\n", "line 1"));
    lines.push(said(b"{\"remove\":\"a\xed\xa0\x80\"}\n", "is not UTF-8"));
    lines.push(said(nested(200_000).as_bytes(), "line 1"));
    lines.push(said(format!("{{\"checkpoint\":\"{}\"}}\n", "x".repeat(100_000)).as_bytes(), "checkpoint"));
    let deep = format!("{{\"enqueue\":{{\"type\":\"t\",\"payload\":{}}}}}\n", nested(200_000));
    lines.push(said(deep.as_bytes(), "nested deeper"));
    for result in RESULTS {
        lines.push((Vec::new(), result.as_bytes().to_vec(), "its result cannot be kept".to_owned()));
    }
    let deep = format!("{{\"a\":{}}}\n", nested(200_000));
    lines.push((Vec::new(), deep.into_bytes(), "its result cannot be kept".to_owned()));

    let mut jobs = String::new();
    for (n, (said, printed, _)) in lines.iter().enumerate() {
        std::fs::write(world.beside("said").join(n.to_string()), said).unwrap();
        std::fs::write(world.beside("printed").join(n.to_string()), printed).unwrap();
        let _ = writeln!(jobs, "{{\"type\":\"says\",\"payload\":{{\"n\":{n}}}}}");
    }
    let queued = world.jobq(&["enqueue", "--batch", "-", "--json"], jobs.as_bytes());
    let queued = queued.stdout.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice::<serde_json::Value>);
    let seed = |(job, (said, printed, word)): (serde_json::Value, &(Vec<u8>, Vec<u8>, String))| {
        Seed::failed(job["id"].as_str().unwrap(), format!("{} | {}", shown(said), shown(printed)), word)
    };
    let seeds: Vec<Seed> = queued.zip(&lines).map(seed).collect();
    assert_eq!(seeds.len(), lines.len());
    seeds
}
