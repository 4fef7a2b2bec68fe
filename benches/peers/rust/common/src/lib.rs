//! What the Rust peers share: the command line, the line they print, the time limit, and the measurements that need a
//! worker in a second process.

mod process;

pub use process::{handler_starts, idle, pickup, worker_is_ready};

use std::path::PathBuf;
use std::time::Duration;

pub const LIMIT: Duration = Duration::from_secs(120);

pub struct Args {
    pub operation: String,
    pub folder: PathBuf,
    pub count: usize,
    pub threads: usize,
    pub concurrency: usize,
    pub seconds: f64,
    pub setting: String,
}

/// What was read back from the connection that did the work.
#[derive(Clone)]
pub struct Pragmas {
    pub synchronous: String,
    pub journal_mode: String,
}

impl Args {
    /// Reads the command line, makes the folder anew, and starts the clock that ends the program when it hangs.
    #[must_use]
    pub fn parse(settings: &[&str]) -> Self {
        let mut args = Self {
            operation: String::new(),
            folder: PathBuf::new(),
            count: 1000,
            threads: 8,
            concurrency: 8,
            seconds: 20.0,
            setting: "shipped".to_owned(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let Some(name) = word.strip_prefix("--") else {
                args.operation = word;
                continue;
            };
            let value = words.next().unwrap_or_else(|| give_up(&format!("--{name} needs a value")));
            match name {
                "folder" => args.folder = value.into(),
                "count" => args.count = number(&value),
                "threads" => args.threads = number(&value),
                "concurrency" => args.concurrency = number(&value),
                "seconds" => args.seconds = number(&value),
                "setting" => args.setting = value,
                _ => give_up(&format!("--{name} is not known")),
            }
        }
        if args.folder.as_os_str().is_empty() || !settings.contains(&args.setting.as_str()) {
            give_up(&format!("--folder F is needed, and --setting one of {settings:?}"));
        }
        // Only what a peer made itself is removed.
        args.folder.push("peer");
        if args.operation == "worker" {
            process::end_with_parent();
        } else {
            let operation = args.operation.clone();
            std::thread::spawn(move || {
                std::thread::sleep(LIMIT);
                give_up(&format!("{operation} took longer than {} s", LIMIT.as_secs()));
            });
            let _ = std::fs::remove_dir_all(&args.folder);
            std::fs::create_dir_all(&args.folder).unwrap_or_else(|e| give_up(&e.to_string()));
        }
        args
    }

    /// How many of `all` calls the thread of this index makes.
    #[must_use]
    pub fn share(&self, all: usize, index: usize) -> usize {
        all / self.threads + usize::from(index < all % self.threads)
    }

    /// One line of JSON. `figures` are its fields after the operation.
    pub fn report(&self, figures: &str, pragmas: &Pragmas) {
        let Pragmas { synchronous, journal_mode } = pragmas;
        if self.setting == "full" && synchronous != "full" {
            give_up(&format!("synchronous is {synchronous}, not FULL"));
        }
        let operation = &self.operation;
        println!(
            r#"{{"operation":"{operation}",{figures},"synchronous":"{synchronous}","journal_mode":"{journal_mode}"}}"#
        );
    }

    pub fn report_seconds(&self, seconds: f64, pragmas: &Pragmas) {
        self.report(&format!(r#""count":{},"seconds":{seconds:.6}"#, self.count), pragmas);
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| give_up(&format!("{text} is not a number")))
}

/// The name of what `PRAGMA synchronous` answers.
#[must_use]
pub fn level(number: i64) -> &'static str {
    ["off", "normal", "full", "extra"].get(usize::try_from(number).unwrap_or(9)).copied().unwrap_or("unknown")
}

pub fn give_up(why: &str) -> ! {
    eprintln!("given up: {why}");
    std::process::exit(1)
}
