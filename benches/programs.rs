//! Programs as handlers: jobs that run `true` beside a bare loop that starts it and
//! waits for it.

use std::process::Command;
use std::sync::Arc;

use jobq::{
    NewJob, ProgramHandlers, ProgramSettings, QueueOptions, Registry, Shutdown, Supervisor, Worker, WorkerOptions,
};

use crate::Sizes;
use crate::table::{Goal, Table, per_second};

pub(crate) fn run(sizes: &Sizes, table: &mut Table) {
    let (mut floor_rate, mut rate) = (Vec::new(), Vec::new());
    for _ in 0..sizes.rounds {
        let folder = tempfile::tempdir().unwrap();
        let programs = ProgramHandlers::in_folder(folder.path().join(".jobq/handlers"))
            .with("run_true", ProgramSettings::command(["true"]));
        let registry = Registry::new().with_programs(&programs);
        let options = QueueOptions::in_folder(folder.path()).create(true).types(registry.types());
        let queue = Arc::new(options.open().unwrap());
        queue.enqueue_many((0..sizes.programs).map(|n| NewJob::raw("run_true", format!("{{\"n\":{n}}}")))).unwrap();
        floor_rate.push(per_second(sizes.programs, || {
            for _ in 0..sizes.programs {
                assert!(Command::new("true").status().unwrap().success());
            }
        }));
        rate.push(per_second(sizes.programs, || {
            let supervisor = Some(Supervisor::program(env!("CARGO_BIN_EXE_jobq")));
            let options = WorkerOptions { drain: true, supervisor, ..WorkerOptions::default() };
            let worker = Worker::new(Arc::clone(&queue), registry, options).unwrap();
            assert_eq!(worker.run(&Shutdown::new()).unwrap().completed, sizes.programs as u64);
        }));
    }
    let name = "jobs that run `true`, concurrency 4; bare loop";
    table.ratio(name, "jobs/s", &rate, &floor_rate, Goal::AtLeast(0.5));
}
