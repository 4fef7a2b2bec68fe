//! What holds, setting by setting, and where it comes from.

use std::collections::BTreeMap;
use std::time::Duration;

use jobq::handlers::{ClaudeExtraction, SyncAws, WriteFiles};
use jobq::{Defaults, JobTypes, Keep, Payload as _, ProgramSettings};
use serde::Serialize;
use serde_json::{Value, json};

use super::Config;
use crate::cli::output::exact;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    Flag,
    Env,
    File,
    /// On record in the database.
    Database,
    Default,
}

#[derive(Debug, Serialize)]
pub(super) struct Setting {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) source: Source,
    /// In the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<usize>,
    /// The flag or variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<&'static str>,
}

impl Config {
    /// Everything that the file can say; of handlers, for the types that come with jobq,
    /// those that the file names, and these, which a program handles without being told.
    pub(super) fn settings(&self, programs: &BTreeMap<String, Vec<String>>) -> Vec<Setting> {
        let mut all = Listed { config: self, settings: Vec::new() };
        all.add("busy_timeout", time(self.busy_timeout));
        all.add("reconcile_at_start", self.reconcile_at_start);
        all.add("worker.concurrency", self.worker.concurrency);
        all.add("worker.lease", time(self.worker.lease));
        all.add("worker.poll_interval", time(self.worker.poll_interval));
        all.add("worker.grace", self.worker.grace.map(time));
        all.add("retention.completed", kept(self.retention.completed));
        all.add("retention.events", kept(self.retention.events));
        all.add("files.allow", &self.files.allow);
        all.add("files.writable", &self.files.writable);
        let types = self.with_defaults(JobTypes::builtin());
        let mut retained: Vec<(String, Option<Duration>)> = self.retention.types.clone().into_iter().collect();
        for name in types.names() {
            if !self.retention.types.contains_key(&name) {
                match types.defaults(&name).retention {
                    Keep::Usual => {}
                    Keep::For(time) => retained.push((name, Some(time))),
                    Keep::Forever => retained.push((name, None)),
                }
            }
        }
        retained.sort();
        for (name, time) in retained {
            all.add(&format!("retention.types.{name}"), kept(time));
        }
        // A commit is run by nobody; what is said of it all the same is shown.
        let mut names: Vec<String> = types.names().into_iter().filter(|name| name != WriteFiles::TYPE).collect();
        names.extend(self.handlers.keys().cloned());
        names.extend(programs.keys().cloned());
        names.sort();
        names.dedup();
        for name in &names {
            all.handler(name, &types, programs.get(name));
        }
        all.settings
    }
}

struct Listed<'c> {
    config: &'c Config,
    settings: Vec<Setting>,
}

impl Listed<'_> {
    fn add(&mut self, name: &str, value: impl Serialize) {
        let line = self.config.lines.get(name).copied();
        let source = if line.is_some() { Source::File } else { Source::Default };
        self.settings.push(Setting { name: name.to_owned(), value: json!(value), source, line, by: None });
    }

    fn handler(&mut self, name: &str, types: &JobTypes, found: Option<&Vec<String>>) {
        let is_program = !types.knows(name);
        let programs = self.config.programs();
        let program = programs.into_iter().find(|(other, _)| other == name).map(|(_, settings)| settings);
        let mut program = program.unwrap_or_default();
        program.command = program.command.or_else(|| found.cloned());
        let Defaults { timeout, max_attempts, backoff, .. } =
            if is_program { program.defaults } else { types.defaults(name) };
        let in_table = |key: &str| format!("handlers.{name}.{key}");
        self.add(&in_table("concurrency"), self.config.limits().get(name));
        self.add(&in_table("timeout"), time(timeout));
        self.add(&in_table("max_attempts"), max_attempts);
        self.add(&in_table("backoff"), time(Duration::from_millis(backoff.base_ms)));
        self.add(&in_table("backoff_max"), time(Duration::from_millis(backoff.max_ms)));
        match name {
            ClaudeExtraction::TYPE => self.claude(in_table),
            SyncAws::TYPE => {
                let aws = self.config.aws();
                self.add(&in_table("region"), aws.region);
                self.add(&in_table("profile"), aws.profile);
                self.add(&in_table("endpoint_url"), aws.endpoint_url);
            }
            _ if is_program => self.program(in_table, program),
            _ => {}
        }
    }

    fn claude(&mut self, in_table: impl Fn(&str) -> String) {
        let claude = self.config.claude_code();
        self.add(&in_table("command"), claude.command);
        self.add(&in_table("model"), claude.model);
        self.add(&in_table("args"), claude.args);
        self.add(&in_table("folder"), claude.folder.unwrap_or_else(|| ".".into()));
        self.add(&in_table("pass_env"), claude.pass_env);
        self.add(&in_table("env"), hidden(claude.env));
        self.add(&in_table("grace"), time(claude.grace));
    }

    fn program(&mut self, in_table: impl Fn(&str) -> String, program: ProgramSettings) {
        self.add(&in_table("command"), program.command);
        self.add(&in_table("permanent_exit_codes"), program.permanent_exit_codes);
        self.add(&in_table("pass_env"), program.pass_env);
        self.add(&in_table("env"), hidden(program.env));
        self.add(&in_table("keep_output"), program.keep_output);
        self.add(&in_table("grace"), time(program.grace));
    }
}

/// Values may be secrets; that they are there is enough to know.
fn hidden(env: BTreeMap<String, String>) -> BTreeMap<String, &'static str> {
    env.into_keys().map(|name| (name, "(not shown)")).collect()
}

fn time(time: Duration) -> String {
    exact(time)
}

fn kept(time: Option<Duration>) -> String {
    time.map_or_else(|| "forever".to_owned(), exact)
}
