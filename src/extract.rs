//! From a requirement to the job that asks Claude about it: a template is filled
//! with the requirement's JSON, and what comes out is frozen as the prompt.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let queue = jobq::Queue::init(folder.path())?;
//! use jobq::extract::Template;
//! use serde_json::json;
//!
//! let template = Template::parse("List what {{ owner.name }} must do:\n{{ text }}", "out/{{ id }}.md")?;
//! let requirement = json!({ "id": "REQ-1", "text": "Invoices are numbered.", "owner": { "name": "Ada" } });
//! let extraction = template.fill(&requirement, None)?;
//! assert_eq!(extraction.prompt, "List what Ada must do:\nInvoices are numbered.");
//! assert_eq!(extraction.target_path, "out/REQ-1.md");
//!
//! // The requirement is saved and its extraction queued as one.
//! let commit = queue.commit(|tx| {
//!     tx.write_json("requirements/REQ-1.json", &requirement)?;
//!     tx.enqueue(extraction)
//! })?;
//! assert_eq!(queue.get(&commit.jobs[0].id)?.job_type, "claude_extraction");
//! # Ok::<(), jobq::Error>(())
//! ```
//!
//! Templates are Jinja, as [minijinja](https://docs.rs/minijinja) has it, with
//! three rules of their own. What the requirement does not have is an error that
//! names it, unless the template says `default(…)` or `is defined`. Nothing is
//! escaped, because prompts are text; `tojson` writes JSON as it is. And a template
//! is one text: it includes no others.
//!
//! The first rule holds for what filters and tests are given, too, and for all that
//! is within it: `items | sum(attribute='n')` is an error if one item has no `n`. One
//! gap is left, because the engine lets nobody look: a list or map that is written in
//! the template, with something missing in it, and used by an operator alone, as in
//! `"x" ~ [nope]` or `1 in [nope]`.
//!
//! A template that takes too many steps is given up, and so is one of which more
//! comes out than a job can hold. What it gathers in variables meanwhile has no bound
//! but the memory.

mod filters;
mod render;
mod standing;
mod strict;

use serde_json::Value;

use self::render::Renderer;
use crate::error::{Error, Result};
use crate::handlers::ClaudeExtraction;
use crate::path::normalise_path;

/// A template of prompts and one of the paths their answers go to.
///
/// ```
/// use jobq::extract::Template;
/// let template = Template::parse("Summarise: {{ text }}", "summaries/{{ id }}.md")?;
/// let filled = template.fill(&serde_json::json!({ "id": 7, "text": "…" }), None)?;
/// assert_eq!(filled.target_path, "summaries/7.md");
/// let error = template.fill(&serde_json::json!({ "id": 8 }), None).unwrap_err();
/// assert!(error.to_string().contains("text"), "it says what is missing");
/// # Ok::<(), jobq::Error>(())
/// ```
pub struct Template {
    prompt: Renderer,
    target: Renderer,
}

impl Template {
    /// Reads both templates. A target may be a plain path.
    pub fn parse(prompt: &str, target: &str) -> Result<Self> {
        Ok(Self { prompt: Renderer::parse("template", prompt)?, target: Renderer::parse("target", target)? })
    }

    /// The extraction of one requirement. Templates see its top-level fields as
    /// variables, all of it as `requirement`, and the requirement's id as `id`: the
    /// one that is given, or its own field of that name. Numbers are written as the
    /// [`Value`] has them, which keeps integers of up to 64 bits.
    pub fn fill(&self, requirement: &Value, id: Option<&str>) -> Result<ClaudeExtraction> {
        let Value::Object(fields) = requirement else {
            return Err(Error::invalid("requirement", "is not a JSON object"));
        };
        let requirement_id = match id {
            Some(id) => id.to_owned(),
            None => own_id(fields.get("id"))?,
        };
        let mut variables = fields.clone();
        variables.insert("requirement".to_owned(), requirement.clone());
        if id.is_some() {
            variables.insert("id".to_owned(), requirement_id.clone().into());
        }
        let variables = Value::Object(variables);
        let prompt = self.prompt.render(&variables)?;
        if prompt.trim().is_empty() {
            return Err(Error::invalid("template", "nothing comes out of it: the prompt would be empty"));
        }
        let target = self.target.render(&variables)?;
        let target = normalise_path(&target)
            .map_err(|e| Error::invalid("target", format_args!("{}: {e}", crate::printable(&target))))?;
        Ok(ClaudeExtraction::new(requirement_id, prompt, target))
    }
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template").field("prompt", &self.prompt).field("target", &self.target).finish()
    }
}

fn own_id(field: Option<&Value>) -> Result<String> {
    match field {
        Some(Value::String(id)) if !id.is_empty() => Ok(id.clone()),
        Some(Value::Number(id)) => Ok(id.to_string()),
        Some(_) => Err(Error::invalid("id", "of the requirement is neither a text nor a number; give one with it")),
        None => Err(Error::invalid("id", "the requirement has no field `id`; add one, or give its id with it")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(prompt: &str, target: &str, requirement: &Value, id: Option<&str>) -> Result<ClaudeExtraction> {
        Template::parse(prompt, target)?.fill(requirement, id)
    }

    #[test]
    fn the_id_is_the_one_given_or_the_requirements_own() {
        let id = |requirement: &Value, id| filled("p", "out/{{ id }}", requirement, id);
        let both = |extraction: ClaudeExtraction| (extraction.requirement_id, extraction.target_path);
        let pair = |id: &str| (id.to_owned(), format!("out/{id}"));
        assert_eq!(both(id(&json!({"id": "R-1"}), None).unwrap()), pair("R-1"));
        assert_eq!(both(id(&json!({"id": 17}), None).unwrap()), pair("17"));
        assert_eq!(both(id(&json!({"id": "R-1"}), Some("other")).unwrap()), pair("other"));
        assert_eq!(both(id(&json!({}), Some("given")).unwrap()), pair("given"));
        for none in [json!({}), json!({"id": null}), json!({"id": ""}), json!({"id": ["x"]})] {
            let error = id(&none, None).unwrap_err();
            assert!(error.field() == Some("id") && error.to_string().contains("give"), "{none}: {error}");
        }
        assert_eq!(id(&json!(["id"]), Some("x")).unwrap_err().field(), Some("requirement"));
    }

    #[test]
    fn templates_see_the_fields_and_the_whole() {
        let requirement = json!({"id": "R-1", "title": "T", "requirement": "hidden", "tags": ["a", "b"]});
        let text =
            "{{ title }} {{ requirement.title }} {{ requirement.tags | join('+') }} {{ requirement.requirement }}";
        let extraction = filled(text, "out/a", &requirement, Some("other")).unwrap();
        assert_eq!(extraction.prompt, "T T a+b hidden");
        assert_eq!(filled("{{ requirement.id }}", "a", &requirement, Some("other")).unwrap().prompt, "R-1");
    }

    #[test]
    fn the_prompt_is_frozen_with_its_hash_and_the_target_in_one_spelling() {
        let extraction = filled("ask", "./out//{{ id }}.md", &json!({"id": "a"}), None).unwrap();
        assert_eq!(extraction.prompt_hash, Some(crate::sha256_hex(b"ask")));
        assert_eq!(extraction.target_path, "out/a.md");
    }

    #[test]
    fn an_empty_prompt_and_a_bad_target_are_refused() {
        let requirement = json!({"id": "../../etc/passwd", "on": false});
        for blank in ["", " \n", "{% if on %}text{% endif %}\n"] {
            assert_eq!(filled(blank, "a", &requirement, None).unwrap_err().field(), Some("template"), "{blank:?}");
        }
        for target in ["out/{{ id }}", "", "{{ id and '' }}", "/x", ".jobq/x"] {
            assert_eq!(filled("p", target, &requirement, None).unwrap_err().field(), Some("target"), "{target:?}");
        }
    }
}
