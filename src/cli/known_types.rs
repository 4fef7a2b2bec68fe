//! Names of job types as people write them. Another process may know a type that nobody here has heard of, so such
//! a name is no mistake by itself; but it is told, with the one that was probably meant.

use jobq::JobTypes;
use jobq::doctor::Doctor;

use super::config::nearest;
use super::locate::Place;

pub(crate) struct KnownTypes {
    handled: JobTypes,
    /// None if the database cannot be read: then nothing can be said of a type that nobody handles here.
    on_record: Option<Vec<String>>,
}

impl KnownTypes {
    pub(crate) fn at(place: &Place) -> jobq::Result<Self> {
        // Why a database cannot be read is for others to say.
        let on_record = Doctor::at(&place.db).types_on_record().ok();
        Ok(Self { handled: place.types()?, on_record })
    }

    /// Whether payloads of this type are judged, or run, here.
    pub(crate) fn handles(&self, name: &str) -> bool {
        self.handled.knows(name)
    }

    /// Whether somebody has this type: here, or whoever has queued jobs of it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.handles(name) || self.on_record.as_ref().is_none_or(|types| types.iter().any(|other| other == name))
    }

    /// What was probably meant, as the end of a sentence; otherwise where to look.
    pub(crate) fn instead_of(&self, name: &str) -> String {
        let handled = self.handled.names();
        let handled: Vec<&str> = handled.iter().map(String::as_str).collect();
        // Behind those: a slip may have been queued, too. One that is on record is its own nearest, and of no help.
        let on_record = self.on_record.iter().flatten().map(String::as_str).filter(|other| *other != name);
        let on_record: Vec<&str> = on_record.collect();
        nearest(name, &handled).or_else(|| nearest(name, &on_record)).map_or_else(
            || "`jobq handlers` lists the types that are known here".to_owned(),
            |meant| format!("did you mean `{meant}`?"),
        )
    }

    /// What is to be said of a type that nobody has.
    pub(crate) fn unheard_of(&self, name: &str) -> Option<String> {
        let told = || format!("nobody here knows the type `{name}`, and no job has it; {}", self.instead_of(name));
        (!self.has(name)).then(told)
    }
}
