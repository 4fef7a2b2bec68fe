//! What can be typed after `jobq top`.

use std::time::Duration;

use clap::Args;

use super::some_time;

#[derive(Args)]
#[command(after_help = "Keys: ↑↓ select, Tab next list, Enter inspect, r retry and c cancel (both ask
first), ? help, q or Ctrl-C quit, Ctrl-Z back to the shell for a while. Looking changes
nothing. It needs a terminal; programs read `jobq stats --json`.

Example:
  jobq top --interval 5s")]
pub(crate) struct TopArgs {
    /// How often to look
    #[arg(long, value_name = "1s", default_value = "1s", value_parser = some_time)]
    pub(crate) interval: Duration,
}
