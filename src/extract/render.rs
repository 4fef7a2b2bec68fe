//! Filling a template, strictly: nothing that is missing goes unnoticed.

use std::fmt;

use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error as JinjaError, ErrorKind as JinjaKind, UndefinedBehavior, Value};
use serde::Serialize as _;

use crate::error::{Error, Result};

/// A template that has been read. Its name is that of the field it was given in.
pub(super) struct Renderer {
    name: &'static str,
    environment: Environment<'static>,
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
        // In debug mode they print the insides of the engine, not something to ask anybody.
        environment.remove_global("debug");
        environment.remove_filter("pprint");
        // Strictness has gaps: a missing value that is written as JSON, joined, or printed as a part of a list.
        environment.add_filter("tojson", to_json);
        environment.add_filter("join", join);
        environment.set_formatter(|out, state, value| {
            complete(value)?;
            minijinja::escape_formatter(out, state, value)
        });
        // A mark that editors leave at the beginning is no part of the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read = environment.add_template_owned(name, text.to_owned());
        read.map_err(|e| Error::invalid(name, described(&e)))?;
        Ok(Self { name, environment })
    }

    pub(super) fn render(&self, variables: &serde_json::Value) -> Result<String> {
        let template =
            self.environment.get_template(self.name).map_err(|e| Error::invalid(self.name, described(&e)))?;
        template.render(Value::from(Serde(variables))).map_err(|error| {
            let why = match named(&error).or_else(|| self.absent_in(&error, variables)).or_else(|| within(&error)) {
                Some(name) => format!(
                    "{}the {} uses `{name}`, which the requirement does not have; `default(…)` can stand in for it",
                    line(&error),
                    self.name
                ),
                None => described(&error),
            };
            Error::invalid(self.name, crate::printable(&why))
        })
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

/// Fails if something in the value is missing.
fn complete(value: &Value) -> Result<(), JinjaError> {
    if value.is_undefined() {
        return Err(JinjaKind::UndefinedError.into());
    }
    match value.kind() {
        ValueKind::Map => value.try_iter()?.try_for_each(|key| complete(&value.get_item(&key)?)),
        ValueKind::Seq | ValueKind::Iterable => value.try_iter()?.try_for_each(|item| complete(&item)),
        _ => Ok(()),
    }
}

/// JSON as people write it. The engine's own filter escapes `<`, `>`, `&` and `'`
/// for web pages.
#[expect(clippy::needless_pass_by_value, reason = "filters are given their arguments")]
fn to_json(value: Value, options: Kwargs) -> Result<String, JinjaError> {
    complete(&value)?;
    let indent: Option<usize> = options.get("indent")?;
    options.assert_all_used()?;
    let bad = |e: serde_json::Error| JinjaError::new(JinjaKind::BadSerialization, e.to_string());
    let Some(indent) = indent else { return serde_json::to_string(&value).map_err(bad) };
    let (mut text, indent) = (Vec::new(), " ".repeat(indent.min(16)));
    let style = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, style)).map_err(bad)?;
    String::from_utf8(text).map_err(|e| JinjaError::new(JinjaKind::BadSerialization, e.to_string()))
}

/// The engine's own filter joins what is missing as if it were empty.
#[expect(clippy::needless_pass_by_value, reason = "filters are given their arguments")]
fn join(value: Value, between: Option<String>) -> Result<String, JinjaError> {
    complete(&value)?;
    let items: Vec<String> = match value.as_str() {
        Some(text) => text.chars().map(String::from).collect(),
        None => value.try_iter()?.map(|item| item.to_string()).collect(),
    };
    Ok(items.join(&between.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(text: &str) -> Result<String> {
        let variables = json!({
            "title": "<b> & \"it's\"",
            "owner": {"name": "Ada", "city": null},
            "items": [{"n": 1}, {}],
            "count": 12_345_678_901_234_567_u64,
        });
        Renderer::parse("template", text)?.render(&variables)
    }

    #[test]
    fn what_is_missing_is_named_wherever_it_is_used() {
        for (text, name) in [
            ("{{ deadline }}", "deadline"),
            ("{{ owner.mail }}", "owner.mail"),
            ("{{ owner.address.city }}", "owner.address"),
            ("{{ owner['mail'] }}", "owner['mail']"),
            ("{{ items[7] }}", "items[7]"),
            ("{{ deadline | upper }}", "deadline"),
            ("{{ deadline | list }}", "deadline"),
            ("{{ deadline | length }}", "deadline"),
            ("{{ deadline | first }}", "deadline"),
            ("{{ owner.mail | sort }}", "owner.mail"),
            ("{{ deadline | tojson }}", "deadline"),
            ("{{ owner.mail | join }}", "owner.mail"),
            ("{{ [owner.name, deadline] }}", "deadline"),
            ("{{ {'a': [deadline]} | tojson }}", "deadline"),
            ("{{ 'until ' ~ deadline }}", "deadline"),
            ("{% if deadline %}x{% endif %}", "deadline"),
            ("{% if owner.mail == 'x' %}x{% endif %}", "owner.mail"),
            ("{% for d in deadline %}x{% endfor %}", "deadline"),
            ("{% for item in items %}{{ item.n }}{% endfor %}", "item.n"),
            ("{% for item in items %}{{ item.n | tojson }}{% endfor %}", "item.n"),
            ("{{ items | map(attribute='n') | join(',') }}", "map(attribute='n')"),
            ("{% set until = deadline %}{{ until }}", "deadline"),
        ] {
            let error = render(&format!("one\ntwo {text}")).unwrap_err();
            assert_eq!(error.field(), Some("template"), "{text}");
            let error = error.to_string();
            assert!(error.contains("line 2: the template uses `"), "{text}: {error}");
            let named = error.split('`').nth(1).unwrap();
            assert!(named.contains(name), "{text}: {error}");
            assert!(error.contains("which the requirement does not have"), "{text}: {error}");
        }
    }

    #[test]
    fn what_may_be_missing_is_said_to_be() {
        for (text, result) in [
            ("{{ deadline | default('none') }}", "none"),
            ("{% if deadline is defined %}{{ deadline }}{% else %}open{% endif %}", "open"),
            ("{{ owner.mail | default(owner.name) }}", "Ada"),
            ("{{ owner.city is none }}", "True"),
        ] {
            assert_eq!(render(text).unwrap(), result, "{text}");
        }
    }

    #[test]
    fn prompts_are_text_and_nothing_is_escaped() {
        let title = "<b> & \"it's\"";
        assert_eq!(render("{{ title }}").unwrap(), title);
        assert_eq!(render("{{ title | tojson }}").unwrap(), r#""<b> & \"it's\"""#);
        assert_eq!(render("{{ owner | tojson }}").unwrap(), r#"{"city":null,"name":"Ada"}"#);
        let pretty = "{\n  \"city\": null,\n  \"name\": \"Ada\"\n}";
        assert_eq!(render("{{ owner | tojson(indent=2) }}").unwrap(), pretty);
        assert_eq!(
            render("{{ count }} {{ [1, 'a'] | join(', ') }} {{ 'ab' | join('-') }}").unwrap(),
            "12345678901234567 1, a a-b"
        );
        assert_eq!(render("\u{feff}plain").unwrap(), "plain");
    }

    #[test]
    fn mistakes_of_the_template_have_their_line() {
        for (text, named) in [
            ("{% for item in %}", "syntax error"),
            ("{% if title %}", "syntax error"),
            ("{{ title", "syntax error"),
            ("{% include 'other' %}", "include"),
            ("{{ title | shout }}", "shout"),
            ("{{ shout(title) }}", "shout"),
            ("{{ title | tojson(indnet=2) }}", "indnet"),
            ("{{ count / 0 }}", "count / 0"),
            ("{{ debug() }}", "debug"),
        ] {
            let error = render(&format!("one\n{text}")).unwrap_err().to_string();
            assert!(error.starts_with("template: line 2: ") && error.contains(named), "{text}: {error}");
            assert!(!error.contains("the requirement does not have"), "{text}: {error}");
        }
    }
}
