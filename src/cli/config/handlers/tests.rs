use super::super::Config;
use super::*;

/// What is wrong first, and where.
#[track_caller]
fn wrong(text: &str) -> (String, usize) {
    let problem = Config::parse(text).err().unwrap().swap_remove(0);
    (problem.name, problem.line)
}

#[test]
fn a_type_may_have_a_limit() {
    let text =
        "[handlers.send_mail]\nconcurrency = 2\n[handlers.\"odd name\"]\n[handlers.create_file]\nconcurrency = 1";
    let limits = Config::parse(text).unwrap().limits();
    let limits: Vec<_> = limits.iter().map(|(name, limit)| (name.as_str(), *limit)).collect();
    assert_eq!(limits, [("create_file", 1), ("send_mail", 2)]);
}

#[test]
fn what_cannot_be_is_refused_and_named() {
    for (text, field) in [
        ("concurrency = 0", "handlers.x.concurrency"),
        ("concurrency = -1", "handlers.x.concurrency"),
        ("concurrency = \"two\"", "handlers.x.concurrency"),
        ("concurency = 2", "handlers.x.concurency"),
        ("max_attempts = 0", "handlers.x.max_attempts"),
        ("timeout = \"0s\"", "handlers.x.timeout"),
        ("timeout = \"soon\"", "handlers.x.timeout"),
        ("backoff = \"x\"", "handlers.x.backoff"),
        ("grace = \"x\"", "handlers.x.grace"),
        ("timeout = \"37000d\"", "handlers.x.timeout"),
        ("backoff = \"37000d\"", "handlers.x.backoff"),
        ("backoff_max = \"37000d\"", "handlers.x.backoff_max"),
        ("grace = \"37000d\"", "handlers.x.grace"),
        ("env = { \"\" = \"x\" }", "handlers.x.env"),
        ("env = { \"A=B\" = \"x\" }", "handlers.x.env"),
        ("env = { \"A\\u0000\" = \"x\" }", "handlers.x.env"),
        ("env = { A = \"\\u0000\" }", "handlers.x.env.A"),
        ("pass_env = [\"A=B\"]", "handlers.x.pass_env"),
        ("permanent_exit_codes = [0]", "handlers.x.permanent_exit_codes"),
        ("permanent_exit_codes = [2, 256]", "handlers.x.permanent_exit_codes"),
        ("command = [\"a\", \"\\u0000\"]", "handlers.x.command"),
        ("command = []", "handlers.x.command"),
        ("command = \"python3\"", "handlers.x.command"),
    ] {
        assert_eq!(wrong(&format!("[handlers.x]\n{text}")), (field.to_owned(), 2), "{text}");
    }
    for (text, field) in [
        ("[handlers]\nconcurrency = 2", "handlers.concurrency"),
        ("[handlers.x]\nmodel = \"m\"", "handlers.x.model"),
        ("[handlers.x]\nfolder = \"f\"", "handlers.x.folder"),
        ("[handlers.claude_extraction]\npermanent_exit_codes = [1]", "handlers.claude_extraction.permanent_exit_codes"),
        ("[handlers.create_file]\ncommand = [\"x\"]", "handlers.create_file.command"),
        ("[handlers.create_file]\ntimout = \"5s\"", "handlers.create_file.timout"),
    ] {
        assert_eq!(wrong(text), (field.to_owned(), 2), "{text}");
    }
}

#[test]
fn claude_code_is_run_as_the_settings_say() {
    assert_eq!(claude_code(&Handlers::new()), ClaudeCode::default());
    let text = "[handlers.claude_extraction]\ncommand = [\"/opt/claude\"]\nmodel = \"opus\"\nargs = [\"--x\"]\n\
                folder = \"prompts\"\npass_env = [\"AWS_*\"]\nenv = { A = \"b\" }\ngrace = \"9s\"\ntimeout = \"1m\"";
    let config = Config::parse(text).unwrap();
    let claude = claude_code(&config.handlers);
    assert_eq!((&*claude.command, claude.model.as_deref()), (&["/opt/claude".to_owned()][..], Some("opus")));
    assert_eq!((&*claude.args, claude.folder), (&["--x".to_owned()][..], Some("prompts".into())));
    assert!(claude.pass_env.contains(&"AWS_*".to_owned()) && claude.pass_env.contains(&"ANTHROPIC_*".to_owned()));
    assert_eq!((&*claude.env["A"], claude.grace), ("b", Duration::from_secs(9)));
    let types = with_defaults(&config.handlers, JobTypes::builtin());
    assert_eq!(types.defaults("claude_extraction").timeout, Duration::from_secs(60));
}

#[test]
fn aws_is_where_the_settings_say() {
    assert_eq!(aws(&Handlers::new()), AwsSettings::default());
    let text = "[handlers.sync_aws]\nregion = \"eu-central-1\"\nendpoint_url = \"http://127.0.0.1:1\"\nconcurrency = 2";
    let settings = aws(&Config::parse(text).unwrap().handlers);
    assert_eq!((settings.region.as_deref(), settings.profile), (Some("eu-central-1"), None));
    assert_eq!(settings.endpoint_url.as_deref(), Some("http://127.0.0.1:1"));
    for (text, field) in [
        ("[handlers.x]\nregion = \"r\"", "handlers.x.region"),
        ("[handlers.claude_extraction]\nprofile = \"p\"", "handlers.claude_extraction.profile"),
        ("[handlers.sync_aws]\nprofile = \"\"", "handlers.sync_aws.profile"),
        ("[handlers.sync_aws]\nendpoint_url = \"127.0.0.1:4566\"", "handlers.sync_aws.endpoint_url"),
        ("[handlers.sync_aws]\nmodel = \"m\"", "handlers.sync_aws.model"),
        ("[handlers.sync_aws]\ncommand = [\"x\"]", "handlers.sync_aws.command"),
    ] {
        assert_eq!(wrong(text), (field.to_owned(), 2), "{text}");
    }
}

#[test]
fn a_program_is_as_the_settings_say_and_so_are_types_that_come_with_jobq() {
    let text = "[handlers.resize]\ncommand = [\"python3\", \"r.py\"]\ntimeout = \"2m\"\nmax_attempts = 5\n\
                backoff = \"1m\"\npermanent_exit_codes = [2]\npass_env = [\"AWS_*\"]\nenv = { MODE = \"fast\" }\n\
                keep_output = 10\ngrace = \"9s\"\n[handlers.create_file]\ntimeout = \"7s\"";
    let config = Config::parse(text).unwrap();
    let programs = programs(&config.handlers);
    let [(name, program)] = programs.as_slice() else { panic!("{programs:?}") };
    assert_eq!((name.as_str(), program.command.as_ref().unwrap().len()), ("resize", 2));
    assert_eq!((program.defaults.timeout, program.defaults.max_attempts), (Duration::from_secs(120), 5));
    assert_eq!((program.defaults.backoff.base_ms, program.defaults.backoff.max_ms), (60_000, 60_000));
    assert_eq!((program.keep_output, program.grace), (10, Duration::from_secs(9)));
    assert_eq!((&*program.pass_env, &*program.env["MODE"]), (&["AWS_*".to_owned()][..], "fast"));
    let types = with_defaults(&config.handlers, JobTypes::builtin());
    assert_eq!(types.defaults("create_file").timeout, Duration::from_secs(7));
    assert_eq!(types.defaults("delete_file").timeout, Duration::from_secs(300));
}
