//! Programs that print or ignore more than anyone wants.

use std::process::Stdio;

use jobq::Status;

use super::harness::{Place, assert_failed};

#[test]
fn what_a_program_prints_costs_no_more_memory_than_what_is_kept() {
    let place = Place::new();
    place.handler(
        "prints",
        "head -c 400000000 /dev/zero; head -c 400000000 /dev/zero >&2; echo; echo '{\"done\":true}'",
    );
    let id = place.enqueue_once("prints", "{}");
    let mut worker = place.jobq().args(["worker", "--drain"]).stdout(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", worker.id());
    let mut most = 0;
    while worker.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        most = most.max(peak.map_or(0, |peak| peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap()));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let job = place.job(&id);
    assert_eq!(job.status, Status::Completed, "{:?}", job.last_error);
    assert_eq!(job.result.unwrap().as_str(), "{\"done\":true}");
    assert!(most > 0 && most < 64 << 10, "{most} kB");
}

#[test]
fn the_end_of_what_it_complained_about_is_the_error() {
    let place = Place::new();
    place.handler("complains", "yes 'a complaint' | head -c 5000000 >&2; echo the last one >&2; exit 65");
    let job = place.run_once("complains", "{}");
    assert_failed(&job, &["exit code 65", "the last one"]);
    assert!(job.last_error.unwrap().len() < 5000);
}

#[test]
fn input_that_is_not_read_is_no_fault() {
    let place = Place::new();
    place.handler("ignores", "exec true");
    let payload = format!("{{\"text\":\"{}\"}}", "x".repeat(8 << 20));
    assert_eq!(place.run_once("ignores", &payload).status, Status::Completed);
    place.handler("counts", "printf '{\"bytes\":%s}' $(wc -c)");
    let job = place.run_once("counts", &payload);
    assert_eq!(job.result.unwrap().as_str(), format!("{{\"bytes\":{}}}", payload.len()));
}
