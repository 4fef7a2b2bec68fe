//! `jobq enqueue`: one job from the arguments, or many from JSON lines.

mod batch;

use std::io::{BufRead, BufReader, IsTerminal as _, Read as _};
use std::path::Path;
use std::time::Duration;

use jobq::{EnqueueOutcome, Enqueued, Error, ErrorKind, Job, JobTypes, NewJob, Queue, Result, Status, printable};
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::args::{EnqueueArgs, SingleArgs};
use super::config::nearest;
use super::locate::Place;
use super::output::{DIM, GREEN, Output, RED, YELLOW, for_people};
use super::{Answer, Outcome};

pub(super) fn run(args: &EnqueueArgs, place: &Place, out: &mut Output) -> Outcome {
    if let Some(file) = &args.batch {
        return batch::run(file, place, out);
    }
    let job_type = args.job_type.clone().unwrap_or_default();
    let payload = match args.payload.as_deref() {
        None => "{}".to_owned(),
        Some("-") => {
            if std::io::stdin().is_terminal() {
                out.hint("reading the payload from the terminal; end it with Ctrl-D")?;
            }
            read_input("-")?
        }
        Some(text) => match text.strip_prefix('@') {
            Some(file) => read_input(file)?,
            None => text.to_owned(),
        },
    };
    if let Some(typed) = args.payload.as_deref().filter(|typed| *typed == payload)
        && let Err(error) = serde_json::from_str::<IgnoredAny>(typed)
    {
        // Where it looks like an object, it matters where it ceases to be one.
        let place = if typed.trim_start().starts_with('{') { format!(": {error}") } else { String::new() };
        return Err(Error::invalid("payload", format_args!("is not JSON{place}; {}", instead_of(typed))).into());
    }
    let queue = place.open()?;
    let job = with_options(NewJob::raw(job_type, payload.trim()), &args.single, &queue)?;
    let enqueued = queue.enqueue(job)?;
    print(&enqueued, out)?;
    if for_people() && enqueued.outcome == EnqueueOutcome::Inserted {
        tell_if_nobody_runs(&enqueued.job_type, queue.types(), out)?;
    }
    if !args.single.wait {
        return Ok(Answer::Yes);
    }
    out.flush()?;
    wait(&queue, &enqueued.id, args.single.wait_timeout, out)
}

/// What was probably meant by a word that is no JSON.
fn instead_of(typed: &str) -> String {
    let is_name = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let typed = typed.trim();
    match typed.split_once('=') {
        Some((key, value)) if is_name(key) && !value.contains('\'') => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            format!("write '{}'", printable(&json!({ key: value }).to_string()))
        }
        _ if Path::new(typed).is_file() => format!("`@{}` is what that file has", printable(typed)),
        _ => "write an object in single quotes, as '{\"path\":\"hello.txt\"}', or name its file as @FILE".to_owned(),
    }
}

fn with_options(mut job: NewJob, args: &SingleArgs, queue: &Queue) -> Result<NewJob> {
    if let Some(priority) = args.priority {
        job = job.priority(priority);
    }
    if let Some(key) = &args.key {
        job = job.key(key);
    }
    if args.no_key {
        job = job.no_key();
    }
    if let Some(unique) = args.unique {
        job = job.unique(unique.into());
    }
    if let Some(id) = &args.id {
        job = job.id(id);
    }
    if let Some(delay) = args.delay {
        job = job.delay(delay);
    }
    if let Some(time) = &args.run_at {
        job = job.run_at_rfc3339(time)?;
    }
    if let Some(attempts) = args.max_attempts {
        job = job.max_attempts(attempts);
    }
    if let Some(timeout) = args.timeout {
        job = job.timeout(timeout);
    }
    if let Some(lane) = &args.lane {
        job = job.lane(lane);
    }
    if let Some(parent) = &args.after {
        job = job.after(queue.resolve(parent)?);
    }
    if let Some(correlation) = &args.correlation_id {
        job = job.correlation_id(correlation);
    }
    Ok(job)
}

fn print(enqueued: &Enqueued, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return out.json(enqueued);
    }
    let Enqueued { id, job_type, status, outcome, same_payload } = enqueued;
    // An existing job may be a row of plain SQL.
    let id = printable(id);
    match outcome {
        EnqueueOutcome::Inserted => out.line(format_args!("{GREEN}queued{GREEN:#}  {id}  {DIM}{job_type}{DIM:#}")),
        EnqueueOutcome::Existing => {
            let differs = if *same_payload { "" } else { ", with another payload: yours was not queued" };
            out.line(format_args!("{YELLOW}existing{YELLOW:#}  {id}  {DIM}{job_type}, {status}{differs}{DIM:#}"))
        }
    }
}

/// A slip in the name of a type is no error: a worker that knows it may come.
fn tell_if_nobody_runs(job_type: &str, types: &JobTypes, out: &mut Output) -> std::io::Result<()> {
    if types.knows(job_type) {
        return Ok(());
    }
    let names = types.names();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    match nearest(job_type, &known) {
        Some(meant) => out.hint(format_args!(
            "{YELLOW}nobody here runs {job_type}{YELLOW:#}; did you mean {meant}? `jobq cancel` takes it back"
        )),
        None => out.hint(format_args!(
            "{DIM}nobody here runs {job_type} yet; `jobq handlers` lists who runs what, and where to put a program{DIM:#}"
        )),
    }
}

fn wait(queue: &Queue, id: &str, timeout: Option<Duration>, out: &mut Output) -> Outcome {
    let Some(job) = queue.wait(id, timeout.unwrap_or(Duration::MAX))? else {
        let job = queue.get(id)?;
        if out.json {
            out.json(&waited(&job, true))?;
        } else {
            out.line(format_args!(
                "{YELLOW}still {}{YELLOW:#}: the wait ran out; `jobq show {}` tells more",
                job.status,
                printable(id)
            ))?;
        }
        return Ok(Answer::No);
    };
    if out.json {
        out.json(&waited(&job, false))?;
    } else if job.status == Status::Completed {
        out.line(printable(job.result.as_ref().map_or("null", |r| r.as_str())))?;
    } else {
        let why = printable(job.last_error.as_deref().unwrap_or_default());
        out.line(format_args!("{RED}{}{RED:#}  {why}", job.status))?;
    }
    Ok(if job.status == Status::Completed { Answer::Yes } else { Answer::No })
}

/// The columns as they are, and whether the wait ran out.
fn waited(job: &Job, timed_out: bool) -> Value {
    json!({
        "id": job.id,
        "status": job.status,
        "result": job.result,
        "last_error": job.last_error,
        "timed_out": timed_out,
    })
}

pub(super) fn read_input(file: &str) -> Result<String> {
    let read = || {
        let mut text = String::new();
        input(file)?.read_to_string(&mut text).map(|_| without_mark(text))
    };
    read().map_err(|e| unreadable(file, &e))
}

/// Some editors begin a file with a byte order mark, which is no part of its text.
pub(super) fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    text
}

fn input(file: &str) -> std::io::Result<Box<dyn BufRead>> {
    if file == "-" {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(std::fs::File::open(file)?)))
}

fn unreadable(file: &str, error: &std::io::Error) -> Error {
    let kind = if error.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Invalid };
    Error::new(kind, format!("cannot read {file}: {error}"))
}
