//! `jobq extract`: requirements become prompts, and prompts become jobs.

mod requirements;

use std::collections::HashMap;
use std::io::IsTerminal as _;

use jobq::extract::Template;
use jobq::handlers::ClaudeExtraction;
use jobq::{EnqueueOutcome, Enqueued, Error, NewJob, Payload as _, Queue, Result, printable};
use serde_json::{Value, json};

use self::requirements::Reader;
use super::args::{ExtractArgs, Global};
use super::locate::Place;
use super::output::{BOLD, DIM, GREEN, Output, YELLOW};
use super::{Answer, Outcome};

/// One requirement, and what is to be asked about it.
struct Asked {
    file: String,
    extraction: ClaudeExtraction,
}

/// What became of one.
enum Became {
    /// It stands already, by this job.
    Skipped(String),
    Queued(Enqueued),
}

pub(super) fn run(args: &ExtractArgs, global: &Global, out: &mut Output) -> Outcome {
    let asked = ask(args, &Reader::new(global)?)?;
    if args.dry_run {
        // Needs no queue: prompts are tried out before there is one.
        for one in &asked {
            show(one, asked.len() > 1, out)?;
        }
        return Ok(Answer::Yes);
    }
    let queue = Place::find(global)?.open()?;
    let standing = asked.iter().map(|one| if args.force { Ok(None) } else { standing(one, &queue) });
    let standing = standing.collect::<Result<Vec<_>>>()?;
    let queued = enqueue(args, &asked, &standing, &queue)?;
    let mut queued = queued.into_iter();
    for (one, stands) in asked.iter().zip(standing) {
        if let Some(became) = stands.map(Became::Skipped).or_else(|| queued.next().map(Became::Queued)) {
            print(one, &became, out)?;
        }
    }
    Ok(Answer::Yes)
}

/// Every prompt, before anything is queued; the file that is wrong is named.
fn ask(args: &ExtractArgs, reader: &Reader) -> Result<Vec<Asked>> {
    let files = requirements::files(&args.requirements)?;
    if args.id.is_some() && files.len() > 1 {
        return Err(Error::invalid("--id", format_args!("names one requirement, but there are {}", files.len())));
    }
    if args.template == "-" && files.iter().any(|file| file == "-") {
        return Err(Error::invalid("--template", "- is the requirement already; give one of them as a file"));
    }
    let about_template = |e: Error| e.context(printable(&args.template));
    let template = Template::parse(&reader.read(&args.template)?, &args.target).map_err(about_template)?;
    let mut asked = Vec::with_capacity(files.len());
    for file in files {
        let requirement = requirements::read(&file, reader)?;
        let filled = template.fill(&requirement, args.id.as_deref());
        let mut extraction = filled.map_err(|e| {
            let id_is_missing = e.field() == Some("id");
            let advice = if id_is_missing { " (--id ID)" } else { "" };
            Error::new(e.kind(), format!("{}: {}{advice}; nothing was queued", printable(&file), e.message()))
        })?;
        extraction.format = args.format.map(Into::into);
        asked.push(Asked { file, extraction });
    }
    refuse_clashes(&asked)?;
    Ok(asked)
}

/// Two of one request that would overwrite each other, or of which one would be
/// taken for the other.
fn refuse_clashes(asked: &[Asked]) -> Result<()> {
    let (mut targets, mut prompts) = (HashMap::new(), HashMap::new());
    for Asked { file, extraction } in asked {
        let target = &extraction.target_path;
        if let Some(other) = targets.insert(target, file) {
            let both = format!("{} and {}", printable(other), printable(file));
            let why = format!("{both} have the same target {}; nothing was queued", printable(target));
            return Err(Error::invalid("--target", why));
        }
        let same = (&extraction.requirement_id, &extraction.prompt);
        if let Some(other) = prompts.insert(same, file) {
            let both = format!("{} and {}", printable(other), printable(file));
            return Err(Error::invalid("id", format!("{both} have the same id and prompt; nothing was queued")));
        }
    }
    Ok(())
}

fn standing(one: &Asked, queue: &Queue) -> Result<Option<String>> {
    queue.standing_extraction(&one.extraction).map_err(|e| e.context(printable(&one.file)))
}

/// Those that do not stand, in one transaction.
fn enqueue(args: &ExtractArgs, asked: &[Asked], standing: &[Option<String>], queue: &Queue) -> Result<Vec<Enqueued>> {
    let wanted: Vec<&Asked> = asked.iter().zip(standing).filter(|(_, id)| id.is_none()).map(|(one, _)| one).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let job_of = |one: &&Asked| {
        // As JSON, so that what the settings say of the type counts.
        let mut job = NewJob::raw(ClaudeExtraction::TYPE, json!(one.extraction).to_string());
        if let Some(priority) = args.priority {
            job = job.priority(priority);
        }
        if let Some(correlation) = &args.correlation_id {
            job = job.correlation_id(correlation);
        }
        job
    };
    queue.enqueue_many(wanted.iter().map(job_of)).map_err(|e| {
        // A batch of one has no numbered items.
        let at = e.item().or((wanted.len() == 1).then_some(0));
        match at.and_then(|index| wanted.get(index)) {
            Some(one) => Error::new(e.kind(), format!("{}: {}; nothing was queued", printable(&one.file), e.message())),
            None => e,
        }
    })
}

fn print(one: &Asked, became: &Became, out: &mut Output) -> std::io::Result<()> {
    let target = printable(&one.extraction.target_path);
    if out.json {
        let (outcome, id, same) = match became {
            Became::Skipped(id) => (json!("skipped"), id, true),
            Became::Queued(queued) => (json!(queued.outcome), &queued.id, queued.same_payload),
        };
        let mut object = object(one);
        object["outcome"] = outcome;
        object["id"] = json!(id);
        object["same_payload"] = json!(same);
        return out.json(&object);
    }
    let file = printable(&one.file);
    match became {
        Became::Skipped(id) => out.line(format_args!(
            "{DIM}skipped{DIM:#}   {}  {file}  {DIM}{target} holds its answer; --force asks again{DIM:#}",
            printable(id)
        )),
        Became::Queued(Enqueued { id, outcome: EnqueueOutcome::Inserted, .. }) => {
            out.line(format_args!("{GREEN}queued{GREEN:#}    {id}  {file}  {DIM}{target}{DIM:#}"))
        }
        Became::Queued(Enqueued { id, status, same_payload, .. }) => {
            let differs = if *same_payload { "" } else { ", with another target or format: yours was not queued" };
            let id = printable(id);
            out.line(format_args!("{YELLOW}existing{YELLOW:#}  {id}  {file}  {DIM}{status}{differs}{DIM:#}"))
        }
    }
}

fn object(one: &Asked) -> Value {
    let extraction = &one.extraction;
    json!({
        "requirement": one.file,
        "requirement_id": extraction.requirement_id,
        "prompt_hash": extraction.prompt_hash(),
        "target_path": extraction.target_path,
    })
}

/// The prompt; one of several under the name of its file.
fn show(one: &Asked, of_several: bool, out: &mut Output) -> std::io::Result<()> {
    let Asked { file, extraction } = one;
    if out.json {
        let mut object = object(one);
        object["format"] = json!(extraction.format.unwrap_or_default());
        object["prompt"] = json!(extraction.prompt);
        return out.json(&object);
    }
    if of_several {
        let target = printable(&extraction.target_path);
        out.line(format_args!("{BOLD}==> {}{BOLD:#}  {DIM}{target}{DIM:#}", printable(file)))?;
    }
    if std::io::stdout().is_terminal() {
        return extraction.prompt.lines().try_for_each(|line| out.line(printable(line)));
    }
    out.raw(extraction.prompt.as_bytes())?;
    if extraction.prompt.ends_with('\n') { Ok(()) } else { out.raw(b"\n") }
}
