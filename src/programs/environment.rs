//! The environment of a program: what it is given, and a short list of what the
//! worker has. A worker's own may be full of secrets that are not for everybody.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// What any program may need to find its files and speak its user's language.
const ALWAYS: [&str; 10] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR"];

/// Which variables a program gets.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    passed: Vec<String>,
    own: BTreeMap<OsString, OsString>,
}

impl Environment {
    pub(super) fn pass(&mut self, names: impl IntoIterator<Item = impl Into<String>>) {
        self.passed.extend(names.into_iter().map(Into::into));
    }

    pub(super) fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.own.insert(name.into(), value.into());
    }

    /// Names and values that were set here.
    pub(super) fn own(&self) -> impl Iterator<Item = &OsStr> {
        self.own.iter().flat_map(|(name, value)| [name.as_os_str(), value.as_os_str()])
    }

    /// The variables, given those of the worker. Its own come last, so they count.
    pub(super) fn of(&self, worker: impl Iterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let mut variables: BTreeMap<_, _> = worker.filter(|(name, _)| self.passes(name)).collect();
        variables.extend(self.own.clone());
        variables.into_iter().collect()
    }

    fn passes(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        let mut patterns = ALWAYS.iter().copied().chain(self.passed.iter().map(String::as_str));
        patterns.any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_is_passed_on() {
        let worker = ["PATH=/bin", "LC_ALL=C", "AWS_SECRET=x", "AWS=y", "LANGSAM=z", "MODE=slow"];
        let worker = || worker.iter().map(|pair| pair.split_once('=').unwrap()).map(|(n, v)| (n.into(), v.into()));
        let shown = |environment: &Environment| -> Vec<String> {
            let pairs = environment.of(worker());
            pairs.into_iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect()
        };
        let mut environment = Environment::default();
        assert_eq!(shown(&environment), ["LC_ALL=C", "PATH=/bin"]);
        environment.pass(["AWS_*", "MODE"]);
        environment.set("MODE", "fast");
        assert_eq!(shown(&environment), ["AWS_SECRET=x", "LC_ALL=C", "MODE=fast", "PATH=/bin"]);
    }
}
