//! What the caller has read is what must be there.

use jobq::{Draft, ErrorKind, Expect, Result, sha256_hex};

use super::world::{World, save};

fn sha(text: &str) -> Expect {
    Expect::Sha256(sha256_hex(text.as_bytes()))
}

/// Whether a save is accepted that expects this of `path`.
fn saved(world: &World, path: &str, expect: Expect) -> Result<()> {
    let fill = |tx: &mut Draft| {
        save(tx, "file", "new")?;
        tx.expect(path, expect)
    };
    world.queue.commit(fill).map(drop)
}

#[test]
fn a_stale_expectation_is_refused_and_nothing_happens() {
    let world = World::new();
    world.edit("there", "content");
    for (path, expect) in [
        ("file", sha("content")),
        ("there", sha("other content")),
        ("there", Expect::Absent),
        ("missing", sha("content")),
        ("no/such/folder", sha("content")),
    ] {
        let error = world.unchanged(|_| saved(&world, path, expect.clone())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.is_stale() && error.to_string().contains(path), "{error}");
    }
    for (path, expect) in [
        ("file", Expect::Absent),
        ("file", sha("new")),
        ("there", sha("content")),
        ("there", Expect::Sha256(sha256_hex(b"content").to_uppercase())),
        ("missing", Expect::Absent),
        ("no/such/folder", Expect::Absent),
        ("there", Expect::Any),
    ] {
        saved(&world, path, expect.clone()).unwrap_or_else(|e| panic!("{path} {expect:?}: {e}"));
    }
}

/// Two who have both read 1 and write 2: the second must not pass for the first.
#[test]
fn the_same_new_content_is_no_excuse_for_a_stale_expectation() {
    let world = World::new();
    world.edit("file", "1");
    let write = |expect: Expect| {
        world.queue.commit(|tx| {
            tx.write("file", "2")?;
            tx.expect("file", expect)
        })
    };
    write(sha("1")).unwrap();
    assert!(world.unchanged(|_| write(sha("1"))).unwrap_err().is_stale());
    write(sha("2")).unwrap();
}

#[test]
fn an_expectation_has_to_make_sense() {
    let world = World::new();
    for expect in ["", "absent ", "12", &"g".repeat(64)] {
        let error = saved(&world, "file", Expect::Sha256(expect.to_owned())).unwrap_err();
        assert!(error.is_invalid(), "{error}");
    }
    let error = world.queue.commit(|tx| {
        tx.write("file", "x")?;
        tx.expect("file", Expect::Absent)?;
        tx.expect("./file", sha("y"))
    });
    assert!(error.unwrap_err().is_invalid());
}

/// Somebody writes while the commit is on its way: seen under the lock.
#[test]
fn a_change_after_the_first_look_is_noticed() {
    let world = World::new();
    world.edit("guard", "1");
    for (path, expect) in [("guard", sha("1")), ("file", Expect::Absent)] {
        let target = world.path(path);
        let mut done = false;
        world.interpose(move |act, _| {
            // The stage is synced after everything was looked at and before the database is asked.
            if act == jobq::effects::Act::SyncFolder && !std::mem::replace(&mut done, true) {
                std::fs::write(&target, "somebody else's")?;
            }
            Ok(())
        });
        let error = saved(&world, path, expect).unwrap_err();
        world.clear();
        assert!(error.is_stale(), "{path}: {error}");
        assert_eq!(world.read(path), "somebody else's");
        assert_eq!((world.jobs().len(), world.staged().len()), (0, 0));
    }
    // Without an expectation the commit comes on top of whatever was there last.
    let target = world.path("file");
    let mut times = 0;
    world.interpose(move |act, _| {
        times += 1;
        if act == jobq::effects::Act::SyncFolder && times < 5 {
            std::fs::write(&target, format!("{times}"))
        } else {
            Ok(())
        }
    });
    world.save("file", "on top").unwrap();
    world.clear();
    assert_eq!(world.read("file"), "on top");
}
