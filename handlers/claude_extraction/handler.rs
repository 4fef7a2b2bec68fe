//! Asks Claude Code, and makes a file of its answer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ClaudeExtraction;
use super::judge::{Accepted, Failure, Printed, judge};
use super::trouble::RATE_LIMITED;
use crate::{
    Context, Handler, HandlerError, Outcome, Program, ProgramEnd, ProgramSettings, normalise_path, sha256_hex,
};

/// Answers are texts; what is longer than this is not one.
const KEEP_OUTPUT: usize = 16 << 20;
/// What is kept of an answer that cannot be used.
const KEEP_RAW: usize = 2 << 20;

/// How Claude Code is run. It is asked without a shell, and the prompt comes by its
/// standard input, so that it is in no list of processes.
///
/// ```
/// use jobq::handlers::ClaudeCode;
/// let settings = ClaudeCode { model: Some("haiku".to_owned()), ..ClaudeCode::default() };
/// assert_eq!(settings.command, ["claude"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeCode {
    /// The program and its first arguments.
    pub command: Vec<String>,
    /// The model; the program's own choice if it is not given.
    pub model: Option<String>,
    /// More arguments, after those of jobq.
    pub args: Vec<String>,
    /// The folder it runs in, absolute or below the root; the root if it is not given.
    pub folder: Option<PathBuf>,
    /// Variables of the worker's environment that it gets besides the few that every
    /// program gets, by name or by the beginning of a name (`AWS_*`).
    pub pass_env: Vec<String>,
    /// Variables of its own.
    pub env: BTreeMap<String, String>,
    /// How long it has to end when it is asked to, before it is made to.
    pub grace: Duration,
}

impl Default for ClaudeCode {
    fn default() -> Self {
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"];
        let certificates = ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];
        let mut pass_env: Vec<String> = vec!["ANTHROPIC_*".to_owned(), "CLAUDE_*".to_owned()];
        // Programs differ in which spelling they read.
        pass_env.extend(proxies.iter().flat_map(|name| [(*name).to_owned(), name.to_lowercase()]));
        pass_env.extend(certificates.map(str::to_owned));
        Self {
            command: vec!["claude".to_owned()],
            model: None,
            args: Vec::new(),
            folder: None,
            pass_env,
            env: BTreeMap::new(),
            grace: ProgramSettings::default().grace,
        }
    }
}

/// What a completed extraction leaves.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::handlers::{ClaudeExtraction, ExtractedFile};
/// let id = queue.enqueue(ClaudeExtraction::new("REQ-1", "What follows?", "out/req-1.md"))?.id;
/// // … a worker asks …
/// let extracted: Option<ExtractedFile> = queue.result::<ClaudeExtraction>(&id)?;
/// let cost = extracted.and_then(|extracted| extracted.total_cost_usd);
/// assert_eq!(cost, None, "nobody has asked yet");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtractedFile {
    /// Where the answer is.
    pub path: String,
    /// sha256 of it.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
    /// The requirement it comes from.
    pub requirement_id: String,
    /// sha256 of the prompt.
    pub prompt_hash: String,
    /// Claude Code's name for the session.
    pub session_id: Option<String>,
    /// What all attempts have cost, as far as they said.
    pub total_cost_usd: Option<f64>,
    /// What the last attempt has used, as it was told.
    pub usage: Option<Value>,
    /// How many turns the last attempt took.
    pub num_turns: Option<u64>,
    /// How long it took.
    pub duration_ms: Option<u64>,
}

/// Runs `claude_extraction` jobs.
///
/// ```
/// use jobq::{Registry, handlers::{ClaudeCode, ClaudeExtractionHandler}};
/// let ours = ClaudeCode { command: vec!["/opt/claude/bin/claude".to_owned()], ..ClaudeCode::default() };
/// let registry = Registry::builtin().with(ClaudeExtractionHandler::new(ours));
/// # let _ = registry;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClaudeExtractionHandler {
    settings: ClaudeCode,
}

/// What is kept from one attempt to the next.
#[derive(Default, Serialize, Deserialize)]
struct Checkpoint {
    spent_usd: f64,
}

impl ClaudeExtractionHandler {
    /// With these settings.
    #[must_use]
    pub fn new(settings: ClaudeCode) -> Self {
        Self { settings }
    }

    fn ask(&self, ctx: &Context, prompt: &str) -> Result<ProgramEnd, HandlerError> {
        let ClaudeCode { command, model, args, folder, pass_env, env, grace } = &self.settings;
        let Some((program, first)) = command.split_first() else {
            let why = "the command of Claude Code is empty; `command = [\"claude\"]` is the usual one";
            return Err(HandlerError::permanent(why).with_code("program_missing"));
        };
        let mut program = Program::new(program).args(first).args(["-p", "--output-format", "json"]);
        if let Some(model) = model {
            program = program.args(["--model", model]);
        }
        program = program.args(args).stdin(prompt).pass_env(pass_env).keep_output(KEEP_OUTPUT).grace(*grace);
        program = env.iter().fold(program, |program, (name, value)| program.env(name, value));
        if let Some(folder) = folder {
            program = program.folder(ctx.root().join(folder));
        }
        ctx.run_program(&program).map_err(with_install_hint)
    }
}

impl Handler for ClaudeExtractionHandler {
    type Payload = ClaudeExtraction;

    fn runs_programs(&self) -> bool {
        true
    }

    fn run(&self, ctx: &Context, job: ClaudeExtraction) -> Result<Outcome<ExtractedFile>, HandlerError> {
        let path = normalise_path(&job.target_path)?;
        // One that cannot be read is no reason not to ask; only the sum is less.
        let before: f64 = ctx.last_checkpoint::<Checkpoint>().ok().flatten().unwrap_or_default().spent_usd;
        let end = self.ask(ctx, &job.prompt)?;
        let printed = Printed {
            went_wrong: (!end.exit.is_success()).then(|| end.exit.to_string()),
            stdout: &end.stdout,
            cut: end.stdout_cut,
            stderr: &end.stderr,
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let judged = judge(&printed, &job.prompt, job.format.unwrap_or_default(), now);
        let Accepted { text, answer } = judged.map_err(|failure| failed(ctx, failure, before))?;
        let result = ExtractedFile {
            path: path.clone(),
            sha256: sha256_hex(text.as_bytes()),
            size: text.len() as u64,
            prompt_hash: job.prompt_hash(),
            requirement_id: job.requirement_id,
            session_id: answer.session_id,
            total_cost_usd: sum(before, answer.total_cost_usd),
            usage: answer.usage,
            num_turns: answer.num_turns,
            duration_ms: answer.duration_ms,
        };
        Ok(Outcome::new(result).put(path, ctx.stage(text.as_bytes())?))
    }
}

/// As an error of the attempt; what it has cost is kept for the next one and for
/// the sums.
fn failed(ctx: &Context, failure: Failure, before: f64) -> HandlerError {
    let total = sum(before, failure.spent);
    if let (Some(spent_usd), Some(_)) = (total, failure.spent) {
        // If that fails, too, why the attempt failed is still what is to be told.
        let _ = ctx.checkpoint(&Checkpoint { spent_usd });
    }
    // All others would hear the same: the type waits, for the time that was said or as this job would. The pause
    // alone keeps the job back, so that it goes on when someone ends it.
    let pause = failure.pause.or_else(|| (failure.code == RATE_LIMITED).then(|| ctx.backoff()));
    let kind = if failure.permanent { HandlerError::permanent } else { HandlerError::retry };
    let mut error = kind(failure.message).with_code(failure.code);
    if let Some(pause) = pause {
        error = error.pausing_type(pause);
    }
    let mut result = serde_json::Map::new();
    if let Some(mut raw) = failure.raw {
        let end = (0..=raw.len().min(KEEP_RAW)).rev().find(|end| raw.is_char_boundary(*end));
        raw.truncate(end.unwrap_or(0));
        result.insert("raw".to_owned(), raw.into());
    }
    if let Some(total) = total {
        result.insert("total_cost_usd".to_owned(), json!(total));
    }
    if result.is_empty() { error } else { error.with_result(Value::Object(result)) }
}

/// Nothing if nobody has said anything about cost.
fn sum(before: f64, now: Option<f64>) -> Option<f64> {
    // Without the dust of binary fractions.
    let total = ((before + now.unwrap_or(0.0)) * 1e9).round() / 1e9;
    (now.is_some() || before > 0.0).then_some(total)
}

fn with_install_hint(error: HandlerError) -> HandlerError {
    if error.code() != "program_missing" {
        return error;
    }
    let how = "`npm install -g @anthropic-ai/claude-code` installs Claude Code; one that is elsewhere is named in \
               .jobq/config.toml: [handlers.claude_extraction] command = [\"/path/to/claude\"]";
    HandlerError::permanent(format_args!("{}; {how}", error.message())).with_code("program_missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_summed_if_there_are_any() {
        assert_eq!(sum(0.0, None), None);
        assert_eq!(sum(0.0, Some(0.0)), Some(0.0));
        assert_eq!(sum(0.1, Some(0.2)), Some(0.3));
        assert_eq!(sum(0.1, None), Some(0.1));
    }

    #[test]
    fn settings_that_are_not_given_have_their_defaults() {
        let settings: ClaudeCode = serde_json::from_value(json!({"model": "opus"})).unwrap();
        assert_eq!(settings, ClaudeCode { model: Some("opus".into()), ..ClaudeCode::default() });
        assert_eq!(settings.command, ["claude"]);
        for name in ["ANTHROPIC_*", "CLAUDE_*", "HTTPS_PROXY", "https_proxy", "NODE_EXTRA_CA_CERTS"] {
            assert!(settings.pass_env.iter().any(|passed| passed == name), "{name}");
        }
        assert!(serde_json::from_value::<ClaudeCode>(json!({"comand": []})).is_err());
    }

    #[test]
    fn only_a_missing_program_is_to_be_installed() {
        let missing = with_install_hint(HandlerError::permanent("no claude").with_code("program_missing"));
        assert!(missing.message().contains("npm install") && !missing.is_retryable());
        assert_eq!(with_install_hint(HandlerError::retry("x").with_code("job_timeout")).message(), "x");
    }
}
