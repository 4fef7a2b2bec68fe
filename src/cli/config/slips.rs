//! Types that the file names and nobody has. The application's own worker may have them, or a program that is yet to
//! come; so they are told, and keep nobody from working.

use std::path::Path;

use jobq::Error;

use super::problem::Problem;
use super::{Config, file_beside};
use crate::cli::known_types::KnownTypes;
use crate::cli::locate::Place;

impl Place {
    /// What the settings say to nobody, in order of line.
    pub(crate) fn slips(&self) -> jobq::Result<Vec<Error>> {
        let Some(file) = file_beside(&self.db) else { return Ok(Vec::new()) };
        // Nearly always there is nothing to be asked for.
        if self.config.handlers.is_empty() && self.config.retention.types.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.config.slips(&KnownTypes::at(self)?, &file))
    }
}

impl Config {
    fn slips(&self, known: &KnownTypes, file: &Path) -> Vec<Error> {
        // A handler's settings are for those who run it here. Retention is for whatever there is in the database.
        let handlers = self.handlers.keys().filter(|name| !known.handles(name)).map(|name| {
            let why = "nobody here runs jobs of this type, so this has no effect";
            (format!("handlers.{name}"), why, name)
        });
        let retained = self.retention.types.keys().filter(|name| !known.has(name)).map(|name| {
            let why = "nobody here knows this type, and no job has it";
            (format!("retention.types.{name}"), why, name)
        });
        let told = handlers.chain(retained).map(|(setting, why, name)| Problem {
            line: self.lines.get(&setting).copied().unwrap_or(1),
            name: setting,
            why: format!("{why}; {}", known.instead_of(name)),
        });
        let mut told: Vec<Problem> = told.collect();
        told.sort_by_key(|problem| problem.line);
        told.into_iter().map(|problem| problem.into_error(file)).collect()
    }
}
