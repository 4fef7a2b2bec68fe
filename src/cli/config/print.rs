//! `jobq config`: what holds here and where it comes from, or all that is wrong
//! with the file.

use std::path::Path;

use anstyle::Style;
use jobq::printable;
use serde_json::{Value, json};

use super::effective::{Setting, Source};
use super::{Config, file_beside};
use crate::cli::args::Global;
use crate::cli::locate::{self, Place};
use crate::cli::output::{CYAN, DIM, GREEN, Output, YELLOW};
use crate::cli::text::width;
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
    let mut settings = vec![given("db", whole(&db), how)];
    let place = Place::new(db, how, config, global);
    let root = root(&place);
    settings.extend(root.as_ref().ok().map(|(root, how)| given("root", root, *how)));
    settings.push(given("config", file.map(|file| whole(&file)), (Source::Default, None)));
    let (level, how) = crate::cli::log_level(global);
    settings.push(given("log", level, how));
    let (colour, how) = colour();
    settings.push(given("colour", colour, how));
    let programs = place.programs()?.list().into_iter();
    let programs = programs.filter_map(|program| Some((program.job_type, program.command?))).collect();
    settings.extend(place.config.settings(&programs));
    print(&settings, out)?;
    out.warnings(&place.slips()?)?;
    out.warnings(&crate::cli::handlers::problems(&place)?)?;
    // A database that cannot be opened keeps nobody from reading the settings.
    root?;
    Ok(Answer::Yes)
}

/// The folder jobs may touch.
fn root(place: &Place) -> jobq::Result<(String, How)> {
    let queue = place.open_as_it_is()?;
    let how = match &place.root {
        Some(_) => (Source::Flag, Some("--root")),
        None if queue.store().root().is_some() => (Source::Database, None),
        None => (Source::Default, None),
    };
    Ok((whole(queue.root()), how))
}

/// A path that means the same wherever it is read.
fn whole(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
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
    // Whatever it says, as in `anstream`, which goes by it.
    if set("CLICOLOR_FORCE").is_some() {
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
    // Not cut as in other tables: these are what is looked for.
    let from: Vec<(String, Style)> = settings.iter().map(from).collect();
    let longest = |texts: &mut dyn Iterator<Item = &str>| texts.map(width).max().unwrap_or(0) + 2;
    let name_width = longest(&mut settings.iter().map(|setting| setting.name.as_str()));
    let from_width = longest(&mut from.iter().map(|(text, _)| text.as_str()));
    out.line(format_args!("{DIM}{:name_width$}{:from_width$}VALUE{DIM:#}", "SETTING", "FROM"))?;
    for (setting, (from, style)) in settings.iter().zip(&from) {
        let name = printable(&setting.name);
        // As many spaces as are missing by what is seen, which is not what is counted.
        let (pad, gap) = (name_width - width(&name), from_width - width(from));
        let start = format!("{name}{:pad$}{style}{from}{style:#}{:gap$}", "", "");
        out.behind(start, name_width + from_width, &printable(&value(setting)))?;
    }
    Ok(())
}

fn from(setting: &Setting) -> (String, Style) {
    match (setting.source, setting.line, setting.by) {
        (Source::File, Some(line), _) => (format!("config.toml:{line}"), GREEN),
        (Source::Flag, _, by) => (by.unwrap_or("flag").to_owned(), CYAN),
        (Source::Env, _, by) => (by.unwrap_or("env").to_owned(), YELLOW),
        (Source::Database, ..) => ("database".to_owned(), Style::new()),
        _ => ("default".to_owned(), DIM),
    }
}

/// As it would be written; what is not set has no value.
fn value(setting: &Setting) -> String {
    match &setting.value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        Value::Object(items) => {
            let items: Vec<String> = items.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("{{ {} }}", items.join(", "))
        }
        other => other.to_string(),
    }
}
