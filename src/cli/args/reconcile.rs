//! What `jobq reconcile` can be told.

use std::time::Duration;

use clap::Args;

use super::duration;

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[command(
    after_help = "Findings: missing, changed, present (should be gone), unreadable, not_a_file. Exit 0 when the disk\nagrees, 1 when it does not, 3 when nobody has the type. A path that an unfinished job has is in flight, not drift.\n\nExamples:\n  jobq reconcile --deep\n  jobq reconcile --path 'data/**/*.json'\n  jobq reconcile --requeue --yes"
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
