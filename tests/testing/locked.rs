//! A queue that a transaction of the test keeps locked.

use jobq::NewJob;
use rusqlite::TransactionBehavior::Immediate;

use super::{World, message, say, world};

#[test]
fn a_run_gives_up_while_a_transaction_of_the_test_is_open() {
    let World { queue, .. } = world();
    queue.enqueue(say("a", &[])).unwrap();
    let mut conn = rusqlite::Connection::open(queue.database()).unwrap();
    let tx = conn.transaction_with_behavior(Immediate).unwrap();
    queue.enqueue_in(&tx, NewJob::of(&say("b", &[]))).unwrap();
    let told = message(|| drop(queue.run_all()));
    assert!(told.contains("is locked") && told.contains("is a transaction of the test open?"), "{told}");
    tx.commit().unwrap();
    assert_eq!(queue.run_all().completed, 2);
}
