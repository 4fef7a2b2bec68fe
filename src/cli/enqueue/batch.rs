//! `jobq enqueue --batch`: a job object in each line, all or nothing, the line that is wrong named.

use std::io::{BufRead as _, IsTerminal as _};

use jobq::{EnqueueOutcome, Error, NewJob, Result};
use serde::de::IgnoredAny;

use super::{input, read_input, unreadable, without_mark};
use crate::cli::locate::Place;
use crate::cli::output::Output;
use crate::cli::parents::resolved;
use crate::cli::progress::Progress;
use crate::cli::{Answer, Outcome};

pub(super) fn run(file: &str, place: &Place, out: &mut Output) -> Outcome {
    // Nothing moves where somebody types.
    let (text, progress) = if file == "-" && std::io::stdin().is_terminal() {
        out.hint("reading jobs from the terminal, a JSON object in each line; end them with Ctrl-D")?;
        (read_input(file)?, Progress::counting("lines checked", out))
    } else {
        let progress = Progress::counting("lines read", out);
        let text = read_lines(file, &progress)?;
        progress.next("lines checked");
        (text, progress)
    };
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().map(|(i, line)| (i + 1, line)).filter(|(_, line)| !line.trim().is_empty()).collect();
    let mut jobs = Vec::with_capacity(lines.len());
    for (number, line) in &lines {
        let job = NewJob::from_json(line).map_err(|e| form(line).map_or(e, |why| Error::invalid("job", why)));
        jobs.push(job.map_err(|e| in_line(*number, &e))?);
        progress.add(1);
    }
    let queue = place.open()?;
    let named = jobs.into_iter().zip(&lines);
    let named = named.map(|(job, (number, _))| resolved(job, &queue).map_err(|e| in_line(*number, &e)));
    let jobs = named.collect::<Result<Vec<_>>>()?;
    progress.next("jobs queued as one");
    let counted = jobs.into_iter().inspect(|_| progress.add(1));
    let answers = queue.enqueue_many(counted).map_err(|e| match e.item().and_then(|i| lines.get(i)) {
        Some((number, _)) => in_line(*number, &e),
        // A batch of one has no numbered items.
        None if lines.len() == 1 => in_line(lines[0].0, &e),
        None => e,
    })?;
    drop(progress);
    if out.json {
        for answer in &answers {
            out.json(answer)?;
        }
    } else {
        let existing = answers.iter().filter(|a| a.outcome == EnqueueOutcome::Existing).count();
        out.line(format_args!("{} queued, {existing} there already", answers.len() - existing))?;
    }
    Ok(Answer::Yes)
}

fn in_line(number: usize, error: &Error) -> Error {
    Error::new(error.kind(), format!("line {number}: {}; nothing was queued", error.message()))
}

/// What is wrong with the form of a line, where that is plain to see: the parser's words are about characters.
fn form(line: &str) -> Option<&'static str> {
    let line = line.trim();
    if line.starts_with('[') {
        return Some(
            "is an array, not a job object; write one job object a line, without an array around them (`jq -c '.[]'` does that)",
        );
    }
    if line.ends_with(',') && serde_json::from_str::<IgnoredAny>(line.trim_end_matches(',')).is_ok() {
        return Some("ends with a comma; write one job object a line, with nothing between them");
    }
    let ends_too_soon = |error: serde_json::Error| error.is_eof();
    if line.starts_with('{') && serde_json::from_str::<IgnoredAny>(line).is_err_and(ends_too_soon) {
        return Some("does not end in its line; write the whole of a job object in one line (`jq -c .` does that)");
    }
    None
}

/// What may come slowly, counted.
fn read_lines(file: &str, progress: &Progress) -> Result<String> {
    let no_file = |e: std::io::Error| unreadable(file, &e);
    let (mut text, mut input) = (String::new(), input(file).map_err(no_file)?);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if input.read_until(b'\n', &mut line).map_err(no_file)? == 0 {
            break;
        }
        let not_text = |_| in_line(number, &Error::invalid("job", "is not UTF-8; save the file as UTF-8"));
        text.push_str(std::str::from_utf8(&line).map_err(not_text)?);
        progress.add(1);
    }
    Ok(without_mark(text))
}
