//! Programs as handlers: an executable `.jobq/handlers/<type>`, or a command from
//! the settings, runs the jobs of a type. No Rust is needed to add one.
//!
//! ```text
//! settings     what can be said of one type's program
//! folder       what is in `.jobq/handlers` now
//! schema       `<type>.schema.json`: which payloads a type takes
//! handler      one attempt: payload in, exit code and result out
//! said         what a program says while it runs: the line protocol
//! result       the last JSON object that it prints
//! ```

mod folder;
mod handler;
mod result;
mod said;
mod schema;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use settings::ProgramSettings;

use crate::handler::{AnyHandler, Registry};
use crate::payload::{Defaults, JobTypes};
use folder::Folder;
use handler::ProgramHandler;

/// The programs that handle jobs: those in a folder, and those the settings name.
///
/// ```
/// use jobq::{ProgramHandlers, ProgramSettings, Registry};
/// # let folder = tempfile::tempdir().unwrap();
/// let programs = ProgramHandlers::in_folder(folder.path().join(".jobq/handlers"))
///     .with("resize", ProgramSettings::command(["python3", "tools/resize.py"]));
/// let registry = Registry::builtin().with_programs(&programs);
/// assert!(registry.names().contains(&"resize".to_owned()));
/// ```
#[derive(Clone)]
pub struct ProgramHandlers {
    folder: Arc<Folder>,
}

/// A type that has something to do with programs, and what is known of it.
///
/// ```
/// use std::os::unix::fs::PermissionsExt as _;
/// use jobq::ProgramHandlers;
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// std::fs::write(folder.join("resize"), "#!/bin/sh\n").unwrap();
/// std::fs::set_permissions(folder.join("resize"), std::fs::Permissions::from_mode(0o755)).unwrap();
/// let listed = ProgramHandlers::in_folder(folder).list();
/// assert_eq!(listed[0].job_type, "resize");
/// assert!(listed[0].problem.is_none() && listed[0].schema.is_none());
/// ```
#[derive(Clone, Debug)]
pub struct ListedProgram {
    /// The type.
    pub job_type: String,
    /// What runs its jobs, if there is anything.
    pub command: Option<Vec<String>>,
    /// Its schema, if it has one.
    pub schema: Option<PathBuf>,
    /// Attempts, timeout and the like.
    pub defaults: Defaults,
    /// Why it cannot be used as it is.
    pub problem: Option<String>,
}

impl ProgramHandlers {
    /// The programs of this folder, which need not be there.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Arc::new(Folder::new(folder.into(), BTreeMap::new())) }
    }

    /// These, and what the settings say of a type.
    #[must_use]
    pub fn with(self, job_type: impl Into<String>, settings: ProgramSettings) -> Self {
        let mut all = self.folder.settings().clone();
        all.insert(job_type.into(), settings);
        Self { folder: Arc::new(Folder::new(self.folder.path().to_owned(), all)) }
    }

    /// Where executables and schemas are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What there is now, in order of names.
    #[must_use]
    pub fn list(&self) -> Vec<ListedProgram> {
        self.folder.list()
    }
}

impl Registry {
    /// These handlers, and programs for types that have none here. Types that come
    /// with jobq or the application are never taken over.
    #[must_use]
    pub fn with_programs(self, programs: &ProgramHandlers) -> Self {
        let handler = |listed: ListedProgram| -> (String, Arc<dyn AnyHandler>) {
            let handler = ProgramHandler::new(listed.job_type.clone(), Arc::clone(&programs.folder));
            (listed.job_type, Arc::new(handler))
        };
        let usable = programs.list().into_iter().filter(|listed| listed.command.is_some() && listed.problem.is_none());
        let usable: Vec<_> = usable.map(handler).collect();
        self.and(usable, Arc::clone(&programs.folder) as _)
    }
}

impl JobTypes {
    /// These types, and those of programs: payloads are judged by their schemas.
    #[must_use]
    pub fn with_programs(self, programs: &ProgramHandlers) -> Self {
        self.and(Arc::clone(&programs.folder) as _)
    }
}
