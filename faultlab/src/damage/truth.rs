//! What is asked for in the world that is damaged, and what has to come of it.

use jobq::handlers::{CreateFile, DeleteFile};
use jobq::{NewJob, Payload};
use serde::{Deserialize, Serialize};

/// Where a job is when the damage is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    Completed,
    /// By a worker that is dead; nothing of it is in place.
    Decided,
    /// By a worker that is dead.
    Claimed,
    Pending,
    /// Jobs of a commit that was accepted and not applied, and the commit itself.
    Accepted,
}

/// One job.
pub struct Asked {
    pub id: String,
    pub stand: Stand,
    pub what: What,
}

/// What it does.
pub enum What {
    Create {
        path: String,
        content: String,
    },
    Delete {
        path: String,
    },
    /// Appends its key to a file outside.
    Note,
    /// Files of a commit.
    Write {
        files: Vec<(String, String)>,
    },
}

#[derive(Serialize, Deserialize)]
pub struct Note {
    pub key: String,
}

impl Payload for Note {
    const TYPE: &'static str = "note";
    type Output = ();
}

/// Words that are nowhere else, so that each can be found in a file of bytes. One
/// bit makes a path of these the path of another.
fn text(path: &str, words: usize) -> String {
    (0..words).fold(String::new(), |text, word| text + &format!("{path}#{word:04} "))
}

/// All that is asked for, in order.
pub fn all() -> Vec<Asked> {
    let mut asked = Vec::new();
    let mut add = |stand, what| {
        let id = format!("00000000-0000-4000-8000-{:012x}", asked.len());
        asked.push(Asked { id, stand, what });
    };
    let create = |path: String, words| What::Create { content: text(&path, words), path };
    let old = (0..8).map(|n| format!("old/{n}.txt")).map(|path| (path.clone(), text(&path, 3))).collect();
    add(Stand::Completed, What::Write { files: old });
    for n in 0..8 {
        add(Stand::Completed, create(format!("done/{n}.txt"), 3 + n * 20));
    }
    for _ in 0..4 {
        add(Stand::Completed, What::Note);
    }
    for n in 0..6 {
        add(Stand::Decided, create(format!("decided/{n}.txt"), 5 + n * 60));
    }
    for n in [0, 2] {
        add(Stand::Decided, What::Delete { path: format!("old/{n}.txt") });
    }
    // Queued by the first that is decided.
    add(Stand::Decided, create("follow/0.txt".to_owned(), 4));
    for n in 0..4 {
        add(Stand::Claimed, create(format!("claimed/{n}.txt"), 4 + n * 30));
    }
    for n in 0..10 {
        add(Stand::Pending, create(format!("pending/{n}.txt"), 4 + n * 40));
    }
    for n in [4, 6] {
        add(Stand::Pending, What::Delete { path: format!("old/{n}.txt") });
    }
    for version in 0..3 {
        let path = "seq/0.txt".to_owned();
        let content = text(&format!("{path}.{version}"), 6);
        add(Stand::Pending, What::Create { path: path.clone(), content });
        if version == 1 {
            add(Stand::Pending, What::Delete { path });
        }
    }
    for _ in 0..4 {
        add(Stand::Pending, What::Note);
    }
    for n in 0..COMMITS {
        let files = ["a", "b"].map(|file| format!("accepted/{n}-{file}.json"));
        let files = files.map(|path| (path.clone(), text(&path, 20 + 100 * n))).to_vec();
        add(Stand::Accepted, What::Write { files });
        add(Stand::Accepted, What::Note);
        add(Stand::Accepted, create(format!("after/{n}.txt"), 5));
    }
    asked
}

/// Commits whose committer died between acceptance and apply, or in the middle of that.
pub const COMMITS: usize = 2;
/// The job that a decided one queues when it completes.
pub const FOLLOW_UP: &str = "follow/0.txt";

/// Who queues it.
pub fn leader() -> String {
    let decided = all().into_iter().find(|asked| asked.stand == Stand::Decided);
    decided.expect("there are some").id
}

/// The commit that a job was accepted with.
pub fn commit_of(asked: &Asked) -> Option<String> {
    let all = all();
    let commit = |other: &&Asked| matches!(other.what, What::Write { .. }) && other.id < asked.id;
    let is_job = asked.stand == Stand::Accepted && !matches!(asked.what, What::Write { .. });
    all.iter().rev().find(commit).filter(|_| is_job).map(|commit| commit.id.clone())
}

impl Asked {
    /// The job that stands for it; a commit's own is made by the commit.
    pub fn job(&self) -> NewJob {
        let job = match &self.what {
            What::Create { path, content } => {
                NewJob::of(&CreateFile { overwrite: true, ..CreateFile::text(path, content) })
            }
            What::Delete { path } => NewJob::of(&DeleteFile::at(path)),
            What::Note => NewJob::of(&Note { key: self.id.clone() }),
            What::Write { .. } => unreachable!("made by its commit"),
        };
        let job = if matches!(self.what, What::Note) && self.stand == Stand::Pending { job.lane("notes") } else { job };
        job.id(&self.id).no_key()
    }

    /// What it does to which path; `None` removes it.
    pub fn changes(&self) -> Vec<(&str, Option<&str>)> {
        match &self.what {
            What::Create { path, content } => vec![(path, Some(content))],
            What::Delete { path } => vec![(path, None)],
            What::Note => Vec::new(),
            What::Write { files } => files.iter().map(|(path, content)| (&**path, Some(&**content))).collect(),
        }
    }

    /// Queued by its job's end, by its commit, or by hand.
    pub fn is_follow_up(&self) -> bool {
        matches!(&self.what, What::Create { path, .. } if path == FOLLOW_UP)
    }
}
