//! A file that is replaced stays as closed to others as it was.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};
use rustix::io::Errno;
use serde_json::json;

use super::harness::{Said, Scratch};
use super::trust::{ALICE, BOB, give_to, is_root, run_as, shared};
use crate::skipped::skipped;

const TEAM: u32 = 3001;
const ACL: &str = "system.posix_acl_access";

/// Owner, group and mode.
fn rights(path: &Path) -> (u32, u32, String) {
    let found = path.symlink_metadata().unwrap();
    (found.uid(), found.gid(), format!("{:o}", found.mode() & 0o7777))
}

fn file(q: &Scratch, name: &str, (user, group, mode): (u32, u32, u32)) {
    let path = q.path().join(name);
    fs::write(&path, "old").unwrap();
    chown(&path, Some(user), Some(group)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

/// An access list, as the kernel takes it: a user with these rights, and nothing for the file's own group.
fn list(user: u32, rights: u16) -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, rights, user), (4, 0, u32::MAX), (16, rights, u32::MAX), (32, 0, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()));
    }
    list
}

/// Whether the file system keeps access lists; if not, says what is left out.
fn set_list(path: &Path, name: &str, list: &[u8]) -> bool {
    match lsetxattr(path, name, list, XattrFlags::empty()) {
        Err(Errno::OPNOTSUPP) => {
            skipped("access lists", "the file system of temporary files has none");
            false
        }
        set => set.map(|()| true).unwrap(),
    }
}

fn list_of(path: &Path) -> Option<Vec<u8>> {
    let mut list = vec![0; 1000];
    let length = lgetxattr(path, ACL, &mut list[..]).ok()?;
    list.truncate(length);
    Some(list)
}

fn create(path: &str) -> String {
    json!({"path": path, "content": "new", "overwrite": true}).to_string()
}

/// Replaces `a` by a job and `b` by a commit.
fn replace_both(act: impl Fn(&[&str]) -> Said, q: &Scratch) {
    let commit = json!({"writes": [{"path": "b", "text": "new"}]});
    fs::write(q.path().join("commit.json"), commit.to_string()).unwrap();
    for args in [&["enqueue", "create_file", &create("a")][..], &["worker", "--drain"], &["commit", "../commit.json"]] {
        let said = act(args);
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
    }
    for name in ["a", "b"] {
        assert_eq!(fs::read_to_string(q.path().join(name)).unwrap(), "new", "{name}");
    }
}

fn as_root(q: &Scratch) -> impl Fn(&[&str]) -> Said {
    |args| q.run(&args.iter().map(|arg| arg.trim_start_matches("../")).collect::<Vec<_>>())
}

#[test]
fn root_replaces_a_users_file_and_it_stays_the_users() {
    if !is_root("files of other users") {
        return;
    }
    for mode in [0o600, 0o640, 0o664, 0o755] {
        let q = Scratch::new();
        for name in ["a", "b"] {
            file(&q, name, (ALICE, TEAM, mode));
        }
        replace_both(as_root(&q), &q);
        for name in ["a", "b"] {
            assert_eq!(rights(&q.path().join(name)), (ALICE, TEAM, format!("{mode:o}")), "{name}");
        }
    }
}

#[test]
fn a_group_that_cannot_be_set_takes_its_rights_with_it() {
    if !is_root("files of other users") {
        return;
    }
    for (groups, before, after) in [
        // One of the team keeps the group; the owner is only root's to set.
        (Some("3001"), 0o664, (BOB, TEAM, "664")),
        (Some("3001"), 0o640, (BOB, TEAM, "640")),
        // Bob is one of the others, and may read what he replaces.
        (None, 0o644, (BOB, BOB, "604")),
        (None, 0o775, (BOB, BOB, "705")),
        // Members of the team may not read it, and now are others.
        (None, 0o604, (BOB, BOB, "600")),
    ] {
        let q = shared();
        give_to(q.path(), BOB);
        for name in ["a", "b"] {
            file(&q, name, (ALICE, TEAM, before));
        }
        replace_both(|args| run_as(BOB, groups, &q, args), &q);
        for name in ["a", "b"] {
            let (user, group, mode) = rights(&q.path().join(name));
            assert_eq!((user, group, mode.as_str()), after, "{groups:?} {before:o} {name}");
        }
    }
}

#[test]
fn an_access_list_is_copied() {
    let q = Scratch::new();
    for name in ["a", "b"] {
        fs::write(q.path().join(name), "old").unwrap();
        if !set_list(&q.path().join(name), ACL, &list(ALICE, 4)) {
            return;
        }
    }
    replace_both(as_root(&q), &q);
    for name in ["a", "b"] {
        assert_eq!(list_of(&q.path().join(name)), Some(list(ALICE, 4)), "{name}");
    }
}

#[test]
fn an_access_list_that_cannot_be_copied_gives_nobody_anything() {
    if !is_root("files of other users") {
        return;
    }
    let q = shared();
    give_to(q.path(), BOB);
    for name in ["a", "b"] {
        file(&q, name, (ALICE, TEAM, 0o644));
        // Bob may read what he replaces.
        if !set_list(&q.path().join(name), ACL, &list(BOB, 4)) {
            return;
        }
    }
    replace_both(|args| run_as(BOB, None, &q, args), &q);
    for name in ["a", "b"] {
        assert_eq!(list_of(&q.path().join(name)), None, "{name}");
        assert_eq!(rights(&q.path().join(name)), (BOB, BOB, "600".to_owned()), "{name}");
    }
}

#[test]
fn a_file_without_an_access_list_gets_none_from_the_stage() {
    let q = Scratch::new();
    if !set_list(&q.path().join(".jobq"), "system.posix_acl_default", &list(ALICE, 6)) {
        return;
    }
    for name in ["a", "b"] {
        fs::write(q.path().join(name), "old").unwrap();
        fs::set_permissions(q.path().join(name), fs::Permissions::from_mode(0o660)).unwrap();
    }
    replace_both(as_root(&q), &q);
    for name in ["a", "b"] {
        assert_eq!(list_of(&q.path().join(name)), None, "{name}");
        assert_eq!(rights(&q.path().join(name)).2, "660", "{name}");
    }
}
