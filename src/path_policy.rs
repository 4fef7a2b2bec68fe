//! Which files below the root jobs may change.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use crate::error::{Error, Result};
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
///     commands: vec!["tools/build.sh".to_owned()],
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
    pub commands: Vec<String>,
    /// The file of settings in which `allow` and `writable` stand, for messages.
    pub config: Option<PathBuf>,
}

impl FilePolicy {
    /// Refuses a list with text that is not a glob.
    pub(crate) fn check_globs(&self) -> Result<()> {
        let wrong = |glob: &str| Some((glob.to_owned(), Pattern::new(glob).err()?));
        let globs = self.allow.iter().chain(self.writable.iter().flatten());
        match globs.filter_map(|glob| wrong(glob)).next() {
            None => Ok(()),
            Some((glob, error)) => Err(Error::invalid("files", format_args!("`{glob}` is not a glob: {error}"))),
        }
    }

    /// Says why jobs may not change a file; the path is in its one spelling.
    pub(crate) fn check(&self, root: &Path, path: &str) -> Result<(), String> {
        let setting = |name: &str| match &self.config {
            Some(config) => (format!("`[files] {name} = "), format!("` in {}", config.display())),
            None => (format!("`FilePolicy::{name}` = "), String::new()),
        };
        if let Some(writable) = self.writable.as_ref().filter(|globs| !any_matches(globs, path)) {
            let (start, end) = setting("writable");
            return Err(format!("jobs may change only what is listed in {start}{writable:?}{end}"));
        }
        let why = if path.split('/').any(|name| RUN_FROM.iter().any(|reserved| is_spelling_of(name, reserved))) {
            "git or Claude Code may run what it says"
        } else if self.is_in_a_command(root, path) {
            "a handler's command names it"
        } else {
            return Ok(());
        };
        if any_matches(&self.allow, path) {
            return Ok(());
        }
        let mut allow = self.allow.clone();
        allow.push(Pattern::escape(path));
        let (start, end) = setting("allow");
        Err(format!("jobs may not change it, because {why}; to allow it, write {start}{allow:?}{end}"))
    }

    fn is_in_a_command(&self, root: &Path, path: &str) -> bool {
        let path = root.join(path);
        // Links and file systems give one file several names. One that is not there yet has only its name.
        let id = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
        let is_it = |word: &str| {
            let named = root.join(word);
            real(&named).as_os_str().eq_ignore_ascii_case(real(&path))
                || (id(&path).is_some() && id(&named) == id(&path))
        };
        // Also `--config=FILE`.
        self.commands.iter().any(|word| is_it(word) || word.split_once('=').is_some_and(|(_, value)| is_it(value)))
    }
}

/// `*` stays within a folder, `**` does not.
fn any_matches(globs: &[String], path: &str) -> bool {
    let rules = MatchOptions { require_literal_separator: true, ..MatchOptions::default() };
    globs.iter().any(|glob| Pattern::new(glob).is_ok_and(|glob| glob.matches_with(path, rules)))
}
