//! The worker as a process of its own, for what can only be seen from outside.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jobq::{Context, Handler, HandlerError, Outcome, Registry, Shutdown, Worker, WorkerEvent, WorkerOptions};

use crate::drain::{Noop, drain, open};

/// Says when it was called.
struct Stamp;

impl Handler for Stamp {
    type Payload = Noop;

    fn run(&self, _: &Context, _: Noop) -> Result<Outcome, HandlerError> {
        println!("{}", now());
        Ok(Outcome::done())
    }
}

pub(crate) fn now() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

pub(crate) fn run(args: &[String]) {
    let folder = Path::new(&args[1]);
    match args[0].as_str() {
        "drain" => println!("drained {}", drain(&open(folder), 4)),
        "wait" => {
            let queue = open(folder);
            let worker = Worker::new(Arc::clone(&queue), Registry::new().with(Stamp), WorkerOptions::default());
            let shutdown = Shutdown::new();
            let stop = shutdown.clone();
            // The end of the input is the signal to stop.
            std::thread::spawn(move || {
                let _ = std::io::stdin().lines().count();
                stop.request();
            });
            let ready = |event: &WorkerEvent| {
                if matches!(event, WorkerEvent::Started { .. }) {
                    println!("ready");
                }
            };
            worker.unwrap().observed_by(ready).run(&shutdown).unwrap();
        }
        "reconcile" => crate::reconcile::child(folder),
        other => panic!("no such part: {other}"),
    }
}
