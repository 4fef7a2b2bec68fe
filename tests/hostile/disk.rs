//! Paths whose letters are right, and what lies there is not: links, folders, devices,
//! pipes. A job fails for good, whether it is to write there or to remove.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use serde_json::json;

use super::run::Seed;
use super::world::World;

/// A path, and where the first folder or file of it points to. `OUT` is the folder
/// beside the root.
const LINKS: [(&str, &str); 21] = [
    ("to-file", "inside/f.txt"),
    ("to-secret", "OUT/secret.txt"),
    ("to-secret-by-steps", "../outside/secret.txt"),
    ("to-nothing", "nowhere"),
    ("to-nothing-outside", "OUT/not-yet"),
    ("to-itself", "to-itself"),
    ("to-folder", "inside"),
    ("to-folder-outside", "OUT/folder"),
    ("to-the-root", "."),
    ("to-above", ".."),
    ("to-all", "/"),
    ("to-device", "/dev/null"),
    ("to-memory", "/proc/self/mem"),
    ("to-jobq", ".jobq"),
    ("by-folder/f.txt", "inside"),
    ("by-outside/f.txt", "OUT/folder"),
    ("by-outside-new/new/new.txt", "OUT/folder"),
    ("by-above/outside/secret.txt", ".."),
    ("by-jobq/jobq.db", ".jobq"),
    ("by-itself/f.txt", "by-itself"),
    ("by-processes/self/fd/1", "/proc"),
];

pub fn seeds(world: &World) -> Vec<Seed> {
    world.write("inside/f.txt", "old");
    world.write("folder/f.txt", "old");
    world.write("file", "old");
    let mut paths: Vec<String> = Vec::new();
    for (path, target) in LINKS {
        let name = path.split('/').next().unwrap();
        symlink(target.replace("OUT", world.outside().to_str().unwrap()), world.root().join(name)).unwrap();
        paths.push(path.to_owned());
    }
    // By all of it to what we may lose, if it comes to that.
    symlink("/", world.root().join("by-all")).unwrap();
    paths.push(format!("by-all{}/secret.txt", world.outside().display()));
    drop(UnixListener::bind(world.root().join("socket")).unwrap());
    let made = Command::new("mkfifo").arg(world.root().join("pipe")).status().unwrap();
    assert!(made.success());
    paths.extend(["socket", "socket/f", "pipe", "pipe/f", "folder", "file/f", "file/a/b/f"].map(str::to_owned));
    // Needs root; where it cannot be made it is one less.
    if Command::new("mknod").arg(world.root().join("null")).args(["c", "1", "3"]).output().unwrap().status.success() {
        paths.push("null".to_owned());
    }
    let mut seeds = Vec::new();
    for path in &paths {
        let create = json!({"path": path, "content": "attack", "overwrite": true});
        for (kind, payload) in [("create_file", create), ("delete_file", json!({"path": path}))] {
            let id = world.json(&["enqueue", kind, &payload.to_string()])[0]["id"].as_str().unwrap().to_owned();
            seeds.push(Seed::failed(id, format!("{kind} {path}"), format!("file_refused: {path}: ")));
        }
    }
    seeds
}
