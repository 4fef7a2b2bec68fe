//! Paths that are wrong by their letters, by every way in that takes one. That the
//! letters are judged right is tested in `tests/effects/traps.rs`; here it is that
//! every way in asks.

use serde_json::json;

use super::case::Case;

#[rustfmt::skip]
const WRONG: [&str; 52] = [
    // Nothing, the root itself, folders.
    "", ".", "./", "././.", "a/", "a//", "a/.", "a/./", ".//",
    // Upwards, by all detours.
    "..", "../", "../x", "../outside/secret.txt", "./../outside/secret.txt", ".//..//outside//secret.txt",
    "a/../../outside/secret.txt", "a/..", "a/../b", "a/b/c/../../../../outside/root-of-all", "../root/x", "x/../.jobq/x",
    // Absolute.
    "/", "//", "/etc/passwd", "//etc/passwd", "/./x", "/../x", "/proc/self/mem", "/dev/null",
    // Cut short for whoever ends strings with a zero.
    "\0", "a\0", "a\0b", "\0/etc/passwd", "a/\0/b", "ok.txt\0/../../x",
    // jobq's own, in all spellings that some filesystem takes for it.
    ".jobq", ".jobq/jobq.db", "./.jobq/x", ".//.jobq//stage/x", ".JOBQ/x", ".JobQ/jobq.db", ".jobQ", ".jobq/../f",
    ".jobq/handlers/evil", "sub/.jobq/config.toml", "a/b/.JobQ", "./sub//.jobQ/x.db", "sub/.jobq",
    "sub/.jo\u{200b}bq/x", ".jobq\u{feff}/x", ".jobq ", "sub/.jobq./x",
];

pub fn wrong() -> Vec<String> {
    let long = |bytes: usize| "x".repeat(bytes);
    let mut paths: Vec<String> = WRONG.map(str::to_owned).into();
    paths.extend([long(256), format!("a/{}/b", long(256)), "€".repeat(86), "d/".repeat(1536) + "ff", long(100_000)]);
    // If ever one of these leads there, no harm is done.
    paths.push(format!("{}proc/x", "../".repeat(1000)));
    paths
}

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, path) in wrong().iter().enumerate() {
        let create = json!({"path": path, "content": "x"}).to_string();
        let commit = json!({"writes": [{"path": "good.txt", "text": "x"}, {"path": path, "text": "x"}]}).to_string();
        cases.push(Case::refused(&["enqueue", "create_file", "-"], "path: ").stdin(create));
        cases.push(Case::refused(&["commit"], "path: ").stdin(commit));
        // One of the other ways in, each of them for several paths.
        let job = |kind: &str, payload: serde_json::Value| json!({"type": kind, "payload": payload}).to_string();
        let prompt = json!({"prompt": "p", "targetPath": path, "requirementId": "r"});
        cases.push(match number % 8 {
            0 => Case::refused(&["enqueue", "delete_file", "-"], "path: ").stdin(json!({"path": path}).to_string()),
            1 => {
                Case::refused(&["commit"], "removes[0]: path: ").stdin(json!({"removes": [{"path": path}]}).to_string())
            }
            2 => Case::refused(&["enqueue", "claude_extraction", "-"], "targetPath: ").stdin(prompt.to_string()),
            3 => Case::refused(&["enqueue", "--batch", "-"], "line 2: path: ").stdin(format!(
                "{}\n{}\n",
                job("create_file", json!({"path": "good.txt", "content": ""})),
                job("create_file", json!({"path": path, "contentBase64": ""}))
            )),
            4 => Case::refused(&["commit"], "path: ").stdin(
                json!({"writes": [{"path": "good.txt", "text": "x"}],
                       "jobs": [{"type": "delete_file", "payload": {"path": path}}]})
                .to_string(),
            ),
            5 => Case::refused(&["commit"], "path: ")
                .stdin(json!({"removes": [{"path": path, "expect": "absent"}]}).to_string()),
            6 => Case::refused(&["extract", "r.json", "--template", "t", "--target", "{{ target }}"], "target: ")
                .file("r.json", json!({"id": "r", "target": path}).to_string())
                .file("t", "ask"),
            // No argument has a zero in it.
            _ => Case::refused(&["blame", "--"], "path: ").argument(path.replace('\0', "/../").as_bytes()),
        });
    }
    cases
}
