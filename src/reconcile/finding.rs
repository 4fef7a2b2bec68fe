//! What a comparison finds.

use serde::Serialize;

/// How the disk differs.
///
/// ```
/// use jobq::Finding;
/// assert_eq!(Finding::NotAFile.as_str(), "not_a_file");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// A file should be there and is not.
    Missing,
    /// A file is there with other content.
    Changed,
    /// Nothing should be there, and something is.
    Present,
    /// It cannot be looked at.
    Unreadable,
    /// Something that is no regular file is in its place.
    NotAFile,
}

impl Finding {
    /// As scripts know it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Changed => "changed",
            Self::Present => "present",
            Self::Unreadable => "unreadable",
            Self::NotAFile => "not_a_file",
        }
    }
}

/// What is at a path. As JSON it is a text, or null.
///
/// ```
/// use jobq::Actual;
/// assert_eq!(Actual::Nothing.as_text(), None);
/// assert_eq!(Actual::Other("a folder".to_owned()).as_text(), Some("a folder"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Actual {
    /// Nothing is there.
    Nothing,
    /// A file with content of this sha256.
    Content(String),
    /// Something that has no content, or none that can be read, in words.
    Other(String),
}

impl Actual {
    /// The hash, or the words.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Content(text) | Self::Other(text) => Some(text),
        }
    }
}

/// One path where the disk is not as the latest job left it.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{Actual, Finding, ReconcileOptions};
/// let id = queue.commit(|tx| tx.write("a.txt", "a"))?.id;
/// std::fs::remove_file(folder.path().join("a.txt")).unwrap();
/// queue.reconcile(&ReconcileOptions::default(), |difference, _| {
///     if let Some(difference) = difference {
///         assert_eq!((difference.path.as_str(), difference.finding), ("a.txt", Finding::Missing));
///         assert_eq!((&difference.job_id, &difference.actual), (&id, &Actual::Nothing));
///     }
///     true
/// })?;
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Below the root.
    pub path: String,
    /// How it differs.
    pub finding: Finding,
    /// The job that left it otherwise.
    pub job_id: String,
    /// sha256 of what should be there; `None` if nothing should.
    pub expected: Option<String>,
    /// What is there.
    pub actual: Actual,
    /// An unfinished job that has the path, or one of those that keep changing it:
    /// this is work in flight, not drift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<String>,
}

impl Difference {
    /// A warning for those who read logs.
    pub fn log(&self) {
        let path = crate::printable(&self.path);
        let expected = self.expected.as_deref().unwrap_or("nothing");
        let actual = crate::printable(self.actual.as_text().unwrap_or("nothing"));
        tracing::warn!(path, finding = self.finding.as_str(), job_id = self.job_id, expected, actual, "drift");
    }
}

/// The sums of a comparison.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// queue.commit(|tx| tx.write("a.txt", "a"))?;
/// let sums = queue.reconcile(&jobq::ReconcileOptions::default(), |_, _| true)?;
/// assert_eq!((sums.checked, sums.ok, sums.findings), (1, 1, 0));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// Paths that were compared.
    pub checked: u64,
    /// Those that agree.
    pub ok: u64,
    /// Those that do not.
    pub findings: u64,
    /// Effects that a later one has replaced.
    pub superseded: u64,
    /// Paths that differ while a job is at work on them, or about to be.
    pub in_flight: u64,
}

impl std::ops::Add for Reconciled {
    type Output = Self;

    /// Two comparisons as one.
    fn add(self, other: Self) -> Self {
        Self {
            checked: self.checked + other.checked,
            ok: self.ok + other.ok,
            findings: self.findings + other.findings,
            superseded: self.superseded + other.superseded,
            in_flight: self.in_flight + other.in_flight,
        }
    }
}
