//! `jobq handlers`: the known job types, where each comes from, and how its jobs
//! are treated.

use jobq::handlers::WriteFiles;
use jobq::{Defaults, ListedProgram, Payload as _, Registry, printable};
use serde::Serialize;

use super::args::HandlersArgs;
use super::locate::Place;
use super::output::{Cell, DIM, GREEN, Output, RED, YELLOW, span, while_paused};
use super::{Answer, Outcome};

#[derive(Serialize)]
struct Listed {
    #[serde(rename = "type")]
    job_type: String,
    /// `built-in`, `program`, or `schema` for a type that is only judged here.
    source: &'static str,
    /// Whether a worker here would run its jobs.
    runs: bool,
    command: Option<Vec<String>>,
    timeout_ms: u64,
    max_attempts: u32,
    backoff_ms: u64,
    backoff_max_ms: u64,
    concurrency: Option<u32>,
    schema: Option<String>,
    problem: Option<String>,
    /// Nothing of it is claimed until then.
    paused_until: Option<String>,
}

pub(super) fn run(args: &HandlersArgs, place: &Place, out: &mut Output) -> Outcome {
    if let Some(job_type) = &args.resume {
        return resume(job_type, place, out);
    }
    let listed = list(place)?;
    if out.json {
        for one in &listed {
            out.json(one)?;
        }
        return Ok(Answer::Yes);
    }
    let rows: Vec<Vec<Cell>> = listed.iter().map(row).collect();
    out.table(&[("TYPE", 0), ("RUN BY", 1), ("TIMEOUT", 2), ("TRIES", 3), ("AT ONCE", 4), ("SCHEMA", 5)], &rows)?;
    for one in &listed {
        if let Some(problem) = &one.problem {
            out.line(format_args!("{RED}{}{RED:#}: {}", printable(&one.job_type), printable(problem)))?;
        }
        if let Some(until) = &one.paused_until {
            let name = printable(&one.job_type);
            let paused = while_paused(until);
            let text = format!("{YELLOW}{name}{YELLOW:#} is {paused}; `jobq handlers --resume {name}` ends it");
            out.behind("", 0, &text)?;
        }
    }
    let folder = place.programs()?.folder().display().to_string();
    out.behind("", 0, &format!("an executable {}/<type> handles jobs of that type", printable(&folder)))?;
    Ok(Answer::Yes)
}

/// Exit 1 if there was nothing to end.
fn resume(job_type: &str, place: &Place, out: &mut Output) -> Outcome {
    let resumed = place.open_as_it_is()?.resume(job_type)?;
    if out.json {
        out.json(&serde_json::json!({ "type": job_type, "resumed": resumed }))?;
    } else if resumed {
        out.line(format_args!("{GREEN}resumed{GREEN:#}  {}", printable(job_type)))?;
    } else {
        out.line(format_args!("{} is not paused", printable(job_type)))?;
    }
    Ok(if resumed { Answer::Yes } else { Answer::No })
}

/// What is there for a type and cannot be used, a sentence each.
pub(super) fn problems(place: &Place) -> jobq::Result<Vec<String>> {
    Ok(unusable(place)?.into_iter().map(|(problem, _)| problem).collect())
}

/// The same, with whether jobs of the type are run all the same.
pub(super) fn unusable(place: &Place) -> jobq::Result<Vec<(String, bool)>> {
    let told = |one: Listed| Some((format!("the handler of `{}`: {}", one.job_type, one.problem?), one.runs));
    Ok(known(place)?.into_iter().filter_map(told).collect())
}

/// With pauses, in order of names.
fn list(place: &Place) -> jobq::Result<Vec<Listed>> {
    let mut listed = known(place)?;
    for paused in place.open_as_it_is()?.stats()?.paused {
        if let Some(one) = listed.iter_mut().find(|one| one.job_type == paused.job_type) {
            one.paused_until = Some(paused.until);
        }
    }
    listed.sort_by(|a, b| a.job_type.cmp(&b.job_type));
    Ok(listed)
}

/// What is known without a look at the database.
fn known(place: &Place) -> jobq::Result<Vec<Listed>> {
    let limits = place.config.limits();
    let (builtin, types) = (Registry::builtin(), place.types()?);
    let can_run = builtin.names();
    let own = builtin.types().names();
    let mut listed: Vec<Listed> = own
        .iter()
        .map(|name| {
            let program = ListedProgram {
                job_type: name.clone(),
                command: None,
                schema: None,
                defaults: types.defaults(name),
                problem: None,
            };
            // A commit needs no handler: whoever comes by applies what it has left undone.
            let runs = can_run.contains(name) || name == WriteFiles::TYPE;
            Listed { runs, source: "built-in", ..of_program(program, &limits) }
        })
        .collect();
    for program in place.programs()?.list() {
        match listed.iter_mut().find(|one| one.job_type == program.job_type) {
            // The settings of a built-in type are no program; an executable of its name is a mistake.
            Some(one) if program.command.is_some() || program.schema.is_some() => {
                let folder = place.programs()?.folder().display().to_string();
                one.problem = Some(format!("comes with jobq; what {folder} has of that name is not used"));
            }
            Some(_) => {}
            None => listed.push(of_program(program, &limits)),
        }
    }
    Ok(listed)
}

fn of_program(program: ListedProgram, limits: &std::collections::BTreeMap<String, u32>) -> Listed {
    let Defaults { max_attempts, timeout, backoff, .. } = program.defaults;
    Listed {
        source: if program.command.is_some() { "program" } else { "schema" },
        runs: program.command.is_some() && program.problem.is_none(),
        command: program.command,
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        max_attempts,
        backoff_ms: backoff.base_ms,
        backoff_max_ms: backoff.max_ms,
        concurrency: limits.get(&program.job_type).copied(),
        schema: program.schema.map(|path| path.display().to_string()),
        job_type: program.job_type,
        problem: program.problem,
        paused_until: None,
    }
}

fn row(one: &Listed) -> Vec<Cell> {
    let run_by = match (&one.command, one.source, one.runs) {
        (_, "built-in", true) => Cell::new("jobq", GREEN),
        (_, "built-in", false) => Cell::new("nobody here", YELLOW),
        (Some(command), ..) => Cell::plain(short(command)),
        (None, ..) => Cell::new("nobody here", YELLOW),
    };
    vec![
        Cell::plain(&one.job_type),
        run_by,
        Cell::number(span(i64::try_from(one.timeout_ms).unwrap_or(i64::MAX)), anstyle::Style::new()),
        Cell::number(one.max_attempts, anstyle::Style::new()),
        Cell::number(
            one.concurrency.map_or_else(|| "any".to_owned(), |limit| limit.to_string()),
            anstyle::Style::new(),
        ),
        Cell::new(one.schema.as_deref().map_or("", file_name), DIM),
    ]
}

/// Enough of a command to know it again.
fn short(command: &[String]) -> String {
    let words: Vec<&str> = command.iter().map(|word| file_name(word)).collect();
    words.join(" ")
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
