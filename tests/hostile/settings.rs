//! `.jobq/config.toml`, read by every command.

use super::case::Case;

const WRONG: &[(&str, &str)] = &[
    ("x", "config: "),
    ("= 1", "config: "),
    ("busy_timeout", "config: "),
    ("busy_timeout = ", "config: "),
    ("busy_timeout = 5", "busy_timeout"),
    ("busy_timeout = []", "busy_timeout"),
    ("busy_timeout = \"\"", "busy_timeout"),
    ("busy_timeout = \"soon\"", "busy_timeout"),
    ("busy_timeout = \"-5s\"", "busy_timeout"),
    ("busy_timeout = \"5\"", "busy_timeout"),
    ("busy_timeout = \"99999999999999999999s\"", "busy_timeout"),
    ("busy_timeout = \"5s\"\nbusy_timeout = \"6s\"", "config: "),
    ("bussy_timeout = \"5s\"", "bussy_timeout"),
    ("\"\\u001b[31m\" = 1", "no such setting"),
    ("reconcile_at_start = 1", "reconcile_at_start"),
    ("reconcile_at_start = \"true\"", "reconcile_at_start"),
    ("[retention]\ncompleted = \"never\"", "retention.completed"),
    ("[retention]\ncompleted = 14", "retention.completed"),
    ("[retention]\nfailed = \"1d\"", "failed"),
    ("[retention]\nevents = \"1 fortnight\"", "retention.events"),
    ("[retention.types]\nx = \"\"", "retention.types.x"),
    ("worker = 4", "worker"),
    ("[worker]\nconcurrency = 0", "worker.concurrency"),
    ("[worker]\nconcurrency = 1025", "worker.concurrency"),
    ("[worker]\nconcurrency = 99999999999999999999", "worker.concurrency"),
    ("[worker]\nlease = \"1ms\"", "worker.lease"),
    ("[worker]\npoll_interval = \"0s\"", "worker.poll_interval"),
    ("[worker]\ngrace = \"soon\"", "worker.grace"),
    ("[worker]\ntypes = [\"a\"]", "worker.types"),
    ("[retention.types]\nx = true", "retention.types.x"),
    ("[retention]\n[retention]", "config: "),
    ("retention = \"14d\"", "retention"),
    ("[handlers]\nconcurrency = 2", "handlers.concurrency"),
    ("handlers = []", "handlers"),
    ("[handlers.x]\nconcurrency = 0", "handlers.x.concurrency"),
    ("[handlers.x]\nconcurrency = -1", "handlers.x.concurrency"),
    ("[handlers.x]\nconcurrency = 4294967296", "handlers.x.concurrency"),
    ("[handlers.x]\nconcurrency = 9223372036854775808", "handlers.x.concurrency"),
    ("[handlers.x]\nconcurrency = 1.5", "handlers.x.concurrency"),
    ("[handlers.x]\nconcurrency = nan", "handlers.x.concurrency"),
    ("[handlers.x]\nmax_attempts = 0", "handlers.x.max_attempts"),
    ("[handlers.x]\ntimeout = \"0s\"", "handlers.x.timeout"),
    ("[handlers.x]\ntimeout = \"200y\"", "handlers.x.timeout"),
    ("[handlers.x]\nbackoff = \"a while\"", "handlers.x.backoff"),
    ("[handlers.x]\nbackoff_max = \"200y\"", "handlers.x.backoff_max"),
    ("[handlers.x]\ngrace = \"\"", "handlers.x.grace"),
    ("[handlers.x]\ncommand = []", "handlers.x.command"),
    ("[handlers.x]\ncommand = [\"\"]", "handlers.x.command"),
    ("[handlers.x]\ncommand = \"rm -rf /\"", "handlers.x.command"),
    ("[handlers.x]\ncommand = [\"a\\u0000b\"]", "handlers.x.command"),
    ("[handlers.x]\ncommand = [\"a\", 7]", "handlers.x.command"),
    ("[handlers.x]\nenv = { \"A=B\" = \"\" }", "handlers.x.env"),
    ("[handlers.x]\nenv = { \"\" = \"\" }", "handlers.x.env"),
    ("[handlers.x]\nenv = { A = \"\\u0000\" }", "handlers.x.env"),
    ("[handlers.x]\nenv = { A = 1 }", "handlers.x.env"),
    ("[handlers.x]\npass_env = [\"\"]", "handlers.x.pass_env"),
    ("[handlers.x]\npass_env = [\"A=B\"]", "handlers.x.pass_env"),
    ("[handlers.x]\npermanent_exit_codes = [0]", "handlers.x.permanent_exit_codes"),
    ("[handlers.x]\npermanent_exit_codes = [256]", "handlers.x.permanent_exit_codes"),
    ("[handlers.x]\npermanent_exit_codes = [-1]", "handlers.x.permanent_exit_codes"),
    ("[handlers.x]\nkeep_output = -1", "handlers.x.keep_output"),
    ("[handlers.x]\nmodel = \"m\"", "handlers.x.model"),
    ("[handlers.x]\nregion = \"r\"", "handlers.x.region"),
    ("[handlers.x]\nshell = true", "shell"),
    ("[handlers.create_file]\ncommand = [\"/bin/sh\"]", "handlers.create_file.command"),
    ("[handlers.write_files]\ncommand = [\"/bin/sh\"]", "handlers.write_files.command"),
    ("[handlers.sync_aws]\nregion = \"\"", "handlers.sync_aws.region"),
    ("[handlers.claude_extraction]\nkeep_output = 1", "handlers.claude_extraction"),
    ("[handlers.\"\\u001b[31m\"]\nconcurrency = 0", "concurrency"),
    ("[handlers.\"a\\nb\"]\ncommand = []", "command"),
];

pub fn cases() -> Vec<Case> {
    let read = |text: &[u8], word: &str| Case::refused(&["enqueue", "t", "{}"], word).file(".jobq/config.toml", text);
    let mut cases: Vec<Case> = WRONG.iter().map(|(text, word)| read(text.as_bytes(), word)).collect();
    let deep = [
        ("a = ".to_owned() + &"[".repeat(100_000)),
        "a.".repeat(100_000) + "a = 1",
        "[a".to_owned() + &".a".repeat(100_000) + "]",
    ];
    cases.extend(deep.iter().map(|text| read(text.as_bytes(), "config: ")));
    let tables = format!("a = {}1{}", "{a=".repeat(100_000), "}".repeat(100_000));
    cases.push(read(tables.as_bytes(), "config: "));
    cases.push(read(b"busy_timeout = \"\xff\"", "config.toml"));
    cases.push(read(b"\0", "config: "));
    cases.push(read(b"\xff\xfeb\0", "config.toml"));
    cases
}
