//! What is wrong with a file of settings: where, with which key, and what was
//! probably meant.

use std::path::Path;

use jobq::Error;

/// How alike two names have to be (from 0 to 1) for one to be taken for the other.
const ALIKE: f64 = 0.8;

#[derive(Debug)]
pub(crate) struct Problem {
    /// Counted from 1.
    pub(crate) line: usize,
    /// The setting with the tables it is in.
    pub(crate) name: String,
    pub(crate) why: String,
}

impl Problem {
    pub(super) fn into_error(self, file: &Path) -> Error {
        Error::invalid(self.name, self.why).context(format_args!("{}:{}", file.display(), self.line))
    }
}

/// The one of `known` that is most like `name`, if any is like it at all.
pub(crate) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let likeness = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), other);
    let scored = known.iter().map(|other| (likeness(other), *other));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= ALIKE).then_some(best.1)
}

/// The line that a byte of the text is in.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_what_was_meant_and_another_word_finds_nothing() {
        let known = ["busy_timeout", "reconcile_at_start", "worker", "retention", "handlers"];
        for (slip, meant) in [
            ("bussy_timeout", Some("busy_timeout")),
            ("busyTimeout", Some("busy_timeout")),
            ("Workers", Some("worker")),
            ("retension", Some("retention")),
            ("handler", Some("handlers")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(slip, &known), meant, "{slip}");
        }
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!([0, 1, 2, 3, 9].map(|at| line_of("a\nb\n", at)), [1, 1, 2, 2, 3]);
    }
}
