//! `jobq reclaim`: one sweep for dead owners and, if asked to wait, for leases
//! that stand still.

use std::io::Write as _;
use std::time::{Duration, Instant};

use jobq::liveness::LeaseWatch;
use jobq::store::{Reclaim, Reclaimed, Store as _};
use serde::Serialize;

use super::args::ReclaimArgs;
use super::locate::Place;
use super::output::{DIM, Output, counted};
use super::{Answer, Outcome};

pub(super) fn run(args: &ReclaimArgs, place: &Place, out: &mut Output) -> Outcome {
    let queue = place.open_as_it_is()?;
    let mut done = queue.reclaim()?;
    let left = queue.store().leases()?;
    if let Some(lease) = args.lease
        && !left.is_empty()
    {
        let mut watch = LeaseWatch::default();
        watch.look(&left, lease, Instant::now());
        let watching = humantime::format_duration(lease);
        let _ = writeln!(std::io::stderr(), "watching {} claimed jobs for {watching}", left.len());
        std::thread::sleep(lease.saturating_add(Duration::from_millis(10)));
        let lapsed = watch.look(&queue.store().leases()?, lease, Instant::now());
        merge(&mut done, queue.store().reclaim(Reclaim { dead: Vec::new(), lapsed })?);
    }
    // Whoever asks has seen to what was in the way; only workers wait before they try again.
    queue.store().hasten()?;
    let applied = queue.roll_forward()?;
    let answer = if done.left.is_empty() { Answer::Yes } else { Answer::No };
    if out.json {
        out.json(&Done { taken_back: &done, applied })?;
        return Ok(answer);
    }
    if !done.left.is_empty() {
        let left = counted(done.left.len() as u64, "job", "jobs");
        out.line(format_args!(
            "{left} could not be taken back: the database is damaged; `jobq doctor --deep` says where"
        ))?;
    }
    let touched = [&done.pending, &done.failed, &done.cancelled, &done.unowned];
    if applied == 0 && touched.iter().all(|ids| ids.is_empty()) {
        if done.left.is_empty() {
            out.line("nothing to take back")?;
        }
    } else {
        out.line(format_args!(
            "{} back to pending, {} failed, {} cancelled, {} decided; {applied} applied",
            done.pending.len(),
            done.failed.len(),
            done.cancelled.len(),
            done.unowned.len()
        ))?;
    }
    let still = queue.store().leases()?.len();
    if still > 0 && args.lease.is_none() {
        out.line(format_args!(
            "{DIM}{still} claimed by processes that live or cannot be judged; --lease 5m watches them{DIM:#}",
            still = counted(still as u64, "job is", "jobs are")
        ))?;
    }
    Ok(answer)
}

#[derive(Serialize)]
struct Done<'d> {
    #[serde(flatten)]
    taken_back: &'d Reclaimed,
    applied: usize,
}

fn merge(into: &mut Reclaimed, more: Reclaimed) {
    into.pending.extend(more.pending);
    into.failed.extend(more.failed);
    into.cancelled.extend(more.cancelled);
    into.unowned.extend(more.unowned);
    into.left.extend(more.left);
}
