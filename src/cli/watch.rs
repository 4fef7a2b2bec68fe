//! `jobq reconcile --watch`: what drifts and what is healed, as it happens.

use std::time::Duration;

use jobq::{DiskWatch, Drift, Error, ErrorKind, ReconcileOptions, printable};
use serde_json::json;

use super::args::ReconcileArgs;
use super::ids::Ids;
use super::locate::Place;
use super::output::{DIM, GREEN, Output};
use super::reconcile::print;
use super::{Answer, Outcome};

/// How often everything is compared, unless said.
const EVERY: Duration = Duration::from_secs(30);

pub(super) fn run(args: &ReconcileArgs, options: &ReconcileOptions, place: &Place, out: &mut Output) -> Outcome {
    out.end_with_reader();
    let queue = place.open_as_it_is()?;
    let watch = DiskWatch::start(&queue, options.clone(), args.every.unwrap_or(EVERY))?;
    let stopper = watch.stopper();
    ctrlc::set_handler(move || stopper.stop())
        .map_err(|e| Error::new(ErrorKind::Internal, format!("cannot listen for signals: {e}")))?;
    if !out.json {
        out.line(format_args!("{DIM}watching {}; Ctrl-C ends it{DIM:#}", printable(&queue.root().to_string_lossy())))?;
        out.flush()?;
    }
    let mut failed = None;
    let mut ids = Ids::new(&queue);
    watch.run(&queue, |drift| {
        let told = tell(drift, &mut ids, out).and_then(|()| out.flush());
        told.map_err(|error| failed = Some(error)).is_ok()
    })?;
    failed.map_or(Ok(Answer::Yes), |error| Err(error.into()))
}

fn tell(drift: &Drift, ids: &mut Ids<'_>, out: &mut Output) -> std::io::Result<()> {
    match drift {
        Drift::Drifted(difference) if out.json => {
            let mut line = json!(difference);
            line["event"] = "drifted".into();
            out.json(&line)
        }
        Drift::Drifted(difference) => print(difference, ids, out),
        Drift::Healed(path) if out.json => out.json(&json!({ "event": "healed", "path": path })),
        Drift::Healed(path) => out.line(format_args!("{GREEN}healed{GREEN:#}     {}", printable(path))),
    }
}
