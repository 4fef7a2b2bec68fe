//! Paths that must be refused, and what makes them so.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::world::World;

/// A path, and how its trap is set.
pub type Trap = (String, Box<dyn Fn(&World)>);

fn trap(path: &str, set: impl Fn(&World) + 'static) -> Trap {
    (path.to_owned(), Box::new(set))
}

#[rustfmt::skip]
const WRONG: [&str; 44] = [
    "", ".", "./", "/", "//", "..", "../", "../x", "../outside/secret.txt", "./../outside/secret.txt",
    "a/../../outside/secret.txt", "a/b/../../../outside/secret.txt", "a/..", "a/../b", "x/./../../y", ".//..//x",
    "../root/f", "/etc/passwd", "//etc/passwd", "a/", "a//", "a/.", "a/./", "a/b/", "\0", "a\0b", "f\0/../../x", "a/\0",
    ".jobq", ".jobq/jobq.db", "./.jobq/x", ".//.jobq//stage/x", ".jobq/./x", ".JOBQ/x", ".JobQ", ".jobQ/a/b", ".jobq/../f",
    "sub/.jobq/config.toml", "a/b/.JobQ", "a/.jobQ/x.db", "sub/.jo\u{200b}bq/x", ".jobq\u{feff}/x", ".jobq ", "sub/.jobq./x",
];

/// Wrong by its letters alone.
pub fn by_letters(world: &World) -> Vec<Trap> {
    let long = |bytes: usize| "x".repeat(bytes);
    let absolute = world.outside().join("secret.txt").to_str().unwrap().to_owned();
    let mut paths: Vec<String> = WRONG.map(str::to_owned).into();
    paths.extend([absolute, long(256), long(300), format!("{}/f", long(256)), format!("a/{}", long(300))]);
    // 86 letters of three bytes each; 4,096 bytes in short names; 2,000 folders.
    paths.extend(["€".repeat(86), format!("{}f", (long(200) + "/").repeat(21)), "d/".repeat(2000) + "f"]);
    paths.into_iter().map(|path| trap(&path, |_| ())).collect()
}

/// Wrong because of what is on the disk.
pub fn by_disk() -> Vec<Trap> {
    let link = |path: &str, target: &str| {
        let (name, target) = (path.split('/').next().unwrap().to_owned(), target.to_owned());
        trap(path, move |world| {
            world.write("inside/f.txt", "old");
            let target = target.replace("OUT", world.outside().to_str().unwrap());
            symlink(target, world.path(&name)).unwrap();
        })
    };
    vec![
        // The target itself is a link.
        link("l01", "inside/f.txt"),
        link("l02", "OUT/secret.txt"),
        link("l03", "../outside/secret.txt"),
        link("l04", "nowhere"),
        link("l05", "OUT/not-yet"),
        link("l06", "../outside/not-yet"),
        link("l07", "l07"),
        link("l08", "inside"),
        link("l09", "OUT/folder"),
        link("l10", "."),
        link("l11", ".."),
        link("l12", "/"),
        link("l13", "/dev/null"),
        link("l14", "/proc/self/mem"),
        link("l15", ".jobq"),
        // A folder on the way is.
        link("p01/f.txt", "inside"),
        link("p02/f.txt", "OUT/folder"),
        link("p03/new.txt", "OUT/folder"),
        link("p04/new/new.txt", "OUT/folder"),
        link("p05/secret.txt", "../outside"),
        link("p06/outside/secret.txt", ".."),
        link("p07/f.txt", "nowhere"),
        link("p08/f.txt", "p08"),
        link("p09/inside/f.txt", "."),
        link("p10/etc/passwd", "/"),
        link("p11/jobq.db", ".jobq"),
        link("p12/f.txt", "inside/f.txt"),
        link("p13/0/fd/1", "/proc/self/task"),
        trap("deep/down/link/f.txt", |world| {
            world.write("deep/down/x", "");
            symlink(world.outside().join("folder"), world.path("deep/down/link")).unwrap();
        }),
        trap("chain/f.txt", |world| {
            symlink("chain2", world.path("chain")).unwrap();
            symlink(world.outside().join("folder"), world.path("chain2")).unwrap();
        }),
        trap("ping/f.txt", |world| {
            symlink("pong", world.path("ping")).unwrap();
            symlink("ping", world.path("pong")).unwrap();
        }),
        // No file, no folder.
        trap("fifo", |world| mknod(world, &["fifo", "p"])),
        trap("fifo-folder/f", |world| mknod(world, &["fifo-folder", "p"])),
        trap("socket", |world| drop(UnixListener::bind(world.path("socket")).unwrap())),
        trap("socket-folder/f", |world| drop(UnixListener::bind(world.path("socket-folder")).unwrap())),
        trap("folder", |world| fs::create_dir(world.path("folder")).unwrap()),
        trap("full", |world| drop(world.write("full/f", "x"))),
        trap("file/f", |world| drop(world.write("file", "x"))),
        trap("file/a/b/f", |world| drop(world.write("file", "x"))),
        trap("a/file/f", |world| drop(world.write("a/file", "x"))),
    ]
}

pub fn by_device() -> Vec<Trap> {
    vec![
        trap("null", |world| mknod(world, &["null", "c", "1", "3"])),
        trap("tty", |world| mknod(world, &["tty", "c", "5", "0"])),
        trap("null-folder/f", |world| mknod(world, &["null-folder", "c", "1", "3"])),
        trap("loop", |world| mknod(world, &["loop", "b", "7", "250"])),
    ]
}

fn mknod(world: &World, arguments: &[&str]) {
    let made = Command::new("mknod").arg(world.path(arguments[0])).args(&arguments[1..]).status();
    assert!(made.unwrap().success(), "mknod {arguments:?}");
}
