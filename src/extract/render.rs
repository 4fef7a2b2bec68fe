//! Filling a template, strictly: nothing that is missing goes unnoticed.

use std::fmt;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error as JinjaError, ErrorKind as JinjaKind, UndefinedBehavior, Value};

use super::strict::make_strict;
use crate::MAX_JSON_BYTES;
use crate::error::{Error, ErrorKind, Result};

/// Instructions of the engine that a template may take. A requirement of a hundred
/// thousand items takes some millions.
const STEPS: u64 = 20_000_000;

/// The largest template, in bytes. What is to be filled in comes from the requirement.
const LARGEST: usize = 256 << 10;

/// The engine goes a step down the stack for each link of a chain (`a.b.c`, `not not x`,
/// `{% elif %}`), and a chain may be as long as the template: up to 1 KiB of stack for
/// each byte of it, as measured without optimisation.
const STACK_PER_BYTE: usize = 2 << 10;
/// What it needs anyway, as for macros that call each other.
const STACK: usize = 8 << 20;

/// A template that has been read. Its name is that of the field it was given in.
pub(super) struct Renderer {
    name: &'static str,
    environment: Environment<'static>,
    size: usize,
}

impl fmt::Debug for Renderer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Renderer {
    pub(super) fn parse(name: &'static str, text: &str) -> Result<Self> {
        let mut environment = Environment::new();
        // Without it errors do not say which variable is missing.
        environment.set_debug(true);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_fuel(Some(STEPS));
        make_strict(&mut environment);
        // A mark that editors leave at the beginning is no part of the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.len() > LARGEST {
            return Err(Error::invalid(name, format_args!("is larger than {LARGEST} bytes")));
        }
        on_a_stack_for(text.len(), || {
            let read = environment.add_template_owned(name, text.to_owned());
            read.map_err(|e| Error::invalid(name, described(&e)))
        })?;
        Ok(Self { name, environment, size: text.len() })
    }

    pub(super) fn render(&self, variables: &serde_json::Value) -> Result<String> {
        on_a_stack_for(self.size, || self.render_here(variables))
    }

    fn render_here(&self, variables: &serde_json::Value) -> Result<String> {
        let template =
            self.environment.get_template(self.name).map_err(|e| Error::invalid(self.name, described(&e)))?;
        let mut out = Bounded { text: Vec::new(), is_full: false };
        let rendered = template.render_captured_to(Value::from(Serde(variables)), &mut out).map(drop);
        if out.is_full {
            return Err(Error::invalid(self.name, "more than 16 MiB come out of it, which is too much for a job"));
        }
        rendered.map_err(|error| {
            if error.kind() == JinjaKind::OutOfFuel {
                let why = format!("{}it takes more than {STEPS} steps: a loop without an end?", line(&error));
                return Error::invalid(self.name, why);
            }
            let why = match named(&error).or_else(|| self.absent_in(&error, variables)).or_else(|| within(&error)) {
                Some(name) => format!(
                    "{}the {} uses `{name}`, which the requirement does not have; `default(…)` can stand in for it",
                    line(&error),
                    self.name
                ),
                None => described(&error),
            };
            Error::invalid(self.name, crate::printable(&why))
        })?;
        String::from_utf8(out.text).map_err(|e| Error::invalid(self.name, e))
    }

    /// The variable of the requirement that is used where the error is and that
    /// there is not, for errors that do not name what they are about.
    fn absent_in(&self, error: &JinjaError, variables: &serde_json::Value) -> Option<String> {
        if !matches!(error.kind(), JinjaKind::UndefinedError | JinjaKind::InvalidOperation) {
            return None;
        }
        let tag = tag(error)?;
        let is_used = |name: &&String| {
            let is_part_of_a_word = |c: char| c.is_alphanumeric() || c == '_';
            tag.match_indices(name.as_str()).any(|(at, _)| {
                !tag[..at].ends_with(is_part_of_a_word) && !tag[at + name.len()..].starts_with(is_part_of_a_word)
            })
        };
        let is_absent = |name: &&String| name.split('.').try_fold(variables, |value, part| value.get(part)).is_none();
        // Without those that the template itself declares, as loops do.
        let used = self.environment.get_template(self.name).ok()?.undeclared_variables(true);
        used.iter().filter(is_absent).filter(is_used).min().cloned()
    }
}

/// Does it on a stack that is large enough for a template of this size. Only what is
/// used of it takes memory.
fn on_a_stack_for<T: Send>(size: usize, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let thread = std::thread::Builder::new().stack_size(STACK + size * STACK_PER_BYTE);
    std::thread::scope(|scope| {
        let thread = thread
            .spawn_scoped(scope, work)
            .map_err(|e| Error::new(ErrorKind::Io, format!("no thread for a template of {size} bytes: {e}")))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// `user.name` of "… `user.name` is undefined …".
fn named(error: &JinjaError) -> Option<String> {
    let (before, _) = error.detail()?.split_once("` is undefined")?;
    before.rsplit_once('`').map(|(_, name)| name.to_owned())
}

/// What is missing somewhere in a larger expression, as that is written.
fn within(error: &JinjaError) -> Option<String> {
    (error.kind() == JinjaKind::UndefinedError).then(|| tag(error).map(str::to_owned))?
}

fn described(error: &JinjaError) -> String {
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    let place = tag(error).map(|text| format!(", in `{text}`")).unwrap_or_default();
    format!("{}{}{detail}{place}", line(error), error.kind())
}

fn line(error: &JinjaError) -> String {
    error.line().map(|line| format!("line {line}: ")).unwrap_or_default()
}

/// The tag of the template that failed, without its braces, if it is short enough
/// to be shown.
fn tag(error: &JinjaError) -> Option<&str> {
    let (source, place) = (error.template_source()?, error.range()?);
    let start = ["{{", "{%"].iter().filter_map(|open| source.get(..place.start)?.rfind(open)).max()? + 2;
    let end = ["}}", "%}"].iter().filter_map(|close| source.get(place.end..)?.find(close)).min()? + place.end;
    let text = source.get(start..end)?.trim_matches(['-', '+']).trim();
    (!text.is_empty() && text.len() <= 200).then_some(text)
}

/// Keeps what is written, up to a limit.
struct Bounded {
    text: Vec<u8>,
    is_full: bool,
}

impl std::io::Write for Bounded {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        if self.text.len() + text.len() > MAX_JSON_BYTES {
            self.is_full = true;
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
