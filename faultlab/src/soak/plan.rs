//! What is asked for: the n-th job of a producer is the same whoever asks, and
//! however often. So it can be submitted again to the letter, and compared with
//! what has become of it.

use jobq::handlers::{CreateFile, DeleteFile};
use jobq::{NewJob, Payload, Unique, sha256_hex};
use serde::{Deserialize, Serialize};

use super::Soak;

pub const ENQUEUERS: u32 = 3;
pub const COMMITTERS: u32 = 2;
pub const WORKERS: u32 = 3;

/// Lanes that all enqueuers use, and paths that each has for itself.
const LANES: u64 = 16;
const PATHS: u64 = 8;
const COUNTERS: u64 = 3;

/// One of so many jobs in a lane takes longer than some leases.
const SLOW: u32 = 15;

/// Every so many jobs there is one of which the id is known, to be waited for.
pub const MILESTONE: u64 = 64;

/// One job of an enqueuer.
pub struct Item {
    /// What the ledger calls it: its id, or its key if it has no id of its own.
    pub key: String,
    pub has_id: bool,
    pub kind: Kind,
}

pub enum Kind {
    /// Does something that is no file: it is noted that it ran.
    Note,
    /// The same, in order with all others of its lane; some take their time.
    InLane { lane: String, slow: bool },
    /// A file of its own.
    File { path: String, content: String },
    /// One of many things that happen to one file; `None` removes it.
    Path { path: String, content: Option<String> },
}

/// Tells whoever reads the ledger that it ran, and looks at what a commit has
/// promised to be there before.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub key: String,
    /// A counter and what it has at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<(String, u64)>,
    /// It takes its time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slow: bool,
}

impl Payload for Note {
    const TYPE: &'static str = "note";
    type Output = ();
}

/// An id that tells where it comes from.
pub fn id(family: u32, number: u64) -> String {
    format!("{family:08x}-0000-4000-8000-{number:012x}")
}

impl Item {
    pub fn of(soak: &Soak, enqueuer: u32, number: u64) -> Self {
        let key = id(enqueuer, number);
        let mut random = fastrand::Rng::with_seed(
            soak.seed ^ (number << 2 | u64::from(enqueuer)).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
        if number.is_multiple_of(MILESTONE) {
            return Self { key, has_id: true, kind: Kind::Note };
        }
        let kind = match random.u32(..100) {
            0..10 => {
                let lane = format!("lane-{}", random.u64(..LANES));
                Kind::InLane { lane, slow: random.u32(..SLOW) == 0 }
            }
            10..18 => Kind::Path {
                path: format!("paths/{enqueuer}-{}.txt", random.u64(..PATHS)),
                content: (random.u32(..3) > 0).then(|| format!("the {number}-th of {enqueuer}")),
            },
            18..38 => Kind::File {
                path: format!("files/{enqueuer}/{}/{number}.txt", number / 500),
                content: format!("{key} {}", random.u64(..)),
            },
            _ => Kind::Note,
        };
        // Who has no id finds the job again by its key.
        let has_id = !matches!(kind, Kind::Note) || random.bool();
        Self { key, has_id, kind }
    }

    pub fn job(&self) -> NewJob {
        let slow = matches!(self.kind, Kind::InLane { slow: true, .. });
        let note = || NewJob::of(&Note { key: self.key.clone(), counted: None, slow });
        let job = match &self.kind {
            Kind::Note => note(),
            Kind::InLane { lane, .. } => note().lane(lane),
            Kind::File { path, content } => NewJob::of(&CreateFile::text(path, content)),
            Kind::Path { path, content: Some(content) } => {
                NewJob::of(&CreateFile { overwrite: true, ..CreateFile::text(path, content) })
            }
            Kind::Path { path, content: None } => NewJob::of(&DeleteFile::at(path)),
        };
        let job = if self.has_id { job.id(&self.key).no_key() } else { job.key(&self.key).unique(Unique::Always) };
        lasting(job)
    }
}

/// A job outlives its workers, however many of them are killed.
fn lasting(job: NewJob) -> NewJob {
    job.max_attempts(1_000_000)
}

/// One commit of a committer: it counts one counter up.
pub struct Count {
    pub id: String,
    pub path: String,
    /// A file that one of its jobs makes.
    pub file: (String, String),
    pub note_id: String,
    pub file_id: String,
}

impl Count {
    pub fn of(committer: u32, number: u64) -> Self {
        let path = format!("counters/{}.json", number % COUNTERS);
        let file = format!("counted/{committer}/{}/{number}.txt", number / 500);
        Self {
            id: id(committer, number),
            path,
            file: (file, format!("counted by {committer}: {number}")),
            note_id: id(committer + 0x100, number),
            file_id: id(committer + 0x200, number),
        }
    }

    /// All it does besides writing the counter, which gets this value.
    pub fn fill(&self, tx: &mut jobq::Draft, value: u64) -> jobq::Result<()> {
        tx.id(&self.id)?;
        let counted = Some((self.path.clone(), value));
        tx.enqueue(lasting(NewJob::of(&Note { key: self.note_id.clone(), counted, slow: false }).id(&self.note_id)))?;
        let (path, content) = &self.file;
        tx.enqueue(lasting(NewJob::of(&CreateFile::text(path, content)).id(&self.file_id)))
    }

    /// What must be there for a counter to get this value.
    pub fn before(value: u64) -> jobq::Expect {
        match value {
            1 => jobq::Expect::Absent,
            _ => jobq::Expect::Sha256(sha256_hex(format!("{}\n", value - 1).as_bytes())),
        }
    }
}
