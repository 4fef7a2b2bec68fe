//! Where the queue is.

use jobq::Queue;
use jobq::doctor::{Doctor, Verdict};

use super::world::{Findings, World, mounted};

#[test]
fn a_healthy_queue_is_called_healthy() {
    let world = World::new();
    for findings in [world.examine(), world.examine_deeply()] {
        assert_eq!(findings.troubles(), [""; 0]);
    }
    assert!(world.examine_deeply().has("payloads") && !world.examine().has("payloads"));
}

#[test]
fn memory_is_no_place_to_keep_jobs() {
    let world = World::new();
    let disk = world.root().join("disk");
    let Some(_mounted) = mounted(&disk, "size=512m") else { return };
    drop(Queue::init(&disk).unwrap());
    let findings = Findings::of(&Doctor::in_folder(&disk));
    findings.says("filesystem", Verdict::Warn, &["tmpfs", "survives"]);
    findings.says("root_filesystem", Verdict::Warn, &["tmpfs"]);
    findings.says("disk_space", Verdict::Ok, &[]);
    assert_eq!(findings.worst, Verdict::Warn);
}

#[test]
fn a_full_disk_is_bad_and_a_nearly_full_one_is_told() {
    let world = World::new();
    for (size, verdict) in [("size=4m", Verdict::Bad), ("size=64m", Verdict::Warn)] {
        let disk = world.root().join(size);
        let Some(_mounted) = mounted(&disk, size) else { return };
        drop(Queue::init(&disk).unwrap());
        Findings::of(&Doctor::in_folder(&disk)).says("disk_space", verdict, &["MiB", "make room"]);
    }
    let disk = world.root().join("files");
    let Some(_mounted) = mounted(&disk, "size=512m,nr_inodes=12") else { return };
    drop(Queue::init(&disk).unwrap());
    let filled = (0..12).any(|n| std::fs::write(disk.join(n.to_string()), "").is_err());
    assert!(filled);
    Findings::of(&Doctor::in_folder(&disk)).says("disk_space", Verdict::Bad, &["another file"]);
}

#[test]
fn a_root_on_another_filesystem_is_bad() {
    let world = World::new();
    let root = world.root().join("elsewhere");
    let Some(_mounted) = mounted(&root, "size=64m") else { return };
    let findings = Findings::of(&world.doctor().root(&root));
    findings.says("one_filesystem", Verdict::Bad, &["different filesystems", "in one step"]);
    findings.says("root_filesystem", Verdict::Warn, &["tmpfs"]);
    findings.says("root_disk_space", Verdict::Warn, &["MiB"]);
    assert_eq!(findings.worst, Verdict::Bad);
}

#[test]
fn a_root_that_is_not_there_is_bad() {
    let world = World::new();
    let findings = Findings::of(&world.doctor().root(world.root().join("nowhere")));
    findings.says("one_filesystem", Verdict::Bad, &["nowhere"]);
    findings.says("root_filesystem", Verdict::Bad, &["nowhere"]);
}

#[test]
fn a_synchronised_folder_is_told_by_its_name_and_by_what_lies_there() {
    let world = World::new();
    for name in ["Dropbox", "OneDrive - Example", "Mobile Documents", "Nextcloud"] {
        let root = world.root().join(name).join("project");
        drop(Queue::init(&root).unwrap());
        Findings::of(&Doctor::in_folder(&root)).only("synced_folder", Verdict::Warn, &[name, "loses jobs"]);
    }
    world.examine().says("synced_folder", Verdict::Ok, &[]);
    std::fs::create_dir(world.root().join(".stfolder")).unwrap();
    world.examine().only("synced_folder", Verdict::Warn, &["synchronises"]);
    let deeper = world.root().join("a/b");
    drop(Queue::init(&deeper).unwrap());
    Findings::of(&Doctor::in_folder(&deeper)).only("synced_folder", Verdict::Warn, &[]);
}
