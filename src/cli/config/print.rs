//! `jobq config`: what holds here and where it comes from, or all that is wrong
//! with the file.

use std::io::IsTerminal as _;

use jobq::Queue;
use serde_json::{Value, json};

use super::effective::{Setting, Source};
use super::{Config, file_beside};
use crate::cli::args::Global;
use crate::cli::locate::{self, Place};
use crate::cli::output::{CYAN, Cell, DIM, GREEN, Output, YELLOW};
use crate::cli::{Answer, Outcome, print_error};

pub(crate) fn run(global: &Global, out: &mut Output) -> Outcome {
    let (db, how) = locate::database_and_how(global)?;
    let config = match Config::read(&db) {
        Ok(config) => config,
        Err(errors) => {
            errors.iter().for_each(print_error);
            return Ok(Answer::Failed(errors[0].kind()));
        }
    };
    let file = file_beside(&db).filter(|file| file.exists());
    let mut settings = vec![given("db", std::path::absolute(&db).unwrap_or(db.clone()).to_string_lossy(), how)];
    let place = Place { db, config, root: None };
    let root = root(global, &place);
    settings.extend(root.as_ref().ok().map(|(root, how)| given("root", root, *how)));
    settings.push(given("config", file.map(|file| file.to_string_lossy().into_owned()), (Source::Default, None)));
    let (level, how) = crate::cli::log_level(global);
    settings.push(given("log", level, how));
    let (colour, how) = colour();
    settings.push(given("colour", colour, how));
    let programs = place.programs()?.list().into_iter();
    let programs = programs.filter_map(|program| Some((program.job_type, program.command?))).collect();
    settings.extend(place.config.settings(&programs));
    print(&settings, out)?;
    // A database that cannot be opened keeps nobody from reading the settings.
    root?;
    Ok(Answer::Yes)
}

/// The folder jobs may touch. The queue is opened without naming one, which would
/// put it on record.
fn root(global: &Global, place: &Place) -> jobq::Result<(String, How)> {
    let queue = place.open_as_it_is()?;
    let text = |root: &std::path::Path| root.to_string_lossy().into_owned();
    let on_record = queue.root() != home(&queue);
    let Some(named) = &global.root else {
        let how = if on_record { Source::Database } else { Source::Default };
        return Ok((text(queue.root()), (how, None)));
    };
    if on_record {
        // Only what is on record already is accepted.
        let named = Place { root: Some(named.clone()), db: place.db.clone(), config: Config::default() };
        return Ok((text(named.open_as_it_is()?.root()), (Source::Flag, Some("--root"))));
    }
    Ok((text(&std::path::absolute(named).unwrap_or(named.clone())), (Source::Flag, Some("--root"))))
}

/// The root of a queue of which none is on record.
fn home(queue: &Queue) -> std::path::PathBuf {
    let folder = queue.database().parent().unwrap_or(queue.database());
    let inside = folder.file_name() == Some(".jobq".as_ref());
    folder.parent().filter(|_| inside).unwrap_or(folder).to_owned()
}

/// Where something comes from, and the flag or variable if it is one.
pub(crate) type How = (Source, Option<&'static str>);

fn given(name: &str, value: impl serde::Serialize, (source, by): How) -> Setting {
    Setting { name: name.to_owned(), value: json!(value), source, line: None, by }
}

/// When colours are used; what the variables are called is a custom of many programs.
fn colour() -> (&'static str, How) {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return ("never", (Source::Env, Some("NO_COLOR")));
    }
    if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return ("always", (Source::Env, Some("CLICOLOR_FORCE")));
    }
    if set("CLICOLOR").is_some_and(|value| value == "0") {
        return ("never", (Source::Env, Some("CLICOLOR")));
    }
    ("auto", (Source::Default, None))
}

fn print(settings: &[Setting], out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return settings.iter().try_for_each(|setting| out.json(setting));
    }
    let rows: Vec<Vec<Cell>> = settings.iter().map(row).collect();
    out.table(&["SETTING", "FROM", "VALUE"], &rows)?;
    if std::io::stdout().is_terminal() {
        out.line(format_args!("{DIM}none: not set, so as jobq or the handler does without it{DIM:#}"))?;
    }
    Ok(())
}

fn row(setting: &Setting) -> Vec<Cell> {
    let from = match (setting.source, setting.line, setting.by) {
        (Source::File, Some(line), _) => Cell::new(format!("config.toml:{line}"), GREEN),
        (Source::Flag, _, by) => Cell::new(by.unwrap_or("flag"), CYAN),
        (Source::Env, _, by) => Cell::new(by.unwrap_or("env"), YELLOW),
        (Source::Database, ..) => Cell::plain("database"),
        _ => Cell::new("default", DIM),
    };
    let value = match &setting.value {
        Value::Null => Cell::new("none", DIM),
        Value::String(text) => Cell::plain(text),
        Value::Array(items) if items.is_empty() => Cell::new("none", DIM),
        Value::Object(items) if items.is_empty() => Cell::new("none", DIM),
        other => Cell::plain(other.to_string()),
    };
    vec![Cell::plain(&setting.name), from, value]
}
