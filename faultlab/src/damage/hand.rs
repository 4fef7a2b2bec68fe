//! Processes of their own: those who make the world, and the one that comes upon
//! it when it is damaged. Whatever it crashes with or loops in is seen from outside.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jobq::{
    Context, ErrorKind, Handler, HandlerError, Outcome, QueueOptions, Registry, Shutdown, Worker, WorkerEvent,
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

/// A worker does not end while the database fails: it keeps what it has to tell, and
/// says what is wrong. It is told to stop by whoever reads that, and then once more,
/// as one presses Ctrl-C again.
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
            let said = find(&folder).err().map_or(String::new(), |error| format!("{:?}: {error}", error.kind()));
            std::fs::write(folder.join(SAID), said).unwrap();
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

/// Opens the queue and does all there is to do.
fn find(folder: &Path) -> jobq::Result<()> {
    let registry = registry(folder);
    let queue = QueueOptions::in_folder(folder.join("root")).types(registry.types()).open()?;
    let options = WorkerOptions { drain: true, concurrency: 2, ..WorkerOptions::default() };
    let shutdown = Shutdown::new();
    let impatient = shutdown.clone();
    std::thread::spawn(move || {
        for _ in 0..2 {
            std::thread::sleep(PATIENCE);
            impatient.request();
        }
    });
    let trouble = Arc::new(Mutex::new(None));
    let told = Arc::clone(&trouble);
    let worker = Worker::new(Arc::new(queue), registry, options)?.observed_by(move |event| {
        if let WorkerEvent::Trouble { error, .. } = event {
            *told.lock().unwrap() = Some(error.clone());
        }
    });
    worker.run(&shutdown)?;
    let said = trouble.lock().unwrap().take();
    said.map_or(Ok(()), |error| Err(jobq::Error::new(ErrorKind::Corrupt, error)))
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
