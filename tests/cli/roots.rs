//! One queue has one folder that its jobs may touch, and nobody changes that by looking.

use std::os::unix::fs::symlink;

use super::harness::Scratch;
use super::running::start;

const FILE: &str = r#"{"path":"mine.txt","content":"1"}"#;

#[test]
fn looking_puts_no_root_on_record() {
    let q = Scratch::new();
    std::fs::create_dir(q.path().join("o")).unwrap();
    let elsewhere = ["--db", ".jobq/jobq.db", "--root", "o"];
    for looks in [&["list"][..], &["stats"], &["events"], &["reconcile"], &["handlers"]] {
        q.ok(&[&elsewhere[..], looks].concat());
    }
    assert_eq!(q.run(&[&elsewhere[..], &["show", "x"]].concat()).code, 3);
    q.enqueue(&["create_file", FILE]);
    q.ok(&["worker", "--drain"]);
    assert!(q.path().join("mine.txt").exists(), "where it was queued for");
}

/// What was accepted for one folder is not done in another.
#[test]
fn a_root_is_named_before_the_first_job() {
    let q = Scratch::new();
    std::fs::create_dir(q.path().join("o")).unwrap();
    q.enqueue(&["create_file", FILE]);
    for args in [&["worker", "--drain"][..], &["list"], &["enqueue", "create_file", "{}"]] {
        let error = q.refused(4, &[&["--db", ".jobq/jobq.db", "--root", "o"][..], args].concat());
        assert!(error.contains("jobs of this queue touch"), "{error}");
    }
    q.ok(&["worker", "--drain"]);
    assert!(q.path().join("mine.txt").exists());
}

/// Where the application queues and only the worker has the handler.
#[test]
fn jobs_of_a_type_that_nobody_knows_yet_are_jobs() {
    let q = Scratch::new();
    std::fs::create_dir(q.path().join("o")).unwrap();
    q.enqueue(&["not_known_yet", "{}"]);
    q.refused(4, &["--db", ".jobq/jobq.db", "--root", "o", "worker", "--drain"]);
}

/// A worker is not somebody who only looks: others may have to apply what it has decided.
#[test]
fn a_worker_that_is_told_a_root_puts_it_on_record() {
    let q = Scratch::new();
    std::fs::create_dir(q.path().join("o")).unwrap();
    q.ok(&["--db", ".jobq/jobq.db", "--root", "o", "worker", "--drain"]);
    q.ok(&["--db", ".jobq/jobq.db", "enqueue", "create_file", FILE]);
    q.ok(&["--db", ".jobq/jobq.db", "worker", "--drain"]);
    assert!(q.path().join("o/mine.txt").exists());
}

#[test]
fn init_puts_a_root_on_record_for_the_database_that_is_named() {
    let q = Scratch::empty();
    std::fs::create_dir(q.path().join("o")).unwrap();
    let said = q.run(&["--db", "app.db", "--root", "o", "init"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "made app.db\n"), "{}", said.stderr);
    assert!(said.stderr.contains("`jobq --db app.db enqueue"), "{}", said.stderr);
    q.ok(&["--db", "app.db", "enqueue", "create_file", FILE]);
    q.ok(&["--db", "app.db", "worker", "--drain"]);
    assert!(q.path().join("o/mine.txt").exists() && !q.path().join("o/.jobq").exists());
}

/// It would go on in the folder that it has begun with.
#[test]
fn a_worker_ends_when_a_root_is_put_on_record_meanwhile() {
    let q = Scratch::new();
    std::fs::create_dir(q.path().join("o")).unwrap();
    let (worker, mut lines) = start(&q, &["worker"]);
    assert!(lines.next().unwrap().unwrap().contains("worker_started"));
    q.ok(&["--db", ".jobq/jobq.db", "--root", "o", "enqueue", "create_file", FILE]);
    let (code, said) = worker.end();
    assert!(code == Some(5) && said.contains("was put on record by another process"), "{said}");
    q.ok(&["--db", ".jobq/jobq.db", "worker", "--drain"]);
    assert!(q.path().join("o/mine.txt").exists());
}

#[test]
fn a_link_to_the_folder_of_a_queue_gives_it_no_second_root() {
    let q = Scratch::empty();
    q.ok(&["init", "real"]);
    std::fs::create_dir(q.path().join("other")).unwrap();
    symlink("../real/.jobq", q.path().join("other/.jobq")).unwrap();
    for args in [&["list"][..], &["enqueue", "create_file", FILE], &["init"]] {
        let error = q.refused(2, &[&["--root", "other"][..], args].concat());
        assert!(error.contains("other/.jobq is a link; open the queue from"), "{error}");
    }
    // The link's target may have any name.
    std::fs::rename(q.path().join("real/.jobq"), q.path().join("real/kept")).unwrap();
    symlink("kept", q.path().join("real/.jobq")).unwrap();
    let error = q.refused(2, &["--root", "real", "list"]);
    assert!(error.contains("real/.jobq is a link"), "{error}");
}

/// The link is a name of the same queue.
#[test]
fn a_link_of_another_name_to_the_folder_of_a_queue_leads_to_its_root() {
    let q = Scratch::new();
    symlink(".jobq", q.path().join("state")).unwrap();
    q.ok(&["--db", "state/jobq.db", "enqueue", "create_file", FILE]);
    q.ok(&["--db", "state/jobq.db", "worker", "--drain"]);
    assert!(q.path().join("mine.txt").exists());
}

#[test]
fn a_link_to_the_database_leads_to_its_settings() {
    let q = Scratch::new();
    std::fs::write(q.path().join(".jobq/config.toml"), "[worker]\nconcurrency = 9\n").unwrap();
    symlink(".jobq/jobq.db", q.path().join("link.db")).unwrap();
    let lines = q.json(&["--db", "link.db", "config"]);
    let value = |name: &str| lines.iter().find(|line| line["name"] == name).unwrap()["value"].clone();
    assert_eq!(value("worker.concurrency"), 9);
    assert!(value("config").as_str().unwrap().ends_with("/.jobq/config.toml"));
}

#[test]
fn a_queue_without_its_database_is_not_passed_by_for_one_farther_up() {
    let q = Scratch::new();
    q.ok(&["init", "child"]);
    let child = q.path().join("child");
    std::fs::remove_file(child.join(".jobq/jobq.db")).unwrap();
    let output = q.command(&["enqueue", "create_file", FILE]).current_dir(&child).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("settings and no database") && said.contains("`jobq init --root"), "{said}");
    assert!(q.json(&["list"]).is_empty(), "nothing was queued farther up");
    std::os::unix::fs::symlink("nowhere", child.join(".jobq/jobq.db")).unwrap();
    std::fs::remove_file(child.join(".jobq/config.toml")).unwrap();
    let output = q.command(&["list"]).current_dir(&child).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(5) && said.contains("is a link"), "a disk that is not there: {said}");
    // One of an application's own leaves a folder of that name as well, and is found by its file only.
    std::fs::remove_dir_all(child.join(".jobq")).unwrap();
    q.ok(&["--db", "child/app.db", "init"]);
    q.ok(&["--db", "child/app.db", "worker", "--drain"]);
    assert!(child.join(".jobq").exists());
    assert!(q.command(&["enqueue", "create_file", FILE]).current_dir(&child).status().unwrap().success());
    assert_eq!(q.json(&["list"]).len(), 1);
}

#[test]
fn what_the_environment_says_is_named_as_the_cause() {
    let q = Scratch::new();
    let refused = |db: &str, args: &[&str]| {
        let output = q.command(args).env("JOBQ_DB", db).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = refused("gone.db", &["list"]);
    assert!(code == Some(3) && said.contains("gone.db (as JOBQ_DB says)"), "{said}");
    for args in [&["list"][..], &["init"]] {
        let (code, said) = refused(".jobq", args);
        assert!(code == Some(3) && said.contains("JOBQ_DB is for the file") && said.contains("`--root .`"), "{said}");
    }
    let (code, said) = refused("/dev/null", &["init"]);
    assert!(code == Some(2) && said.contains("/dev/null is not a file"), "{said}");
    assert!(q.refused(3, &["--db", "./.jobq", "list"]).contains("`--root .`"));
    let (code, said) = refused("other.db", &["init", "sub"]);
    assert!(
        code == Some(0) && said.contains("`jobq --root sub enqueue"),
        "the variable counts before a folder: {said}"
    );
}

#[test]
fn init_tells_that_it_has_added_tables() {
    let q = Scratch::empty();
    let app = rusqlite::Connection::open(q.path().join("app.db")).unwrap();
    app.execute_batch("CREATE TABLE mine (x)").unwrap();
    let init = ["--db", "app.db", "init"];
    assert_eq!(q.ok(&init), "added jobq's tables to app.db\n");
    assert_eq!(q.ok(&init), "app.db is there already\n");
    assert_eq!(q.json(&init)[0]["created"], false);
    let foreign = rusqlite::Connection::open(q.path().join("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE jobs (mine)").unwrap();
    for args in [&["list"][..], &["init"]] {
        let error = q.refused(5, &[&["--db", "foreign.db"][..], args].concat());
        assert!(error.contains("a table `jobs` of another program") && !error.contains("init` adds"), "{error}");
    }
}

#[test]
fn a_folder_where_the_database_should_be_is_not_blamed_on_the_environment() {
    let q = Scratch::empty();
    std::fs::create_dir_all(q.path().join(".jobq/jobq.db")).unwrap();
    let error = q.refused(2, &["init"]);
    assert!(error.contains("jobq.db is not a file") && !error.contains("JOBQ_DB"), "{error}");
}
