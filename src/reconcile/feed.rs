//! Pages of what is expected, in order of path.

use std::sync::mpsc::SyncSender;

use super::ReconcileOptions;
use crate::error::Result;
use crate::queue::Queue;
use crate::store::{ExpectedPage, ExpectedQuery, ExpectedStamp, Store as _};

/// Paths in a page: short reads, so that no snapshot keeps the WAL from being
/// checkpointed; few when each takes long, so that all threads have something.
const PAGE: u32 = 2_000;
const DEEP_PAGE: u32 = 32;

/// Some paths to compare.
pub(super) struct Page {
    pub(super) number: usize,
    pub(super) paths: Vec<ExpectedStamp>,
}

/// Until there is no more, or nobody wants it.
pub(super) fn feed(queue: &Queue, options: &ReconcileOptions, pages: &SyncSender<Page>) -> Result<()> {
    let page = if options.deep { DEEP_PAGE } else { PAGE };
    let mut query =
        ExpectedQuery { after: String::new(), job_type: options.job_type.clone(), hashes: options.deep, limit: page };
    for number in 0.. {
        let ExpectedPage { files: mut paths, next } = queue.store().expected(&query)?;
        if let Some(wanted) = &options.paths {
            paths.retain(|expected| wanted(&expected.path));
        }
        let wanted = pages.send(Page { number, paths }).is_ok();
        match next {
            Some(next) if wanted => query.after = next,
            _ => break,
        }
    }
    Ok(())
}
