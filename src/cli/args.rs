//! What can be typed. Help texts carry an example each.

mod extract;
mod top;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use jobq::{Status, Unique};

pub(crate) use self::extract::ExtractArgs;
pub(crate) use self::top::TopArgs;

/// A durable outbox and job queue for programs whose data lives in files.
///
/// Every accepted job is on disk before the command returns; it is run, retried
/// and visible, and never silently lost or doubled.
#[derive(Parser)]
#[command(
    name = "jobq",
    version,
    after_help = "Start with:\n  jobq init\n  jobq enqueue create_file '{\"path\":\"hello.txt\",\"content\":\"hi\"}'\n  jobq list\n\nExit codes: 0 done, 1 the answer is no, 2 bad usage or payload, 3 not found,\n4 refused, 5 the queue is unavailable, 6 outcome unknown (ask again with the\nsame id or key)."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Args)]
pub(crate) struct Global {
    /// The database file
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        help = "The database file [default: JOBQ_DB, then .jobq/jobq.db here or in a parent folder]"
    )]
    pub(crate) db: Option<PathBuf>,
    /// The folder jobs may touch [default: the parent of .jobq]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// One JSON object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say more (-vv: much more)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Say only errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a queue in a folder; repeating it changes nothing
    Init(InitArgs),
    /// Queue a job, or many with --batch
    Enqueue(Box<EnqueueArgs>),
    /// Write files and queue jobs, accepted as one
    Commit(CommitArgs),
    /// Turn requirements into prompts and queue them for Claude
    Extract(ExtractArgs),
    /// Run jobs until told to stop
    Worker(WorkerArgs),
    /// Compare what completed jobs did with the disk
    Reconcile(ReconcileArgs),
    /// Which jobs wrote or removed a path
    Blame(BlameArgs),
    /// List jobs, newest first
    List(ListArgs),
    /// Show everything about one job
    Show(ShowArgs),
    /// The event log
    Events(EventsArgs),
    /// What is outstanding, failed, stuck, slow, doubled and recent
    #[command(after_help = "Example:\n  jobq stats --json")]
    Stats,
    /// Watch the queue live; keys retry, cancel and inspect jobs
    Top(TopArgs),
    /// Bring failed or cancelled jobs back
    Retry(RetryArgs),
    /// Call jobs off, and what waits on them
    Cancel(CancelArgs),
    /// Take back what dead processes had claimed (workers do it by themselves)
    Reclaim(ReclaimArgs),
    /// Delete old finished jobs
    Prune(PruneArgs),
    /// Is this queue in order, and if not, what is to be done
    Doctor(DoctorArgs),
    /// The known job types, where each comes from, its defaults and schema
    Handlers(HandlersArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  jobq completions bash > /etc/bash_completion.d/jobq")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command into a folder
    Man(ManArgs),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  jobq handlers --json\n  jobq handlers --resume claude_extraction")]
pub(crate) struct HandlersArgs {
    /// End the pause of a type that was told to wait (a rate limit), before its time
    #[arg(long, value_name = "TYPE")]
    pub(crate) resume: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq init my-project")]
pub(crate) struct InitArgs {
    /// The root folder
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  jobq enqueue create_file '{\"path\":\"hello.txt\",\"content\":\"hi\"}'\n  jobq enqueue send_mail @mail.json --delay 10m --priority 5 --key mail-17\n  generate-jobs | jobq enqueue --batch -"
)]
pub(crate) struct EnqueueArgs {
    /// What kind of work
    #[arg(value_name = "TYPE", required_unless_present = "batch", conflicts_with = "batch")]
    pub(crate) job_type: Option<String>,
    /// JSON, @FILE, or - for stdin [default: {}]
    #[arg(value_name = "PAYLOAD")]
    pub(crate) payload: Option<String>,
    /// Queue job objects from JSON lines (- for stdin): all or nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["payload", "single"])]
    pub(crate) batch: Option<String>,
    #[command(flatten)]
    pub(crate) single: SingleArgs,
}

#[derive(Args)]
#[command(after_help = "The document:
  {\"id\"?, \"writes\": [{\"path\", \"json\"|\"text\"|\"base64\", \"expect\"?}],
   \"removes\": [{\"path\", \"expect\"?}], \"jobs\": [{\"type\", \"payload\", …}]}

`expect` is the sha256 of what was read, or \"absent\"; if the file holds anything
else the commit is refused (exit 4) and nothing has happened. Jobs are as in
`jobq enqueue --batch`, and run when the files are in place.

Example:
  echo '{\"writes\":[{\"path\":\"data/a.json\",\"json\":{\"n\":1}}],
         \"jobs\":[{\"type\":\"create_file\",\"payload\":{\"path\":\"a.txt\",\"content\":\"one\"}}]}' | jobq commit")]
pub(crate) struct CommitArgs {
    /// A JSON document, or - for stdin [default: -]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<String>,
}

#[derive(Args)]
#[group(id = "single", multiple = true)]
pub(crate) struct SingleArgs {
    /// Higher runs first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) priority: Option<i32>,
    /// The same as any unfinished job of this type with this key
    #[arg(long, value_name = "K", conflicts_with = "no_key")]
    pub(crate) key: Option<String>,
    /// Never a duplicate of another job
    #[arg(long)]
    pub(crate) no_key: bool,
    /// Compare the key with unfinished jobs, or always (also with finished ones)
    #[arg(long, value_enum)]
    pub(crate) unique: Option<UniqueArg>,
    /// The job's id: a ULID or UUID
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Not before this much time has passed
    #[arg(long, value_name = "10s", value_parser = duration, conflicts_with = "run_at")]
    pub(crate) delay: Option<Duration>,
    /// Not before this time (RFC 3339)
    #[arg(long, value_name = "TIME")]
    pub(crate) run_at: Option<String>,
    /// Attempts before the job fails
    #[arg(long, value_name = "N")]
    pub(crate) max_attempts: Option<u32>,
    /// How long one attempt may take
    #[arg(long, value_name = "5m", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Jobs of one lane run one at a time, in order
    #[arg(long, value_name = "L")]
    pub(crate) lane: Option<String>,
    /// Not before this job has completed
    #[arg(long, value_name = "JOB")]
    pub(crate) after: Option<String>,
    /// A name for everything that belongs to one cause
    #[arg(long, value_name = "C")]
    pub(crate) correlation_id: Option<String>,
    /// Wait for the job's end and print its result; exit 1 if it failed
    #[arg(long)]
    pub(crate) wait: bool,
    /// How long to wait
    #[arg(long, value_name = "60s", value_parser = duration, requires = "wait")]
    pub(crate) wait_timeout: Option<Duration>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum UniqueArg {
    Active,
    Always,
}

impl From<UniqueArg> for Unique {
    fn from(arg: UniqueArg) -> Self {
        match arg {
            UniqueArg::Active => Self::Active,
            UniqueArg::Always => Self::Always,
        }
    }
}

#[derive(Args)]
#[command(
    after_help = "Examples:\n  jobq worker\n  jobq worker --drain --concurrency 8\n  jobq worker --types create_file,delete_file --json | tee worker.log\n\nCtrl-C (or SIGTERM) finishes what runs and gives back what has not started; once\nmore gives back what runs, too."
)]
pub(crate) struct WorkerArgs {
    /// Jobs that run at the same time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = concurrency)]
    pub(crate) concurrency: usize,
    /// Stop when nothing is left to do now
    #[arg(long)]
    pub(crate) drain: bool,
    /// Only these types
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) types: Option<Vec<String>>,
    /// How long to go without looking when nothing wakes the worker
    #[arg(long, value_name = "1s", default_value = "1s", value_parser = some_time)]
    pub(crate) poll_interval: Duration,
    /// How long a worker that gives no sign of life keeps its jobs
    #[arg(long, value_name = "5m", default_value = "5m", value_parser = some_time)]
    pub(crate) lease: Duration,
    /// How long to wait for running jobs when told to stop [default: as long as it takes]
    #[arg(long, value_name = "T", value_parser = duration)]
    pub(crate) grace: Option<Duration>,
    /// Do not compare the disk with what completed jobs left when starting
    #[arg(long)]
    pub(crate) no_reconcile: bool,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq list --status failed --since 1h")]
pub(crate) struct ListArgs {
    /// pending, claimed, completed, failed or cancelled
    #[arg(long)]
    pub(crate) status: Option<Status>,
    /// Only this type
    #[arg(long = "type", value_name = "T")]
    pub(crate) job_type: Option<String>,
    /// Only jobs queued within this time
    #[arg(long, value_name = "1h", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq show 01J9")]
pub(crate) struct ShowArgs {
    /// A job's id, or enough of its beginning
    pub(crate) id: String,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq events --follow --json")]
pub(crate) struct EventsArgs {
    /// Only this job's
    pub(crate) id: Option<String>,
    /// Keep printing events as they happen
    #[arg(long)]
    pub(crate) follow: bool,
    /// Only events after this one
    #[arg(long, value_name = "EVENT_ID", default_value_t = 0)]
    pub(crate) after: i64,
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(
    after_help = "Findings: missing, changed, present (should be gone), unreadable, not_a_file. Exit 0 when the disk\nagrees, 1 when it does not. A path that an unfinished job has is in flight, not drift.\n\nExamples:\n  jobq reconcile --deep\n  jobq reconcile --path 'data/**/*.json'\n  jobq reconcile --requeue --yes"
)]
pub(crate) struct ReconcileArgs {
    /// Hash every file, also those that look as they were left
    #[arg(long)]
    pub(crate) deep: bool,
    /// Only paths that match (`*` stays in a folder, `**` goes on)
    #[arg(long, value_name = "GLOB")]
    pub(crate) path: Option<String>,
    /// Only what jobs of this type left
    #[arg(long = "type", value_name = "T")]
    pub(crate) job_type: Option<String>,
    /// AWS resources, too: read back what `sync_aws` jobs left (calls AWS)
    #[arg(long, conflicts_with_all = ["watch", "requeue"])]
    pub(crate) remote: bool,
    /// Keep watching; print what drifts and what is healed
    #[arg(long, conflicts_with = "requeue")]
    pub(crate) watch: bool,
    /// How often to compare everything while watching
    #[arg(long, value_name = "30s", value_parser = duration, requires = "watch")]
    pub(crate) every: Option<Duration>,
    /// Queue a repair for each finding whose content is still known
    #[arg(long)]
    pub(crate) requeue: bool,
    /// Do not ask
    #[arg(long, requires = "requeue")]
    pub(crate) yes: bool,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq blame out/report.json")]
pub(crate) struct BlameArgs {
    /// Below the root
    #[arg(value_name = "PATH")]
    pub(crate) path: String,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  jobq retry 01J9\n  jobq retry --all-failed\n  jobq retry 01J9 --accept-disk")]
pub(crate) struct RetryArgs {
    /// Jobs, by id or its beginning
    #[arg(value_name = "ID", required_unless_present = "all_failed", conflicts_with = "all_failed")]
    pub(crate) ids: Vec<String>,
    /// Every failed job
    #[arg(long)]
    pub(crate) all_failed: bool,
    /// For a commit that failed by a conflict: apply it on top of what is on disk now
    #[arg(long, conflicts_with = "all_failed")]
    pub(crate) accept_disk: bool,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq cancel 01J9 01JA")]
pub(crate) struct CancelArgs {
    /// Jobs, by id or its beginning
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq reclaim --lease 5m")]
pub(crate) struct ReclaimArgs {
    /// Also watch owners that cannot be judged (frozen, or on another machine)
    /// for this long, and take what gave no sign of life
    #[arg(long, value_name = "5m", value_parser = duration)]
    pub(crate) lease: Option<Duration>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq prune --older-than 14d")]
pub(crate) struct PruneArgs {
    /// Only jobs that ended longer ago than this
    #[arg(long, value_name = "14d", value_parser = duration)]
    pub(crate) older_than: Duration,
    /// Failed jobs too
    #[arg(long)]
    pub(crate) failed: bool,
    /// Also forget what the disk should hold because of them
    #[arg(long)]
    pub(crate) forget: bool,
}

#[derive(Args)]
#[command(after_help = "Each check is ok, warn (nothing is lost, but someone should look) or bad (not safe, or not
working), with what to do. Nothing is changed. Exit 0 when nothing is bad, also
with warnings; 1 when something is, a damaged or newer database too; 3 without a
database. Scripts that mind warnings read the counts in the last line of --json.

Example:
  jobq doctor --deep")]
pub(crate) struct DoctorArgs {
    /// Also compare every index with its table and every payload with its hash
    #[arg(long)]
    pub(crate) deep: bool,
}

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  jobq man > jobq.1 && man ./jobq.1\n  jobq man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write jobq.1, jobq-enqueue.1 and so on here; the folder is made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// `10s`, `5m`, `1h 30m`, `14d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|e| format!("{e}; write it as 10s, 5m, 1h30m or 14d"))
}

fn some_time(text: &str) -> Result<Duration, String> {
    duration(text).and_then(|time| if time.is_zero() { Err("must not be zero".to_owned()) } else { Ok(time) })
}

fn concurrency(text: &str) -> Result<usize, String> {
    let number = text.parse().map_err(|_| "is not a number".to_owned())?;
    if (1..=1024).contains(&number) { Ok(number) } else { Err("is between 1 and 1024".to_owned()) }
}
