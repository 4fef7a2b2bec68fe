//! `jobq site attach`: accepts a folder in which the queue was not made.

use jobq::{Attach, QueueOptions, printable};
use serde_json::json;

use super::args::{AttachArgs, Global};
use super::config::Config;
use super::output::Output;
use super::{Answer, Outcome, locate};

pub(super) fn attach(args: &AttachArgs, global: &Global, out: &mut Output) -> Outcome {
    let (db, _) = locate::database_and_how(global)?;
    let how = if args.new { Attach::New } else { Attach::Move };
    let attached = QueueOptions::at(&db).busy_timeout(Config::beside(&db)?.busy_timeout).attach(how)?;
    let shown = printable(&db.to_string_lossy());
    if out.json {
        out.json(&json!({ "db": db.to_string_lossy(), "attached": attached }))?;
    } else if attached {
        out.line(format_args!("{shown} belongs to this folder now"))?;
    } else {
        out.line(format_args!("{shown} was made in this folder; nothing was changed"))?;
    }
    Ok(Answer::Yes)
}
