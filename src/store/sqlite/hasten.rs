//! Somebody has removed what kept decided jobs from being applied, and does not want to wait.

use super::tx::Tx;
use crate::error::Result;

/// As if each had just been taken back from its owner. Should it be put off once more, its backoff goes on where it was.
const HASTEN: &str = "UPDATE OR FAIL jobs INDEXED BY jobs_unowned SET run_at = NULL
      WHERE status = 'claimed' AND locked_by IS NULL AND run_at IS NOT NULL";

pub(super) fn hasten(tx: &Tx<'_>) -> Result<usize> {
    tx.execute(HASTEN, [])
}
