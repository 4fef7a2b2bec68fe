//! An async application with an async handler: requests are answered while
//! jobs are queued, and eight pages are fetched at once.
//!
//! ```text
//! cargo run --features tokio --example async_handler
//! ```

use std::sync::Arc;
use std::time::Duration;

use jobq::{
    AsyncHandler, Context, HandlerError, Outcome, Payload, Queue, QueueOptions, Registry, Shutdown, Worker,
    WorkerOptions,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Fetch {
    page: String,
}

impl Payload for Fetch {
    const TYPE: &'static str = "fetch";
    type Output = usize;
}

struct Fetcher;

impl AsyncHandler for Fetcher {
    type Payload = Fetch;

    /// Dropped where it awaits when the job is cancelled or takes too long.
    async fn run(&self, ctx: &Context, fetch: Fetch) -> Result<Outcome<usize>, HandlerError> {
        let text = answer_of(&fetch.page).await;
        // What blocks here holds up this job alone: it has a thread of its own.
        let staged = ctx.stage(text.as_bytes())?;
        Ok(Outcome::new(text.len()).put(format!("pages/{}.html", fetch.page), staged))
    }
}

/// A client of HTTP would be here.
async fn answer_of(page: &str) -> String {
    tokio::time::sleep(Duration::from_millis(20)).await;
    format!("<h1>{page}</h1>\n")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    // Any runtime will do; `#[tokio::main]` makes one, too.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(serve(folder.path()))
}

async fn serve(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let registry = Registry::new().with_async(Fetcher, &tokio::runtime::Handle::current());
    let queue = QueueOptions::in_folder(folder).create(true).types(registry.types());
    let queue: Arc<Queue> = Arc::new(queue.open()?);

    // A worker blocks, so it gets a thread. The runtime must go on: it drives what handlers wait for.
    let shutdown = Shutdown::new();
    let options = WorkerOptions { concurrency: 8, ..WorkerOptions::default() };
    let worker = Worker::new(Arc::clone(&queue), registry, options)?;
    let worker = tokio::task::spawn_blocking({
        let shutdown = shutdown.clone();
        move || worker.run(&shutdown)
    });

    let mut jobs = Vec::new();
    for number in 1..=8 {
        jobs.push(queue.enqueue_async(Fetch { page: format!("page-{number}") }).await?.id);
    }
    for id in jobs {
        let bytes = queue
            .call_async(move |queue| {
                queue.wait(&id, Duration::from_secs(60))?;
                queue.result::<Fetch>(&id)
            })
            .await?;
        println!("{bytes:?} bytes");
    }
    shutdown.request();
    println!("{} pages fetched", worker.await??.completed);
    Ok(())
}
