//! What is in the folder of handlers. Looked at anew now and then: a process that
//! lives long is to know of a schema that was put there meanwhile.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::ListedProgram;
use super::schema::Schema;
use super::settings::ProgramSettings;
use crate::payload::{Checked, JobType, MoreTypes, check_text, check_type_name};

const SCHEMA: &str = ".schema.json";
/// For so long one look is good: many jobs are queued in that time.
const GOOD_FOR: Duration = Duration::from_millis(50);

pub(super) struct Folder {
    path: PathBuf,
    settings: BTreeMap<String, ProgramSettings>,
    looks: Mutex<HashMap<String, Look>>,
}

/// What was there for a type.
#[derive(Clone)]
struct Look {
    at: Instant,
    has_program: bool,
    schema: Option<Arc<Schema>>,
}

impl Folder {
    pub(super) fn new(path: PathBuf, settings: BTreeMap<String, ProgramSettings>) -> Self {
        // Absolute, so that the process may change its folder.
        let path = std::path::absolute(&path).unwrap_or(path);
        Self { path, settings, looks: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn settings(&self) -> &BTreeMap<String, ProgramSettings> {
        &self.settings
    }

    pub(super) fn settings_of(&self, name: &str) -> ProgramSettings {
        self.settings.get(name).cloned().unwrap_or_default()
    }

    /// What runs the jobs of a type.
    pub(super) fn command(&self, name: &str) -> Option<Vec<String>> {
        let given = self.settings.get(name).and_then(|settings| settings.command.clone());
        given.or_else(|| {
            let program = self.path.join(name);
            is_executable(&program).then(|| vec![program.to_string_lossy().into_owned()])
        })
    }

    /// The schema of a type as it is now.
    pub(super) fn schema(&self, name: &str) -> Option<Arc<Schema>> {
        self.look(name).schema
    }

    pub(super) fn list(&self) -> Vec<ListedProgram> {
        self.all_names().into_iter().map(|name| self.listed(name)).collect()
    }

    fn listed(&self, job_type: String) -> ListedProgram {
        let look = self.look(&job_type);
        let command = self.command(&job_type);
        let problem = check_type_name(&job_type)
            .err()
            .map(|error| error.to_string())
            .or_else(|| look.schema.as_ref().and_then(|schema| schema.problem()))
            .or_else(|| (command.is_none()).then(|| self.why_none(&job_type)).flatten());
        ListedProgram {
            command,
            schema: look.schema.map(|schema| schema.path().to_owned()),
            defaults: self.settings_of(&job_type).defaults,
            job_type,
            problem,
        }
    }

    /// Something is there that looks as if it was meant to be a handler.
    fn why_none(&self, name: &str) -> Option<String> {
        let path = self.path.join(name);
        std::fs::symlink_metadata(&path).ok()?;
        let why = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => "is not executable; `chmod +x` makes it so".to_owned(),
            Ok(_) => "is not a file".to_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => "is a link to nothing".to_owned(),
            Err(e) => format!("cannot be looked at: {e}"),
        };
        Some(format!("{} {why}", path.display()))
    }

    /// Every name that the folder or the settings have.
    fn all_names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.settings.keys().cloned().collect();
        let Ok(entries) = std::fs::read_dir(&self.path) else { return names };
        for entry in entries.flatten() {
            // Hidden ones and backups of editors are nobody's handlers.
            let Ok(name) = entry.file_name().into_string() else { continue };
            if !name.starts_with('.') && !name.ends_with('~') {
                names.insert(name.strip_suffix(SCHEMA).unwrap_or(&name).to_owned());
            }
        }
        names
    }

    fn look(&self, name: &str) -> Look {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = looks.get(name);
        if let Some(look) = before.filter(|look| look.at.elapsed() < GOOD_FOR) {
            return look.clone();
        }
        let known = before.and_then(|look| look.schema.clone());
        let schema = Schema::at(&self.path.join(format!("{name}{SCHEMA}")), known);
        let look = Look { at: Instant::now(), has_program: self.command(name).is_some(), schema };
        // Names of all kinds are asked for; what is not there is not worth keeping for ever.
        if looks.len() > 1000 {
            looks.clear();
        }
        looks.insert(name.to_owned(), look.clone());
        look
    }
}

impl MoreTypes for Folder {
    /// Without those whose schema cannot be used: their rows stay until it can.
    fn names(&self) -> Vec<String> {
        let is_known = |name: &String| self.find(name).is_some();
        let can_judge = |name: &String| self.schema(name).is_none_or(|schema| schema.problem().is_none());
        self.all_names()
            .into_iter()
            .filter(|name| check_type_name(name).is_ok() && is_known(name) && can_judge(name))
            .collect()
    }

    fn command_words(&self) -> Vec<String> {
        let names = self.all_names();
        // Their folder may be a link to one below the root.
        let schemas = names.iter().map(|name| self.path.join(format!("{name}{SCHEMA}")).to_string_lossy().into_owned());
        names.iter().filter_map(|name| self.command(name)).flatten().chain(schemas).collect()
    }

    fn find(&self, name: &str) -> Option<JobType> {
        let look = self.look(name);
        if !look.has_program && look.schema.is_none() {
            return None;
        }
        let schema = look.schema;
        let check = move |text: &str| {
            check_text(text)?;
            if let Some(schema) = &schema {
                schema.check(text)?;
            }
            Ok(Checked::unknown())
        };
        Some(JobType { defaults: self.settings_of(name).defaults, check: Arc::new(check) })
    }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
