//! Recording a state folder other than the one in which the queue was made.

use std::path::Path;

use super::apply;
use super::cancel::{self, Reason};
use super::lease::{self, End};
use super::schema;
use super::tx::Tx;
use crate::error::{Error, ErrorKind, Result};
use crate::site::{self, Attach};
use crate::store::{Failure, Lease, WITHDRAWN};

pub(super) fn attach(tx: &Tx<'_>, state: &Path, how: Attach) -> Result<bool> {
    let identity = site::identity(state)
        .ok_or_else(|| Error::new(ErrorKind::Io, format!("the folder {} is missing", state.display())))?;
    if schema::site(tx.conn)?.as_ref() == Some(&identity) {
        return Ok(false);
    }
    if how == Attach::New {
        end_claimed(tx)?;
        end_pending(tx)?;
    }
    schema::record_site(tx.conn, &identity)?;
    Ok(true)
}

/// Nothing that the original does, too, is done here: whoever claimed these jobs is not at work in this folder.
fn end_claimed(tx: &Tx<'_>) -> Result<()> {
    let claimed = tx.rows("SELECT seq, id, token FROM jobs WHERE status = 'claimed' ORDER BY seq", [], |row| {
        Ok(Lease { seq: row.get(0)?, id: row.get(1)?, token: row.get(2)? })
    })?;
    for lease in claimed {
        let (held, ..) = lease::row(tx, &lease)?;
        if held.decided {
            apply::withdraw(tx, &lease, &held, Failure::new(WITHDRAWN, WHY))?;
        } else {
            lease::end(tx, &lease, &held, End::cancelled())?;
        }
    }
    Ok(())
}

fn end_pending(tx: &Tx<'_>) -> Result<()> {
    let pending = tx.rows("SELECT seq FROM jobs WHERE status = 'pending' ORDER BY seq", [], |row| row.get(0))?;
    for seq in pending {
        cancel::cancel_one(tx, seq, &Reason { last_error: Some(format!("attached: {WHY}")), data: None })?;
    }
    Ok(())
}

const WHY: &str = "the queue was copied and attached as a new one";
