//! `jobq man`: the manual page, commands included; or a page for each command, for packagers.

use std::path::Path;

use clap::CommandFactory as _;
use jobq::{Error, ErrorKind};
use serde_json::json;

use super::args::{Cli, ManArgs};
use super::output::Output;
use super::{Answer, Outcome};

pub(super) fn run(args: &ManArgs, out: &mut Output) -> Outcome {
    match &args.dir {
        Some(dir) => pages(dir, out),
        None => one_page(out),
    }
}

fn one_page(out: &mut Output) -> Outcome {
    let mut page = Vec::new();
    let command = Cli::command();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for sub in command.get_subcommands() {
        let name = format!("jobq {}", sub.get_name());
        let man = clap_mangen::Man::new(sub.clone().name(name));
        man.render_synopsis_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    out.raw(&page)?;
    Ok(Answer::Yes)
}

fn pages(dir: &Path, out: &mut Output) -> Outcome {
    let command = Cli::command();
    let pages = command.get_subcommands().count() + 1;
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot write manual pages into {}: {e}", dir.display())))?;
    if out.json {
        out.json(&json!({ "dir": dir.display().to_string(), "pages": pages }))?;
    } else {
        out.line(format!("{pages} pages in {}", jobq::printable(&dir.display().to_string())))?;
    }
    Ok(Answer::Yes)
}
