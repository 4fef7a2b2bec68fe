//! What `jobq extract` can be told.

use clap::{Args, ValueEnum, ValueHint};
use jobq::handlers::Format;

use super::number;

#[derive(Args)]
#[command(after_help = "The template is Jinja: a requirement's fields are its variables, all of it is `requirement`.
A variable that the requirement does not have is an error that names it, unless the
template says default(…). All requirements are queued in one transaction, or none is.
One whose completed extraction asked the same, and whose target still holds that
answer, is skipped. A requirement or template that is a link below the root is refused,
and so is one behind a link.

Examples:
  jobq extract requirements/req-1.json --template prompts/extract.md --target out/req-1.json
  jobq extract 'requirements/*.json' --template prompts/extract.md --target 'out/{{ id }}.json' --format json
  jobq extract requirements/req-1.json --template prompts/extract.md --target out/req-1.json --dry-run")]
pub(crate) struct ExtractArgs {
    /// JSON files, or globs of them in quotes; - for stdin
    #[arg(value_name = "REQUIREMENT", value_hint = ValueHint::FilePath, required = true)]
    pub(crate) requirements: Vec<String>,
    /// The template of the prompt; - for stdin
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) template: String,
    /// Where the answer goes, below the root; may be a template: out/{{ id }}.json
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) target: String,
    /// The requirement's id [default: its field `id`]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// What the answer must be [default: text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<FormatArg>,
    /// Print the prompts and queue nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also what has been extracted already
    #[arg(long)]
    pub(crate) force: bool,
    /// Higher runs first
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number::<i32>)]
    pub(crate) priority: Option<i32>,
    /// A name for everything that belongs to one cause
    #[arg(long, value_name = "C")]
    pub(crate) correlation_id: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FormatArg {
    Json,
    Text,
}

impl From<FormatArg> for Format {
    fn from(arg: FormatArg) -> Self {
        match arg {
            FormatArg::Json => Self::Json,
            FormatArg::Text => Self::Text,
        }
    }
}
