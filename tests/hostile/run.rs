//! All of them, and what holds whatever is tried.

use std::path::Path;
use std::process::Output;

use serde_json::json;

use super::case::Case;
use super::tally::Tally;
use super::world::{Tree, World, has_panicked, upsetting};
use super::{
    arguments, disk, documents, job_objects, names, paths, payloads, programs, rows, schemas, settings, templates,
};

/// A table.
type Cases = fn() -> Vec<Case>;
type Seeds = fn(&World) -> Vec<Seed>;

/// The fewest there must be; a table that is lost is noticed.
const AT_LEAST: usize = 450;

#[test]
fn nothing_hostile_gets_anywhere() {
    let refused: [(&str, Cases); 8] = [
        ("arguments", arguments::cases),
        ("payloads", payloads::cases),
        ("paths", paths::cases),
        ("job objects", job_objects::cases),
        ("commit documents", documents::cases),
        ("settings", settings::cases),
        ("schemas", schemas::cases),
        ("templates", templates::cases),
    ];
    let run: [(&str, Seeds); 4] =
        [("disk", disk::seeds), ("names", names::seeds), ("rows", rows::seeds), ("programs", programs::seeds)];
    let mut tally = Tally::default();
    std::thread::scope(|scope| {
        let refused = refused.map(|(name, cases)| scope.spawn(move || each_refused(name, &cases())));
        let run = run.map(|(name, seeds)| scope.spawn(move || all_run(name, seeds)));
        for part in refused.into_iter().chain(run) {
            tally += part.join().unwrap();
        }
    });
    println!("{tally}");
    assert!(tally.wrong.is_empty(), "{} are wrong:\n{}", tally.wrong.len(), tally.wrong.join("\n"));
    assert!(tally.fired == tally.sites && tally.sites >= AT_LEAST, "{tally}");
    assert_eq!((tally.lost, tally.doubled, tally.litter, tally.escapes, tally.panics), (0, 0, 0, 0, 0));
}

/// A job in the queue before a worker runs, and what must become of it.
pub struct Seed {
    pub what: String,
    /// Of plain SQL, where it is not text, as it is shown.
    pub id: String,
    pub status: &'static str,
    /// A part of its error.
    pub word: String,
    /// The file that it makes, if it is to complete.
    pub makes: Option<String>,
}

impl Seed {
    pub fn failed(id: impl Into<String>, what: impl Into<String>, word: impl Into<String>) -> Self {
        Self { what: what.into(), id: id.into(), status: "failed", word: word.into(), makes: None }
    }
}

/// What holds after whatever was tried.
struct Watch<'w> {
    world: &'w World,
    canary: Tree,
    inside: Tree,
    jobs: i64,
}

impl<'w> Watch<'w> {
    fn over(world: &'w World) -> Self {
        let jobs = world.count("SELECT count(*) FROM jobs");
        Self { world, canary: world.canary(), inside: world.inside(), jobs }
    }

    fn judge(&self, what: &str, said: &Output, tally: &mut Tally) {
        if has_panicked(said) {
            tally.panics += 1;
            tally.wrong.push(format!("{what}: a panic: {said:?}"));
        }
        if let Some(character) = upsetting(said) {
            tally.wrong.push(format!("{what}: says {character:?}: {said:?}"));
        }
        self.untouched(what, tally);
    }

    fn untouched(&self, what: &str, tally: &mut Tally) {
        let canary = self.world.canary();
        if canary != self.canary {
            tally.escapes += 1;
            tally.wrong.push(format!("{what}: something beside the root has changed: {canary:?}"));
        }
    }

    /// Nothing was queued and no file made.
    fn nothing_happened(&self, what: &str, tally: &mut Tally) {
        if self.world.inside() != self.inside {
            tally.litter += 1;
            tally.wrong.push(format!("{what}: a file has changed"));
        }
        let jobs = self.world.count("SELECT count(*) FROM jobs");
        if jobs != self.jobs {
            tally.wrong.push(format!("{what}: {jobs} jobs are queued"));
        }
    }
}

fn each_refused(name: &str, cases: &[Case]) -> Tally {
    let world = World::new();
    let settings = std::fs::read(world.root().join(".jobq/config.toml")).unwrap();
    let mut tally = Tally { sites: cases.len(), ..Tally::default() };
    for case in cases {
        let what = format!("{name}: {}", case.what);
        let files: Vec<_> = case.files.iter().map(|(path, content)| world.write(path, content)).collect();
        let watch = Watch::over(&world);
        let said = world.jobq(&case.args, &case.stdin);
        watch.judge(&what, &said, &mut tally);
        watch.nothing_happened(&what, &mut tally);
        let message = String::from_utf8_lossy(&said.stderr);
        let is_answer = said.status.code() == Some(case.code) && message.contains(&case.word);
        tally.fired += usize::from(is_answer);
        if !is_answer {
            let asked = format!("should be {} and tell of {:?}", case.code, case.word);
            tally.wrong.push(format!("{what}: {asked}, is {:?}: {message}", said.status.code()));
        }
        if !said.stdout.is_empty() {
            tally.wrong.push(format!("{what}: a refusal says on stdout: {:?}", String::from_utf8_lossy(&said.stdout)));
        }
        for file in files {
            std::fs::remove_file(file).unwrap();
        }
        std::fs::write(world.root().join(".jobq/config.toml"), &settings).unwrap();
    }
    still_works(name, &world, &mut tally);
    tally
}

/// A worker runs them all, among good jobs; each ends as it must, and alone.
fn all_run(name: &str, seeds: Seeds) -> Tally {
    let world = World::new();
    enqueue_good(&world, "before.txt");
    let seeds = seeds(&world);
    let mut tally = Tally { sites: seeds.len(), ..Tally::default() };
    let watch = Watch::over(&world);
    let said = world.jobq(&["worker", "--drain", "--no-reconcile"], b"");
    watch.judge(name, &said, &mut tally);
    if !said.status.success() {
        tally.wrong.push(format!("{name}: the worker: {said:?}"));
    }
    let mut expected = watch.inside.clone();
    for (number, seed) in seeds.iter().enumerate() {
        let what = format!("{name}: {}", seed.what);
        let (status, error) = world.status(&seed.id);
        let is_answer = status == seed.status && error.contains(&seed.word);
        tally.fired += usize::from(is_answer);
        if !is_answer {
            let asked = format!("should be {} with {:?}", seed.status, seed.word);
            tally.wrong.push(format!("{what}: {asked}, is {status} with {error:?}"));
        }
        // What people do next must work, too.
        let command = ["show", "events"][number % 2];
        watch.judge(&what, &world.jobq(&[command, "--", &seed.id], b""), &mut tally);
        if let Some(path) = &seed.makes {
            let now = world.inside();
            let Some(made) = now.get(Path::new(path)) else {
                tally.wrong.push(format!("{what}: there is no {path:?}"));
                continue;
            };
            expected.insert(path.into(), made.clone());
        }
    }
    for command in ["list", "list --json", "stats", "doctor", "handlers", "reconcile"] {
        let args: Vec<&str> = command.split(' ').collect();
        watch.judge(&format!("{name}: {command}"), &world.jobq(&args, b""), &mut tally);
    }
    let contents = |tree: &Tree| tree.iter().map(|(path, (what, ..))| (path.clone(), what.clone())).collect::<Vec<_>>();
    let mut now = world.inside();
    if now.remove(Path::new("before.txt")).is_none() {
        tally.lost += 1;
        tally.wrong.push(format!("{name}: the good job before them has not run"));
    }
    if contents(&now) != contents(&expected) {
        tally.litter += 1;
        tally.wrong.push(format!("{name}: there are other files than there should be: {:#?}", contents(&now)));
    }
    still_works(name, &world, &mut tally);
    tally
}

fn enqueue_good(world: &World, path: &str) -> String {
    let payload = json!({"path": path, "content": "good"}).to_string();
    world.json(&["enqueue", "create_file", &payload])[0]["id"].as_str().unwrap().to_owned()
}

/// A good job completes, once; nothing is left behind; the database is sound.
fn still_works(name: &str, world: &World, tally: &mut Tally) {
    let id = enqueue_good(world, "behind.txt");
    let said = world.jobq(&["worker", "--drain", "--no-reconcile"], b"");
    let status = world.json(&["show", &id])[0]["status"].clone();
    if status != "completed" || std::fs::read(world.root().join("behind.txt")).ok().as_deref() != Some(b"good") {
        tally.lost += 1;
        tally.wrong.push(format!("{name}: the good job behind them is {status}: {said:?}"));
    }
    let twice = world.count("SELECT count(*) FROM (SELECT 1 FROM effects WHERE state = 'applied' GROUP BY job_id, path HAVING count(*) > 1)");
    if twice > 0 {
        tally.doubled += 1;
        tally.wrong.push(format!("{name}: {twice} effects happened twice"));
    }
    let litter = world.litter();
    if !litter.is_empty() {
        tally.litter += 1;
        tally.wrong.push(format!("{name}: left behind: {litter:?}"));
    }
    let sound: String = world.sql().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    if sound != "ok" {
        tally.wrong.push(format!("{name}: {sound}"));
    }
}
