//! The same commit submitted again, by its id.

use jobq::{Accepted, Draft, ErrorKind, Expect, Result, Status};

use super::world::{World, job, open, save};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn submit(world: &World, fill: impl FnOnce(&mut Draft) -> Result<()>) -> Result<Accepted> {
    world.queue.commit(|tx| {
        tx.id(ID)?;
        fill(tx)
    })
}

#[test]
fn it_is_answered_with_what_is_there_whatever_has_happened_since() {
    let world = World::new();
    let fill = |tx: &mut Draft| {
        save(tx, "file", "1")?;
        tx.enqueue(job("second"))?;
        tx.expect("file", Expect::Absent)
    };
    let first = submit(&world, fill).unwrap();
    assert_eq!((first.id.as_str(), first.existing), (ID, false));
    // Its expectation would fail now, and its path is busy.
    world.edit("file", "somebody else's");
    world.queue.enqueue(jobq::handlers::DeleteFile::at("file")).unwrap();
    let world = world.reopen();
    let again = world.unchanged(|_| submit(&world, fill)).unwrap();
    assert_eq!(again, Accepted { existing: true, ..first.clone() });
    // Expectations are not content; everything else is.
    let same = world.unchanged(|_| submit(&world, |tx| save(tx, "file", "1").and_then(|()| tx.enqueue(job("second")))));
    assert_eq!(same.unwrap().jobs, first.jobs);
    let other: [fn(&mut Draft) -> Result<()>; 5] = [
        |tx| save(tx, "file", "1"),
        |tx| save(tx, "file", "2").and_then(|()| tx.enqueue(job("second"))),
        |tx| save(tx, "elsewhere", "1").and_then(|()| tx.enqueue(job("second"))),
        |tx| save(tx, "file", "1").and_then(|()| tx.enqueue(job("second").priority(1))),
        |tx| tx.remove("file"),
    ];
    for other in other {
        let error = world.unchanged(|_| submit(&world, other)).unwrap_err();
        assert_eq!((error.kind(), error.id()), (ErrorKind::Conflict, Some(ID)), "{error}");
        assert!(!error.is_stale(), "reading again does not help");
    }
}

#[test]
fn a_batch_with_an_id_is_remembered_too() {
    let world = World::new();
    let fill = |tx: &mut Draft| tx.enqueue(job("a")).and_then(|()| tx.enqueue(job("b")));
    let first = submit(&world, fill).unwrap();
    let again = world.unchanged(|_| submit(&world, fill)).unwrap();
    assert_eq!(again.jobs, first.jobs);
    assert_eq!(world.unchanged(|_| submit(&world, |tx| tx.enqueue(job("a")))).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn two_at_once_are_one() {
    for _ in 0..20 {
        let world = World::new();
        let answers: Vec<Accepted> = std::thread::scope(|scope| {
            let submits: Vec<_> =
                (0..4).map(|_| scope.spawn(|| submit(&world, |tx| save(tx, "file", "1")).unwrap())).collect();
            submits.into_iter().map(|submit| submit.join().unwrap()).collect()
        });
        assert_eq!(answers.iter().filter(|answer| !answer.existing).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|answer| answer.id == ID && answer.jobs == answers[0].jobs), "{answers:?}");
        assert_eq!((world.jobs().len(), world.staged().len()), (2, 0));
    }
}

/// It is accepted and applied elsewhere after it was looked for here: what it
/// expected has gone by its own doing.
#[test]
fn one_that_is_accepted_elsewhere_meanwhile_is_not_stale() {
    let world = World::new();
    let fill = |tx: &mut Draft| {
        tx.id(ID)?;
        save(tx, "file", "1")?;
        tx.expect("file", Expect::Absent)
    };
    let mut elsewhere = Some(open(world.root()));
    world.interpose(move |act, _| {
        if act == jobq::effects::Act::Stage
            && let Some(queue) = elsewhere.take()
        {
            assert!(queue.commit(fill).unwrap().applied);
        }
        Ok(())
    });
    let answer = world.queue.commit(fill).unwrap();
    assert_eq!((answer.applied, answer.existing), (true, true));
    assert_eq!((world.read("file").as_str(), world.jobs().len(), world.staged().len()), ("1", 2, 0));
}

#[test]
fn one_that_was_withdrawn_stays_so() {
    let world = World::new();
    let target = world.path("file");
    world.interpose(
        move |act, _| if act == jobq::effects::Act::Create { std::fs::write(&target, "faster") } else { Ok(()) },
    );
    let error = submit(&world, |tx| save(tx, "file", "1")).unwrap_err();
    world.clear();
    assert!(error.is_stale() && error.to_string().contains("nothing is queued"), "{error}");
    assert_eq!(world.read("file"), "faster");
    assert_eq!(world.staged(), [""; 0]);
    let again = submit(&world, |tx| save(tx, "file", "1")).unwrap();
    assert_eq!((again.status, again.applied), (Status::Failed, false));
    assert_eq!(world.queue.get(&again.jobs[0].id).unwrap().status, Status::Cancelled);
    assert!(world.queue.retry(ID).unwrap_err().to_string().contains("commit again"));
}
