//! Lets somebody work on a disk that remembers, and keeps what it has seen.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::Role;
use super::disk::{self, Image};
use super::filesystem::{Kind, boot, unmount};
use super::notes::{Recorded, Stamped};
use super::served::{NAME, Served};

/// What is to be recorded.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    pub kind: Kind,
    /// Where it is kept.
    pub folder: PathBuf,
    /// Who works: this program, or one that has something taken out, which is
    /// named to it.
    pub program: PathBuf,
    pub without: String,
    pub work: Work,
}

#[derive(Clone, Serialize, Deserialize)]
pub enum Work {
    /// On an empty disk.
    Anew { seed: u64, steps: usize },
    /// On a disk that is there already, as a cut has left it: what is left to do is
    /// done. With the notes of those who came before.
    Recovery { before: Vec<Stamped> },
}

/// Where things are kept in the folder of an order.
pub struct Kept<'a>(pub &'a Path);

impl Kept<'_> {
    pub fn base(&self) -> PathBuf {
        self.0.join("base")
    }

    pub fn acts(&self) -> PathBuf {
        self.0.join("acts")
    }

    pub fn recorded(&self) -> PathBuf {
        self.0.join("recorded.json")
    }
}

/// Runs in a process of its own, whose mounts nobody else sees and which go when
/// it does.
pub fn run(order: &Order) -> Result<(), String> {
    let Order { kind, folder, .. } = order;
    let (kept, mounted, served_at) = (Kept(folder), folder.join("mounted"), folder.join("served"));
    let root = mounted.join("root");
    let before = match &order.work {
        Work::Recovery { before } => {
            boot(folder)?;
            before.clone()
        }
        Work::Anew { .. } => {
            kind.make(&kept.base())?;
            kind.mount(&kept.base(), &mounted)?;
            std::fs::create_dir(&root).map_err(|e| format!("{}: {e}", root.display()))?;
            unmount(&mounted)?;
            Vec::new()
        }
    };
    let base = Image::read(&kept.base()).map_err(|e| format!("cannot read the empty disk: {e}"))?;
    let served = Served::new(base);
    std::fs::create_dir(&served_at).map_err(|e| format!("{}: {e}", served_at.display()))?;
    let session = fuser::spawn_mount(served.clone(), &served_at, &fuser::Config::default());
    let session = session.map_err(|e| format!("cannot serve a disk by FUSE: {e}"))?;
    kind.mount(&served_at.join(NAME), &mounted)?;
    let start = served.position();
    let notes = taken(order, &root, &served);
    unmount(&mounted)?;
    let recorded = Recorded { start, notes: before.into_iter().chain(notes?).collect() };
    disk::save(&served.take(), &kept.acts()).map_err(|e| format!("cannot keep what was done: {e}"))?;
    let text = serde_json::to_vec(&recorded).expect("notes are plain data");
    std::fs::write(kept.recorded(), text).map_err(|e| format!("cannot keep the notes: {e}"))?;
    drop(session);
    Ok(())
}

/// The notes of a whole piece of work, each with its place. They are taken while
/// the one who makes them waits, so the places are exact.
fn taken(order: &Order, root: &Path, served: &Served) -> Result<Vec<Stamped>, String> {
    let root = root.to_owned();
    let role = match order.work {
        Work::Anew { seed, steps } => Role::Work { root, seed, steps },
        // One that does without something shows what opening does without it.
        Work::Recovery { .. } => Role::Recover { root, works: order.without.is_empty() },
    };
    let mut command = Command::new(&order.program);
    command.arg(super::HIDDEN).env(super::WITHOUT, &order.without);
    let worker = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut worker = worker.map_err(|e| format!("{}: {e}", order.program.display()))?;
    let mut answers = worker.stdin.take().expect("it is piped");
    let lines = BufReader::new(worker.stdout.take().expect("it is piped")).lines();
    // Not read to its end before the work is done: the few words of a panic fit into the pipe.
    let role = serde_json::to_string(&role).expect("a role is plain data");
    let mut answer = |text: &str| writeln!(answers, "{text}");
    let mut trouble = answer(&role).err().map(|e| e.to_string());
    let mut notes = Vec::new();
    for line in lines {
        let position = served.position();
        let note = line
            .map_err(|e| e.to_string())
            .and_then(|line| serde_json::from_str(&line).map_err(|e| format!("{line} is no note: {e}")));
        match note {
            Ok(note) => notes.push(Stamped { position, note }),
            Err(why) => trouble = trouble.or(Some(why)),
        }
        // One who has died is known by the end of its lines.
        let _ = answer("noted");
    }
    let ended = worker.wait_with_output().map_err(|e| e.to_string())?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("the work ended with {}: {}", ended.status, said.trim()));
    }
    trouble.map_or(Ok(notes), Err)
}
