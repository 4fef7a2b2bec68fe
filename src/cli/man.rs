//! `jobq man`: the manual page, commands included; or a page for each command, for packagers.

mod help;
mod page;

use std::path::Path;

use clap::{Command, CommandFactory as _};
use jobq::{Error, ErrorKind};
use serde_json::json;

use self::help::Help;
use self::page::Commands;
use super::args::{Cli, ManArgs};
use super::output::Output;
use super::{Answer, Outcome};

pub(super) fn run(args: &ManArgs, out: &mut Output) -> Outcome {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    match &args.dir {
        Some(dir) => pages(&command, dir, out),
        None => {
            out.raw(&page::of_all(&command, Commands::Here))?;
            Ok(Answer::Yes)
        }
    }
}

fn pages(command: &Command, dir: &Path, out: &mut Output) -> Outcome {
    let help = Help::of(command);
    let mut pages = vec![(page::name(command), page::of_all(command, Commands::Elsewhere))];
    pages.extend(command.get_subcommands().map(|sub| (page::name(sub), page::of_one(sub, &help))));
    let write = || {
        std::fs::create_dir_all(dir)?;
        pages.iter().try_for_each(|(name, page)| std::fs::write(dir.join(format!("{name}.1")), page))
    };
    write().map_err(|e: std::io::Error| {
        Error::new(ErrorKind::Io, format!("cannot write manual pages into {}: {e}", dir.display()))
    })?;
    if out.json {
        out.json(&json!({ "dir": dir.display().to_string(), "pages": pages.len() }))?;
    } else {
        out.line(format!("{} pages in {}", pages.len(), jobq::printable(&dir.display().to_string())))?;
    }
    Ok(Answer::Yes)
}
