//! Processes of their own: those who make the world, and the one that comes upon
//! it when it is damaged. Whatever it crashes with or loops in is seen from outside.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jobq::{
    Attach, Context, ErrorKind, Handler, HandlerError, Outcome, QueueOptions, Registry, Shutdown, Worker, WorkerEvent,
    WorkerOptions,
};

use super::build;
use super::truth::Note;

/// The first argument of such a process.
pub const WORD: &str = "damage-hand";
/// What the one who finds the damage has to say.
pub const SAID: &str = "said";
/// What notes have run.
pub const RAN: &str = "ran";

/// There if it could not go on and was told to stop.
pub const IMPATIENT: &str = "impatient";

/// A worker does not end while the database fails: it keeps what it has to tell, and
/// says what is wrong. It is told to stop by whoever reads that and sees it last for
/// so long, and then once more, as one presses Ctrl-C again. One that says nothing is
/// let alone.
const PATIENCE: Duration = Duration::from_millis(1_500);

pub fn of_these_arguments() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, folder, step] = &arguments[..] else { return None };
    if word != WORD {
        return None;
    }
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL)).unwrap();
    let folder = PathBuf::from(folder);
    let done = match step.parse() {
        Ok(step) => build::step(&folder, step),
        Err(_) => {
            let log = log_into(&folder);
            let said = find(&folder).err().map(|error| format!("{:?}: {error}", error.kind()));
            let said: Vec<String> = said.into_iter().chain(said_of_the_database(&log)).collect();
            std::fs::write(folder.join(SAID), said.join("\n")).unwrap();
            Ok(())
        }
    };
    match done {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("{error}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// What is not an error of whoever asked is in the log, for the one who runs the process.
fn log_into(folder: &Path) -> PathBuf {
    let log = folder.join("log");
    let file = std::fs::File::create(&log).unwrap();
    let most = tracing::Level::WARN;
    tracing_subscriber::fmt().with_max_level(most).with_ansi(false).with_writer(Mutex::new(file)).init();
    log
}

/// What it says of one job tells nothing of others.
fn said_of_the_database(log: &Path) -> Option<String> {
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("the database is damaged")).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Opens the queue and does all there is to do.
fn find(folder: &Path) -> jobq::Result<()> {
    let registry = registry(folder);
    let options = || QueueOptions::in_folder(folder.join("root")).types(registry.types());
    // Each case damages a copy of one queue.
    options().attach(Attach::Move)?;
    let queue = options().open()?;
    let options = WorkerOptions { drain: true, concurrency: 2, ..WorkerOptions::default() };
    let shutdown = Shutdown::new();
    let (tell, troubles) = channel();
    let (reader, impatient) = (shutdown.clone(), folder.join(IMPATIENT));
    std::thread::spawn(move || read(&troubles, &reader, &impatient));
    let trouble = Arc::new(Mutex::new(None));
    let told = Arc::clone(&trouble);
    let worker = Worker::new(Arc::new(queue), registry, options)?.observed_by(move |event| match event {
        WorkerEvent::Trouble { error, .. } => {
            *told.lock().unwrap() = Some(error.clone());
            let _ = tell.send(true);
        }
        WorkerEvent::TroubleOver => drop(tell.send(false)),
        _ => {}
    });
    worker.run(&shutdown)?;
    let said = trouble.lock().unwrap().take();
    said.map_or(Ok(()), |error| Err(jobq::Error::new(ErrorKind::Corrupt, error)))
}

/// Hears when trouble begins and when it is over, and stops a worker that stays in it.
fn read(troubles: &Receiver<bool>, shutdown: &Shutdown, impatient: &Path) {
    while let Ok(begun) = troubles.recv() {
        if begun && lasts(troubles) {
            std::fs::write(impatient, "").unwrap();
            shutdown.request();
            std::thread::sleep(PATIENCE);
            return shutdown.request();
        }
    }
}

fn lasts(troubles: &Receiver<bool>) -> bool {
    let since = Instant::now();
    loop {
        match troubles.recv_timeout(PATIENCE.saturating_sub(since.elapsed())) {
            Ok(true) => {}
            Ok(false) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}

pub fn registry(folder: &Path) -> Registry {
    Registry::builtin().with(Noting { ran: folder.join(RAN) })
}

struct Noting {
    ran: PathBuf,
}

impl Handler for Noting {
    type Payload = Note;

    fn run(&self, _ctx: &Context, note: Note) -> Result<Outcome, HandlerError> {
        let mut ran = std::fs::File::options().create(true).append(true).open(&self.ran)?;
        ran.write_all(format!("{}\n", note.key).as_bytes())?;
        Ok(Outcome::done())
    }
}
