//! A queue, an account of its own at the server, and a proxy in between.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jobq::handlers::{SyncAws, SyncedResource};
use jobq::{Backoff, Event, EventQuery, Job, NewJob, Queue, Status};
use serde_json::{Value, json};

use super::ministack;
use super::proxy::Proxy;
use super::wire::{Message, send};

/// How long something may take that should take no time.
pub const PATIENCE: Duration = Duration::from_secs(60);
pub const BUCKET: &str = "AWS::S3::Bucket";
/// Not to be found anywhere but where it is given.
pub const SECRET: &str = "wJalrXUtnFEMI-not-a-real-secret";
pub const SESSION: &str = "FwoGZXIvYXdzE-not-a-real-session";

pub struct World {
    pub queue: Queue,
    pub proxy: Proxy,
    root: tempfile::TempDir,
    server: SocketAddr,
    /// Twelve digits; the server keeps accounts apart by them.
    pub account: String,
}

impl World {
    /// `None` where there is no server to test with.
    pub fn new() -> Option<Self> {
        static ACCOUNTS: AtomicU64 = AtomicU64::new(100_000_000_000);
        let server = ministack::address()?;
        let root = tempfile::tempdir().unwrap();
        let queue = Queue::init(root.path()).unwrap();
        let account = ACCOUNTS.fetch_add(1, Ordering::Relaxed).to_string();
        let world = Self { queue, proxy: Proxy::to(server), root, server, account };
        world.configure(&format!("region = \"eu-central-1\"\nendpoint_url = \"{}\"\n", world.proxy.url));
        Some(world)
    }

    pub fn configure(&self, settings: &str) {
        std::fs::write(self.root().join(".jobq/config.toml"), format!("[handlers.sync_aws]\n{settings}")).unwrap();
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// `jobq` with nothing but this account's credentials.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobq"));
        command.args(args).current_dir(self.root()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.root());
        command.env("AWS_ACCESS_KEY_ID", &self.account).env("AWS_SECRET_ACCESS_KEY", SECRET);
        command.env("AWS_SESSION_TOKEN", SESSION).env("AWS_EC2_METADATA_DISABLED", "true");
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs what there is to run; jobs that are to be tried again, too, if that is at once.
    pub fn drain(&self) -> String {
        let output = self.run(&["worker", "--drain", "--json"]);
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    }

    pub fn worker(&self) -> Worker {
        let mut command = self.command(&["worker", "--json"]);
        Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn enqueue(&self, sync: &SyncAws) -> String {
        self.queue.enqueue(soon(sync)).unwrap().id
    }

    /// Queues it and runs it to its end.
    pub fn sync(&self, sync: &SyncAws) -> Job {
        let id = self.enqueue(sync);
        self.drain();
        self.queue.get(&id).unwrap()
    }

    pub fn ended(&self, id: &str) -> Job {
        self.queue.wait(id, PATIENCE).unwrap().expect("it has not ended")
    }

    pub fn events(&self, id: &str) -> Vec<Event> {
        self.queue.events(&EventQuery { job_id: Some(id.to_owned()), after: 0, limit: 1_000 }).unwrap()
    }

    /// What the last attempt has asked of AWS is this much older than it was.
    pub fn age(&self, id: &str, hours: i64) {
        let conn = rusqlite::Connection::open(self.root().join(".jobq/jobq.db")).unwrap();
        let older =
            "UPDATE jobs SET checkpoint = json_set(checkpoint, '$.since', checkpoint->>'since' - ?2) WHERE id = ?1";
        let changed = conn.execute(older, (id, hours * 3_600)).unwrap();
        assert_eq!(changed, 1);
    }

    /// Calls the server itself, past the proxy, as somebody else would.
    pub fn aside(&self, action: &str, body: &Value) -> Value {
        let scope = format!("{}/20260101/eu-central-1/cloudcontrolapi/aws4_request", self.account);
        let body = body.to_string().into_bytes();
        let head = vec![
            "POST / HTTP/1.1".to_owned(),
            format!("Host: {}", self.server),
            format!("X-Amz-Target: CloudApiService.{action}"),
            format!("Authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"),
            "Content-Type: application/x-amz-json-1.0".to_owned(),
            format!("Content-Length: {}", body.len()),
        ];
        let answer = send(self.server, &Message { head, body }).unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.json());
        answer.json()
    }

    /// The resources of a type, by their identifiers, with their properties.
    pub fn resources(&self, resource_type: &str) -> Vec<(String, Value)> {
        let listed = self.aside("ListResources", &json!({ "TypeName": resource_type }));
        let listed = listed["ResourceDescriptions"].as_array().unwrap().clone();
        let properties = |one: &Value| serde_json::from_str(one["Properties"].as_str().unwrap()).unwrap();
        listed.iter().map(|one| (one["Identifier"].as_str().unwrap().to_owned(), properties(one))).collect()
    }

    /// Somebody else changes a bucket.
    pub fn meddle(&self, id: &str, patch: &Value) {
        let body = json!({ "TypeName": BUCKET, "Identifier": id, "PatchDocument": patch.to_string() });
        self.aside("UpdateResource", &body);
    }

    /// Somebody else removes a bucket.
    pub fn remove(&self, id: &str) {
        self.aside("DeleteResource", &json!({ "TypeName": BUCKET, "Identifier": id }));
    }
}

/// Tried again at once, and often enough.
pub fn soon(sync: &SyncAws) -> NewJob {
    NewJob::of(sync).backoff(Backoff { base_ms: 1, max_ms: 1 }).max_attempts(10)
}

pub fn bucket(id: &str, mut more: Value) -> SyncAws {
    more["BucketName"] = id.into();
    SyncAws::resource(BUCKET, id, more)
}

pub fn no_bucket(id: &str) -> SyncAws {
    SyncAws::absent(BUCKET, id)
}

#[track_caller]
pub fn completed(job: &Job) -> SyncedResource {
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    job.result.as_ref().unwrap().parse().unwrap()
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Killed with what is left of the test.
pub struct Worker(pub Child);

impl Worker {
    /// As if the power had gone.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "{what}: it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}
