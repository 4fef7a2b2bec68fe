//! What the work has come to when it is finished.

use std::collections::{BTreeMap, BTreeSet};

use super::Case;
use crate::report::Trouble;

impl Case<'_> {
    /// Every job that was to be has completed, and no other is there.
    pub(super) fn has_ended(&mut self) {
        let sql = self.world.sql();
        let mut statement = sql.prepare("SELECT id, status, attempts, last_error FROM jobs").unwrap();
        let rows = statement.query_map([], |row| {
            Ok((
                row.get::<_, String>(0)?,
                (row.get::<_, String>(1)?, row.get::<_, u32>(2)?, row.get::<_, Option<String>>(3)?),
            ))
        });
        let rows: BTreeMap<_, _> = rows.unwrap().collect::<rusqlite::Result<_>>().unwrap();
        let expected: BTreeSet<String> = self.scenario.jobs().into_iter().collect();
        let handled: BTreeSet<String> = self.scenario.handled().into_iter().collect();
        for id in &expected {
            match rows.get(id) {
                None => self.troubles.push((Trouble::Lost, format!("{id} is not there: {:?}", rows.keys()))),
                Some((status, _, why)) if status != "completed" => {
                    self.troubles.push((Trouble::Lost, format!("{id} is {status} ({why:?})")));
                }
                Some((_, attempts, _)) => {
                    let runs = self.runs.get(id).copied().unwrap_or(0);
                    // Each time a handler begins is an attempt, and nothing else is.
                    let told = runs == *attempts as usize || (self.racy && runs + 1 == *attempts as usize);
                    if handled.contains(id) && (runs == 0 || !told) && !self.with_errors {
                        self.troubles
                            .push((Trouble::Wrong, format!("{id} has run {runs} times in {attempts} attempts")));
                    }
                }
            }
        }
        for id in rows.keys().filter(|id| !expected.contains(*id)) {
            self.troubles.push((Trouble::Doubled, format!("a job that nobody has asked for: {id}")));
        }
    }

    /// Nothing has been decided or completed twice, no handler was called after
    /// that, and what was in place was not put there again.
    pub(super) fn nothing_twice(&mut self) {
        let sql = self.world.sql();
        let often = "SELECT job_id, type, count(*) FROM job_events WHERE type IN ('queued', 'decided', 'completed')
                     GROUP BY job_id, type HAVING count(*) > 1";
        let mut statement = sql.prepare(often).unwrap();
        let rows = statement.query_map([], |row| {
            Ok(format!("{} {} {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
        });
        for twice in rows.unwrap() {
            self.troubles.push((Trouble::Doubled, format!("events: {}", twice.unwrap())));
        }
        for snapshot in &self.snapshots {
            for id in snapshot.rows.keys().filter(|id| snapshot.is_decided(id)) {
                let (then, now) = (snapshot.runs.get(id), self.runs.get(id));
                if then != now {
                    let words = format!("{id} was decided; its handler had run {then:?} times, then {now:?}");
                    self.troubles.push((Trouble::Doubled, words));
                }
            }
            if self.with_errors {
                continue;
            }
            let end = self.scenario.end();
            for (path, inode) in &snapshot.inodes {
                let now = std::fs::metadata(self.world.root().join(path))
                    .map(|meta| std::os::unix::fs::MetadataExt::ino(&meta));
                if snapshot.tree.get(path) == end.get(path) && now.ok() != Some(*inode) {
                    self.troubles.push((Trouble::Doubled, format!("{path} was in place and was written again")));
                }
            }
        }
    }
}
