//! `[handlers.<type>]`: what is set for the jobs of one type, whoever runs them.

mod read;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use jobq::handlers::{AwsSettings, ClaudeCode, ClaudeExtraction, SyncAws};
use jobq::{Defaults, JobTypes, Payload as _, ProgramSettings};

pub(super) use self::read::read;

/// The tables by type.
pub(super) type Handlers = BTreeMap<String, HandlerTable>;

#[derive(Clone, Default)]
pub(super) struct HandlerTable {
    /// How many may run at once, counted over all workers.
    concurrency: Option<u32>,
    timeout: Option<Duration>,
    max_attempts: Option<u32>,
    backoff: Option<Duration>,
    backoff_max: Option<Duration>,
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
    grace: Option<Duration>,
}

impl HandlerTable {
    /// Attempts, timeout and backoff on top of what the type has by itself.
    fn defaults(&self, mut defaults: Defaults) -> Defaults {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        defaults.timeout = self.timeout.unwrap_or(defaults.timeout);
        defaults.max_attempts = self.max_attempts.unwrap_or(defaults.max_attempts);
        if let Some(base) = self.backoff.map(millis) {
            defaults.backoff.base_ms = base;
            defaults.backoff.max_ms = defaults.backoff.max_ms.max(base);
        }
        defaults.backoff.max_ms = self.backoff_max.map_or(defaults.backoff.max_ms, millis);
        defaults
    }

    fn program(&self) -> ProgramSettings {
        let usual = ProgramSettings::default();
        ProgramSettings {
            command: self.command.clone(),
            defaults: self.defaults(usual.defaults),
            permanent_exit_codes: self.permanent_exit_codes.clone().unwrap_or_default(),
            pass_env: self.pass_env.clone().unwrap_or_default(),
            env: self.env.clone().unwrap_or_default(),
            keep_output: self.keep_output.unwrap_or(usual.keep_output),
            grace: self.grace.unwrap_or(usual.grace),
        }
    }
}

/// The limits among the settings.
pub(super) fn limits(handlers: &Handlers) -> BTreeMap<String, u32> {
    handlers.iter().filter_map(|(name, table)| Some((name.clone(), table.concurrency?))).collect()
}

/// What the settings say of programs.
pub(super) fn programs(handlers: &Handlers) -> Vec<(String, ProgramSettings)> {
    let builtin = JobTypes::builtin();
    let programs = handlers.iter().filter(|(name, _)| !builtin.knows(name));
    programs.map(|(name, table)| (name.clone(), table.program())).collect()
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
    claude.grace = table.grace.unwrap_or(claude.grace);
    claude
}

/// Where AWS is, and as whom to call it.
pub(super) fn aws(handlers: &Handlers) -> AwsSettings {
    let table = handlers.get(SyncAws::TYPE).cloned().unwrap_or_default();
    AwsSettings { region: table.region, profile: table.profile, endpoint_url: table.endpoint_url }
}

/// Types that come with jobq, with what the settings say of them.
pub(super) fn with_defaults(handlers: &Handlers, types: JobTypes) -> JobTypes {
    let builtin = JobTypes::builtin();
    handlers.iter().filter(|(name, _)| builtin.knows(name)).fold(types, |types, (name, table)| {
        let defaults = table.defaults(types.defaults(name));
        types.with_defaults(name, defaults)
    })
}

#[cfg(test)]
mod tests;
