//! What `jobq worker` can be told. What is not said comes from the settings.

use std::time::Duration;

use clap::Args;

use super::{concurrency, duration, lease, some_time, trimmed};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  jobq worker\n  jobq worker --drain --concurrency 8\n  jobq worker --types create_file,delete_file --json | tee worker.log\n\nCtrl-C (or SIGTERM) finishes what runs and gives back what has not started; once\nmore gives back what runs, too."
)]
pub(crate) struct WorkerArgs {
    /// Jobs that run at the same time [default: worker.concurrency in config.toml, or 4]
    #[arg(long, value_name = "N", value_parser = concurrency)]
    pub(crate) concurrency: Option<usize>,
    /// Stop when nothing is left to do now
    #[arg(long)]
    pub(crate) drain: bool,
    /// Only these types
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = trimmed)]
    pub(crate) types: Option<Vec<String>>,
    #[arg(
        help = "How long to go without looking when nothing wakes the worker [default: worker.poll_interval, or 1s]",
        long, value_name = "TIME", value_parser = some_time
    )]
    pub(crate) poll_interval: Option<Duration>,
    /// How long a worker that gives no sign of life keeps its jobs [default:
    /// worker.lease, or 5m]
    #[arg(long, value_name = "TIME", value_parser = lease)]
    pub(crate) lease: Option<Duration>,
    /// How long to wait for running jobs when told to stop [default: worker.grace, or
    /// as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) grace: Option<Duration>,
    /// Do not compare the disk with what completed jobs left when starting
    #[arg(long)]
    pub(crate) no_reconcile: bool,
}
