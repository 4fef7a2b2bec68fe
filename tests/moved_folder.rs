//! A program that opened its queue by a relative path may change its folder.
//! Alone in its file, because the current folder belongs to the whole process.

use jobq::{Filter, NewJob, Queue};

#[test]
fn the_queue_stays_where_it_was_opened() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::env::set_current_dir(first.path()).unwrap();
    let queue = Queue::init(".").unwrap();
    let elsewhere = Queue::init(second.path()).unwrap();
    let job = queue.enqueue(NewJob::raw("send_mail", "{}")).unwrap();
    std::env::set_current_dir(second.path()).unwrap();
    assert_eq!(queue.get(&job.id).unwrap().id, job.id, "readers open the same file");
    assert!(queue.owners_folder().starts_with(first.path()));
    assert!(elsewhere.list(&Filter::default()).unwrap().is_empty());
}
