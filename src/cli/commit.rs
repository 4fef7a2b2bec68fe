//! `jobq commit`: files and jobs from a JSON document, accepted as one.

use std::io::IsTerminal as _;

use base64::Engine as _;
use jobq::{
    Accepted, Draft, EnqueueOutcome, Error, ErrorKind, Expect, MAX_JSON_DEPTH, NewJob, Result, Status, printable,
};
use serde::de::{self, MapAccess};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::args::CommitArgs;
use super::enqueue::read_input;
use super::locate::Place;
use super::output::{DIM, GREEN, Output, RED, YELLOW};
use super::{Answer, Outcome};

/// Anything else is a mistake.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with id, writes, removes and jobs")]
struct Document {
    id: Option<String>,
    #[serde(default)]
    writes: Vec<WriteObject>,
    #[serde(default)]
    removes: Vec<RemoveObject>,
    #[serde(default)]
    jobs: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with path, one of json, text and base64, and expect")]
struct WriteObject {
    path: String,
    /// `null` is a value too.
    #[serde(default, deserialize_with = "given")]
    json: Option<Box<RawValue>>,
    text: Option<String>,
    base64: Option<String>,
    expect: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with path and expect")]
struct RemoveObject {
    path: String,
    expect: Option<String>,
}

fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

pub(super) fn run(args: &CommitArgs, place: &Place, out: &mut Output) -> Outcome {
    let file = args.file.as_deref().unwrap_or("-");
    if file == "-" && std::io::stdin().is_terminal() {
        out.hint("reading the commit from the terminal; end it with Ctrl-D")?;
    }
    let text = read_input(file)?;
    if text.trim().is_empty() {
        return Err(Error::invalid("commit", "the document is empty; `jobq commit --help` shows one").into());
    }
    let document: Document = serde_json::from_str(&text).map_err(|e| {
        Error::invalid("commit", format_args!("is not a commit document: {e}; `jobq commit --help` shows one"))
    })?;
    let queue = place.open()?;
    let accepted = queue.commit(|draft| fill(draft, document))?;
    print(&accepted, out)?;
    // Committed before, and that one did not come true.
    let failed = matches!(accepted.status, Status::Failed | Status::Cancelled);
    Ok(if failed { Answer::Failed(ErrorKind::Conflict) } else { Answer::Yes })
}

fn fill(draft: &mut Draft, document: Document) -> Result<()> {
    if let Some(id) = &document.id {
        draft.id(id)?;
    }
    for (number, write) in document.writes.into_iter().enumerate() {
        let WriteObject { path, json, text, base64, expect } = write;
        let at = |e: Error| e.context(format_args!("writes[{number}]"));
        match (json, text, base64) {
            (Some(json), None, None) => draft.write_json(&path, &Rewritten(&json, 1)),
            (None, Some(text), None) => draft.write(&path, text),
            (None, None, Some(text)) => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(text);
                bytes
                    .map_err(|e| Error::invalid("base64", format_args!("is not base64: {e}")))
                    .and_then(|bytes| draft.write(&path, bytes))
            }
            _ => {
                let text = format!("{} needs exactly one of json, text and base64", printable(&path));
                Err(Error::new(ErrorKind::Invalid, text))
            }
        }
        .and_then(|()| expect_at(draft, &path, expect))
        .map_err(at)?;
    }
    for (number, RemoveObject { path, expect }) in document.removes.into_iter().enumerate() {
        let at = |e: Error| e.context(format_args!("removes[{number}]"));
        draft.remove(&path).and_then(|()| expect_at(draft, &path, expect)).map_err(at)?;
    }
    for (number, job) in document.jobs.into_iter().enumerate() {
        let at = |e: Error| e.context(format_args!("jobs[{number}]"));
        NewJob::from_json(job.get()).and_then(|job| draft.enqueue(job)).map_err(at)?;
    }
    Ok(())
}

fn expect_at(draft: &mut Draft, path: &str, expect: Option<String>) -> Result<()> {
    match expect {
        None => Ok(()),
        Some(word) if word == "absent" => draft.expect(path, Expect::Absent),
        Some(sha256) => draft.expect(path, Expect::Sha256(sha256)),
    }
}

fn print(accepted: &Accepted, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return out.json(accepted);
    }
    let Accepted { id, status, applied, reason, jobs, existing } = accepted;
    let before = if *existing { ", accepted before" } else { "" };
    let reason = printable(reason.as_deref().unwrap_or_default());
    match status {
        _ if *applied => out.line(format_args!("{GREEN}committed{GREEN:#}  {id}{DIM}{before}{DIM:#}"))?,
        Status::Failed | Status::Cancelled => {
            out.line(format_args!("{RED}{status}{RED:#}  {id}{DIM}{before}{DIM:#}: {reason}"))?;
        }
        _ => out.line(format_args!(
            "{YELLOW}accepted{YELLOW:#}  {id}{DIM}{before}{DIM:#}, to be applied when that is possible: {reason}"
        ))?,
    }
    for job in jobs {
        let known = if job.outcome == EnqueueOutcome::Existing { ", there already" } else { "" };
        out.line(format_args!("  {}  {DIM}{}{known}{DIM:#}", printable(&job.id), printable(&job.job_type)))?;
    }
    Ok(())
}

/// JSON written anew with other space between its parts; keys keep their order
/// and numbers their digits. With it how deep it lies: text that has not been
/// parsed can be nested deeper than the stack.
struct Rewritten<'r>(&'r RawValue, usize);

impl Serialize for Rewritten<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.get();
        let bad = serde::ser::Error::custom::<serde_json::Error>;
        if self.1 > MAX_JSON_DEPTH && text.starts_with(['{', '[']) {
            return Err(serde::ser::Error::custom(format_args!("is nested deeper than {MAX_JSON_DEPTH} levels")));
        }
        match text.as_bytes().first() {
            Some(b'{') => {
                let Entries(entries) = serde_json::from_str(text).map_err(bad)?;
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(&key, &Rewritten(value, self.1 + 1))?;
                }
                map.end()
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(bad)?;
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Rewritten(item, self.1 + 1))?;
                }
                list.end()
            }
            _ => self.0.serialize(serializer),
        }
    }
}

/// An object's entries as they stand.
struct Entries<'r>(Vec<(String, &'r RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

#[cfg(test)]
mod properties;
