//! Which files below the root jobs may change.

use std::path::Path;

use glob::{MatchOptions, Pattern};

use crate::path::{is_spelling_of, real};

/// Git and Claude Code run commands that they find here.
const RUN_FROM: [&str; 3] = [".git", ".claude", ".mcp.json"];

/// Which files below the root jobs may change. Checked when a job is queued,
/// when a commit is made, and when a handler's outcome is decided.
///
/// Without a policy of its own, a queue refuses changes to what its user may
/// execute: `.git`, `.claude` and `.mcp.json` in any folder, and files that a
/// word of a program handler's command names.
///
/// ```
/// use jobq::{FilePolicy, QueueOptions, handlers::CreateFile};
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// let policy = FilePolicy {
///     writable: Some(vec!["data/**".to_owned()]),
///     command_words: vec!["tools/build.sh".to_owned()],
///     ..FilePolicy::default()
/// };
/// let queue = QueueOptions::in_folder(folder).create(true).files(policy).open()?;
/// assert!(queue.enqueue(CreateFile::text("data/a.txt", "hello")).is_ok());
/// assert!(queue.enqueue(CreateFile::text("other/a.txt", "hello")).unwrap_err().is_invalid());
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FilePolicy {
    /// Globs of files that jobs may change although their user may execute them.
    pub allow: Vec<String>,
    /// Globs of the only files that jobs may change; all files if `None`.
    pub writable: Option<Vec<String>>,
    /// Words of commands that are run from the root. Jobs may not change a file
    /// that such a word names. Commands of program handlers are always added.
    pub command_words: Vec<String>,
}

impl FilePolicy {
    /// The first text in a list that is not a glob: the name of the list, and why.
    #[must_use]
    pub fn wrong_glob(&self) -> Option<(&'static str, String)> {
        let wrong =
            |list, glob: &String| Some((list, format!("`{glob}` is not a glob: {}", Pattern::new(glob).err()?)));
        let in_allow = self.allow.iter().find_map(|glob| wrong("allow", glob));
        in_allow.or_else(|| self.writable.iter().flatten().find_map(|glob| wrong("writable", glob)))
    }

    /// Says why jobs may not change a file; the path is in its one spelling.
    pub(crate) fn check(&self, root: &Path, path: &str) -> Result<(), String> {
        if let Some(writable) = self.writable.as_ref().filter(|globs| !any_matches(globs, path)) {
            let writable = serde_json::json!(writable);
            return Err(format!(
                "jobs may change only {writable}; to allow it, add it to `writable` under `[files]` in config.toml \
                 (`FilePolicy::writable` in a library)"
            ));
        }
        let is_reserved = |name| RUN_FROM.iter().any(|reserved| is_spelling_of(name, reserved));
        let why = match () {
            () if any_matches(&self.allow, path) => return Ok(()),
            () if path.split('/').any(is_reserved) => "git or Claude Code may run what it says",
            () if !self.command_words.is_empty() && self.is_in_a_command(root, path) => {
                "jobq reads or runs it for a handler"
            }
            () => return Ok(()),
        };
        let mut allow = self.allow.clone();
        allow.push(Pattern::escape(path));
        // Strings of JSON are strings of TOML.
        let allow = serde_json::json!(allow);
        Err(format!(
            "jobs may not change it, because {why}; to allow it, put `allow = {allow}` under `[files]` in config.toml \
             (`FilePolicy::allow` in a library)"
        ))
    }

    fn is_in_a_command(&self, root: &Path, path: &str) -> bool {
        let path = real(&root.join(path));
        let is_target = |word: &str| real(&root.join(word)).as_os_str().eq_ignore_ascii_case(&path);
        // Also `--config=FILE`.
        self.command_words
            .iter()
            .any(|word| is_target(word) || word.split_once('=').is_some_and(|(_, value)| is_target(value)))
    }
}

/// `*` stays within a folder, `**` does not.
fn any_matches(globs: &[String], path: &str) -> bool {
    let rules = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
    globs.iter().any(|glob| Pattern::new(glob).is_ok_and(|glob| glob.matches_with(path, rules)))
}
