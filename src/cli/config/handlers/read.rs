//! Everything that can be wrong with the tables is said when they are read, and not
//! by the first job that is run.

use jobq::handlers::{ClaudeExtraction, SyncAws};
use jobq::{JobTypes, Payload as _};

use super::{HandlerTable, Handlers};
use crate::cli::args::{duration, some_time};
use crate::cli::config::section::Section;

/// Who runs the jobs of a type.
#[derive(Clone, Copy, PartialEq)]
enum RunBy {
    Claude,
    Aws,
    /// Nobody but jobq.
    Jobq,
    Program,
}

impl RunBy {
    fn of(name: &str, builtin: &JobTypes) -> Self {
        match name {
            ClaudeExtraction::TYPE => Self::Claude,
            SyncAws::TYPE => Self::Aws,
            _ if builtin.knows(name) => Self::Jobq,
            _ => Self::Program,
        }
    }
}

pub(in crate::cli::config) fn read(file: &mut Section<'_>) -> Handlers {
    let builtin = JobTypes::builtin();
    let tables = file.sections("handlers").into_iter();
    tables.map(|(name, table)| (name.clone(), read_one(table, RunBy::of(&name, &builtin)))).collect()
}

fn read_one(mut table: Section<'_>, run_by: RunBy) -> HandlerTable {
    let mut read = HandlerTable {
        concurrency: at_least_one(&mut table, "concurrency"),
        timeout: table.parsed("timeout", some_time),
        max_attempts: at_least_one(&mut table, "max_attempts"),
        backoff: table.parsed("backoff", duration),
        backoff_max: table.parsed("backoff_max", duration),
        ..HandlerTable::default()
    };
    about_claude(&mut table, run_by, &mut read);
    about_aws(&mut table, run_by, &mut read);
    about_programs(&mut table, run_by, &mut read);
    table.end();
    read
}

fn about_claude(table: &mut Section<'_>, run_by: RunBy, read: &mut HandlerTable) {
    if run_by != RunBy::Claude {
        for key in ["model", "args", "folder"] {
            table.not_here(key, "is for claude_extraction; a program has a command");
        }
        return;
    }
    read.model = table.text("model");
    read.args = table.texts("args");
    read.folder = table.text("folder").map(Into::into);
}

fn about_aws(table: &mut Section<'_>, run_by: RunBy, read: &mut HandlerTable) {
    if run_by != RunBy::Aws {
        for key in ["region", "profile", "endpoint_url"] {
            table.not_here(key, "is for sync_aws");
        }
        return;
    }
    let not_empty = |text: &str| {
        if text.is_empty() { Err("is empty; leave it out if it is not set".to_owned()) } else { Ok(text.to_owned()) }
    };
    read.region = table.parsed("region", not_empty);
    read.profile = table.parsed("profile", not_empty);
    read.endpoint_url = table.parsed("endpoint_url", |text| {
        let is_url = text.starts_with("http://") || text.starts_with("https://");
        if is_url { Ok(text.to_owned()) } else { Err("begins with http:// or https://".to_owned()) }
    });
}

fn about_programs(table: &mut Section<'_>, run_by: RunBy, read: &mut HandlerTable) {
    let (shared, own) = (["command", "pass_env", "env", "grace"], ["permanent_exit_codes", "keep_output"]);
    if matches!(run_by, RunBy::Aws | RunBy::Jobq) {
        for key in shared.into_iter().chain(own) {
            table.not_here(key, "is for programs; jobs of this type are run by jobq itself");
        }
        return;
    }
    read.command = table.texts("command");
    if let Some(why) = read.command.as_deref().and_then(unusable) {
        table.wrong("command", why);
    }
    read.pass_env = table.texts("pass_env");
    if !read.pass_env.iter().flatten().all(|name| is_name(name)) {
        table.wrong("pass_env", "has a name that is empty or has = or a zero byte in it");
    }
    read.env = table.named("env", |text| {
        if text.contains('\0') { Err("has a zero byte in it".to_owned()) } else { Ok(text.to_owned()) }
    });
    if !read.env.iter().flatten().all(|(name, _)| is_name(name)) {
        table.wrong("env", "has a name that is empty or has = or a zero byte in it");
    }
    read.grace = table.parsed("grace", duration);
    if run_by == RunBy::Claude {
        for key in own {
            table.not_here(key, "is not for Claude Code, whose answers are known");
        }
        return;
    }
    read.permanent_exit_codes = table.numbers("permanent_exit_codes");
    if read.permanent_exit_codes.iter().flatten().any(|code| !(1..=255).contains(code)) {
        table.wrong("permanent_exit_codes", "are between 1 and 255");
    }
    read.keep_output = table.number("keep_output");
}

fn at_least_one(table: &mut Section<'_>, key: &'static str) -> Option<u32> {
    let number = table.number(key);
    if number == Some(0) {
        table.wrong(key, "must be at least 1");
    }
    number
}

/// What the system would not take when the program is started.
fn unusable(command: &[String]) -> Option<&'static str> {
    if command.first().is_none_or(String::is_empty) {
        return Some("is a list that begins with a program, as in [\"python3\", \"tools/resize.py\"]");
    }
    command.iter().any(|word| word.contains('\0')).then_some("has a zero byte in it")
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}
