//! What a handler logs is within a span that names its job and attempt.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use jobq::{
    Backoff, Context, Ended, Handler, HandlerError, NewJob, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown,
    Worker, WorkerOptions,
};
use serde::{Deserialize, Serialize};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context as Around, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

type Fields = BTreeMap<String, String>;

/// An event: its message, and the names and fields of the spans around it, the outermost first.
#[derive(Clone, Debug)]
struct Heard {
    message: String,
    spans: Vec<(&'static str, Fields)>,
}

#[derive(Default)]
struct Reader(Fields);

impl Visit for Reader {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

/// Keeps every event of the process; tests tell theirs by the job's id.
struct Ear;

fn heard() -> &'static Mutex<Vec<Heard>> {
    static HEARD: OnceLock<Mutex<Vec<Heard>>> = OnceLock::new();
    HEARD.get_or_init(|| {
        tracing_subscriber::registry().with(Ear).init();
        Mutex::default()
    })
}

impl<S: tracing::Subscriber + for<'s> LookupSpan<'s>> Layer<S> for Ear {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, around: Around<'_, S>) {
        let mut fields = Reader::default();
        attributes.record(&mut fields);
        around.span(id).unwrap().extensions_mut().insert(fields.0);
    }

    fn on_event(&self, event: &tracing::Event<'_>, around: Around<'_, S>) {
        let mut fields = Reader::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        let scope = around.event_scope(event).into_iter().flat_map(tracing_subscriber::registry::Scope::from_root);
        let fields = |span: tracing_subscriber::registry::SpanRef<'_, S>| {
            (span.name(), span.extensions().get::<Fields>().cloned().unwrap_or_default())
        };
        let spans = scope.map(fields).collect();
        heard().lock().unwrap().push(Heard { message, spans });
    }
}

#[derive(Serialize, Deserialize)]
struct Talk {}

impl Payload for Talk {
    const TYPE: &'static str = "talk";
    type Output = ();
}

struct Talker;

impl Handler for Talker {
    type Payload = Talk;

    fn run(&self, ctx: &Context, _: Talk) -> Result<Outcome, HandlerError> {
        tracing::trace!("at work on {}", ctx.job_id());
        match ctx.attempt() {
            1 => Err(HandlerError::retry("once more")),
            _ => Ok(Outcome::done()),
        }
    }

    fn on_success(&self, ended: &Ended<'_>) -> Result<(), HandlerError> {
        tracing::info!("done with {}", ended.job.id);
        Ok(())
    }
}

/// Runs a job to its end; returns its id.
fn run(registry: Registry, job: NewJob) -> String {
    heard();
    let folder = tempfile::tempdir().unwrap();
    let options = QueueOptions::in_folder(folder.path()).create(true).types(registry.types());
    let queue: Arc<Queue> = Arc::new(options.open().unwrap());
    let id = queue.enqueue(job.backoff(Backoff { base_ms: 0, max_ms: 0 })).unwrap().id;
    let options = WorkerOptions { drain: true, ..WorkerOptions::default() };
    Worker::new(queue, registry, options).unwrap().run(&Shutdown::new()).unwrap();
    id
}

/// The spans around each event with this message.
fn spans_around(message: &str) -> Vec<Vec<(&'static str, Fields)>> {
    let all = heard().lock().unwrap().clone();
    all.into_iter().filter(|event| event.message == message).map(|event| event.spans).collect()
}

fn span(name: &'static str, id: &str, attempt: &str, correlation_id: Option<&str>) -> Vec<(&'static str, Fields)> {
    let mut fields = vec![("job_id", id), ("type", "talk"), ("attempt", attempt)];
    fields.extend(correlation_id.map(|cause| ("correlation_id", cause)));
    vec![(name, fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())]
}

#[test]
fn each_attempt_has_a_span_with_the_job_its_type_and_the_attempt() {
    let registry = Registry::new().with(Talker);
    let id = run(registry.clone(), NewJob::of(&Talk {}).correlation_id("order-7"));
    let attempt = |number| span("job.execute", &id, number, Some("order-7"));
    assert_eq!(spans_around(&format!("at work on {id}")), [attempt("1"), attempt("2")]);
    assert_eq!(spans_around(&format!("done with {id}")), [span("job.hook", &id, "2", Some("order-7"))]);

    let id = run(registry, NewJob::of(&Talk {}));
    let without = span("job.execute", &id, "1", None);
    assert_eq!(spans_around(&format!("at work on {id}"))[0], without, "no cause was given");
}

#[cfg(feature = "tokio")]
#[test]
fn async_handlers_are_within_it_before_and_after_they_await() {
    struct AsyncTalker;
    impl jobq::AsyncHandler for AsyncTalker {
        type Payload = Talk;
        async fn run(&self, ctx: &Context, _: Talk) -> Result<Outcome, HandlerError> {
            tracing::info!("before {}", ctx.job_id());
            tokio::task::yield_now().await;
            tracing::info!("after {}", ctx.job_id());
            Ok(Outcome::done())
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let id = run(Registry::new().with_async(AsyncTalker, runtime.handle()), NewJob::of(&Talk {}));
    let expected = span("job.execute", &id, "1", None);
    assert_eq!(spans_around(&format!("before {id}")), std::slice::from_ref(&expected));
    assert_eq!(spans_around(&format!("after {id}")), [expected]);
}

#[test]
fn what_a_program_says_is_within_it_and_warnings_have_it_too() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let queue = Queue::init(folder.path()).unwrap();
    let handlers = folder.path().join(".jobq/handlers");
    std::fs::create_dir_all(&handlers).unwrap();
    std::fs::write(handlers.join("chat"), "#!/bin/sh\necho by the way >&2\n").unwrap();
    std::fs::set_permissions(handlers.join("chat"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let id = queue.enqueue(NewJob::raw("chat", "{}").correlation_id("order-7")).unwrap().id;
    let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
    command.args(["worker", "--drain"]).current_dir(folder.path()).env("NO_COLOR", "1").env_remove("JOBQ_DB");
    // The line is a detail; the span around it must be there for those who see no details of jobq's.
    let output = command.env("JOBQ_LOG", "error,jobq::program_handlers=debug").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let within = format!("job.execute{{job_id=\"{id}\" type=\"chat\" attempt=1 correlation_id=\"order-7\"}}: ");
    assert!(said.lines().any(|line| line.contains(&within) && line.contains("by the way")), "{said}");
}
