//! The jobs of the scenarios and who runs them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::clock::{Clock, Millis, SystemClock};
use jobq::handlers::CreateFile;
use jobq::{Backoff, Context, Handler, HandlerError, NewJob, Outcome, Payload, Queue, QueueOptions, Registry};
use serde::{Deserialize, Serialize};

use crate::world::World;

/// A job without file effects. Its handler tells nobody; that it ran is what counts.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub text: String,
    /// A note that is queued when this one is done.
    #[serde(default)]
    pub next: Option<String>,
}

impl Payload for Note {
    const TYPE: &'static str = "note";
    type Output = ();
}

/// The id that a job of this name has: ids have 26 letters and digits of which some
/// do not exist.
pub fn id(name: &str) -> String {
    let letter = |letter: char| match letter.to_ascii_uppercase() {
        'I' | 'L' => '1',
        'O' | '-' => '0',
        'U' => 'V',
        other => other,
    };
    format!("{:0>26}", name.chars().map(letter).collect::<String>())
}

/// More attempts than there is time for, because a fault may last.
const ATTEMPTS: u32 = 1_000;

/// A job that fails is tried again at once, nearly.
const SOON: Backoff = Backoff { base_ms: 20, max_ms: 100 };

pub fn note(name: &str) -> NewJob {
    noted(name, None)
}

/// One that is followed by another.
pub fn note_with_next(name: &str) -> NewJob {
    noted(name, Some(format!("next-{name}")))
}

fn noted(name: &str, next: Option<String>) -> NewJob {
    NewJob::of(&Note { text: name.to_owned(), next }).id(id(name)).max_attempts(ATTEMPTS).backoff(SOON)
}

/// A file below `out/`, named after its job.
pub fn file(name: &str) -> NewJob {
    NewJob::of(&CreateFile::text(format!("out/{name}.txt"), text(name)))
        .id(id(name))
        .max_attempts(ATTEMPTS)
        .backoff(SOON)
}

/// What that file holds.
pub fn text(name: &str) -> String {
    format!("the content of {name}\n").repeat(20)
}

/// The checkpoints that were found by attempts, by job.
pub type Found = Arc<Mutex<Vec<(String, u64)>>>;

pub struct NoteHandler(pub Found);

impl Handler for NoteHandler {
    type Payload = Note;

    fn run(&self, ctx: &Context, done: Note) -> Result<Outcome, HandlerError> {
        if let Some(found) = ctx.last_checkpoint()? {
            self.0.lock().unwrap().push((ctx.job_id().to_owned(), found));
        }
        let next = done.next.iter().map(|name| note(name));
        Ok(next.fold(Outcome::done(), Outcome::follow_up))
    }
}

pub fn registry(found: &Found) -> Registry {
    Registry::builtin().with(NoteHandler(Arc::clone(found)))
}

/// How everybody here opens the queue.
pub fn options(root: &std::path::Path) -> QueueOptions {
    let patience = Duration::from_secs(30);
    QueueOptions::in_folder(root).types(registry(&Found::default()).types()).busy_timeout(patience)
}

/// An hour ahead: whatever was put off is due.
pub struct Later;

impl Clock for Later {
    fn now(&self) -> Millis {
        SystemClock.now() + 3_600_000
    }
}

impl World {
    /// Opens the queue, later.
    pub fn reopened(&self, create: bool) -> jobq::Result<Queue> {
        options(&self.root()).create(create).clock(Arc::new(Later)).open()
    }
}
