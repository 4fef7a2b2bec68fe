//! Other queues, each in its own process, with the settings it ships with and at
//! full durability. `peers/install.sh` makes the manifest that says which there
//! are; `peers/` has a small program for each, all with the same arguments.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;

use crate::Sizes;
use crate::drain::{drain, fill, open};
use crate::ours::Ours;
use crate::table::{Goal, Table, per_second};

const CONCURRENCY: usize = 8;

#[derive(Deserialize)]
struct Peer {
    name: String,
    version: String,
    command: Vec<String>,
    settings: Vec<String>,
    operations: Vec<String>,
    /// How the end of a job is stored.
    acknowledges: String,
    /// What it drains fastest with.
    concurrency: usize,
}

/// What one peer did at one setting, round by round.
struct Contender<'p> {
    peer: &'p Peer,
    setting: &'p str,
    /// Of `RACES`, in that order.
    rates: [Vec<f64>; RACES.len()],
    said: Option<Value>,
}

/// What is compared: the operation, its threads or our concurrency. Peers drain with the one that suits them best.
const RACES: [(&str, usize); 3] = [("enqueue", 1), ("enqueue", CONCURRENCY), ("drain", CONCURRENCY)];

pub(crate) fn run(sizes: &Sizes, table: &mut Table, folder: &Path) {
    let manifest = std::fs::read_to_string(folder.join("peers.json")).expect("peers.json; benches/peers/install.sh");
    let peers: Vec<Peer> = serde_json::from_str(&manifest).unwrap();
    let each =
        |peer| settings(peer).map(move |setting| Contender { peer, setting, rates: Default::default(), said: None });
    let mut contenders: Vec<Contender<'_>> = peers.iter().flat_map(each).collect();
    let mut ours: [Vec<f64>; RACES.len()] = Default::default();
    for _ in 0..sizes.rounds {
        for (race, rates) in RACES.iter().zip(&mut ours) {
            rates.push(jobq(sizes, *race));
        }
        for contender in &mut contenders {
            contender.round(sizes);
        }
    }
    for (number, (operation, at_once)) in RACES.iter().enumerate() {
        for contender in contenders.iter().filter(|c| c.rates[number].len() == sizes.rounds) {
            let name = format!("{operation}, {at_once} at once; {}", contender.title());
            let goal = contender.goal(operation, *at_once);
            table.ratio(&name, "jobs/s", &ours[number], &contender.rates[number], goal);
        }
    }
    for peer in &peers {
        waiting(peer, sizes, table);
    }
}

fn settings(peer: &Peer) -> impl Iterator<Item = &str> {
    peer.settings.iter().map(String::as_str)
}

fn jobq(sizes: &Sizes, (operation, at_once): (&str, usize)) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    if operation == "drain" {
        let queue = open(folder.path());
        fill(&queue, sizes.peer_drain);
        return per_second(sizes.peer_drain, || assert_eq!(drain(&queue, at_once), sizes.peer_drain as u64));
    }
    let ours = Ours::open(folder.path());
    ours.enqueue(sizes.peer_singles / 4, 1);
    per_second(sizes.peer_singles, || ours.enqueue(sizes.peer_singles, at_once))
}

impl Contender<'_> {
    fn round(&mut self, sizes: &Sizes) {
        for (number, (operation, at_once)) in RACES.iter().enumerate() {
            if !self.peer.operations.iter().any(|o| o == operation) {
                continue;
            }
            let (count, option, at_once) = match *operation {
                "drain" => (sizes.peer_drain, "--concurrency", self.peer.concurrency),
                _ => (sizes.peer_singles, "--threads", *at_once),
            };
            let options = ["--count", &count.to_string(), option, &at_once.to_string()].map(str::to_owned);
            if let Some(said) = self.peer.ask(operation, self.setting, &options) {
                #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
                self.rates[number].push(count as f64 / said["seconds"].as_f64().unwrap());
                self.said = Some(said);
            }
        }
    }

    /// With what the database really is set to.
    fn title(&self) -> String {
        let synchronous =
            self.said.as_ref().map(|said| said["synchronous"].to_string().replace('"', "").to_uppercase());
        format!(
            "{} {}, {} ({})",
            self.peer.name,
            self.peer.version,
            self.setting,
            synchronous.unwrap_or_else(|| "?".to_owned())
        )
    }

    fn is_full(&self) -> bool {
        self.setting.starts_with("full")
    }

    /// At full durability by far; at its own weaker setting still ahead, where the goal is about that.
    fn goal(&self, operation: &str, at_once: usize) -> Goal {
        let in_batches = !self.peer.acknowledges.starts_with("one by one");
        match (operation, at_once, self.is_full()) {
            ("enqueue", CONCURRENCY, true) => Goal::AtLeast(3.0),
            ("drain", _, true) => Goal::AtLeast(if in_batches { 2.0 } else { 10.0 }),
            ("drain", _, false) if !in_batches => Goal::AtLeast(1.0),
            _ => Goal::None,
        }
    }
}

impl Peer {
    /// Runs it in a folder of its own. A peer that fails is left out, not the others.
    fn ask(&self, operation: &str, setting: &str, options: &[String]) -> Option<Value> {
        let folder = tempfile::tempdir().unwrap();
        let output = Command::new(&self.command[0])
            .args(&self.command[1..])
            .arg(operation)
            .arg("--folder")
            .arg(folder.path())
            .args(["--setting", setting])
            .args(options)
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let said = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
        if !output.status.success() || said.is_none() {
            eprintln!("!!! {} {operation} ({setting}) failed: {} {text}", self.name, output.status);
            return None;
        }
        said
    }
}

/// How soon another process begins, and what it costs to wait, of those that can tell.
fn waiting(peer: &Peer, sizes: &Sizes, table: &mut Table) {
    let can = |operation: &str| peer.operations.iter().any(|o| o == operation);
    for setting in settings(peer).filter(|s| can("pickup") && *s == "shipped") {
        let count = ["--count".to_owned(), sizes.pickups.to_string()];
        let Some(said) = peer.ask("pickup", setting, &count) else { continue };
        let title = format!("{} {} ({setting})", peer.name, peer.version);
        for (figure, name) in [("p50_ms", "p50"), ("p99_ms", "p99")] {
            let value = said[figure].as_f64().unwrap();
            table.alone(&format!("pickup by {title}, {name}"), "ms", &[value], Goal::None);
        }
        let seconds = ["--seconds".to_owned(), sizes.idle_seconds.to_string()];
        if let Some(said) = peer.ask("idle", setting, &seconds).filter(|_| can("idle")) {
            let name = format!("idle {title}, CPU in {} s", sizes.idle_seconds);
            table.alone(&name, "ms", &[said["cpu_ms"].as_f64().unwrap()], Goal::None);
        }
    }
}
