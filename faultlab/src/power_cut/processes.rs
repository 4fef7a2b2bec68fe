//! Processes with mounts of their own.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::filesystem::quietly;
use super::{HIDDEN, Role};

/// One that has not ended after this many seconds will not.
const PATIENCE: &str = "300";

/// Why nothing of this can be done here, if so.
pub fn impossible() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("it takes root to mount".to_owned());
    }
    let fuse = std::fs::File::open("/dev/fuse").err().map(|e| format!("/dev/fuse: {e}"));
    let own_mounts = || quietly("unshare", &["-m", "true"]).err();
    let loops = || quietly("losetup", &["-f"]).err().map(|why| format!("there are no loop devices: {why}"));
    fuse.or_else(own_mounts).or_else(loops)
}

/// Runs one to its end; what it has printed.
pub fn run(role: &Role) -> Result<String, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", PATIENCE, "unshare", "-m"]).arg(program).arg(HIDDEN);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.map_err(|e| format!("timeout: {e}"))?;
    let line = serde_json::to_string(role).expect("a role is plain data");
    // One who has not read it says why.
    let _ = writeln!(child.stdin.take().expect("it is piped"), "{line}");
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
