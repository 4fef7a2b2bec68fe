//! What kind of filesystem a path is on. SQLite's log needs memory shared by all
//! its processes and locks that work, which only a local one has.

use std::path::Path;

use super::Check;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Local(&'static str),
    /// Gone when the machine is.
    Memory(&'static str),
    Network(String),
    Unknown(String),
}

pub(super) fn check(check: &'static str, path: &Path) -> Check {
    let shown = path.display();
    match kind_of(path) {
        Err(error) => Check::bad(check, format_args!("{shown} cannot be looked at: {error}"), "check that it is there"),
        Ok(Kind::Local(name)) => Check::ok(check, format_args!("{shown} is on a local filesystem ({name})")),
        Ok(Kind::Memory(name)) => Check::warn(
            check,
            format_args!("{shown} is in memory ({name}): nothing there survives a restart of the machine"),
            "keep the queue on a disk, unless it is only for trying out",
        ),
        Ok(Kind::Network(name)) => Check::bad(
            check,
            format_args!(
                "{shown} is on a network or shared filesystem ({name}), where jobs can be lost and files damaged"
            ),
            "move the queue to a local disk; SQLite's log and locks do not work across machines",
        ),
        Ok(Kind::Unknown(name)) => Check::warn(
            check,
            format_args!("{shown} is on a filesystem that is not known here ({name})"),
            "make sure that it is a local one",
        ),
    }
}

#[cfg(not(target_os = "linux"))]
fn kind_of(path: &Path) -> std::io::Result<Kind> {
    path.metadata().map(|_| Kind::Unknown("not told on this system".to_owned()))
}

#[cfg(target_os = "linux")]
fn kind_of(path: &Path) -> std::io::Result<Kind> {
    use std::os::unix::fs::MetadataExt as _;
    let magic = rustix::fs::statfs(path)?.f_type;
    let device = path.metadata()?.dev();
    // The kernel keeps 32 bits, in a field that is wider and signed on some machines.
    let magic = u32::try_from(magic & 0xffff_ffff).unwrap_or_default();
    Ok(kind(magic, || {
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        mounted_as(&table, rustix::fs::major(device), rustix::fs::minor(device))
    }))
}

/// By the magic number of linux/magic.h; `name` is asked where that is shared by many.
fn kind(magic: u32, name: impl FnOnce() -> Option<String>) -> Kind {
    match magic {
        0xef53 => Kind::Local("ext4"),
        0x5846_5342 => Kind::Local("xfs"),
        0x9123_683e => Kind::Local("btrfs"),
        0x2fc1_2fc1 => Kind::Local("zfs"),
        0xf2f5_2010 => Kind::Local("f2fs"),
        0xca45_1a4e => Kind::Local("bcachefs"),
        0x3153_464a => Kind::Local("jfs"),
        0x5265_4973 => Kind::Local("reiserfs"),
        // What is written to it is on the filesystem beneath.
        0x794c_7630 => Kind::Local("overlay: lasts as long as its container"),
        0x0102_1994 => Kind::Memory("tmpfs"),
        0x8584_58f6 => Kind::Memory("ramfs"),
        0x6969 => Kind::Network("nfs".to_owned()),
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => Kind::Network("smb".to_owned()),
        0x0102_1997 => Kind::Network("9p".to_owned()),
        0x00c3_6400 => Kind::Network("ceph".to_owned()),
        0x5346_414f | 0x6b41_4653 => Kind::Network("afs".to_owned()),
        0x7375_7245 => Kind::Network("coda".to_owned()),
        0x564c => Kind::Network("ncp".to_owned()),
        0x0bd0_0bd0 => Kind::Network("lustre".to_owned()),
        0x0116_1970 => Kind::Network("gfs2".to_owned()),
        0x7461_636f => Kind::Network("ocfs2".to_owned()),
        0x4750_4653 => Kind::Network("gpfs".to_owned()),
        0x1983_0326 => Kind::Network("beegfs".to_owned()),
        0x2003_0528 => Kind::Network("orangefs".to_owned()),
        0xaad7_aaea => Kind::Network("panfs".to_owned()),
        0x786f_4256 => Kind::Network("vboxsf".to_owned()),
        0xbacb_acbc => Kind::Network("vmhgfs".to_owned()),
        0x6573_5546 => fuse(name()),
        other => Kind::Unknown(name().unwrap_or_else(|| format!("number {other:#x}"))),
    }
}

/// Filesystems that are programs: local ones, encrypted ones, and the network.
fn fuse(name: Option<String>) -> Kind {
    const REMOTE: &[&str] = &[
        "sshfs",
        "s3fs",
        "rclone",
        "gluster",
        "gcsfuse",
        "goofys",
        "mount-s3",
        "davfs",
        "curlftpfs",
        "ceph",
        "mfs",
        "moosefs",
        "lizardfs",
        "seaweedfs",
        "juicefs",
        "google-drive",
        "onedriver",
        "smbnetfs",
        "vmhgfs",
        "virtiofs",
        "grpcfuse",
        "osxfs",
        "nfs",
    ];
    let name = name.unwrap_or_else(|| "fuse".to_owned());
    let bare = name.strip_prefix("fuse.").unwrap_or(&name);
    if REMOTE.iter().any(|remote| bare.starts_with(remote)) { Kind::Network(name) } else { Kind::Unknown(name) }
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mounted_as(table: &str, major: u32, minor: u32) -> Option<String> {
    let device = format!("{major}:{minor}");
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(&device))?;
    line.split_once(" - ")?.1.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_never_called_safe() {
        for magic in [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x00c3_6400, 0x0bd0_0bd0] {
            assert!(matches!(kind(magic, || None), Kind::Network(_)), "{magic:#x}");
        }
        for name in ["fuse.sshfs", "fuse.rclone", "fuse.glusterfs", "virtiofs", "fuse.s3fs"] {
            assert!(matches!(kind(0x6573_5546, || Some(name.to_owned())), Kind::Network(_)), "{name}");
        }
        for name in [None, Some("fuse.gocryptfs"), Some("fuseblk")] {
            assert!(matches!(kind(0x6573_5546, || name.map(str::to_owned)), Kind::Unknown(_)), "{name:?}");
        }
        assert_eq!(kind(0xef53, || None), Kind::Local("ext4"));
        assert_eq!(kind(0x0102_1994, || None), Kind::Memory("tmpfs"));
        assert_eq!(kind(0x1234, || None), Kind::Unknown("number 0x1234".to_owned()));
    }

    #[test]
    fn the_type_is_found_by_the_device() {
        let table = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n36 22 0:45 / /mnt/x rw shared:9 - fuse.sshfs u@h: rw\n";
        assert_eq!(mounted_as(table, 0, 45).as_deref(), Some("fuse.sshfs"));
        assert_eq!(mounted_as(table, 0, 46), None);
    }
}
