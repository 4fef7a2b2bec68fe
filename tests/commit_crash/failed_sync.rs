//! A sync that fails is an answer: what it was to make sure of is not called done on top of it.

use super::disk::{is_log, is_sync};
use super::strace::{self, At, Call};
use super::world::World;

/// Each sync of a file or folder that a commit makes, failing once. Either the caller is told, or
/// the commit is not called applied, or its files are put into that folder once more. What is
/// staged is not: a commit that cannot be made sure of is refused.
#[test]
fn a_commit_is_not_applied_on_top_of_a_sync_that_failed() {
    if !strace::is_there() {
        return;
    }
    let example = World::new();
    let calls = strace::census(&example.committer("commit"), &example.root(), &example.outside("log"));
    let syncs: Vec<&Call> = calls.iter().filter(|call| is_sync(call) && !call.line.contains("jobq.db")).collect();
    // Two staged files, their folder, the two above it, and the four that the commit changes.
    assert!(syncs.len() >= 8, "{syncs:#?}");
    for site in syncs {
        let world = World::new();
        let log = world.outside("log");
        let said = strace::injected(&world.committer("commit"), site, At::Fail("EIO"), &log, &[]).output().unwrap();
        let (made, _) = strace::calls(&log);
        let failed = made.iter().position(|call| call.line.contains("(INJECTED)")).expect("it has happened");
        if is_of_sqlite(&made[..failed]) {
            continue;
        }
        let applied = said.status.success() && String::from_utf8_lossy(&said.stdout).contains("\"applied\":true");
        assert!(
            !applied || is_done_again(&made[failed], &made[failed..], &world),
            "{}: {said:?} {made:#?}",
            made[failed].line
        );
    }
}

fn is_done_again(failed: &Call, after: &[Call], world: &World) -> bool {
    let folder = failed.line.split(['<', '>']).nth(1).unwrap();
    let inside = format!("<{folder}");
    let is_theirs = !folder.starts_with(world.root().join(".jobq").to_str().unwrap());
    // Where it came from is named first.
    let into = |call: &Call| {
        call.line.rsplit_once(", \"").and_then(|(from, _)| Some(from.split_once(", \"")?.1.contains(&inside)))
    };
    is_theirs && after.iter().any(|call| call.name.starts_with("rename") && into(call) == Some(true))
}

/// SQLite syncs the folder when it has made a file, and asks for no answer.
fn is_of_sqlite(before: &[Call]) -> bool {
    let [.., synced, opened] = before else { return false };
    opened.name.starts_with("open") && is_sync(synced) && (is_log(synced) || synced.line.contains("jobq.db"))
}
