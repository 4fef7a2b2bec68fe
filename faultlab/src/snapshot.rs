//! What a dead process has left, looked at without touching it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;

use rusqlite::Connection;

use crate::jobs;
use crate::report::Trouble;
use crate::said::Said;
use crate::scenarios::Scenario;
use crate::world::{Tree, World};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub status: String,
    pub decided: bool,
    pub owned: bool,
    pub checkpoint: Option<u64>,
}

pub struct Snapshot {
    pub rows: BTreeMap<String, Row>,
    pub tree: Tree,
    /// Which file each path is, by its inode.
    pub inodes: BTreeMap<String, u64>,
    /// How often each handler had been called until then.
    pub runs: BTreeMap<String, usize>,
}

impl Snapshot {
    /// By a copy of the database and its log: opening them would bring them into
    /// order, and that is for the next process to do.
    pub fn take(world: &World, runs: &BTreeMap<String, usize>) -> Self {
        let copy = world.outside("copy");
        let _ = std::fs::remove_dir_all(&copy);
        std::fs::create_dir(&copy).unwrap();
        for name in ["jobq.db", "jobq.db-wal", "jobq.db-journal"] {
            let from = world.root().join(".jobq").join(name);
            if from.exists() {
                std::fs::copy(from, copy.join(name)).unwrap();
            }
        }
        let db = copy.join("jobq.db");
        let rows = if db.exists() { rows(&Connection::open(db).unwrap()) } else { BTreeMap::new() };
        let tree = world.tree();
        let inode = |path: &String| (path.clone(), std::fs::metadata(world.root().join(path)).unwrap().ino());
        let inodes = tree.keys().filter(|path| !path.ends_with('/')).map(inode).collect();
        Self { rows, tree, inodes, runs: runs.clone() }
    }

    /// What was accepted and decided before anything went wrong, but for what is to go.
    pub fn promises(&self, scenario: &Scenario) -> Vec<Said> {
        let gone: Vec<String> = (scenario.gone)().iter().map(|name| jobs::id(name)).collect();
        let stay = self.rows.iter().filter(|(id, _)| !gone.contains(id));
        stay.flat_map(|(id, row)| [Some(Said::Stored(id.clone())), row.decided.then(|| Said::Decided(id.clone()))])
            .flatten()
            .collect()
    }

    /// Everything that was acknowledged is on record, and no file is half of something.
    pub fn check<'s>(
        &self,
        scenario: &Scenario,
        said: impl IntoIterator<Item = &'s Said>,
        troubles: &mut Vec<(Trouble, String)>,
    ) {
        for said in said {
            if !self.bears_out(said) {
                troubles.push((Trouble::Lost, format!("{said:?}, but there is {:?}", self.rows)));
            }
        }
        for (path, content) in self.tree.iter().filter(|(path, _)| !path.ends_with('/')) {
            if !scenario.may_hold(path, content) {
                let words = String::from_utf8_lossy(content);
                troubles.push((Trouble::Wrong, format!("{path} holds {words:?}")));
            }
        }
    }

    fn bears_out(&self, said: &Said) -> bool {
        let row = |id: &String| self.rows.get(id);
        match said {
            Said::Stored(id) => row(id).is_some(),
            Said::Claimed(id) => row(id).is_some_and(|row| row.status != "pending"),
            Said::Checkpoint(id, value) => row(id).is_some_and(|row| row.checkpoint >= Some(*value)),
            Said::Decided(id) => row(id).is_some_and(|row| row.decided),
            Said::Completed(id) => row(id).is_some_and(|row| row.status == "completed"),
            Said::Gone(ids) => ids.iter().all(|id| row(id).is_none()),
            _ => true,
        }
    }
}

/// None if there is no queue yet.
fn rows(conn: &Connection) -> BTreeMap<String, Row> {
    let select = "SELECT id, status, outcome IS NOT NULL, locked_by IS NOT NULL, CAST(checkpoint AS INTEGER) FROM jobs";
    let Ok(mut statement) = conn.prepare(select) else { return BTreeMap::new() };
    let rows = statement.query_map([], |row| {
        let checkpoint: Option<i64> = row.get(4)?;
        let checkpoint = checkpoint.and_then(|value| u64::try_from(value).ok());
        Ok((row.get(0)?, Row { status: row.get(1)?, decided: row.get(2)?, owned: row.get(3)?, checkpoint }))
    });
    rows.unwrap().collect::<rusqlite::Result<_>>().unwrap()
}
