//! Any path, in any place: nothing leads out of the root.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Component, Path};

use jobq::effects::{Content, Expect, FileEffect};
use jobq::store::{Applier as _, ApplyReport, EffectOp, Precondition};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::world::{World, forged, lease, listing, remove, sha};

fn cases(usual: u32) -> Config {
    let given = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    Config { cases: given.unwrap_or(usual), failure_persistence: None, ..Config::default() }
}

/// Of few names, so that it leads to something; or of any letters.
fn path() -> impl Strategy<Value = String> {
    let part = prop_oneof![6 => "[abc]", 1 => Just("..".to_owned()), 1 => Just(".".to_owned()), 1 => Just(String::new()),
                           1 => "(?i)\\.jobq", 1 => Just("secret.txt".to_owned())];
    prop_oneof![8 => vec(part, 1..5).prop_map(|parts| parts.join("/")), 1 => "\\PC{0,20}", 1 => "[./\\x00a]{0,12}"]
}

/// What lies at a path: a folder, a file, or a link to somewhere.
#[derive(Clone, Debug)]
enum Thing {
    Folder,
    File,
    Link(&'static str),
}

fn thing() -> impl Strategy<Value = Thing> {
    let targets =
        vec!["..", "../outside", "OUT", "OUT/secret.txt", "OUT/new", ".", "a", "b/c", ".jobq", "../../outside/folder"];
    prop_oneof![2 => Just(Thing::Folder), 1 => Just(Thing::File), 3 => prop::sample::select(targets).prop_map(Thing::Link)]
}

/// Never through a link that is there already: what this would make lies somewhere else.
fn set(world: &World, things: &[(String, Thing)]) {
    for (name, thing) in things {
        let path = world.path(name);
        let folders = path.ancestors().skip(1).take_while(|folder| *folder != world.root());
        if folders.into_iter().any(Path::is_symlink) || path.symlink_metadata().is_ok() {
            continue;
        }
        // Where there is no folder for it, there is one thing less.
        let _ = match thing {
            Thing::Folder => std::fs::create_dir(&path),
            Thing::File => std::fs::write(&path, "old"),
            Thing::Link(target) => symlink(target.replace("OUT", world.outside().to_str().unwrap()), &path),
        };
    }
}

fn inside(world: &World) -> BTreeMap<String, String> {
    let mut all = listing(&world.root());
    all.retain(|name, _| !name.starts_with(".jobq"));
    all
}

proptest! {
    #![proptest_config(cases(5_000))]

    /// One spelling, which names something below the root by its letters alone.
    #[test]
    fn a_normal_path_stays_below(path in path()) {
        let Ok(normal) = jobq::normalise_path(&path) else { return Ok(()) };
        prop_assert_eq!(jobq::normalise_path(&normal).unwrap(), normal.as_str());
        prop_assert!(!normal.contains('\0'));
        let parts: Vec<_> = Path::new(&normal).components().collect();
        prop_assert!(!parts.is_empty() && parts.iter().all(|part| matches!(part, Component::Normal(_))), "{:?}", normal);
        prop_assert_eq!(parts.len(), normal.split('/').count());
        prop_assert!(!normal.split('/').next().unwrap().eq_ignore_ascii_case(".jobq"), "{:?}", normal);
        // The same file as the one that was asked for, wherever there are no links.
        let asked: Vec<_> = Path::new(&path).components().filter(|part| *part != Component::CurDir).collect();
        prop_assert_eq!(asked, parts);
    }
}

proptest! {
    #![proptest_config(cases(250))]

    /// Whatever lies in the root, and however the plan came about.
    #[test]
    fn nothing_outside_is_touched(
        things in vec((vec("[abc]", 1..4).prop_map(|parts| parts.join("/")), thing()), 0..8),
        later in vec((vec("[abc]", 1..3).prop_map(|parts| parts.join("/")), thing()), 0..2),
        path in path(), put in any::<bool>(), forge in any::<bool>(), absent in any::<bool>(),
    ) {
        let world = World::new();
        set(&world, &things);
        let (files, job) = (world.files(), lease("j"));
        let outside = listing(&world.outside());
        let staged = files.stage_bytes(&job, 0, b"new").unwrap();
        files.sync_stage().unwrap();
        let effect = if put {
            FileEffect::Put { path: path.clone(), content: Content::Staged(staged.clone()), expect: Expect::Any }
        } else {
            remove(&path)
        };
        let planned = if forge {
            let op = EffectOp::Put { sha256: staged.sha256.clone(), size: staged.size, stage: Some(staged.stage.clone()) };
            let precondition = if absent { Precondition::Absent } else { Precondition::Sha256(sha("old")) };
            Some(forged(&path, if put { op } else { EffectOp::Remove }, precondition))
        } else {
            files.plan(effect).ok()
        };
        prop_assert_eq!(listing(&world.outside()), outside.clone(), "planned");
        // The place changes between plan and apply.
        set(&world, &later);
        let before = inside(&world);
        let Some(planned) = planned else { return Ok(()) };
        let report = files.apply(&job, std::slice::from_ref(&planned), false);
        files.sync().unwrap();
        prop_assert_eq!(listing(&world.outside()), outside, "applied: {:?}", report);
        let mut after = inside(&world);
        if let ApplyReport::Applied(_) = report {
            // That one file, and the folders it is in.
            prop_assert_eq!(world.content(&planned.path), put.then(|| "new".to_owned()));
            let is_on_the_way = |name: &String| Path::new(&planned.path).starts_with(name);
            after.retain(|name, _| !is_on_the_way(name));
            let before: BTreeMap<_, _> = before.into_iter().filter(|(name, _)| !is_on_the_way(name)).collect();
            prop_assert_eq!(after, before);
        } else {
            after.retain(|name, _| before.contains_key(name));
            prop_assert_eq!(after, before, "{:?}", report);
        }
    }
}
