//! An application, and its tests with `jobq::testing`: what it queues, what
//! comes of it now, tomorrow, and when a service is down.
//!
//! ```text
//! cargo run --features testing --example application_test    # the application
//! cargo test --features testing --example application_test   # its tests
//! ```
//!
//! An application of your own has jobq twice in its `Cargo.toml`: under
//! `[dependencies]`, and with `features = ["testing"]` under `[dev-dependencies]`.

use std::sync::Arc;
use std::time::Duration;

use jobq::{
    Context, Handler, HandlerError, NewJob, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown, Worker,
    WorkerOptions,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Mail {
    to: String,
    text: String,
}

impl Payload for Mail {
    const TYPE: &'static str = "mail";
    type Output = ();
}

/// Where mail goes: a server, or whatever a test has in its place.
type Server = dyn Fn(&Mail) -> Result<(), String> + Send + Sync;

struct Mailer(Arc<Server>);

impl Handler for Mailer {
    type Payload = Mail;

    fn run(&self, _: &Context, mail: Mail) -> Result<Outcome, HandlerError> {
        (self.0)(&mail).map(|()| Outcome::done()).map_err(HandlerError::retry)
    }
}

fn registry(server: Arc<Server>) -> Registry {
    Registry::builtin().with(Mailer(server))
}

/// A member is a file; with it come a mail now and one tomorrow, or none of the three.
fn sign_up(queue: &Queue, name: &str) -> jobq::Result<()> {
    let mail = |text: &str| Mail { to: format!("{name}@example.org"), text: text.to_owned() };
    queue.commit(|tx| {
        tx.write_json(&format!("members/{name}.json"), &serde_json::json!({ "name": name }))?;
        tx.enqueue(mail("welcome"))?;
        tx.enqueue(NewJob::of(&mail("how do you like it?")).delay(Duration::from_secs(86_400)))
    })?;
    Ok(())
}

fn main() -> jobq::Result<()> {
    let folder = tempfile::tempdir().map_err(|e| jobq::Error::new(jobq::ErrorKind::Io, e.to_string()))?;
    let registry = registry(Arc::new(|mail| {
        println!("to {}: {}", mail.to, mail.text);
        Ok(())
    }));
    let queue = Arc::new(QueueOptions::in_folder(folder.path()).create(true).types(registry.types()).open()?);
    sign_up(&queue, "ada")?;
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    let summary = Worker::new(queue, registry, options)?.run(&Shutdown::new())?;
    println!("{} mail sent, the other is for tomorrow", summary.completed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use jobq::testing::TestQueue;

    use super::*;

    #[test]
    fn a_new_member_gets_mail_today_and_tomorrow() {
        let sent: Arc<Mutex<Vec<String>>> = Arc::default();
        let server = Arc::clone(&sent);
        let queue = TestQueue::new(registry(Arc::new(move |mail| {
            server.lock().unwrap().push(mail.text.clone());
            Ok(())
        })));
        sign_up(&queue, "ada").unwrap();
        assert!(queue.root().join("members/ada.json").exists());
        queue.assert_enqueued(&Mail { to: "ada@example.org".to_owned(), text: "welcome".to_owned() });

        assert_eq!(queue.run_all().completed, 1);
        assert_eq!(*sent.lock().unwrap(), ["welcome"]);
        queue.assert_enqueued_where(|mail: &Mail| mail.text.starts_with("how"));

        queue.advance(Duration::from_secs(86_400));
        assert_eq!(queue.run_all().completed, 1);
        queue.refute_enqueued::<Mail>();
    }

    #[test]
    fn mail_is_sent_when_the_server_is_back() {
        let down = Arc::new(AtomicBool::new(true));
        let server = Arc::clone(&down);
        let queue = TestQueue::new(registry(Arc::new(move |_| match server.load(Ordering::Acquire) {
            true => Err("no answer".to_owned()),
            false => Ok(()),
        })));
        queue.enqueue(Mail { to: "ada@example.org".to_owned(), text: "welcome".to_owned() }).unwrap();
        let ran = queue.run_all();
        assert_eq!(ran.rescheduled, 1);
        assert_eq!(ran.attempts[0].error.as_ref().unwrap().message, "no answer");

        down.store(false, Ordering::Release);
        assert_eq!(queue.run_all().completed, 0, "its time has not come");
        queue.advance_to_next();
        assert_eq!(queue.run_all().completed, 1);
    }
}
