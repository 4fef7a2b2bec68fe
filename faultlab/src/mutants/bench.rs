//! A copy of the sources, and a test that is run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::table::{Mutant, Test};

/// A test that hangs because of the change has noticed it.
const PATIENCE: Duration = Duration::from_secs(150);

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

    pub fn is_green(&self, test: Test) -> Result<(), String> {
        self.build(test)?;
        if self.passes(test) { Ok(()) } else { Err("it fails".to_owned()) }
    }

    /// Whether the test notices the change.
    pub fn caught(&self, mutant: &Mutant) -> Result<bool, String> {
        self.fits(mutant)?;
        let (path, text) = (self.root().join(mutant.file), self.read(mutant.file));
        std::fs::write(&path, text.replacen(mutant.from, mutant.to, 1)).unwrap();
        let answer = self.build(mutant.test).map(|()| !self.passes(mutant.test));
        std::fs::write(&path, text).unwrap();
        answer
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

    fn passes(&self, test: Test) -> bool {
        let mut command = self.cargo(test, &["--", test.name]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
        false
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
