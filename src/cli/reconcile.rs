//! `jobq reconcile`: what completed jobs did beside what is on the disk.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use jobq::{Actual, Difference, Error, ErrorKind, Finding, Queue, ReconcileOptions, Reconciled, Repair, printable};

use super::args::ReconcileArgs;
use super::ids::Ids;
use super::known_types::KnownTypes;
use super::locate::Place;
use super::output::{BOLD, DIM, GREEN, Output, RED, YELLOW, counted, tell};
use super::progress::Progress;
use super::{Answer, Outcome};

pub(super) fn run(args: &ReconcileArgs, place: &Place, out: &mut Output) -> Outcome {
    let options = options(args)?;
    // Exit 0 says that what was asked for was compared.
    if let Some(job_type) = &args.job_type
        && let Some(told) = KnownTypes::at(place)?.unheard_of(job_type)
    {
        return Err(Error::new(ErrorKind::NotFound, told).into());
    }
    if args.remote {
        can_call()?;
    }
    if args.watch {
        return super::watch::run(args, &options, place, out);
    }
    let queue = if args.requeue { place.open()? } else { place.open_as_it_is()? };
    let progress = Progress::counting("paths compared", out);
    let mut ids = Ids::new(&queue);
    let mut found = Vec::new();
    let mut tell = |difference: Option<&Difference>, sums: &Reconciled| {
        progress.set(sums.checked);
        let Some(difference) = difference else { return true };
        // What is to be repaired is kept until all is known: a repair is asked for once.
        if args.requeue {
            found.push(difference.clone());
        }
        progress.beside(out, |out| print(difference, &mut ids, out)).is_ok()
    };
    let mut sums = queue.reconcile(&options, &mut tell)?;
    if args.remote {
        sums = sums + remote(place, &queue, &options, |difference, of_these| tell(difference, &(sums + *of_these)))?;
    }
    drop(progress);
    // Not refused: before the first job has completed, this is so for every path.
    if let (0, Some(glob)) = (sums.checked, &args.path) {
        out.warnings(&[nothing_like(glob)])?;
    }
    // People want to know what there is before they are asked; scripts find the sums in the last line.
    if !out.json {
        summary(&sums, out)?;
    }
    if args.requeue && !found.is_empty() {
        requeue(&queue, &found, args.yes, out)?;
    } else if sums.findings > 0 && !args.remote {
        out.hint("`jobq reconcile --requeue` repairs; `jobq blame PATH` tells which jobs had it")?;
    }
    if out.json {
        summary(&sums, out)?;
    }
    Ok(if sums.findings == 0 { Answer::Yes } else { Answer::No })
}

/// The only comparison that calls anybody.
#[cfg(feature = "aws")]
fn remote(
    place: &Place,
    queue: &Queue,
    options: &ReconcileOptions,
    tell: impl FnMut(Option<&Difference>, &Reconciled) -> bool,
) -> jobq::Result<Reconciled> {
    place.aws().reconcile(queue, options, tell)
}

#[cfg(not(feature = "aws"))]
fn remote(
    _: &Place,
    _: &Queue,
    _: &ReconcileOptions,
    _: impl FnMut(Option<&Difference>, &Reconciled) -> bool,
) -> jobq::Result<Reconciled> {
    can_call().map(|()| Reconciled::default())
}

/// Said before files are compared, which may take its time.
fn can_call() -> jobq::Result<()> {
    if cfg!(feature = "aws") {
        return Ok(());
    }
    Err(Error::invalid("remote", "this jobq was built without AWS (the cargo feature `aws`)"))
}

fn nothing_like(glob: &str) -> String {
    let how = "paths are relative to the root, `*` stays in a folder, `**` goes on";
    format!("no completed job has left a path like `{}`, so nothing was compared; {how}", printable(glob))
}

pub(super) fn options(args: &ReconcileArgs) -> jobq::Result<ReconcileOptions> {
    let mut options = ReconcileOptions { deep: args.deep, job_type: args.job_type.clone(), ..Default::default() };
    if let Some(glob) = &args.path {
        let pattern = glob::Pattern::new(glob).map_err(|e| {
            let why =
                format_args!("{} at character {}; `[[]` stands for a bracket, `[*]` for a star", e.msg, e.pos + 1);
            Error::invalid("path", why)
        })?;
        // A slash is a slash: `*` stays in its folder, `**` goes on.
        let rules = glob::MatchOptions { require_literal_separator: true, ..Default::default() };
        options.paths = Some(Arc::new(move |path: &str| pattern.matches_with(path, rules)));
    }
    Ok(options)
}

/// As wide as the word for what was found.
const FINDING: usize = 11;

pub(super) fn print(difference: &Difference, ids: &mut Ids<'_>, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return out.json(difference);
    }
    let Difference { path, finding, job_id, expected, actual, in_flight } = difference;
    let path = printable(path);
    if let Some(job) = in_flight {
        let text = format!("{path}  {DIM}job {} has it{DIM:#}", ids.short(job));
        return out.behind(format_args!("{YELLOW}in flight {YELLOW:#} "), FINDING, &text);
    }
    let style = if matches!(finding, Finding::Missing | Finding::Changed) { RED } else { YELLOW };
    let expected = expected.as_deref().map_or("nothing".into(), shortened);
    let actual = match actual {
        Actual::Nothing => "nothing".into(),
        Actual::Content(sha256) => shortened(sha256),
        Actual::Other(words) => printable(words),
    };
    let left_by = printable(&ids.short(job_id));
    let text = format!("{path}  {DIM}left by {left_by}: expected {expected}, found {actual}{DIM:#}");
    out.behind(format_args!("{style}{:<10}{style:#} ", finding.as_str()), FINDING, &text)
}

/// A hash by its beginning. The database may hold anything in its place.
fn shortened(hash: &str) -> String {
    printable(&hash.chars().take(8).chain(['…']).collect::<String>())
}

pub(super) fn summary(sums: &Reconciled, out: &mut Output) -> std::io::Result<()> {
    if out.json {
        return out.json(sums);
    }
    let Reconciled { checked, ok, findings, superseded, in_flight } = sums;
    let style = if *findings == 0 { GREEN } else { RED };
    let paths = counted(*checked, "path", "paths");
    let differ = format!("{style}{findings} differ{style:#}, {in_flight} in flight");
    let older = format!("{DIM}({superseded} older superseded){DIM:#}");
    out.behind("", 0, &format!("{BOLD}{paths}{BOLD:#} compared: {ok} agree, {differ}  {older}"))
}

/// Asks. Whoever cannot be asked has not said yes.
fn is_wanted(found: usize) -> bool {
    let ask = || {
        let mut stderr = std::io::stderr();
        let paths = counted(found as u64, "path", "paths");
        write!(stderr, "queue repairs for {paths}? What is there now is overwritten. [y/N] ")?;
        stderr.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).map(|_| answer)
    };
    ask().is_ok_and(|answer| matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Queues repairs; on a terminal only after a yes.
fn requeue(queue: &Queue, found: &[Difference], yes: bool, out: &mut Output) -> Result<(), super::Failure> {
    out.flush()?;
    if !yes && std::io::stdin().is_terminal() && !is_wanted(found.len()) {
        // The terminal may be one for questions only, and the output a file of JSON.
        const NOTHING: &str = "nothing was queued";
        if out.json {
            tell(NOTHING);
        } else {
            out.line(NOTHING)?;
        }
        return Ok(());
    }
    for difference in found {
        let repair = queue.repair(difference)?;
        if out.json {
            out.json(&repair)?;
            continue;
        }
        let Repair { path, job_id, reason } = repair;
        let path = printable(&path);
        match job_id {
            Some(id) => out.line(format_args!("{GREEN}queued{GREEN:#}     {path}  {}", printable(&id)))?,
            None => {
                let reason = printable(&reason.unwrap_or_default());
                out.line(format_args!("{YELLOW}left{YELLOW:#}       {path}  {DIM}{reason}{DIM:#}"))?;
            }
        }
    }
    Ok(())
}
