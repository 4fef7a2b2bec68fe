//! A real terminal: a shell in tmux, its keys and its screen.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::harness::Scratch;

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Where there is no screen to be looked at.
#[track_caller]
pub fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(PAUSE);
    }
}

/// A server of its own with one window, gone when this is dropped.
pub struct Tmux<'s> {
    scratch: &'s Scratch,
    sockets: tempfile::TempDir,
}

impl<'s> Tmux<'s> {
    /// A shell in the scratch folder; `None` where there is no tmux.
    pub fn start(scratch: &'s Scratch, columns: u16, lines: u16) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            crate::skipped::skipped("`jobq top` at a terminal", "tmux is not installed");
            return None;
        }
        let tmux = Self { scratch, sockets: tempfile::tempdir().unwrap() };
        let (columns, lines) = (columns.to_string(), lines.to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        let programs = Path::new(env!("CARGO_BIN_EXE_jobq")).parent().unwrap();
        let path = format!("PATH={}:{path}", programs.display());
        let folder = scratch.path().to_str().unwrap();
        let session = ["new-session", "-d", "-x", &columns, "-y", &lines, "-c", folder];
        let shell = ["env", "-u", "JOBQ_DB", "-u", "NO_COLOR", &path, "PS1=ready> ", "bash", "--norc", "--noprofile"];
        tmux.ok(&[&session[..], &shell].concat());
        tmux.wait_for("ready>");
        Some(tmux)
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-L", "jobq-test"]).args(args);
        // Sockets lie in a folder of this server's own, so the name is nobody else's.
        command.env("TMUX_TMPDIR", self.sockets.path()).env_remove("TMUX").output().unwrap()
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Keys by their names: `Enter`, `C-c`, `r`.
    #[track_caller]
    pub fn keys(&self, keys: &[&str]) {
        self.ok(&[&["send-keys"], keys].concat());
    }

    /// A line for the shell.
    #[track_caller]
    pub fn line(&self, line: &str) {
        self.ok(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    pub fn resize(&self, columns: u16, lines: u16) {
        self.ok(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    pub fn screen(&self) -> String {
        self.ok(&["capture-pane", "-p"])
    }

    /// With colours, as escape sequences.
    pub fn coloured_screen(&self) -> String {
        self.ok(&["capture-pane", "-p", "-e"])
    }

    /// Something tmux knows about the window.
    pub fn about(&self, format: &str) -> String {
        self.ok(&["display-message", "-p", format]).trim().to_owned()
    }

    /// The screen, once it is so.
    #[track_caller]
    pub fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}:\n{screen}");
            std::thread::sleep(PAUSE);
        }
    }

    #[track_caller]
    pub fn wait_for(&self, text: &str) -> String {
        self.wait_for_all(&[text])
    }

    /// Together: a screen may be seen while it is being drawn.
    #[track_caller]
    pub fn wait_for_all(&self, texts: &[&str]) -> String {
        self.wait_until(&format!("{texts:?}"), |screen| texts.iter().all(|text| screen.contains(text)))
    }

    #[track_caller]
    pub fn wait_for_line(&self, line: &str) -> String {
        self.wait_until(line, |screen| screen.lines().any(|shown| shown == line))
    }

    /// The modes of the terminal, not its size, by a shell that has it.
    #[track_caller]
    pub fn modes(&self) -> String {
        let kept = self.scratch.path().join(".jobq/modes");
        let _ = std::fs::remove_file(&kept);
        self.line("stty -g > .jobq/modes.new; mv .jobq/modes.new .jobq/modes");
        self.wait_until("the modes", |_| kept.exists());
        std::fs::read_to_string(kept).unwrap()
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}
