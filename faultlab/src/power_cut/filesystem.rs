//! The filesystems that are cut.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Kind {
    Ext4,
    Xfs,
    Btrfs,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// About the smallest that its tools accept.
    fn megabytes(self) -> u64 {
        match self {
            Self::Ext4 => 48,
            Self::Xfs => 300,
            Self::Btrfs => 128,
        }
    }

    /// What a disk writes whole or not at all, as far as the filesystem relies on
    /// it: with a superblock whose checksum is wrong none of them is mounted. That
    /// of btrfs is a block; that of ext4 is two sectors, in the first block.
    pub fn sector(self, offset: u64) -> usize {
        match self {
            Self::Btrfs => 4096,
            Self::Ext4 if offset < 4096 => 4096,
            Self::Ext4 | Self::Xfs => 512,
        }
    }

    /// Nothing is left to be initialised later, beside the work.
    fn mkfs(self) -> &'static [&'static str] {
        match self {
            Self::Ext4 => &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
            Self::Xfs => &["-q", "-K"],
            Self::Btrfs => &["-q", "-K"],
        }
    }

    /// Why it cannot be had here, if so.
    pub fn missing(self) -> Option<String> {
        let name = self.name();
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        if !known.split_whitespace().any(|word| word == name) {
            // It may be a module that nobody has asked for yet.
            let loaded = quietly("modprobe", &[name]);
            if loaded.is_err() {
                return Some(format!("the kernel does not know {name}"));
            }
        }
        let tool = format!("mkfs.{name}");
        quietly(&tool, &["-V"]).err().map(|why| format!("{tool} cannot be run: {why}"))
    }

    /// A file with an empty filesystem.
    pub fn make(self, file: &Path) -> Result<(), String> {
        let made = std::fs::File::create_new(file).and_then(|file| file.set_len(self.megabytes() << 20));
        made.map_err(|e| format!("cannot make {}: {e}", file.display()))?;
        let mut words = self.mkfs().to_vec();
        words.push(text(file));
        quietly(&format!("mkfs.{}", self.name()), &words)
    }

    /// Mounts the filesystem that is in a file. The loop device goes with it.
    pub fn mount(self, file: &Path, at: &Path) -> Result<(), String> {
        std::fs::create_dir_all(at).map_err(|e| format!("cannot make {}: {e}", at.display()))?;
        quietly("mount", &["-t", self.name(), "-o", self.options(), text(file), text(at)])?;
        mounted_from(file, at)
    }

    fn options(self) -> &'static str {
        // Several disks of the same origin are mounted at a time.
        if self == Self::Xfs { "loop,nodiscard,nouuid" } else { "loop,nodiscard" }
    }
}

/// Filesystems of the same name are easily taken for each other: is it the one of
/// this file that is mounted there?
fn mounted_from(file: &Path, at: &Path) -> Result<(), String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(|e| e.to_string())?;
    let last = mounts.lines().rev().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| words[1] == text(at));
    let device = last.map_or("", |words| words[0]).trim_start_matches("/dev/").to_owned();
    let backing = std::fs::read_to_string(format!("/sys/block/{device}/loop/backing_file"));
    let backing = backing.map_err(|e| format!("{} is mounted from `{device}`: {e}", at.display()))?;
    if Path::new(backing.trim_end()) == file {
        return Ok(());
    }
    Err(format!("{} is mounted from {} instead of {}", at.display(), backing.trim_end(), file.display()))
}

pub fn unmount(at: &Path) -> Result<(), String> {
    quietly("umount", &[text(at)])
}

/// A machine that starts anew has another name for its time since then. To be
/// called by one that has mounts of its own.
pub fn boot(folder: &Path) -> Result<(), String> {
    let name = folder.join("boot_id");
    let id = format!("00000000-0000-4000-8000-{:012x}\n", std::process::id());
    std::fs::write(&name, id).map_err(|e| format!("{}: {e}", name.display()))?;
    quietly("mount", &["--bind", text(&name), "/proc/sys/kernel/random/boot_id"])
}

/// Runs a program that says something only if it fails.
pub fn quietly(program: &str, words: &[&str]) -> Result<(), String> {
    let run = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = run.map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}: {}", words.join(" "), output.status, said.trim()))
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("paths of faultlab are text")
}
