//! What `jobq enqueue` can be told.

use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use jobq::Unique;

use super::{duration, number};

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
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ONE_JOB)]
    pub(crate) batch: Option<String>,
    #[command(flatten)]
    pub(crate) single: SingleArgs,
}

/// What is about one job. Named one by one, because for a group clap names all of it
/// whatever was typed.
const ONE_JOB: [&str; 15] = [
    "payload",
    "priority",
    "key",
    "no_key",
    "unique",
    "id",
    "delay",
    "run_at",
    "max_attempts",
    "timeout",
    "lane",
    "after",
    "correlation_id",
    "wait",
    "wait_timeout",
];

#[derive(Args)]
pub(crate) struct SingleArgs {
    /// Higher runs first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<i32>)]
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
    #[arg(long, value_name = "N", value_parser = number::<u32>)]
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
