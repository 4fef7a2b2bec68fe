//! Rows that get in the way of others: damaged ones that fail every claim, or
//! every reclaim, in which they are.
//!
//! Many rows are one operation because that is fast. If it fails at one of them,
//! it is repeated without that one, which is told, left aside for a while and
//! then tried again: what was misread may be read well.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;

/// How long a row is left aside. Each try costs the others an operation, and is told.
const AGAIN: Duration = Duration::from_secs(300);
/// Found by one operation. Its caller has others to see to, and will come again.
const MOST_AT_ONCE: usize = 64;

#[derive(Default)]
pub(super) struct Aside(Mutex<HashMap<i64, Instant>>);

/// How to work: around what, and whether row by row, so that an error tells of which it is.
#[derive(Clone, Default)]
pub(super) struct Around {
    pub(super) aside: HashSet<i64>,
    pub(super) carefully: bool,
}

impl Around {
    /// Those that are not left aside. So many more have to be asked for.
    pub(super) fn others(&self, rows: &mut Vec<i64>) {
        rows.retain(|seq| !self.aside.contains(seq));
    }

    /// A limit for rows of which some are left aside.
    pub(super) fn limit(&self, limit: u32) -> u32 {
        limit.saturating_add(u32::try_from(self.aside.len()).unwrap_or(u32::MAX))
    }
}

impl Aside {
    fn rows(&self) -> MutexGuard<'_, HashMap<i64, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nearly always nothing.
    pub(super) fn now(&self) -> Around {
        let mut rows = self.rows();
        if rows.is_empty() {
            return Around::default();
        }
        rows.retain(|_, since| since.elapsed() < AGAIN);
        Around { aside: rows.keys().copied().collect(), carefully: !rows.is_empty() }
    }

    /// `id`: of a row, if it can be read.
    pub(super) fn around<T>(
        &self,
        doing: &str,
        id: impl Fn(i64) -> Option<String>,
        mut work: impl FnMut(Around) -> Result<T>,
    ) -> Result<T> {
        let (mut found, mut carefully) = (0, false);
        loop {
            let mut around = self.now();
            around.carefully |= carefully;
            let was_careful = around.carefully;
            match work(around) {
                Err(error) if error.is_about_one() && !was_careful => carefully = true,
                Err(error) => {
                    let row = error.row().filter(|_| found < MOST_AT_ONCE);
                    let Some(seq) = row.filter(|seq| self.rows().insert(*seq, Instant::now()).is_none()) else {
                        return Err(error);
                    };
                    found += 1;
                    let job_id = id(seq);
                    tracing::error!(
                        job_id,
                        seq,
                        %error,
                        "{doing}: the database is damaged where a job is, which is left aside; `jobq doctor --deep` says what"
                    );
                }
                done => return done,
            }
        }
    }
}
