//! The files of requirements and templates: found, and read.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jobq::effects::Files;
use jobq::{Error, ErrorKind, Result, printable};
use serde_json::Value;

use crate::cli::args::Global;
use crate::cli::enqueue::{read_input, without_mark};
use crate::cli::locate::Place;

/// Reads what goes into prompts. Below the root it follows no link, because prompts are sent to a service: a link would
/// let whoever made it choose what is sent.
pub(super) struct Reader {
    root: PathBuf,
    files: Files,
}

impl Reader {
    /// A dry run needs no queue; the root is then the current folder.
    pub(super) fn new(global: &Global) -> Result<Self> {
        let root = match Place::find(global).and_then(|place| place.open_as_it_is()) {
            Err(error) if error.kind() == ErrorKind::NoDatabase => PathBuf::from("."),
            queue => queue?.root().to_owned(),
        };
        let files = Files::open(&root, &root, "extract")?;
        Ok(Self { root: root.canonicalize().unwrap_or(root), files })
    }

    pub(super) fn read(&self, file: &str) -> Result<String> {
        // A file that is named outside the root is its user's choice.
        let Some(path) = self.below_root(file) else { return read_input(file) };
        let missing = || Error::new(ErrorKind::NotFound, format!("cannot read {}: no such file", printable(file)));
        let bytes = self.files.read(&path, u64::MAX)?.ok_or_else(missing)?;
        let wrong = |_| Error::invalid("file", format_args!("{} is not UTF-8 text", printable(file)));
        String::from_utf8(bytes).map(without_mark).map_err(wrong)
    }

    /// What a file is called below the root, by whatever name of the root it was given.
    fn below_root(&self, file: &str) -> Option<String> {
        let path = std::path::absolute(file).ok().filter(|_| file != "-")?;
        let is_root = |folder: &&Path| folder.canonicalize().is_ok_and(|folder| folder == self.root);
        let root = path.ancestors().skip(1).find(is_root)?;
        // The end of `file`, which is text.
        Some(path.strip_prefix(root).ok()?.to_string_lossy().into_owned())
    }
}

/// The files that the arguments name, those of a glob in order of their names. Each file is listed once.
pub(super) fn files(arguments: &[String]) -> Result<Vec<String>> {
    let (mut files, mut seen) = (Vec::new(), HashSet::new());
    for argument in arguments {
        // A file whose name looks like a glob is that file.
        let is_glob = argument.contains(['*', '?', '[']) && !Path::new(argument).exists();
        let found = if is_glob { matches(argument)? } else { vec![argument.clone()] };
        for file in found {
            if seen.insert(file.clone()) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

fn matches(pattern: &str) -> Result<Vec<String>> {
    // As a shell does it: hidden files have to be asked for.
    let rules = glob::MatchOptions { require_literal_leading_dot: true, ..Default::default() };
    let entries = glob::glob_with(pattern, rules)
        .map_err(|e| Error::invalid("requirement", format_args!("{} is not a glob: {e}", printable(pattern))))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| Error::new(ErrorKind::Invalid, format!("cannot read {e}")))?;
        if path.is_file() {
            let name = path.to_str().ok_or_else(|| {
                let name = printable(&path.to_string_lossy());
                Error::invalid("requirement", format_args!("the name of {name} is not UTF-8"))
            })?;
            files.push(name.to_owned());
        }
    }
    if files.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, format!("no file matches {}", printable(pattern))));
    }
    Ok(files)
}

pub(super) fn read(file: &str, reader: &Reader) -> Result<Value> {
    let text = reader.read(file)?;
    serde_json::from_str(&text)
        .map_err(|e| Error::invalid("requirement", format_args!("{} is not JSON: {e}", printable(file))))
}
