//! `jobq config`: what holds, where it comes from, and what is wrong.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use super::harness::{Scratch, json_lines};

fn with_settings(text: &str) -> Scratch {
    let q = Scratch::new();
    std::fs::write(q.path().join(".jobq/config.toml"), text).unwrap();
    q
}

/// One setting, as a command says it.
fn setting(command: &mut Command, name: &str) -> Value {
    let output = command.args(["config", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = json_lines(&String::from_utf8(output.stdout).unwrap());
    lines.into_iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name} is not listed"))
}

#[test]
fn every_setting_says_where_it_comes_from() {
    let q =
        with_settings("busy_timeout = \"2s\"\n\n[worker]\nlease = \"90s\"\n[handlers.create_file]\ntimeout = \"1m\"\n");
    let db = q.db().canonicalize().unwrap();
    let cases = [
        ("db", json!(db), json!({"source": "default"})),
        ("root", json!(db.parent().unwrap().parent().unwrap()), json!({"source": "default"})),
        ("config", json!(db.with_file_name("config.toml")), json!({"source": "default"})),
        ("log", json!("warn"), json!({"source": "default"})),
        ("busy_timeout", json!("2s"), json!({"source": "file", "line": 1})),
        ("reconcile_at_start", json!(true), json!({"source": "default"})),
        ("worker.lease", json!("1m 30s"), json!({"source": "file", "line": 4})),
        ("worker.concurrency", json!(4), json!({"source": "default"})),
        ("worker.grace", Value::Null, json!({"source": "default"})),
        ("retention.completed", json!("14d"), json!({"source": "default"})),
        ("retention.types.claude_extraction", json!("forever"), json!({"source": "default"})),
        ("handlers.create_file.timeout", json!("1m"), json!({"source": "file", "line": 6})),
        ("handlers.delete_file.timeout", json!("5m"), json!({"source": "default"})),
        ("handlers.claude_extraction.command", json!(["claude"]), json!({"source": "default"})),
    ];
    for (name, value, from) in cases {
        let mut expected = from;
        expected["name"] = json!(name);
        expected["value"] = value;
        assert_eq!(setting(&mut q.command(&[]), name), expected);
    }
    let text = q.ok(&["config"]);
    let line = text.lines().find(|line| line.starts_with("worker.lease")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["worker.lease", "config.toml:4", "1m", "30s"]);
}

#[test]
fn what_is_typed_counts_before_the_environment_and_that_before_what_is_found() {
    let (here, there, named) = (Scratch::new(), Scratch::new(), Scratch::new());
    let at = |db: &std::path::Path, source: &str, by: Option<&str>| {
        let mut expected = json!({"name": "db", "value": db.canonicalize().unwrap(), "source": source});
        if let Some(by) = by {
            expected["by"] = json!(by);
        }
        expected
    };
    assert_eq!(setting(&mut here.command(&[]), "db"), at(&here.db(), "default", None));
    let in_env = |args: &[&str]| {
        let mut command = here.command(args);
        command.env("JOBQ_DB", there.db());
        command
    };
    assert_eq!(setting(&mut in_env(&[]), "db"), at(&there.db(), "env", Some("JOBQ_DB")));
    let root = named.path().to_str().unwrap();
    assert_eq!(setting(&mut in_env(&["--root", root]), "db"), at(&named.db(), "flag", Some("--root")));
    assert_eq!(
        setting(&mut in_env(&["--db", named.db().to_str().unwrap()]), "db"),
        at(&named.db(), "flag", Some("--db"))
    );
    let log = |args: &[&str]| {
        let line = setting(here.command(args).env("JOBQ_LOG", "debug"), "log");
        (line["value"].clone(), line["source"].clone())
    };
    assert_eq!(log(&[]), (json!("debug"), json!("env")));
    assert_eq!(log(&["-v"]), (json!("info"), json!("flag")));
    assert_eq!(log(&["-q"]), (json!("error"), json!("flag")));
    let colour = setting(here.command(&[]).env("NO_COLOR", "1"), "colour");
    assert_eq!((&colour["value"], &colour["by"]), (&json!("never"), &json!("NO_COLOR")));
}

#[test]
fn a_worker_takes_its_options_then_the_file_then_the_defaults() {
    let q = Scratch::new();
    let concurrency = |args: &[&str]| {
        let said = q.ok(&[&["worker", "--drain"], args].concat());
        json_lines(&said)[0]["concurrency"].clone()
    };
    assert_eq!(concurrency(&[]), json!(4));
    std::fs::write(q.path().join(".jobq/config.toml"), "[worker]\nconcurrency = 7\n").unwrap();
    assert_eq!(concurrency(&[]), json!(7));
    assert_eq!(concurrency(&["--concurrency", "9"]), json!(9));
}

#[test]
fn looking_at_the_settings_puts_no_root_on_record_and_tells_which_one_is() {
    let q = Scratch::empty();
    let folder = |name: &str| {
        std::fs::create_dir_all(q.path().join(name)).unwrap();
        q.path().join(name).canonicalize().unwrap()
    };
    let (files, other) = (folder("files"), folder("other"));
    q.ok(&["--db", "app.db", "init"]);
    let root = |args: &[&str]| {
        let line = setting(q.command(&["--db", "app.db"]).args(args), "root");
        (line["value"].clone(), line["source"].clone())
    };
    assert_eq!(root(&["--root", "other"]), (json!(other), json!("flag")));
    assert_eq!(root(&[]).1, json!("default"), "that was a look, and no more");
    q.ok(&["--db", "app.db", "--root", "files", "enqueue", "send_mail"]);
    assert_eq!(root(&[]), (json!(files), json!("database")));
    assert_eq!(root(&["--root", "files"]), (json!(files), json!("flag")));
    let said = q.run(&["--db", "app.db", "--root", "other", "config"]);
    assert!(said.code == 4 && said.stderr.contains("files"), "no other command would do it: {}", said.stderr);
    assert_eq!(setting(&mut q.command(&["--db", "app.db"]), "config")["value"], Value::Null, "the application's own");
}

/// What cannot be heeded is told, and not shown as if it held.
#[test]
fn a_level_of_logs_that_is_none_is_told() {
    let here = Scratch::new();
    for (slip, next) in [
        ("warning", "did you mean `warn`?"),
        ("debg", "did you mean `debug`?"),
        ("inf", "did you mean `info`?"),
        ("verbose", "the levels are error, warn"),
        ("jobq=info,verbose", "the levels are error, warn"),
        ("a=b=c", "jobq=debug"),
        ("jobq=nonsense", "jobq=debug"),
    ] {
        let said = here.command(&["config", "--json"]).env("JOBQ_LOG", slip).output().unwrap();
        let (out, err) = (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap());
        assert!(err.contains(&format!("JOBQ_LOG is `{slip}` and not heeded")) && err.contains(next), "{err}");
        assert!(out.contains(r#""name":"log","value":"warn","source":"default""#), "{out}");
    }
    for level in ["debug", "jobq=info", "WARN,jobq::worker=trace", "jobq::commit", "aws_config,hyper_util", "3"] {
        let said = here.command(&["config"]).env("JOBQ_LOG", level).output().unwrap();
        assert!(!String::from_utf8(said.stderr).unwrap().contains("not heeded"), "{level}");
    }
}

#[test]
fn a_broken_file_is_told_in_full_here_and_briefly_elsewhere() {
    let q = with_settings("busy_timout = \"5s\"\n[worker]\nlease = 5\n[handlers.x]\ncomand = [\"x\"]\n");
    let path = q.path().canonicalize().unwrap().join(".jobq/config.toml");
    let all = q.refused(2, &["config"]);
    let lines: Vec<&str> = all.lines().collect();
    assert_eq!(lines.len(), 3, "{all}");
    for (line, at, words) in [
        (lines[0], 1, ["busy_timout", "did you mean `busy_timeout`?"]),
        (lines[1], 3, ["worker.lease", "must be a text in quotes, but is 5"]),
        (lines[2], 5, ["handlers.x.comand", "did you mean `command`?"]),
    ] {
        assert!(line.contains(&format!("{}:{at}:", path.display())), "{line}");
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
    for args in [vec!["list"], vec!["worker", "--drain"], vec!["enqueue", "t", "{}"]] {
        let error = q.refused(2, &args);
        assert!(error.contains("config.toml:1: busy_timout") && error.contains("2 more; `jobq config`"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    std::fs::write(&path, "[worker\n").unwrap();
    assert!(q.refused(2, &["config"]).contains("config.toml:1: config:"));
}

#[test]
fn the_file_that_init_writes_changes_nothing_and_programs_are_listed() {
    let q = Scratch::new();
    let written = q.json(&["config"]);
    assert!(written.iter().all(|line| line["source"] != "file"), "{written:?}");
    let greet = q.path().join(".jobq/handlers/greet");
    std::fs::create_dir_all(greet.parent().unwrap()).unwrap();
    std::fs::write(&greet, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&greet, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = setting(&mut q.command(&[]), "handlers.greet.command");
    assert!(command["value"][0].as_str().unwrap().ends_with("/handlers/greet"), "{command}");
}

#[test]
fn settings_are_shown_beside_a_database_that_cannot_be_opened() {
    let q = with_settings("[worker]\nlease = \"7m\"\n");
    std::fs::write(q.db(), "this is not a database, and never was one, whatever its name may say").unwrap();
    let said = q.run(&["config"]);
    assert_eq!(said.code, 5, "{}", said.stderr);
    assert!(said.stdout.contains("7m") && said.stderr.contains("jobq doctor"), "{}{}", said.stdout, said.stderr);
}

/// What is given to handlers may be a password or a token: nobody who shows his screen shows it.
#[test]
fn values_given_to_handlers_are_shown_nowhere() {
    let q = with_settings(
        "[handlers.greet]\ncommand = [\"true\"]\nenv = { TOKEN = \"s3cr3t-1\" }\n\
         [handlers.claude_extraction]\nenv = { KEY = \"s3cr3t-2\" }\n",
    );
    let id = q.enqueue(&["greet", "{}"]);
    let env = |name: &str| setting(&mut q.command(&[]), name)["value"].clone();
    assert_eq!(env("handlers.greet.env"), json!({"TOKEN": "(not shown)"}));
    assert_eq!(env("handlers.claude_extraction.env"), json!({"KEY": "(not shown)"}));
    assert!(q.ok(&["config"]).contains("{ TOKEN = \"(not shown)\" }"));
    let commands = ["config", "handlers", "doctor", "worker --drain -vvv", "stats", "list", "events"];
    let show = format!("show {id}");
    for command in commands.into_iter().chain([show.as_str()]) {
        for form in [&[][..], &["--json"]] {
            let said = q.run(&[&command.split(' ').collect::<Vec<_>>(), form].concat());
            assert_eq!(said.code, 0, "{command}: {}", said.stderr);
            assert!(!(said.stdout + &said.stderr).contains("s3cr3t"), "{command} {form:?}");
        }
    }
    // A PIN without quotes is a mistake, and told without saying it.
    std::fs::write(q.path().join(".jobq/config.toml"), "[handlers.greet]\nenv = { PIN = 271828 }\n").unwrap();
    let error = q.refused(2, &["config"]);
    assert!(error.contains("handlers.greet.env.PIN") && !error.contains("271828"), "{error}");
}

#[test]
fn a_file_of_settings_that_is_none_is_told() {
    let q = Scratch::new();
    let file = q.path().join(".jobq/config.toml");
    let refused = |why: &str| {
        for args in [&["config"][..], &["list"]] {
            let said = q.refused(2, args);
            assert!(said.contains("config.toml") && said.contains(why), "{said}");
        }
        std::fs::remove_file(&file).unwrap();
    };
    std::fs::remove_file(&file).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &file, 0o600.into()).unwrap();
    refused("is not a file");
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    refused("is not a file");
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    refused("is a link to nothing");
    std::fs::write(&file, " ".repeat(2 << 20)).unwrap();
    refused("is larger than a MiB");
    q.ok(&["config"]);
}

#[test]
fn times_are_such_as_can_be_kept() {
    for (text, why) in [
        ("busy_timeout = \"36500000000d\"", "longer than a hundred years"),
        ("busy_timeout = \"5us\"", "shorter than a millisecond"),
        ("[worker]\nlease = \"200y\"", "longer than a hundred years"),
        ("[retention]\ncompleted = \"200y\"", "longer than a hundred years"),
        ("busy_timeout = \"1s\"\nbusy_timeout = \"2s\"", "duplicate key `busy_timeout`"),
    ] {
        let said = with_settings(text).refused(2, &["config"]);
        assert!(said.contains(why), "{text}: {said}");
    }
}
