//! A COMMIT that was reported as failed and has happened all the same: what no
//! fault below SQLite brings about within one process is made here by hand.

use super::*;

#[test]
fn an_acceptance_that_failed_and_is_durable_is_applied_once_with_what_was_staged() {
    let folder = tempfile::tempdir().unwrap();
    let queue = Queue::init(folder.path()).unwrap();
    let committer = queue.committer().unwrap();
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let mut draft = Draft::default();
    draft.write("file", "content").unwrap();
    let job = plan::files_job(&queue, id, &draft).unwrap();
    let staging = committer.stage(id, draft.changes.iter().map(|(_, change)| change)).unwrap();
    let plan = Plan::make(committer.files(), &draft, &staging).unwrap();
    let (still_so, _) = plan.still_so(committer.files());
    let owner = committer.owner().clone();
    let commit = Commit { owner, files: job, effects: plan.effects, jobs: Vec::new(), still_so };
    assert!(matches!(queue.store().commit(commit.clone()).unwrap(), Committed::New { .. }));

    let unknown = Error::new(ErrorKind::OutcomeUnknown, "the COMMIT failed");
    let accepted = queue.find_out(&committer, commit, staging, unknown).unwrap();

    assert_eq!((accepted.id.as_str(), accepted.status, accepted.applied), (id, Status::Completed, true));
    assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "content");
    assert_eq!(queue.get(id).unwrap().status, Status::Completed);
    assert!(committer.take_doubts().is_empty(), "nothing is left in doubt");
}
