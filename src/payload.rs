//! Typed payloads, and the table of types a process knows.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::json;
use crate::path::normalise_path;
use crate::retry::Backoff;

/// What a job type's payload is, and how the queue treats such jobs.
///
/// ```
/// use jobq::{Hold, Payload};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Thumbnail { image: String, width: u32 }
///
/// impl Payload for Thumbnail {
///     const TYPE: &'static str = "thumbnail";
///     type Output = ();
///     fn validate(&self) -> jobq::Result<()> {
///         if self.width == 0 {
///             return Err(jobq::Error::invalid("width", "must not be zero"));
///         }
///         Ok(())
///     }
///     fn holds(&self) -> jobq::Result<Vec<Hold>> {
///         Ok(vec![Hold::path(&self.image)?])
///     }
/// }
/// ```
pub trait Payload: Serialize + DeserializeOwned {
    /// The word in the `type` column.
    const TYPE: &'static str;
    /// What a completed job leaves as its result; `()` for nothing.
    type Output: Serialize + DeserializeOwned;

    /// Checked when the job is queued and again before it runs. A payload that
    /// fails here is refused, never retried.
    fn validate(&self) -> Result<()> {
        Ok(())
    }

    /// Keys that only one unfinished job may work on at a time, in order.
    fn holds(&self) -> Result<Vec<Hold>> {
        Ok(Vec::new())
    }

    /// What makes two unfinished jobs of this type "the same" when the caller
    /// gives no key.
    fn default_key(&self) -> DefaultKey {
        DefaultKey::ByKind
    }

    /// Attempts, timeout and backoff of jobs that do not bring their own.
    #[must_use]
    fn defaults() -> Defaults {
        Defaults::default()
    }
}

/// A key that holders have one at a time, in order of acceptance.
///
/// ```
/// use jobq::Hold;
/// assert_eq!(Hold::path("./out//a.txt")?, Hold::path("out/a.txt")?);
/// assert_eq!(Hold::lane("mail")?.as_str(), "lane:mail");
/// assert_eq!(Hold::resource("printer", "third floor")?.as_str(), "printer:third floor");
/// # Ok::<(), jobq::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hold(String);

impl Hold {
    /// A file below the root.
    pub fn path(path: &str) -> Result<Self> {
        Ok(Self(format!("path:{}", normalise_path(path)?)))
    }

    /// A named lane.
    pub fn lane(name: &str) -> Result<Self> {
        check_label("lane", name, 200)?;
        Ok(Self(format!("lane:{name}")))
    }

    /// A resource outside: `kind` is the namespace, `name` the thing.
    pub fn resource(kind: &str, name: &str) -> Result<Self> {
        check_label("resource", name, 1024)?;
        Ok(Self(format!("{kind}:{name}")))
    }

    /// The key as `job_holds` has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The rule for sameness when the caller gives no key.
///
/// ```
/// use jobq::{DefaultKey, Payload};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Invoice { number: u32, text: String }
///
/// impl Payload for Invoice {
///     const TYPE: &'static str = "invoice";
///     type Output = ();
///     /// One job for a number, whatever the text.
///     fn default_key(&self) -> DefaultKey {
///         DefaultKey::Key(self.number.to_string())
///     }
/// }
/// # let folder = tempfile::tempdir().unwrap();
/// # let queue = jobq::Queue::init(folder.path()).unwrap();
/// let first = queue.enqueue(Invoice { number: 7, text: "a".to_owned() }).unwrap();
/// let again = queue.enqueue(Invoice { number: 7, text: "b".to_owned() }).unwrap();
/// assert_eq!((again.id, again.same_payload), (first.id, false));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultKey {
    /// With holds: the same as the newest unfinished job on them, if type and
    /// payload agree (so create, delete, create are three jobs). Without: the
    /// same as any unfinished job of the type with the same payload.
    ByKind,
    /// The same as any unfinished job of the type with this key.
    Key(String),
}

/// What a type's jobs get when the caller does not say.
///
/// ```
/// use std::time::Duration;
/// use jobq::{Backoff, Defaults, Keep};
/// let patient = Defaults {
///     max_attempts: 10,
///     timeout: Duration::from_secs(3600),
///     backoff: Backoff { base_ms: 60_000, max_ms: 3_600_000 },
///     retention: Keep::For(Duration::from_secs(86_400)),
/// };
/// assert_eq!(Defaults::default().max_attempts, 3);
/// # let _ = patient;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Attempts before the job fails.
    pub max_attempts: u32,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// The wait between attempts.
    pub backoff: Backoff,
    /// How long completed and cancelled jobs are kept before workers prune them.
    /// Failed ones always stay.
    pub retention: Keep,
}

/// How long a type's completed and cancelled jobs are kept.
///
/// ```
/// use jobq::{Defaults, Keep};
/// assert_eq!(Defaults::default().retention, Keep::Usual);
/// let books = Defaults { retention: Keep::Forever, ..Defaults::default() };
/// # let _ = books;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// As long as the worker's [`Retention`](crate::worker::Retention) says.
    #[default]
    Usual,
    /// This long.
    For(Duration),
    /// Until someone prunes them.
    Forever,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { max_attempts: 3, timeout: Duration::from_secs(300), backoff: Backoff::default(), retention: Keep::Usual }
    }
}

/// What the queue needs to know of one payload.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) holds: Vec<Hold>,
    pub(crate) key: DefaultKey,
}

impl Checked {
    /// Of a type that is not known here: no holds, the rule for the rest.
    pub(crate) fn unknown() -> Self {
        Self { holds: Vec::new(), key: DefaultKey::ByKind }
    }

    pub(crate) fn of<P: Payload>(payload: &P) -> Result<Self> {
        payload.validate()?;
        let mut holds = payload.holds()?;
        holds.sort();
        holds.dedup();
        Ok(Self { holds, key: payload.default_key() })
    }
}

type Check = dyn Fn(&str) -> Result<Checked> + Send + Sync;

/// What a process knows of a type.
#[derive(Clone)]
pub(crate) struct JobType {
    pub(crate) defaults: Defaults,
    pub(crate) check: Arc<Check>,
}

/// Types that are not compiled in: they come and go while the process runs.
pub(crate) trait MoreTypes: Send + Sync {
    /// Those whose payloads can be judged.
    fn names(&self) -> Vec<String>;
    fn find(&self, name: &str) -> Option<JobType>;
    /// The words of all commands that run jobs of these types.
    fn command_words(&self) -> Vec<String>;
}

/// The job types a process knows. Jobs of other types can be queued and are
/// kept; a process that knows their type admits and runs them.
///
/// ```
/// use jobq::{Defaults, JobTypes, handlers::CreateFile};
/// let types = JobTypes::new().with::<CreateFile>();
/// assert!(types.knows("create_file") && !types.knows("send_mail"));
/// let patient = types.with_defaults("create_file", Defaults { max_attempts: 10, ..Defaults::default() });
/// assert_eq!(patient.defaults("create_file").max_attempts, 10);
/// ```
#[derive(Clone, Default)]
pub struct JobTypes {
    own: HashMap<&'static str, JobType>,
    more: Option<Arc<dyn MoreTypes>>,
}

impl JobTypes {
    /// No types at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The types that come with jobq.
    #[must_use]
    pub fn builtin() -> Self {
        crate::handlers::types()
    }

    /// These types and one more.
    #[must_use]
    pub fn with<P: Payload>(mut self) -> Self {
        let check: Arc<Check> = Arc::new(|text| {
            check_text(text)?;
            let payload: P = json::parse(text).map_err(|e| payload_error(&e))?;
            Checked::of(&payload)
        });
        self.own.insert(P::TYPE, JobType { defaults: P::defaults(), check });
        self
    }

    /// These types, and what can be found elsewhere. Own types come first.
    pub(crate) fn and(mut self, more: Arc<dyn MoreTypes>) -> Self {
        self.more = Some(more);
        self
    }

    pub(crate) fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// The words of all commands that run jobs.
    pub(crate) fn command_words(&self) -> Vec<String> {
        self.more.iter().flat_map(|more| more.command_words()).collect()
    }

    /// The names of the known types.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let more = self.more.iter().flat_map(|more| more.names());
        let mut names: Vec<_> = self.own.keys().map(|name| (*name).to_owned()).chain(more).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether this process knows the type.
    #[must_use]
    pub fn knows(&self, job_type: &str) -> bool {
        self.find(job_type).is_some()
    }

    /// These types, one of them with other defaults than it has by itself.
    #[must_use]
    pub fn with_defaults(mut self, job_type: &str, defaults: Defaults) -> Self {
        if let Some(own) = self.own.get_mut(job_type) {
            own.defaults = defaults;
        }
        self
    }

    /// What jobs of a type get when the caller does not say.
    #[must_use]
    pub fn defaults(&self, job_type: &str) -> Defaults {
        self.find(job_type).map_or_else(Defaults::default, |t| t.defaults)
    }

    fn find(&self, job_type: &str) -> Option<JobType> {
        self.own.get(job_type).cloned().or_else(|| self.more.as_ref()?.find(job_type))
    }

    /// Validates a payload; `None` when the type is not known here.
    pub(crate) fn check(&self, job_type: &str, text: &str) -> Option<Result<Checked>> {
        // A check that panics refuses its payload; it must not take the queue with it.
        let check = self.find(job_type)?.check;
        let checked = catch_unwind(AssertUnwindSafe(|| check(text)));
        Some(checked.unwrap_or_else(|_| Err(Error::invalid("payload", "made the type's own check panic"))))
    }
}

impl std::fmt::Debug for JobTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("JobTypes").field(&self.names()).finish()
    }
}

/// Checks what every payload must be, whatever its type: a JSON object within the limits, no key twice in an object.
pub(crate) fn check_text(text: &str) -> Result<()> {
    json::check_limits(text)?;
    json::parse::<json::UniqueKeys>(text).map_err(|e| payload_error(&e))?;
    if text.trim_ascii_start().starts_with('{') {
        return Ok(());
    }
    Err(Error::invalid("payload", "is JSON but not an object; wrap it, as in {\"value\": …}"))
}

fn payload_error(error: &serde_json::Error) -> Error {
    match error.classify() {
        serde_json::error::Category::Data => Error::invalid("payload", error),
        _ => Error::invalid("payload", format_args!("is not JSON: {error}")),
    }
}

/// Short names people type: not empty, bounded, nothing a terminal would act on.
pub(crate) fn check_label(field: &str, value: &str, max: usize) -> Result<()> {
    if value.is_empty() {
        return Err(Error::invalid(field, "is empty"));
    }
    if value.len() > max {
        return Err(Error::invalid(field, format_args!("is longer than {max} bytes")));
    }
    if value.chars().any(char::is_control) {
        return Err(Error::invalid(field, "contains control characters"));
    }
    Ok(())
}

/// A type name is also a file name (`.jobq/handlers/<type>`).
pub(crate) fn check_type_name(name: &str) -> Result<()> {
    let ok = (1..=64).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
    if ok {
        return Ok(());
    }
    Err(Error::invalid("type", "is 1 to 64 letters, digits, `_`, `.` or `-`, not starting with `.` or `-`"))
}
