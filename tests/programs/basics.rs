//! What a program is given, and what its end means.

use jobq::{NewJob, Status};

use super::harness::{Place, assert_failed};

#[test]
fn the_payload_comes_on_stdin_and_the_last_object_printed_is_the_result() {
    let place = Place::new();
    place.handler("greet", r#"echo "some words"; echo '{"first":1}'; cat; echo; echo bye"#);
    let job = place.run_once("greet", r#"{"name":"ada", "n":1.0}"#);
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert_eq!(job.result.unwrap().as_str(), r#"{"name":"ada", "n":1.0}"#, "as it was given");
    place.assert_no_litter();
}

#[test]
fn a_program_that_prints_no_object_leaves_no_result() {
    let place = Place::new();
    place.handler("quiet", "echo 42");
    let job = place.run_once("quiet", "{}");
    assert_eq!((job.status, job.result.is_none()), (Status::Completed, true));
}

/// A part of what was printed must not be taken for the whole.
#[test]
fn a_result_that_cannot_be_kept_fails_the_job_and_says_why() {
    let place = Place::new();
    place.executable(
        "prints",
        "#!/usr/bin/env python3\nimport json, sys\n\
         items = {'items': [{'n': n, 'pad': 'x' * 60} for n in range(20000)], 'nan': float('nan')}\n\
         kind = json.load(sys.stdin)['kind']\n\
         if kind != 'nan': del items['nan']\n\
         print(json.dumps(items if kind != 'nan' else {'x': items['nan'], 'y': {}}, indent=1 if kind == 'cut' else None))\n",
    );
    for (kind, word) in [("cut", "keep_output"), ("one_line", "keep_output"), ("nan", "not JSON")] {
        let job = place.run_once("prints", &format!("{{\"kind\":\"{kind}\"}}"));
        assert_failed(&job, &["invalid_outcome", word]);
        assert!(job.result.is_none());
    }
}

#[test]
fn the_environment_says_which_job_it_is_and_nothing_else_of_the_worker() {
    let place = Place::new();
    place.handler("show", "env > env.txt; pwd > pwd.txt");
    let id = place.enqueue(NewJob::raw("show", "{}").key("k1").correlation_id("c1"));
    let output = place
        .jobq()
        .args(["worker", "--drain"])
        .env("SECRET", "x")
        .env("AWS_SECRET_ACCESS_KEY", "x")
        .env("LC_TIME", "C")
        .env("TZ", "UTC")
        .output()
        .unwrap();
    assert!(output.status.success());
    let root = place.root().canonicalize().unwrap();
    assert_eq!(place.read("pwd.txt").trim(), root.to_str().unwrap());
    let text = place.read("env.txt");
    let has = |line: &str| assert!(text.lines().any(|l| l == line), "{line} is not in {text}");
    has(&format!("JOBQ_JOB_ID={id}"));
    has("JOBQ_TYPE=show");
    has("JOBQ_ATTEMPT=1");
    has("JOBQ_TOKEN=1");
    has("JOBQ_IDEMPOTENCY_KEY=k1");
    has("JOBQ_CORRELATION_ID=c1");
    has("JOBQ_CHECKPOINT=");
    has("JOBQ_FD=3");
    has("LC_TIME=C");
    has("TZ=UTC");
    let allowed = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];
    // What the shell sets by itself.
    let by_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    for line in text.lines() {
        let name = line.split('=').next().unwrap();
        let known = allowed.contains(&name) || by_shell.contains(&name);
        assert!(known || name.starts_with("LC_") || name.starts_with("JOBQ_"), "{line}");
    }
}

#[test]
fn a_job_that_was_queued_without_a_key_is_known_by_its_id() {
    let place = Place::new();
    place.handler("send", "echo \"{\\\"key\\\":\\\"$JOBQ_IDEMPOTENCY_KEY\\\"}\"");
    // The same mail on two days is sent twice.
    for _ in 0..2 {
        let job = place.run_once("send", r#"{"mail":"daily"}"#);
        assert_eq!(job.result.unwrap().as_str(), format!("{{\"key\":\"{}\"}}", job.id));
    }
}

#[test]
fn a_program_has_no_descriptors_but_its_own() {
    let place = Place::new();
    place.executable("fds", "#!/usr/bin/env python3\nimport os\nopen('fds.txt','w').write(' '.join(f for f in sorted(os.listdir('/proc/self/fd')) if os.path.exists('/proc/self/fd/' + f)))\n");
    let job = place.run_once("fds", "{}");
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    // 4 is the file that it writes this to.
    let found = place.read("fds.txt");
    assert!(["0 1 2 3", "0 1 2 3 4"].contains(&found.as_str()), "{found}");
}

#[test]
fn exit_codes_say_whether_another_attempt_may_help() {
    let place = Place::new();
    for (code, attempts) in [("75", 2), ("1", 2), ("65", 1)] {
        let id = place.enqueue(NewJob::raw("ends", format!("{{\"code\":{code}}}")).max_attempts(2));
        place.handler("ends", &format!("cat >/dev/null; echo trouble >&2; exit {code}"));
        place.drain();
        let job = place.job(&id);
        assert_failed(&job, &[&format!("exit code {code}"), "trouble"]);
        assert_eq!(job.attempts, attempts, "exit code {code}");
    }
}

#[test]
fn a_signal_is_named_and_retried() {
    let place = Place::new();
    place.handler("dies", "echo last words >&2; kill -SEGV $$");
    let id = place.enqueue(NewJob::raw("dies", "{}").max_attempts(2));
    place.drain();
    let job = place.job(&id);
    assert_failed(&job, &["signal 11 (SIGSEGV)", "last words"]);
    assert_eq!(job.attempts, 2);
}

#[test]
fn what_cannot_be_started_fails_for_good_and_says_why() {
    let place = Place::new();
    place.executable("no_interpreter", "#!/no/such/interpreter\n");
    assert_failed(&place.run_once("no_interpreter", "{}"), &["program_missing", "no_interpreter", "#!"]);
    place.executable("no_program", "\u{1}\u{2}\u{3}");
    let job = place.run_once("no_program", "{}");
    assert_eq!(job.status, Status::Failed, "{job:?}");
}

#[test]
fn a_file_that_may_not_be_executed_is_no_handler() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.handler("later", "true");
    let path = place.handlers().join("later");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let id = place.enqueue_once("later", "{}");
    let output = place.drain();
    assert_eq!(place.job(&id).status, Status::Pending, "it waits for a worker that can");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("later"), "{said}");
}

#[test]
fn built_in_types_are_never_taken_over() {
    let place = Place::new();
    place.handler("create_file", "touch taken_over");
    let job = place.run_once("create_file", r#"{"path":"a.txt","content":"a"}"#);
    assert_eq!((job.status, place.read("a.txt").as_str()), (Status::Completed, "a"));
    assert!(!place.path("taken_over").exists());
}

/// Somebody who can write the database can claim that a job was admitted. It fails before a program gets its payload.
#[test]
fn a_program_never_gets_text_that_is_not_a_json_object() {
    let place = Place::new();
    place.handler("count", "touch ran");
    let db = rusqlite::Connection::open(place.path(".jobq/jobq.db")).unwrap();
    for (id, payload, why) in [
        ("text", "$(touch ran)", "is not JSON"),
        ("list", "[1]", "is JSON but not an object"),
        ("deep", &format!("{}{}", "{\"a\":".repeat(129) + "1", "}".repeat(129)), "nested deeper than 128"),
        ("twice", r#"{"a":1,"a":2}"#, "has the key \"a\" twice"),
    ] {
        let forged = "INSERT INTO jobs (id, type, payload, gate, payload_hash, timeout, backoff_base, backoff_max)
                      VALUES (?1, 'count', ?2, 'ready', ?3, 60000, 0, 0)";
        db.execute(forged, [id, payload, &jobq::sha256_hex(payload.as_bytes())]).unwrap();
        place.drain();
        let job = place.job(id);
        assert_failed(&job, &["invalid_input: payload", why]);
        assert_eq!(job.attempts, 1, "it is not tried again");
        assert!(!place.path("ran").exists(), "{id}");
    }
}
