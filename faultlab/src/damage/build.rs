//! Makes the world that is damaged, by processes that die in the middle.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jobq::effects::{Act, Content, Expect, FileEffect, Files};
use jobq::liveness::OwnerLock;
use jobq::store::{ClaimRequest, Decision, Dedup, EnqueueJob, Limits, Store as _};
use jobq::{Backoff, Payload as _, Queue, QueueOptions, Shutdown, Unique, Worker, WorkerOptions, sha256_hex};
use rustix::process::{Signal, getpid, kill_process};

use super::hand::registry;
use super::truth::{self, Asked, Stand, What};

/// What one process does before it dies.
pub const STEPS: usize = 2 + truth::COMMITS;

pub fn step(folder: &Path, step: usize) -> jobq::Result<()> {
    let root = folder.join("root");
    let all = truth::all();
    match step {
        // This one comes to its end: what it has done is in the database, not in its log.
        0 => return complete(folder, &all),
        1 => leave(folder, &all)?,
        _ => accept(&root, &all, step - 2)?,
    }
    kill_process(getpid(), Signal::KILL).unwrap();
    Ok(())
}

fn open(folder: &Path) -> jobq::Result<Queue> {
    let types = registry(folder).types();
    QueueOptions::in_folder(folder.join("root")).types(types).create(true).recover(false).open()
}

fn complete(folder: &Path, all: &[Asked]) -> jobq::Result<()> {
    let queue = Arc::new(open(folder)?);
    for asked in all.iter().filter(|asked| asked.stand == Stand::Completed) {
        match &asked.what {
            What::Write { files } => drop(queue.commit(|tx| {
                tx.id(&asked.id)?;
                files.iter().try_for_each(|(path, content)| tx.write(path, content.as_str()))
            })?),
            _ => drop(queue.enqueue(asked.job())?),
        }
    }
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(queue, registry(folder), options)?.run(&Shutdown::new()).map(drop)
}

/// Decided, claimed and pending jobs.
fn leave(folder: &Path, all: &[Asked]) -> jobq::Result<()> {
    let queue = open(folder)?;
    let lock = OwnerLock::acquire(&queue.owners_folder())?;
    let files = Files::open(queue.root(), queue.state_folder(), &lock.owner().locked_by)?;
    let of = |stand| all.iter().filter(move |asked| asked.stand == stand && !asked.is_follow_up());
    let claim = |stand| {
        let count = queue.enqueue_many(of(stand).map(Asked::job))?.len();
        let request = ClaimRequest {
            owner: lock.owner().clone(),
            types: registry(folder).names(),
            limit: u32::try_from(count).unwrap(),
            limits: Limits::new(),
        };
        queue.store().claim(request)
    };
    let mut follow_ups: Vec<EnqueueJob> = all.iter().filter(|asked| asked.is_follow_up()).map(follow_up).collect();
    for claimed in claim(Stand::Decided)? {
        let asked = of(Stand::Decided).find(|asked| asked.id == claimed.lease.id).expect("it is one of them");
        let effect = match &asked.what {
            What::Create { path, content } => FileEffect::Put {
                path: path.clone(),
                content: Content::Staged(files.stage_bytes(&claimed.lease, 0, content.as_bytes())?),
                expect: Expect::Absent,
            },
            What::Delete { path } => FileEffect::Remove { path: path.clone(), expect: Expect::Any },
            What::Note | What::Write { .. } => unreachable!("they do not decide here"),
        };
        let effects = files.plan_all(vec![effect])?;
        files.sync_stage()?;
        let decision = Decision { effects, follow_ups: std::mem::take(&mut follow_ups), result: None };
        queue.store().decide(claimed.lease, decision)?;
    }
    claim(Stand::Claimed)?;
    queue.enqueue_many(of(Stand::Pending).map(Asked::job))?;
    // It dies with all of it open.
    std::mem::forget((queue, lock, files));
    Ok(())
}

fn follow_up(asked: &Asked) -> EnqueueJob {
    let What::Create { path, content } = &asked.what else { unreachable!("it makes a file") };
    let payload = serde_json::json!({ "path": path, "content": content }).to_string();
    EnqueueJob {
        id: asked.id.clone(),
        id_given: true,
        job_type: jobq::handlers::CreateFile::TYPE.to_owned(),
        payload_hash: sha256_hex(payload.as_bytes()),
        payload,
        admitted: true,
        dedup: Dedup::None,
        unique: Unique::Active,
        holds: vec![format!("path:{path}")],
        priority: 0,
        run_at: None,
        max_attempts: 3,
        timeout: 60_000,
        backoff: Backoff::default(),
        waiting_on: None,
        correlation_id: None,
    }
}

/// Dies before a file of its commit is in place: the n-th of the n-th commit.
fn accept(root: &Path, all: &[Asked], number: usize) -> jobq::Result<()> {
    let accepted: Vec<&Asked> = all.iter().filter(|asked| asked.stand == Stand::Accepted).collect();
    let [commit, note, after] = accepted.chunks(3).nth(number).expect("there are so many") else {
        unreachable!("each has two jobs")
    };
    let What::Write { files } = &commit.what else { unreachable!("it writes") };
    let fatal: PathBuf = files[number].0.clone().into();
    let queue = QueueOptions::in_folder(root).recover(false).watched(move |act, path| {
        if act == Act::Create && Path::new(path) == fatal {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    });
    queue.open()?.commit(|tx| {
        tx.id(&commit.id)?;
        for (path, content) in files {
            tx.write(path, content.as_str())?;
        }
        tx.enqueue(note.job())?;
        tx.enqueue(after.job())
    })?;
    unreachable!("it was to die before that")
}
