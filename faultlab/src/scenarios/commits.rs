//! Files and jobs are accepted as one, by a process that lives or one that dies.

use std::process::{Command, Stdio};

use jobq::effects::Act;
use jobq::handlers::CreateFile;
use jobq::{Accepted, NewJob, Queue, QueueOptions};
use rustix::process::{Signal, getpid, kill_process};

use super::{NOTHING, Scenario, put};
use crate::child::{Child, Deed};
use crate::jobs;
use crate::said::Said;
use crate::world::{Tree, World};

/// A commit: files with what they held and hold then, and jobs that make files.
pub struct Change {
    pub id: &'static str,
    pub files: &'static [(&'static str, Option<&'static str>, Option<&'static str>)],
    /// The jobs' ids follow from the commit's.
    pub jobs: &'static [(&'static str, &'static str)],
}

/// A new file in new folders, one that is written over, one that goes, two jobs.
const FIRST: Change = Change {
    id: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    files: &[
        ("new/deep/file.json", None, Some("made")),
        ("data/there.json", Some("old"), Some("new")),
        ("data/gone.json", Some("to go"), None),
    ],
    jobs: &[("01ARZ3NDEKC2MGCWB6R3130JZ0", "first-1.txt"), ("01ARZ3NDEK1A60XK57QQNF7XXM", "first-2.txt")],
};

/// Another, on other files.
const SECOND: Change = Change {
    id: "01ARZ3NDEKTSV4RRFFQ69G5FAW",
    files: &[("second/a.json", None, Some("a")), ("second/b.json", Some("b"), Some("bb"))],
    jobs: &[("01ARZ3NDEKMDXFS4YEES9BD026", "second-1.txt")],
};

pub const COMMIT: Scenario = Scenario {
    name: "commit",
    prepare: |world| with_files(world, &[&FIRST]),
    deed: |child| {
        let queue = child.open()?;
        let accepted = child.attempt(|| FIRST.commit(&queue))?;
        FIRST.tell(child, &accepted);
        Ok(())
    },
    again: |queue| FIRST.commit(queue).map(drop),
    changes: &[&FIRST],
    ..NOTHING
};

/// What two dead processes have accepted, one of which had begun to apply it.
pub const ROLL_FORWARD: Scenario = Scenario {
    name: "roll_forward",
    prepare: |world| {
        with_files(world, &[&FIRST, &SECOND]);
        for deed in ["accept", "accept_and_half_apply"] {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["child", deed]).arg(world.root()).stdout(Stdio::null()).stderr(Stdio::null());
            let ran = crate::said::Heard::start(command).end(std::time::Duration::from_secs(60));
            assert!(crate::strace::was_killed(ran.status), "{deed}: {} {:?}", ran.status, ran.said);
        }
        // They died after they were accepted: nobody has to ask for them again.
        for id in [&FIRST, &SECOND].iter().flat_map(|change| change.ids()) {
            let accepted = "SELECT count(*) FROM jobs WHERE id = ?1 AND status <> 'completed'";
            let count: u32 = world.sql().query_row(accepted, [id], |row| row.get(0)).unwrap();
            assert_eq!(count, 1, "{id}");
        }
    },
    deed: |child| {
        child.open()?;
        Ok(())
    },
    changes: &[&FIRST, &SECOND],
    ..NOTHING
};

/// Accepts a commit and dies before the first change.
pub fn accept(child: &Child) -> Deed {
    dying(child, &SECOND, |act| matches!(act, Act::MakeFolder | Act::Create | Act::Replace))
}

/// Accepts a commit and dies when most of it is done.
pub fn accept_and_half_apply(child: &Child) -> Deed {
    dying(child, &FIRST, |act| act == Act::Unlink)
}

/// It leaves alone what others have left.
fn dying(child: &Child, change: &Change, dies: impl Fn(Act) -> bool + Send + Sync + 'static) -> Deed {
    let watch = move |act: Act, path: &str| {
        if dies(act) && !path.contains(".jobq") && !path.contains("stage") {
            kill_process(getpid(), Signal::KILL)?;
        }
        Ok(())
    };
    let queue = child.attempt(|| QueueOptions::in_folder(&child.root).recover(false).open())?;
    drop(queue);
    let queue = QueueOptions::in_folder(&child.root).recover(false).watched(watch).open();
    let queue = queue.unwrap_or_else(|error| panic!("{error}"));
    let accepted = child.attempt(|| change.commit(&queue))?;
    panic!("it should be dead: {accepted:?}")
}

fn with_files(world: &World, changes: &[&Change]) {
    for (path, old, _) in changes.iter().flat_map(|change| change.files) {
        if let Some(old) = old {
            let path = world.root().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, old).unwrap();
        }
    }
    drop(jobs::options(&world.root()).create(true).open().unwrap());
}

impl Change {
    fn commit(&self, queue: &Queue) -> jobq::Result<Accepted> {
        queue.commit(|tx| {
            tx.id(self.id)?;
            for (path, _, new) in self.files {
                match new {
                    Some(new) => tx.write(path, *new)?,
                    None => tx.remove(path)?,
                }
            }
            for (_, path) in self.jobs {
                tx.enqueue(NewJob::of(&CreateFile::text(format!("out/{path}"), *path)).max_attempts(10))?;
            }
            Ok(())
        })
    }

    /// Its own, and those of its jobs.
    fn ids(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.id).chain(self.jobs.iter().map(|(id, _)| *id))
    }

    fn tell(&self, child: &Child, accepted: &Accepted) {
        for id in std::iter::once(&accepted.id).chain(accepted.jobs.iter().map(|job| &job.id)) {
            child.tell(&Said::Stored(id.clone()));
        }
        child.tell(&if accepted.applied {
            Said::Completed(self.id.to_owned())
        } else {
            Said::Decided(self.id.to_owned())
        });
    }

    pub fn may_hold(&self, path: &str, content: &[u8]) -> bool {
        let held = |text: Option<&str>| text.is_some_and(|text| text.as_bytes() == content);
        self.files.iter().any(|(known, old, new)| *known == path && (held(*old) || held(*new)))
            || self.jobs.iter().any(|(_, name)| path == format!("out/{name}") && content == name.as_bytes())
    }

    /// Adds what it leaves when its jobs have run.
    pub fn complete(&self, tree: &mut Tree) {
        for (path, old, new) in self.files {
            match new {
                Some(new) => put(tree, path, new),
                // Its folder stays.
                None if old.is_some() => put_folder(tree, path),
                None => {}
            }
        }
        for (_, name) in self.jobs {
            put(tree, &format!("out/{name}"), name);
        }
    }

    /// Whether the files are all as they were, or all as they are to be.
    pub fn is_done(&self, tree: &Tree) -> Option<bool> {
        let all = |new: bool| {
            self.files.iter().all(|(path, before, after)| {
                let wanted = if new { after } else { before };
                tree.get(*path).map(Vec::as_slice) == wanted.map(str::as_bytes)
            })
        };
        if all(true) {
            Some(true)
        } else if all(false) {
            Some(false)
        } else {
            None
        }
    }
}

fn put_folder(tree: &mut Tree, path: &str) {
    for (at, _) in path.match_indices('/') {
        tree.insert(path[..=at].to_owned(), Vec::new());
    }
}
