//! `[handlers.<type>]`: what is set for the jobs of one type, whoever runs them.

mod check;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jobq::handlers::{AwsSettings, ClaudeCode, ClaudeExtraction, SyncAws};
use jobq::{Defaults, Error, JobTypes, MAX_TIME, Payload as _, ProgramSettings, Result};
use serde::Deserialize;

pub(super) use check::check;

use crate::cli::args::duration;

/// The tables by type.
pub(crate) type Handlers = BTreeMap<String, HandlerTable>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HandlerTable {
    /// How many may run at once, counted over all workers.
    pub(crate) concurrency: Option<u32>,
    timeout: Option<String>,
    max_attempts: Option<u32>,
    backoff: Option<String>,
    backoff_max: Option<String>,
    // About Claude Code only.
    model: Option<String>,
    args: Option<Vec<String>>,
    folder: Option<PathBuf>,
    // About AWS only.
    region: Option<String>,
    profile: Option<String>,
    endpoint_url: Option<String>,
    // What is left is about programs.
    command: Option<Vec<String>>,
    permanent_exit_codes: Option<Vec<i32>>,
    pass_env: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    keep_output: Option<usize>,
    grace: Option<String>,
}

impl HandlerTable {
    fn time(name: &str, field: &str, text: Option<&str>) -> Result<Option<Duration>> {
        let wrong = |why: String| Error::invalid(format!("handlers.{name}.{field}"), why);
        let Some(time) = text.map(duration).transpose().map_err(wrong)? else { return Ok(None) };
        // No job could be queued with it.
        if time > MAX_TIME {
            return Err(wrong("is longer than a hundred years".to_owned()));
        }
        Ok(Some(time))
    }

    /// Attempts, timeout and backoff on top of what the type has by itself.
    fn defaults(&self, name: &str, mut defaults: Defaults) -> Result<Defaults> {
        let time = |field: &str, text: &Option<String>| Self::time(name, field, text.as_deref());
        if let Some(timeout) = time("timeout", &self.timeout)? {
            if timeout.is_zero() {
                return Err(Error::invalid(format!("handlers.{name}.timeout"), "must be longer than zero"));
            }
            defaults.timeout = timeout;
        }
        defaults.max_attempts = self.max_attempts.unwrap_or(defaults.max_attempts);
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if let Some(base) = time("backoff", &self.backoff)? {
            defaults.backoff.base_ms = millis(base);
            defaults.backoff.max_ms = defaults.backoff.max_ms.max(millis(base));
        }
        if let Some(max) = time("backoff_max", &self.backoff_max)? {
            defaults.backoff.max_ms = millis(max);
        }
        Ok(defaults)
    }

    fn is_about_a_program(&self) -> bool {
        self.command.is_some()
            || self.permanent_exit_codes.is_some()
            || self.pass_env.is_some()
            || self.env.is_some()
            || self.keep_output.is_some()
            || self.grace.is_some()
    }

    fn program(&self, name: &str) -> Result<ProgramSettings> {
        let usual = ProgramSettings::default();
        Ok(ProgramSettings {
            command: self.command.clone(),
            defaults: self.defaults(name, usual.defaults)?,
            permanent_exit_codes: self.permanent_exit_codes.clone().unwrap_or_default(),
            pass_env: self.pass_env.clone().unwrap_or_default(),
            env: self.env.clone().unwrap_or_default(),
            keep_output: self.keep_output.unwrap_or(usual.keep_output),
            grace: Self::time(name, "grace", self.grace.as_deref())?,
        })
    }
}

/// The limits among the settings.
pub(super) fn limits(handlers: &Handlers) -> BTreeMap<String, u32> {
    handlers.iter().filter_map(|(name, table)| Some((name.clone(), table.concurrency?))).collect()
}

/// What the settings say of programs.
pub(super) fn programs(handlers: &Handlers) -> Result<Vec<(String, ProgramSettings)>> {
    let builtin = JobTypes::builtin();
    let programs = handlers.iter().filter(|(name, _)| !builtin.knows(name));
    programs.map(|(name, table)| Ok((name.clone(), table.program(name)?))).collect()
}

/// How Claude Code is run.
pub(super) fn claude_code(handlers: &Handlers) -> ClaudeCode {
    let mut claude = ClaudeCode::default();
    let Some(table) = handlers.get(ClaudeExtraction::TYPE).cloned() else { return claude };
    claude.command = table.command.unwrap_or(claude.command);
    claude.model = table.model;
    claude.args = table.args.unwrap_or_default();
    claude.folder = table.folder;
    // On top of what it needs to reach its service at all.
    claude.pass_env.extend(table.pass_env.unwrap_or_default());
    claude.env = table.env.unwrap_or_default();
    claude.grace = table.grace.and_then(|text| duration(&text).ok());
    claude
}

/// Where AWS is, and as whom to call it.
pub(super) fn aws(handlers: &Handlers) -> AwsSettings {
    let table = handlers.get(SyncAws::TYPE).cloned().unwrap_or_default();
    AwsSettings { region: table.region, profile: table.profile, endpoint_url: table.endpoint_url }
}

/// Types that come with jobq, with what the settings say of them.
pub(super) fn with_defaults(handlers: &Handlers, mut types: JobTypes) -> Result<JobTypes> {
    for (name, table) in handlers.iter().filter(|(name, _)| JobTypes::builtin().knows(name)) {
        let defaults = table.defaults(name, types.defaults(name))?;
        types = types.with_defaults(name, defaults);
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

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
            ("concurrency = -1", "config"),
            ("concurrency = \"two\"", "config"),
            ("concurency = 2", "config"),
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
            ("env = { A = \"\\u0000\" }", "handlers.x.env"),
            ("pass_env = [\"A=B\"]", "handlers.x.pass_env"),
            ("permanent_exit_codes = [0]", "handlers.x.permanent_exit_codes"),
            ("permanent_exit_codes = [2, 256]", "handlers.x.permanent_exit_codes"),
            ("command = [\"a\", \"\\u0000\"]", "handlers.x.command"),
            ("command = []", "handlers.x.command"),
            ("command = \"python3\"", "config"),
        ] {
            assert_eq!(Config::parse(&format!("[handlers.x]\n{text}")).err().unwrap().field(), Some(field), "{text}");
        }
        assert_eq!(Config::parse("[handlers]\nconcurrency = 2").err().unwrap().field(), Some("config"));
        for (line, field) in [("model = \"m\"", "handlers.x.model"), ("folder = \"f\"", "handlers.x.model")] {
            assert_eq!(Config::parse(&format!("[handlers.x]\n{line}")).err().unwrap().field(), Some(field));
        }
        let codes = Config::parse("[handlers.claude_extraction]\npermanent_exit_codes = [1]").err().unwrap();
        assert_eq!(codes.field(), Some("handlers.claude_extraction.permanent_exit_codes"));
        let taken = Config::parse("[handlers.create_file]\ncommand = [\"x\"]").err().unwrap();
        assert_eq!(taken.field(), Some("handlers.create_file.command"));
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
        assert_eq!((&*claude.env["A"], claude.grace), ("b", Some(Duration::from_secs(9))));
        let types = with_defaults(&config.handlers, JobTypes::builtin()).unwrap();
        assert_eq!(types.defaults("claude_extraction").timeout, Duration::from_secs(60));
    }

    #[test]
    fn aws_is_where_the_settings_say() {
        assert_eq!(aws(&Handlers::new()), AwsSettings::default());
        let text =
            "[handlers.sync_aws]\nregion = \"eu-central-1\"\nendpoint_url = \"http://127.0.0.1:1\"\nconcurrency = 2";
        let settings = aws(&Config::parse(text).unwrap().handlers);
        assert_eq!((settings.region.as_deref(), settings.profile), (Some("eu-central-1"), None));
        assert_eq!(settings.endpoint_url.as_deref(), Some("http://127.0.0.1:1"));
        for (text, field) in [
            ("[handlers.x]\nregion = \"r\"", "handlers.x.region"),
            ("[handlers.claude_extraction]\nprofile = \"p\"", "handlers.claude_extraction.region"),
            ("[handlers.sync_aws]\nprofile = \"\"", "handlers.sync_aws.region"),
            ("[handlers.sync_aws]\nendpoint_url = \"127.0.0.1:4566\"", "handlers.sync_aws.endpoint_url"),
            ("[handlers.sync_aws]\nmodel = \"m\"", "handlers.sync_aws.model"),
            ("[handlers.sync_aws]\ncommand = [\"x\"]", "handlers.sync_aws.command"),
        ] {
            assert_eq!(Config::parse(text).err().unwrap().field(), Some(field), "{text}");
        }
    }

    #[test]
    fn a_program_is_as_the_settings_say_and_so_are_types_that_come_with_jobq() {
        let text = "[handlers.resize]\ncommand = [\"python3\", \"r.py\"]\ntimeout = \"2m\"\nmax_attempts = 5\n\
                    backoff = \"1m\"\npermanent_exit_codes = [2]\npass_env = [\"AWS_*\"]\nenv = { MODE = \"fast\" }\n\
                    keep_output = 10\ngrace = \"9s\"\n[handlers.create_file]\ntimeout = \"7s\"";
        let config = Config::parse(text).unwrap();
        let programs = programs(&config.handlers).unwrap();
        let [(name, program)] = programs.as_slice() else { panic!("{programs:?}") };
        assert_eq!((name.as_str(), program.command.as_ref().unwrap().len()), ("resize", 2));
        assert_eq!((program.defaults.timeout, program.defaults.max_attempts), (Duration::from_secs(120), 5));
        assert_eq!((program.defaults.backoff.base_ms, program.defaults.backoff.max_ms), (60_000, 60_000));
        assert_eq!((program.keep_output, program.grace), (10, Some(Duration::from_secs(9))));
        assert_eq!((&*program.pass_env, &*program.env["MODE"]), (&["AWS_*".to_owned()][..], "fast"));
        let types = with_defaults(&config.handlers, JobTypes::builtin()).unwrap();
        assert_eq!(types.defaults("create_file").timeout, Duration::from_secs(7));
        assert_eq!(types.defaults("delete_file").timeout, Duration::from_secs(300));
    }
}
