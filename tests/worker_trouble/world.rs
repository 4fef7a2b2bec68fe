//! What these tests share.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use jobq::*;
use serde::{Deserialize, Serialize};

#[macro_export]
macro_rules! payload {
    ($name:ident, $type:literal) => {
        #[derive(Serialize, Deserialize, Clone)]
        pub struct $name {
            pub n: u32,
        }
        impl Payload for $name {
            const TYPE: &'static str = $type;
            type Output = ();
        }
    };
}
payload!(Same, "same");
payload!(Stuck, "stuck");
payload!(Nop, "nop");
payload!(DropBomb, "dropbomb");

pub fn open(root: &Path, registry: &Registry) -> Arc<Queue> {
    Arc::new(QueueOptions::in_folder(root).create(true).types(registry.types()).open().unwrap())
}

pub fn sql(root: &Path) -> rusqlite::Connection {
    let c = rusqlite::Connection::open(root.join(".jobq/jobq.db")).unwrap();
    c.busy_timeout(Duration::from_secs(10)).unwrap();
    c
}

pub fn drain() -> WorkerOptions {
    WorkerOptions { drain: true, ..WorkerOptions::default() }
}

/// Runs a worker on a thread; the receiver gets its end.
pub fn start(worker: Worker, shutdown: Shutdown) -> mpsc::Receiver<std::result::Result<(), String>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run(&shutdown)));
        let _ = send.send(match end {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(e.to_string()),
            Err(_) => Err("panicked".into()),
        });
    });
    receive
}

pub struct NopHandler;
impl Handler for NopHandler {
    type Payload = Nop;
    fn run(&self, _: &Context, _: Nop) -> std::result::Result<Outcome<()>, HandlerError> {
        Ok(Outcome::new(()))
    }
}

pub struct StuckHandler;
impl Handler for StuckHandler {
    type Payload = Stuck;
    fn run(&self, ctx: &Context, _: Stuck) -> std::result::Result<Outcome<()>, HandlerError> {
        // A well-behaved long job: looks at its flag all the time.
        loop {
            ctx.check()?;
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Waits for something that must come.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "{what}: it has not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}
