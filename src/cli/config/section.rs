//! A table of the file, read key by key. Whatever was asked for is known; whatever
//! is left over is a mistake. All mistakes are collected, not only the first.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Problem, line_of, nearest};
use crate::cli::args::duration;

/// What was found out while a file is read.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) problems: Vec<Problem>,
    /// On which line a setting stands.
    pub(super) lines: BTreeMap<String, usize>,
    /// What can be set, with the tables it is in.
    known: Vec<String>,
    /// Keys that nobody has asked for: the table, the key, its line, what the table knows.
    unknown: Vec<(String, String, usize, Vec<&'static str>)>,
}

impl Notes {
    /// The problems in order of line, those with unknown keys included.
    pub(super) fn finish(mut self) -> (Vec<Problem>, BTreeMap<String, usize>) {
        for (table, key, line, known) in std::mem::take(&mut self.unknown) {
            // What stands in the wrong table is named with its right one.
            let elsewhere = self.known.iter().find(|name| name.rsplit('.').next() == Some(key.as_str()));
            let why = match (nearest(&key, &known), elsewhere) {
                (Some(meant), _) => format!("no such setting; did you mean `{meant}`?"),
                (None, Some(meant)) if *meant == key => {
                    format!("no such setting here; `{meant}` belongs to no table: write it above the first one")
                }
                (None, Some(meant)) => format!("no such setting here; did you mean `{meant}`?"),
                (None, None) => format!("no such setting; there are {}", known.join(", ")),
            };
            self.problems.push(Problem { line, name: joined(&table, &key), why });
        }
        self.problems.sort_by_key(|problem| problem.line);
        (self.problems, self.lines)
    }
}

pub(super) struct Section<'t> {
    text: &'t str,
    notes: &'t RefCell<Notes>,
    name: String,
    table: Option<&'t DeTable<'t>>,
    known: Vec<&'static str>,
}

impl<'t> Section<'t> {
    /// The whole file, if there is one.
    pub(super) fn new(text: &'t str, table: Option<&'t DeTable<'t>>, notes: &'t RefCell<Notes>) -> Self {
        Self { text, notes, name: String::new(), table, known: Vec::new() }
    }

    fn within(&self, key: &str, table: Option<&'t DeTable<'t>>) -> Self {
        Self { text: self.text, notes: self.notes, name: joined(&self.name, key), table, known: Vec::new() }
    }

    fn value(&mut self, key: &'static str) -> Option<&'t DeValue<'t>> {
        self.known.push(key);
        self.notes.borrow_mut().known.push(joined(&self.name, key));
        let (name, value) = self.table?.get_key_value(key)?;
        let line = line_of(self.text, name.span().start);
        self.notes.borrow_mut().lines.insert(joined(&self.name, key), line);
        Some(value.get_ref())
    }

    /// Something is wrong with the value of a key that is there.
    pub(super) fn wrong(&self, key: &str, why: impl Into<String>) {
        let at = self.table.and_then(|table| table.get_key_value(key)).map_or(0, |(name, _)| name.span().start);
        let (line, name) = (line_of(self.text, at), joined(&self.name, key));
        self.notes.borrow_mut().problems.push(Problem { line, name, why: why.into() });
    }

    /// A key that is known, but not here.
    pub(super) fn not_here(&mut self, key: &'static str, why: &str) {
        if self.table.is_some_and(|table| table.contains_key(key)) {
            self.known.push(key);
            self.wrong(key, why);
        }
    }

    fn read<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        read: impl FnOnce(&'t DeValue<'t>) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let read = read(value);
        if read.is_none() {
            self.wrong(key, format!("must be {wanted}, but is {}", kind(value)));
        }
        read
    }

    pub(super) fn switch(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, "true or false", DeValue::as_bool)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, "a text in quotes", |value| value.as_str().map(str::to_owned))
    }

    /// A whole number that is not below 0.
    pub(super) fn number<N: TryFrom<u64>>(&mut self, key: &'static str) -> Option<N> {
        let value = self.value(key)?;
        let number = whole(value).and_then(|number| N::try_from(number).ok());
        if number.is_none() {
            let why = match value {
                DeValue::Integer(number) if number.as_str().starts_with('-') => "must not be below 0, but is",
                DeValue::Integer(_) => "is too large:",
                _ => "must be a whole number, but is",
            };
            self.wrong(key, format!("{why} {}", kind(value)));
        }
        number
    }

    pub(super) fn numbers<N: TryFrom<u64>>(&mut self, key: &'static str) -> Option<Vec<N>> {
        let number = |item: &'t Spanned<DeValue<'t>>| N::try_from(whole(item.get_ref())?).ok();
        self.read(key, "a list of whole numbers, as in [2, 64]", |value| value.as_array()?.iter().map(number).collect())
    }

    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let text = |item: &'t Spanned<DeValue<'t>>| item.get_ref().as_str().map(str::to_owned);
        self.read(key, "a list of texts, as in [\"a\", \"b\"]", |value| value.as_array()?.iter().map(text).collect())
    }

    /// Texts by names that are anybody's choice, each read by itself.
    pub(super) fn named<T>(
        &mut self,
        key: &'static str,
        parse: fn(&str) -> Result<T, String>,
    ) -> Option<BTreeMap<String, T>> {
        let outer = self.section(key);
        let mut read = BTreeMap::new();
        for (name, value) in outer.table? {
            let (line, name) = (line_of(self.text, name.span().start), name.get_ref().as_ref());
            self.notes.borrow_mut().lines.insert(joined(&outer.name, name), line);
            let Some(text) = value.get_ref().as_str() else {
                // What it is instead may be a secret.
                outer.wrong(name, "must be a text in quotes");
                continue;
            };
            match parse(text) {
                Ok(one) => drop(read.insert(name.to_owned(), one)),
                Err(why) => outer.wrong(name, why),
            }
        }
        Some(read)
    }

    pub(super) fn time(&mut self, key: &'static str) -> Option<Duration> {
        self.parsed(key, duration)
    }

    /// A text that is read as on the command line.
    pub(super) fn parsed<T>(&mut self, key: &'static str, parse: fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.read(key, "a text in quotes", DeValue::as_str)?;
        parse(text).map_err(|why| self.wrong(key, why)).ok()
    }

    /// A table within this one; it is empty when it is not there.
    pub(super) fn section(&mut self, key: &'static str) -> Self {
        let table = self.read(key, "a table", DeValue::as_table);
        self.within(key, table)
    }

    /// Tables by names that are anybody's choice.
    pub(super) fn sections(&mut self, key: &'static str) -> Vec<(String, Self)> {
        let outer = self.section(key);
        let mut sections = Vec::new();
        for (name, value) in outer.table.into_iter().flatten() {
            let (line, name) = (line_of(self.text, name.span().start), name.get_ref().as_ref());
            self.notes.borrow_mut().lines.insert(joined(&outer.name, name), line);
            match value.get_ref().as_table() {
                Some(table) => sections.push((name.to_owned(), outer.within(name, Some(table)))),
                None => outer.wrong(name, format!("must be a table of its own, as in [{key}.create_file]")),
            }
        }
        sections
    }

    /// Everything that can be asked for has been.
    pub(super) fn end(self) {
        for (name, _) in self.table.into_iter().flatten() {
            let key = name.get_ref().as_ref();
            if !self.known.contains(&key) {
                let line = line_of(self.text, name.span().start);
                self.notes.borrow_mut().unknown.push((self.name.clone(), key.to_owned(), line, self.known.clone()));
            }
        }
    }
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let number = value.as_integer()?;
    u64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(_) => "a text".to_owned(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

fn joined(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}
