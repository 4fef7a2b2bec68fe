//! A copy of the sources, and a test that is run in it.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::table::{Mutant, Test};

/// Who takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(150);

/// What came of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ran {
    Green(Duration),
    Red,
    /// It did not end, and was ended.
    Hung,
}

/// What a test has made of a change.
pub enum Caught {
    Red,
    /// It never ends, and without the change it was done in far less time.
    Hanging,
    Survived,
}

pub struct Bench {
    /// Always the same place: the same crate for cargo, of which only what has changed is built again.
    copy: PathBuf,
    /// Kept from run to run: the dependencies are built once.
    target: PathBuf,
}

impl Bench {
    pub fn set_up() -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| sources.join("target"), PathBuf::from);
        let target = target.join("mutants");
        let bench = Self { copy: target.join("sources"), target };
        let _ = std::fs::remove_dir_all(&bench.copy);
        std::fs::create_dir_all(&bench.copy).unwrap();
        copy(sources, &bench.copy);
        bench
    }

    pub fn root(&self) -> &Path {
        &self.copy
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    /// Whether there is exactly one place for the change.
    pub fn fits(&self, mutant: &Mutant) -> Result<(), String> {
        match self.read(mutant.file).matches(mutant.from).count() {
            1 => Ok(()),
            count => Err(format!("{}: {} has {count} places for it, and should have one", mutant.name, mutant.file)),
        }
    }

    /// How long the test takes, which is green.
    pub fn is_green(&self, test: Test) -> Result<Duration, String> {
        self.build(test)?;
        match self.run(test) {
            Ran::Green(took) => Ok(took),
            Ran::Red => Err("it fails".to_owned()),
            Ran::Hung => Err(format!("it does not end within {PATIENCE:?}")),
        }
    }

    /// Whether the test, which takes so long by itself, notices the change.
    pub fn caught(&self, mutant: &Mutant, green: Duration) -> Result<Caught, String> {
        self.fits(mutant)?;
        let (path, text) = (self.root().join(mutant.file), self.read(mutant.file));
        std::fs::write(&path, text.replacen(mutant.from, mutant.to, 1)).unwrap();
        let ran = self.build(mutant.test).map(|()| self.run(mutant.test));
        std::fs::write(&path, text).unwrap();
        match ran? {
            Ran::Green(_) => Ok(Caught::Survived),
            Ran::Red => Ok(Caught::Red),
            Ran::Hung if green < PATIENCE / 3 => Ok(Caught::Hanging),
            Ran::Hung => Err(format!("not done within {PATIENCE:?}, but it took {green:?} before: that says nothing")),
        }
    }

    fn cargo(&self, test: Test, more: &[&str]) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(self.root()).env("CARGO_TARGET_DIR", &self.target).env("RUST_BACKTRACE", "0");
        // Nobody steps through these: without it a third of the time is saved.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command.args(["test", "--quiet", "--no-default-features", "--features", test.features]);
        command.args(test.program.split(' ')).args(more).stdin(Stdio::null());
        command
    }

    /// What does not compile shows nothing.
    fn build(&self, test: Test) -> Result<(), String> {
        let Output { status, stderr, .. } = self.cargo(test, &["--no-run"]).output().unwrap();
        if status.success() { Ok(()) } else { Err(format!("does not compile: {}", String::from_utf8_lossy(&stderr))) }
    }

    fn run(&self, test: Test) -> Ran {
        let mut command = self.cargo(test, &["--", test.name]);
        // In a group of its own: the test itself is a child of cargo's, and has children.
        let mut child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match child.try_wait().unwrap() {
                Some(status) if status.success() => return Ran::Green(start.elapsed()),
                Some(_) => return Ran::Red,
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        // Its leader has not been waited for, so that no other group can have the number.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        let _ = child.wait();
        Ran::Hung
    }
}

/// Everything that is built, and nothing that was.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name());
        if name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() {
            std::fs::create_dir(to.join(&name)).unwrap();
            copy(&path, &to.join(&name));
        } else {
            std::fs::copy(&path, to.join(&name)).unwrap();
        }
    }
}
