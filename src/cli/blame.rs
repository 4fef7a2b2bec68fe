//! `jobq blame`: which jobs wrote or removed a path, newest first.

use std::path::Path;

use anstyle::Style;
use jobq::clock::rfc3339;
use jobq::handlers::ClaudeExtraction;
use jobq::store::{PathEffect, Store as _};
use jobq::{Error, ErrorKind, Payload as _, printable};
use serde_json::{Value, json};

use super::args::BlameArgs;
use super::ids::Ids;
use super::locate::{Place, now};
use super::output::{BOLD, Cell, DIM, GREEN, Output, RED, YELLOW, ago, for_people};
use super::{Answer, Outcome};

pub(super) fn run(args: &BlameArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open_as_it_is()?;
    // As jobs name it; and as the shell completes it, from wherever one stands.
    let named = jobq::normalise_path(&args.path);
    let here = below(queue.root(), &args.path);
    let mut found = None;
    for path in named.iter().chain(&here) {
        let history = queue.store().history(path)?;
        if !history.is_empty() {
            found = Some((path, history));
            break;
        }
    }
    let Some((path, history)) = found else {
        let path = named.or_else(|error| here.ok_or(error))?;
        let why = format!("no job has written or removed {}; paths are relative to the root", printable(&path));
        return Err(Error::new(ErrorKind::NotFound, why).into());
    };
    if out.json {
        for effect in &history {
            out.json(&object(path, effect))?;
        }
        return Ok(Answer::Yes);
    }
    out.line(format_args!("{BOLD}{}{BOLD:#}", printable(path)))?;
    let mut ids = Ids::new(&queue);
    let rows: Vec<Vec<Cell>> = history.iter().map(|effect| row(effect, &mut ids)).collect();
    out.table(&[("WHEN", 1), ("WHAT", 0), ("JOB", 0), ("TYPE", 2), ("SHA256", 4), ("NOTE", 3)], &rows)?;
    Ok(Answer::Yes)
}

/// What a path of the file system is called below the root. The file itself may be gone, or a link.
fn below(root: &Path, path: &str) -> Option<String> {
    let names_a_folder = path.ends_with('/') || path.ends_with("/.");
    let path = std::path::absolute(path).ok().filter(|_| !names_a_folder)?;
    let folder = path.parent()?;
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let path = folder.join(path.file_name()?);
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    jobq::normalise_path(path.strip_prefix(root).ok()?.to_str()?).ok()
}

fn object(path: &str, effect: &PathEffect) -> Value {
    let (job_type, status) = effect.job.as_ref().map(|(job_type, status)| (job_type, status)).unzip();
    let mut object = json!({
        "path": path,
        "job_id": effect.job_id,
        "type": job_type,
        "status": status,
        "op": what(effect),
        "state": if effect.applied { "applied" } else { "planned" },
        "sha256": effect.sha256,
        "size": effect.size,
        "before": effect.before,
        "at": effect.at.map(rfc3339),
    });
    if let Some((requirement, prompt)) = prompt(effect) {
        object["requirement_id"] = requirement.into();
        object["prompt_hash"] = prompt.into();
    }
    object
}

fn row(effect: &PathEffect, ids: &mut Ids<'_>) -> Vec<Cell> {
    let style = if effect.sha256.is_some() { GREEN } else { RED };
    let mut note = match (&effect.job, effect.applied) {
        (None, _) => "its job was pruned".to_owned(),
        (Some((_, status)), false) => format!("planned, {status}"),
        (Some(_), true) => String::new(),
    };
    if let Some((requirement, prompt)) = prompt(effect) {
        note = format!("requirement {requirement}, prompt {}… {note}", &prompt[..12]);
    }
    vec![
        Cell::whole(effect.at.map(when).unwrap_or_default(), DIM),
        Cell::whole(what(effect), if effect.applied { style } else { YELLOW }),
        Cell::whole(ids.short(&effect.job_id), Style::new()),
        Cell::plain(effect.job.as_ref().map_or("", |(job_type, _)| job_type)),
        Cell::plain(effect.sha256.as_deref().map_or("", |hash| hash.get(..12).unwrap_or(hash))),
        Cell::note(note.trim(), DIM),
    ]
}

fn when(at: i64) -> String {
    if for_people() { format!("{} ago", ago(now(), at)) } else { rfc3339(at) }
}

fn what(effect: &PathEffect) -> &'static str {
    if effect.sha256.is_some() { "put" } else { "remove" }
}

/// For an extraction: the requirement it comes from, and the hash of its prompt.
fn prompt(effect: &PathEffect) -> Option<(String, String)> {
    let (job_type, _) = effect.job.as_ref()?;
    let payload = effect.payload.as_ref().filter(|_| job_type == ClaudeExtraction::TYPE)?;
    let extraction: ClaudeExtraction = payload.parse().ok()?;
    let hash = extraction.prompt_hash();
    Some((extraction.requirement_id, hash))
}
