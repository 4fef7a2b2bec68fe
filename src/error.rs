//! The one error type. It is opaque: ask it questions (`is_lease_lost`,
//! `is_disk_full` …) or match on [`Error::kind`]; print it to tell a person
//! what happened, to which job or path, and what to do next.

use std::fmt;

/// What can be returned by anything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure an [`Error`] is. New kinds may be added.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// use jobq::{ErrorKind, NewJob};
/// let error = queue.enqueue(NewJob::raw("create_file", "{}")).unwrap_err();
/// let what_next = match error.kind() {
///     ErrorKind::Invalid => "correct it",
///     ErrorKind::OutcomeUnknown => "ask again with the same id",
///     ErrorKind::Busy | ErrorKind::DiskFull => "try again later",
///     _ => "tell someone",
/// };
/// assert_eq!(what_next, "correct it");
/// # Ok::<(), jobq::Error>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The request itself is wrong: a payload, an id, a path, a duration.
    Invalid,
    /// There is no such job.
    NotFound,
    /// There is no jobq database where one was looked for.
    NoDatabase,
    /// The lease is no longer ours: another claim, or the end, came first.
    LeaseLost,
    /// The job's state does not allow this.
    WrongState,
    /// Content or an id differs from what was expected.
    Conflict,
    /// An unfinished job holds a path that this one needs.
    PathBusy,
    /// The database stayed locked by another process for the whole wait.
    Busy,
    /// No room on the disk. Nothing was changed.
    DiskFull,
    /// The database cannot be written: permissions or a read-only filesystem.
    ReadOnly,
    /// The file is not a database, or is damaged.
    Corrupt,
    /// The schema is not the one this build writes.
    Schema,
    /// The queue's folder is not the user's own, or not the one in which the queue was made.
    NotTrusted,
    /// Any other trouble with the disk.
    Io,
    /// A COMMIT failed in a way that may still turn out to be durable.
    OutcomeUnknown,
    /// A bug in jobq or in a callback that was handed to it.
    Internal,
}

/// A failure, with its story.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path())?;
/// let error = queue.get("nope").unwrap_err();
/// assert!(error.is_not_found());
/// assert!(error.to_string().contains("nope"), "it says to what it happened");
/// let error = jobq::Error::invalid("width", "must not be zero");
/// assert_eq!((error.field(), error.to_string().as_str()), (Some("width"), "width: must not be zero"));
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    field: Option<String>,
    /// Which of several items of one request, counted from 0.
    item: Option<usize>,
    /// The commit it is about.
    id: Option<String>,
    /// The row that was being worked on.
    row: Option<i64>,
    /// The disk is not what the caller had read.
    stale: bool,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of a given kind. Handlers and stores outside this crate use it too.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            field: None,
            item: None,
            id: None,
            row: None,
            stale: false,
            source: None,
        }))
    }

    /// The request is wrong in this field.
    pub fn invalid(field: impl Into<String>, message: impl fmt::Display) -> Self {
        let field = field.into();
        let mut error = Self::new(ErrorKind::Invalid, format!("{field}: {message}"));
        error.0.field = Some(field);
        error
    }

    pub(crate) fn not_found(id: &str) -> Self {
        Self::new(ErrorKind::NotFound, format!("no job {}; `jobq list` shows what there is", printable(id)))
    }

    pub(crate) fn lease_lost(id: &str, token: i64) -> Self {
        Self::new(
            ErrorKind::LeaseLost,
            format!(
                "job {id}: the lease with token {token} is lost; another claim or the job's end came first, nothing was changed"
            ),
        )
    }

    pub(crate) fn wrong_state(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::WrongState, message)
    }

    pub(crate) fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    /// The same error with what was being done put in front.
    #[must_use]
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.0.message = format!("{doing}: {}", self.0.message);
        self
    }

    /// The same error, about one of several items.
    pub(crate) fn in_item(mut self, index: usize) -> Self {
        self.0.item = Some(index);
        self
    }

    /// The disk is not what the caller expects it to be; nothing was changed.
    pub(crate) fn stale(message: impl Into<String>) -> Self {
        let mut error = Self::new(ErrorKind::Conflict, message);
        error.0.stale = true;
        error
    }

    /// An unfinished job has a path that is needed; the same may succeed when that
    /// job has ended.
    #[must_use]
    pub fn is_path_busy(&self) -> bool {
        self.kind() == ErrorKind::PathBusy
    }

    /// A commit was refused because a file is not what its caller had read, and
    /// nothing was changed: read it again and start over.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.0.stale
    }

    /// It answers a request, as opposed to trouble with the database.
    pub(crate) fn is_answer(&self) -> bool {
        matches!(
            self.kind(),
            ErrorKind::Invalid
                | ErrorKind::NotFound
                | ErrorKind::LeaseLost
                | ErrorKind::WrongState
                | ErrorKind::Conflict
                | ErrorKind::PathBusy
        )
    }

    /// One of several steps may have brought this on all of them.
    pub(crate) fn is_about_one(&self) -> bool {
        self.is_answer() || matches!(self.kind(), ErrorKind::Internal | ErrorKind::Corrupt)
    }

    /// The same error, met at the row of the job with this seq.
    pub(crate) fn of_row(mut self, seq: i64) -> Self {
        self.0.row.get_or_insert(seq);
        self
    }

    /// Where it was met, if one row alone can be blamed.
    pub(crate) fn row(&self) -> Option<i64> {
        self.0.row.filter(|_| self.is_about_one())
    }

    /// The same error, about this commit.
    pub(crate) fn about(mut self, id: &str) -> Self {
        self.0.id = Some(id.to_owned());
        self
    }

    /// The id of the commit that failed: when its outcome is unknown, submit it
    /// again with this id.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// Which of several items of one request failed, counted from 0.
    #[must_use]
    pub fn item(&self) -> Option<usize> {
        self.0.item
    }

    /// What happened, without the id of the commit and the number of the item.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The field of the request that is wrong, for [`ErrorKind::Invalid`].
    #[must_use]
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// Someone else has the job now; whatever was asked changed nothing.
    #[must_use]
    pub fn is_lease_lost(&self) -> bool {
        self.kind() == ErrorKind::LeaseLost
    }

    /// Content, key or id is not what the caller expected.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.kind() == ErrorKind::Conflict
    }

    /// There is no room; the same call may succeed when there is.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        self.kind() == ErrorKind::DiskFull
    }

    /// It may or may not have happened: submit again with the same id or key.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        self.kind() == ErrorKind::OutcomeUnknown
    }

    /// The request is wrong and will stay wrong.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.kind() == ErrorKind::Invalid
    }

    /// No such job.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind() == ErrorKind::NotFound
    }

    /// The job's state does not allow what was asked.
    #[must_use]
    pub fn is_wrong_state(&self) -> bool {
        self.kind() == ErrorKind::WrongState
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = &self.0.id {
            write!(f, "commit {id}: ")?;
        }
        if let Some(index) = self.0.item {
            write!(f, "job {}: ", index + 1)?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|e| &**e as _)
    }
}

/// Text from outside, fit for a terminal or a log line: no control characters, nothing that turns the direction of
/// what follows, and one line.
///
/// ```
/// assert_eq!(jobq::printable("red\u{1b}[31m"), "red\u{fffd}[31m");
/// assert_eq!(jobq::printable("two\nlines"), "two⏎lines");
/// ```
#[must_use]
pub fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\u{2028}' | '\u{2029}' => '⏎',
        '\t' => ' ',
        // Marks of direction, and what takes no room: two texts could look alike.
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => {
            '\u{fffd}'
        }
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}
