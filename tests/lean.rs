//! A jobq that was built without AWS.
#![cfg(all(feature = "cli", not(feature = "aws")))]

use std::path::Path;
use std::process::{Command, Output};

fn jobq(root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jobq")).args(args).current_dir(root).output().unwrap()
}

#[test]
fn jobs_for_aws_can_be_queued_and_wait_for_a_worker_that_can_run_them() {
    let root = tempfile::tempdir().unwrap();
    assert!(jobq(root.path(), &["init"]).status.success());
    let bucket = r#"{"resourceType":"AWS::S3::Bucket","resourceId":"b","config":{}}"#;
    assert!(jobq(root.path(), &["enqueue", "sync_aws", bucket]).status.success());
    let wrong = r#"{"resourceType":"S3","resourceId":"b","config":{}}"#;
    assert_eq!(
        jobq(root.path(), &["enqueue", "sync_aws", wrong]).status.code(),
        Some(2),
        "they are judged all the same"
    );
    assert!(jobq(root.path(), &["worker", "--drain"]).status.success());
    let listed = jobq(root.path(), &["list", "--json"]).stdout;
    assert!(String::from_utf8_lossy(&listed).contains(r#""status":"pending""#));
}

#[test]
fn what_aws_has_cannot_be_compared() {
    let root = tempfile::tempdir().unwrap();
    assert!(jobq(root.path(), &["init"]).status.success());
    let file = r#"{"path":"a.txt","content":"a"}"#;
    assert!(jobq(root.path(), &["enqueue", "create_file", file]).status.success());
    assert!(jobq(root.path(), &["worker", "--drain"]).status.success());
    std::fs::remove_file(root.path().join("a.txt")).unwrap();
    assert_eq!(jobq(root.path(), &["reconcile"]).status.code(), Some(1), "there is something to be found");
    let output = jobq(root.path(), &["reconcile", "--remote"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("built without AWS"));
    assert_eq!(output.stdout, b"", "nothing was compared before");
}
