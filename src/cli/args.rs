//! What can be typed. Help texts carry an example each.

mod enqueue;
mod extract;
mod reconcile;
mod top;
mod values;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueHint};
use jobq::Status;

pub(crate) use self::enqueue::{EnqueueArgs, SingleArgs};
pub(crate) use self::extract::ExtractArgs;
pub(crate) use self::reconcile::ReconcileArgs;
pub(crate) use self::top::TopArgs;
pub(crate) use self::values::{at_least_one, concurrency, duration, lease, number, some_time, status, trimmed};
pub(crate) use self::worker::WorkerArgs;

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
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Global {
    /// The database file
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        help = "The database file [default: JOBQ_DB, then .jobq/jobq.db here or in a parent folder]"
    )]
    pub(crate) db: Option<PathBuf>,
    /// The folder jobs may touch [default: the parent of .jobq]; without --db, the queue is the one in it
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
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
    /// Make a queue in a folder; repeating it keeps what is there
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
    /// Check the queue's health
    Doctor(DoctorArgs),
    /// Attach a queue whose folder was copied or moved
    #[command(subcommand, after_help = "Example:\n  jobq site attach --move")]
    Site(SiteCommand),
    /// The known job types, where each comes from, its defaults and schema
    Handlers(HandlersArgs),
    /// The effective settings, and where each comes from
    #[command(after_help = "Each comes from what was typed (flag), the environment (env), .jobq/config.toml
(file, with its line), the database (the root, once one was named) or is the default.
With a mistake in config.toml every mistake is named; exit 2. A type that nobody has is
a warning: another program may have it. Values of `env` may be secrets, and are not shown.

Examples:
  jobq config
  jobq config --json")]
    Config,
    /// Print a completion script for a shell
    #[command(after_help = "Example:\n  jobq completions bash > /etc/bash_completion.d/jobq")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command into a folder
    Man(ManArgs),
}

impl Command {
    /// Whether it leaves everything as it is.
    pub(crate) fn only_looks(&self) -> bool {
        match self {
            Self::Reconcile(args) => !args.requeue,
            Self::Handlers(args) => args.resume.is_none(),
            Self::Blame(_) | Self::List(_) | Self::Show(_) | Self::Events(_) | Self::Stats | Self::Top(_) => true,
            Self::Doctor(_) | Self::Config | Self::Completions(_) | Self::Man(_) => true,
            Self::Init(_) | Self::Enqueue(_) | Self::Commit(_) | Self::Extract(_) | Self::Worker(_) => false,
            Self::Retry(_) | Self::Cancel(_) | Self::Reclaim(_) | Self::Prune(_) | Self::Site(_) => false,
        }
    }
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
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
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
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq list --status failed --since 1h")]
pub(crate) struct ListArgs {
    /// Only jobs that are in this state
    #[arg(long, value_parser = status())]
    pub(crate) status: Option<Status>,
    /// Only this type
    #[arg(long = "type", value_name = "T")]
    pub(crate) job_type: Option<String>,
    /// Only jobs queued within this time
    #[arg(long, value_name = "1h", value_parser = duration)]
    pub(crate) since: Option<Duration>,
    /// How many at most
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one)]
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
    #[arg(long, value_name = "EVENT_ID", default_value_t = 0, value_parser = number::<i64>)]
    pub(crate) after: i64,
}

#[derive(Args)]
#[command(after_help = "Example:\n  jobq blame out/report.json")]
pub(crate) struct BlameArgs {
    /// Relative to the root, as jobs name it; or to where you are
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
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
    #[arg(long, value_name = "AGE", value_parser = duration)]
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

#[derive(Subcommand)]
pub(crate) enum SiteCommand {
    /// Accept a queue whose folder was copied, unpacked, cloned or moved to another disk
    #[command(
        after_help = "A queue remembers the folder in which it was made. Anywhere else jobq only reads it, because a
copy would do the original's work again. If somebody else made the queue, delete .jobq and run
`jobq init` instead. The command changes nothing where nothing was copied or moved.

Examples:
  jobq site attach --move
  jobq site attach --new"
    )]
    Attach(AttachArgs),
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(crate) struct AttachArgs {
    /// The original is gone: unfinished jobs go on here
    #[arg(long = "move")]
    pub(crate) moved: bool,
    /// This is a copy: unfinished jobs end
    #[arg(long)]
    pub(crate) new: bool,
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
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests;
