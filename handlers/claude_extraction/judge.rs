//! From what a run of Claude Code printed to an answer, or to a failure and what
//! is to be done about it.

use std::time::Duration;

use super::Format;
use super::answer::Answer;
use super::echo::without_prompt;
use super::excerpt::excerpt;
use super::json_text::json_in;
use super::trouble::Trouble;

/// What a run left.
pub(super) struct Printed<'r> {
    /// How it ended, in words; `None` if it ended well.
    pub(super) went_wrong: Option<String>,
    pub(super) stdout: &'r [u8],
    /// Only the end of its output was kept.
    pub(super) cut: bool,
    pub(super) stderr: &'r [u8],
}

/// An answer whose text is what was asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Accepted {
    pub(super) text: String,
    pub(super) answer: Answer,
}

#[derive(Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) permanent: bool,
    pub(super) code: &'static str,
    pub(super) message: String,
    /// How long nobody need try again.
    pub(super) pause: Option<Duration>,
    /// An answer that was paid for and cannot be used.
    pub(super) raw: Option<String>,
    /// What it has cost all the same, in dollars.
    pub(super) spent: Option<f64>,
}

/// `now` is in seconds since 1970, for limits that say when they are over.
pub(super) fn judge(printed: &Printed<'_>, prompt: &str, format: Format, now: u64) -> Result<Accepted, Failure> {
    let stdout = String::from_utf8_lossy(printed.stdout);
    match Answer::last_in(&stdout) {
        Some(answer) if answer.has_failed() || printed.went_wrong.is_some() => {
            Err(failed(printed, &answer, prompt, now))
        }
        Some(answer) => usable(answer, format),
        None => Err(no_answer(printed, &stdout, prompt, now)),
    }
}

fn usable(mut answer: Answer, format: Format) -> Result<Accepted, Failure> {
    let text = answer.result.take().unwrap_or_default();
    let spent = answer.total_cost_usd;
    let refused = |code, message, raw| Err(Failure { permanent: false, code, message, pause: None, raw, spent });
    if text.trim().is_empty() {
        return refused("empty_answer", "claude answered nothing".to_owned(), None);
    }
    let text = match format {
        Format::Text => text,
        Format::Json => match json_in(&text) {
            Ok(json) => json.to_owned(),
            Err(why) => {
                let message = format!("the answer is not JSON: {why}; it is kept in the job's result");
                return refused("not_json", message, Some(text));
            }
        },
    };
    Ok(Accepted { text, answer })
}

/// It says itself that it failed, or its exit code does.
fn failed(printed: &Printed<'_>, answer: &Answer, prompt: &str, now: u64) -> Failure {
    let stderr = String::from_utf8_lossy(printed.stderr);
    // Only what is said about a failure tells its kind: an answer may be about rate limits, and so may the prompt.
    let said = if answer.has_failed() { answer.result.as_deref().unwrap_or_default() } else { "" };
    let kind = if answer.has_failed() { answer.subtype.as_deref().filter(|s| *s != "success") } else { None };
    let all = without_prompt(&format!("{said}\n{}\n{stderr}", kind.unwrap_or_default()), prompt).text;
    let trouble = Trouble::of(answer.api_error_status, &all, prompt);
    let status = answer.api_error_status.map(|status| format!(" (API status {status})")).unwrap_or_default();
    let parts = [kind.unwrap_or_default(), printed.went_wrong.as_deref().unwrap_or_default(), said, &stderr];
    let parts = parts.map(|part| excerpt(part, prompt));
    let parts: String = parts.iter().filter(|part| !part.is_empty()).flat_map(|part| [": ", part]).collect();
    Failure {
        permanent: trouble.is_permanent(),
        code: trouble.code(),
        message: format!("claude failed{status}{parts}"),
        pause: trouble.pause(&all, now),
        raw: None,
        spent: answer.total_cost_usd,
    }
}

/// There is no such object: what is there instead is said.
fn no_answer(printed: &Printed<'_>, stdout: &str, prompt: &str, now: u64) -> Failure {
    let stderr = String::from_utf8_lossy(printed.stderr);
    // What looks like JSON is a part of an answer, which may be about any kind of trouble; so may the prompt.
    let plain = if stdout.contains('{') { "" } else { stdout };
    let said = without_prompt(&format!("{plain}\n{stderr}"), prompt).text;
    let trouble = if printed.went_wrong.is_some() { Trouble::of(None, &said, prompt) } else { Trouble::Unknown };
    let what = match stdout.trim() {
        "" => "nothing".to_owned(),
        text => {
            let cut = if printed.cut { " (its beginning was too much to keep)" } else { "" };
            format!("no result but {} bytes{cut}: {}", printed.stdout.len(), excerpt(text, prompt))
        }
    };
    let exit = printed.went_wrong.as_ref().map(|exit| format!("; {exit}")).unwrap_or_default();
    let stderr = match excerpt(&stderr, prompt).as_str() {
        "" => String::new(),
        text => format!("; stderr: {text}"),
    };
    Failure {
        permanent: trouble.is_permanent(),
        code: if trouble == Trouble::Unknown { "no_answer" } else { trouble.code() },
        message: format!("claude printed {what}{exit}{stderr}"),
        pause: trouble.pause(&said, now),
        raw: None,
        spent: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: u64 = 1_760_000_000;
    const PROMPT: &str = "What follows from 'authentication failed: 401'?";

    fn judged(stdout: &str, stderr: &str, exit: Option<&str>, format: Format) -> Result<Accepted, Failure> {
        let went_wrong = exit.map(str::to_owned);
        let printed = Printed { went_wrong, stdout: stdout.as_bytes(), cut: false, stderr: stderr.as_bytes() };
        judge(&printed, PROMPT, format, NOW)
    }

    fn answer(text: &str) -> String {
        json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "total_cost_usd": 0.5})
            .to_string()
    }

    fn error(status: Option<u16>, text: &str) -> String {
        json!({"type": "result", "is_error": true, "result": text, "api_error_status": status, "total_cost_usd": 0.5})
            .to_string()
    }

    #[test]
    fn an_answer_is_taken_as_it_is_or_as_json() {
        let fenced = "```json\n{\"a\": 1}\n```";
        let text = |format| judged(&answer(fenced), "a warning", None, format).unwrap().text;
        assert_eq!(text(Format::Text), fenced);
        assert_eq!(text(Format::Json), "{\"a\": 1}");
    }

    #[test]
    fn an_answer_that_cannot_be_used_is_asked_for_again_and_its_cost_is_known() {
        let prose = judged(&answer("Sure! {}"), "", None, Format::Json).unwrap_err();
        assert_eq!((prose.code, prose.permanent, prose.raw.as_deref()), ("not_json", false, Some("Sure! {}")));
        assert_eq!(prose.spent, Some(0.5));
        assert!(!prose.message.contains("Sure"), "answers do not belong into logs: {}", prose.message);
        let empty = judged(&answer(" \n"), "", None, Format::Text).unwrap_err();
        assert_eq!((empty.code, empty.permanent), ("empty_answer", false));
    }

    #[test]
    fn failures_are_told_apart() {
        for (stdout, stderr, exit, code, permanent) in [
            (error(Some(529), "Overloaded"), "", None, "overloaded", false),
            (error(Some(401), "Invalid API key"), "", Some("exit code 1"), "not_allowed", true),
            (error(Some(400), "Prompt is too long"), "", None, "bad_request", true),
            (error(None, "API Error: 503"), "", None, "unavailable", false),
            (error(None, "what?"), "", None, "claude_failed", false),
            (error(None, "what?"), "read ECONNRESET", None, "unavailable", false),
            (answer("about authentication"), "", Some("exit code 1"), "claude_failed", false),
            (answer("fine"), "fetch failed", Some("exit code 1"), "unavailable", false),
            (String::new(), "Invalid API key · Please run /login", Some("exit code 1"), "not_allowed", true),
            ("Credit balance is too low".into(), "", Some("exit code 1"), "not_allowed", true),
            (String::new(), "", Some("signal 9 (SIGKILL)"), "no_answer", false),
            ("authentication".into(), "", None, "no_answer", false),
            (format!("{{\"half\": \"{PROMPT} authentication"), "", Some("signal 9"), "no_answer", false),
            (PROMPT.into(), PROMPT, Some("exit code 1"), "no_answer", false),
            (error(None, &format!("while answering: {PROMPT}")), PROMPT, Some("exit code 1"), "claude_failed", false),
            (error(None, "failed"), "update check: HTTP 404", Some("exit code 1"), "claude_failed", false),
            (error(None, "API Error: 404 no such model"), "", Some("exit code 1"), "bad_request", true),
        ] {
            let failure = judged(&stdout, stderr, exit, Format::Text).unwrap_err();
            assert_eq!((failure.code, failure.permanent), (code, permanent), "{stdout} {stderr} {exit:?}");
            assert!(!failure.message.contains(PROMPT), "{}", failure.message);
        }
    }

    #[test]
    fn what_was_there_instead_of_an_answer_is_said() {
        let message = |stdout: &str, exit| judged(stdout, "", exit, Format::Text).unwrap_err().message;
        assert_eq!(message("", None), "claude printed nothing");
        assert_eq!(message("", Some("signal 9 (SIGKILL)")), "claude printed nothing; signal 9 (SIGKILL)");
        assert_eq!(
            message("Segmentation\u{1b}[1m fault", None),
            "claude printed no result but 22 bytes: Segmentation\u{fffd}[1m fault"
        );
        assert!(message(&"x".repeat(1_000_000), None).len() < 1_000);
        let cut = Printed { went_wrong: None, stdout: b"tail", cut: true, stderr: b"oops" };
        let message = judge(&cut, PROMPT, Format::Text, NOW).unwrap_err().message;
        assert!(message.contains("too much to keep") && message.ends_with("stderr: oops"), "{message}");
    }

    #[test]
    fn a_limit_pauses_for_the_time_it_says() {
        let pause = |stdout: &str, stderr| judged(stdout, stderr, Some("exit code 1"), Format::Text).unwrap_err().pause;
        let minute = Some(Duration::from_secs(60));
        assert_eq!(pause(&error(Some(429), "retry after 60 seconds"), ""), minute);
        assert_eq!(pause(&error(Some(429), "no"), "retry-after: 60"), minute);
        assert_eq!(pause(&error(None, "Claude AI usage limit reached|1760000060"), ""), minute);
        assert_eq!(pause("Claude AI usage limit reached|1760000060", ""), minute);
        assert_eq!(pause(&error(Some(429), "wait"), ""), None, "the usual wait");
        assert_eq!(pause(&error(Some(500), "retry after 60 seconds"), ""), None);
    }
}
