//! Everything that can be wrong with the tables is said when they are read, and not
//! by the first job that is run.

use jobq::handlers::{ClaudeExtraction, SyncAws};
use jobq::{Error, JobTypes, Payload as _, Result};

use super::{HandlerTable, Handlers};

pub(in crate::cli::config) fn check(handlers: &Handlers) -> Result<()> {
    let types = JobTypes::builtin();
    for (name, table) in handlers {
        let wrong = |field: &str, why: &str| Err(Error::invalid(format!("handlers.{name}.{field}"), why));
        if table.concurrency == Some(0) {
            return wrong("concurrency", "must be at least 1");
        }
        if table.max_attempts == Some(0) {
            return wrong("max_attempts", "must be at least 1");
        }
        if let Some((field, why)) = unusable(table) {
            return wrong(field, why);
        }
        if name == ClaudeExtraction::TYPE {
            if table.permanent_exit_codes.is_some() || table.keep_output.is_some() {
                return wrong(
                    "permanent_exit_codes",
                    "and keep_output are not for Claude Code, whose answers are known",
                );
            }
        } else if table.model.is_some() || table.args.is_some() || table.folder.is_some() {
            return wrong("model", "and args and folder are for claude_extraction; a program has a command");
        }
        let about_aws = [&table.region, &table.profile, &table.endpoint_url];
        if name != SyncAws::TYPE && about_aws.iter().any(|setting| setting.is_some()) {
            return wrong("region", "and profile and endpoint_url are for sync_aws");
        }
        if about_aws.iter().any(|setting| setting.as_ref().is_some_and(String::is_empty)) {
            return wrong("region", "and profile and endpoint_url are not empty; leave out what is not set");
        }
        if table.endpoint_url.as_ref().is_some_and(|url| !url.starts_with("http://") && !url.starts_with("https://")) {
            return wrong("endpoint_url", "begins with http:// or https://");
        }
        if name != ClaudeExtraction::TYPE && types.knows(name) && table.is_about_a_program() {
            return wrong("command", "and what else is about programs is for types that do not come with jobq");
        }
        table.program(name)?;
    }
    Ok(())
}

/// What the system would not take when the program is started, or could never give back.
fn unusable(table: &HandlerTable) -> Option<(&'static str, &'static str)> {
    let has_nul = |text: &String| text.contains('\0');
    let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
    if let Some(command) = &table.command {
        if command.first().is_none_or(String::is_empty) {
            return Some(("command", "is a list that begins with a program, as in [\"python3\", \"tools/resize.py\"]"));
        }
        if command.iter().any(has_nul) {
            return Some(("command", "has a zero byte in it"));
        }
    }
    if table.permanent_exit_codes.iter().flatten().any(|code| !(1..=255).contains(code)) {
        return Some(("permanent_exit_codes", "are between 1 and 255"));
    }
    if !table.env.iter().flatten().all(|(name, value)| is_name(name) && !has_nul(value)) {
        return Some(("env", "has a name that is empty or has = in it, or something with a zero byte"));
    }
    if !table.pass_env.iter().flatten().all(is_name) {
        return Some(("pass_env", "has a name that is empty or has = or a zero byte in it"));
    }
    None
}
