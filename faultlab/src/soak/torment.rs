//! Starts the eight, and kills and stops them as the seed says.

use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use super::Soak;
use super::hands::Role;
use super::ledger::{self, ENOUGH};
use super::plan::{COMMITTERS, ENQUEUERS, WORKERS};
use crate::report::{Report, Trouble};

/// How hard it goes.
pub struct Pace {
    /// Milliseconds from one blow to the next.
    pub interval: Range<u64>,
    /// How many are hit at a time.
    pub victims: usize,
    /// It goes on until there were so many.
    pub kills: u64,
    /// After this long something hangs.
    pub patience: Duration,
}

/// Milliseconds that somebody is stopped for.
const STOP: Range<u64> = 20..400;
/// One of so many is a stop; of what happens to workers, more are.
const STOPS: u32 = 4;
const STOPS_OF_WORKERS: u32 = 2;
/// And of these, all but one of so many are longer than a short lease (`SHORT_LEASE`), by far.
const SHORT_STOPS: u32 = 4;
const LONG_STOP: Range<u64> = 500..1_200;

pub struct Torment<'s> {
    soak: &'s Soak,
    pace: Pace,
    random: fastrand::Rng,
    hands: Vec<Hand>,
    started: Instant,
    kills: u64,
    stops: u64,
    long_stops: u64,
    /// Faults that were planned and have found nobody: others get them.
    owed: u64,
}

struct Hand {
    role: Role,
    pid: Pid,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running,
    /// Until then.
    Stopped(Instant),
    Ended,
}

impl<'s> Torment<'s> {
    pub fn new(soak: &'s Soak, pace: Pace) -> Self {
        let enqueuers = (0..ENQUEUERS).map(Role::Enqueuer);
        let committers = (ENQUEUERS..ENQUEUERS + COMMITTERS).map(Role::Committer);
        let roles = enqueuers.chain(committers).chain((0..WORKERS).map(Role::Worker));
        let hand = |role| Hand { role, pid: start(soak, role), state: State::Running };
        let hands = roles.map(hand).collect();
        let random = fastrand::Rng::with_seed(soak.seed);
        Self { soak, pace, random, hands, started: Instant::now(), kills: 0, stops: 0, long_stops: 0, owed: 0 }
    }

    /// Until the producers have ended. False if they never do.
    pub fn run(&mut self, report: &mut Report) -> bool {
        let ended = loop {
            self.rest();
            if let Some(trouble) = self.deserter() {
                report.trouble(Trouble::Wrong, trouble);
                break false;
            }
            if !self.hands.iter().any(|hand| !hand.role.is_worker() && hand.state != State::Ended) {
                break true;
            }
            if self.started.elapsed() > self.pace.patience {
                report.trouble(Trouble::Wrong, format!("after {:?} producers are still at it", self.started.elapsed()));
                break false;
            }
            self.strike(report);
            let producers = 0..ENQUEUERS + COMMITTERS;
            let done = producers.into_iter().all(|number| ledger::exists(self.soak, &ledger::share_of(number)));
            if done && self.kills >= self.pace.kills && !ledger::exists(self.soak, ENOUGH) {
                ledger::note(self.soak, ENOUGH, "");
            }
        };
        for hand in self.hands.iter().filter(|hand| hand.state != State::Ended) {
            kill_process(hand.pid, Signal::KILL).unwrap();
            wait(hand.pid, WaitOptions::empty());
            if self.owed > 0 {
                self.owed -= 1;
                self.kills += 1;
                report.fired += 1;
            }
        }
        report.told.extend([("kills", self.kills), ("stops", self.stops), ("long_stops", self.long_stops)]);
        ended
    }

    pub fn kills(&self) -> u64 {
        self.kills
    }

    /// From one blow to the next; whoever has been stopped long enough goes on.
    fn rest(&mut self) {
        let next = Instant::now() + Duration::from_millis(self.random.u64(self.pace.interval.clone()));
        loop {
            let mut until = next;
            for hand in &mut self.hands {
                match hand.state {
                    State::Stopped(end) if end <= Instant::now() => {
                        kill_process(hand.pid, Signal::CONT).unwrap();
                        hand.state = State::Running;
                    }
                    State::Stopped(end) => until = until.min(end),
                    State::Running | State::Ended => {}
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() && until == next {
                return;
            }
            std::thread::sleep(left);
        }
    }

    /// Somebody who has ended and should not have.
    fn deserter(&mut self) -> Option<String> {
        for hand in self.hands.iter_mut().filter(|hand| hand.state != State::Ended) {
            let Some(status) = wait(hand.pid, WaitOptions::NOHANG) else { continue };
            hand.state = State::Ended;
            if status.exit_status() != Some(0) || hand.role.is_worker() {
                return Some(format!("{:?} has ended with {status:?}", hand.role));
            }
        }
        None
    }

    /// Hits some of those who are still there, all at the same moment.
    fn strike(&mut self, report: &mut Report) {
        let there = (0..self.hands.len()).filter(|index| self.hands[*index].state != State::Ended);
        let mut victims: Vec<usize> = there.collect();
        self.random.shuffle(&mut victims);
        victims.truncate(self.pace.victims + usize::try_from(self.owed).unwrap_or(0));
        let planned = victims.len() as u64;
        report.sites += planned.saturating_sub(self.owed);
        self.owed = self.owed.saturating_sub(planned);
        for victim in &victims {
            let hand = &self.hands[*victim];
            let stops = if hand.role.is_worker() { STOPS_OF_WORKERS } else { STOPS };
            let stop = self.random.u32(..stops) == 0 && hand.state == State::Running;
            let signal = if stop { Signal::STOP } else { Signal::KILL };
            kill_process(self.hands[*victim].pid, signal).unwrap();
        }
        for victim in victims {
            self.see_to(victim, report);
        }
    }

    /// Somebody was hit: who is dead starts again.
    fn see_to(&mut self, victim: usize, report: &mut Report) {
        let hand = &mut self.hands[victim];
        let status = wait(hand.pid, WaitOptions::UNTRACED).expect("it was waited for");
        if status.exit_status() == Some(0) && !hand.role.is_worker() {
            // It came to its end by itself, a moment before.
            hand.state = State::Ended;
            self.owed += 1;
            return;
        }
        if status.stopped() {
            let long = hand.role.is_worker() && self.random.u32(..SHORT_STOPS) > 0;
            let millis = self.random.u64(if long { LONG_STOP } else { STOP });
            hand.state = State::Stopped(Instant::now() + Duration::from_millis(millis));
            self.stops += 1;
            self.long_stops += u64::from(long);
        } else if status.terminating_signal() == Some(Signal::KILL.as_raw()) {
            *hand = Hand { role: hand.role, pid: start(self.soak, hand.role), state: State::Running };
            self.kills += 1;
        } else {
            hand.state = State::Ended;
            report.trouble(Trouble::Wrong, format!("{:?} has ended with {status:?}", hand.role));
            return;
        }
        report.fired += 1;
    }
}

/// Whether a last worker finds an end.
pub fn drained(soak: &Soak, report: &mut Report) -> bool {
    let pid = start(soak, Role::Drain);
    let since = Instant::now();
    loop {
        match wait(pid, WaitOptions::NOHANG) {
            Some(status) if status.exit_status() == Some(0) => return true,
            Some(status) => report.trouble(Trouble::Wrong, format!("the last worker has ended with {status:?}")),
            None if since.elapsed() > Duration::from_secs(120) => {
                report.trouble(Trouble::Wrong, "the last worker does not end");
                kill_process(pid, Signal::KILL).unwrap();
                wait(pid, WaitOptions::empty());
            }
            None => {
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
        }
        return false;
    }
}

#[expect(clippy::zombie_processes, reason = "waited for by its id, which also hears of stops")]
fn start(soak: &Soak, role: Role) -> Pid {
    let program = std::env::current_exe().unwrap();
    let log = std::fs::File::options().create(true).append(true).open(soak.folder.join("stderr")).unwrap();
    let child = Command::new(program).args(role.arguments(soak)).stdin(Stdio::null()).stderr(log).spawn().unwrap();
    Pid::from_child(&child)
}

/// How it has ended or that it has stopped, if it has.
fn wait(pid: Pid, options: WaitOptions) -> Option<WaitStatus> {
    waitpid(Some(pid), options).unwrap().map(|(_, status)| status)
}
