//! Random operations. They are chosen with a look at the reference, so that
//! most of them make sense; enough do not, and must then be refused.

use jobq::Status;
use jobq::store::Started;

use crate::op::{DEDUP_KEYS, HOLD_KEYS, JobNo, LANES, LeaseRef, Op, Report, Request, Rule, TYPES, WORKERS};
use crate::reference::{LONGEST_PAUSE, RefJob, Reference};

/// splitmix64: small, and the same everywhere for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u8) -> u8 {
        u8::try_from(self.next() % u64::from(bound.max(1))).expect("smaller than a u8")
    }

    fn percent(&mut self, chance: u8) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let index = self.next() % u64::try_from(from.len()).ok().filter(|len| *len > 0)?;
        from.get(usize::try_from(index).ok()?).cloned()
    }

    /// Each of `0..count` with this chance.
    fn some_of(&mut self, count: u8, chance: u8) -> Vec<u8> {
        (0..count).filter(|_| self.percent(chance)).collect()
    }
}

pub struct Generator {
    pub random: Random,
    next_no: JobNo,
    /// Every claim ever made in this sequence.
    past_leases: Vec<LeaseRef>,
    stamp: i64,
}

impl Generator {
    pub fn new(random: Random) -> Self {
        Self { random, next_no: 0, past_leases: Vec::new(), stamp: 0 }
    }

    pub fn next(&mut self, world: &Reference) -> Op {
        for lease in world.jobs.iter().filter(|job| job.token > 0).map(RefJob::lease) {
            if !self.past_leases.contains(&lease) {
                self.past_leases.push(lease);
            }
        }
        let unowned = world.jobs.iter().any(|job| job.status == Status::Claimed && job.owner.is_none());
        if unowned && self.random.percent(15) {
            return Op::TakeOver { worker: self.random.below(WORKERS), limit: u32::from(self.random.below(3)) };
        }
        match self.random.below(100) {
            0..=15 => Op::Enqueue(vec![self.request(world, true)]),
            16..=19 => self.batch(world),
            20..=35 => Op::Claim {
                worker: self.random.below(WORKERS),
                types: self.random.some_of(TYPES, 75),
                limit: u32::from(self.random.below(4)),
                limits: self.limits(),
            },
            36..=38 => Op::TakeOver { worker: self.random.below(WORKERS), limit: u32::from(self.random.below(3)) },
            39..=75 => match self.lease(world) {
                Some(lease) => self.verb(world, lease),
                None => Op::Claim { worker: 0, types: vec![0, 1, 2], limit: 2, limits: self.limits() },
            },
            76..=79 => self.job(world).map_or(Op::Leases, Op::Cancel),
            80..=84 => self.ended(world).or_else(|| self.job(world)).map_or(Op::Leases, Op::Retry),
            85..=88 => self.dead_owner(world),
            89 => Op::Leases,
            90..=91 => Op::Prune {
                ended_before: world.now + i64::from(self.random.below(3)) * 5_000 - 5_000,
                failed: self.random.percent(40),
                forget: false,
            },
            _ => Op::MoveClock(self.clock_step()),
        }
    }

    fn limits(&mut self) -> Vec<(u8, u32)> {
        let limited = self.random.some_of(TYPES, 30);
        limited.into_iter().map(|job_type| (job_type, 1 + u32::from(self.random.below(2)))).collect()
    }

    fn batch(&mut self, world: &Reference) -> Op {
        let mut requests: Vec<Request> = (0..=self.random.below(3)).map(|_| self.request(world, true)).collect();
        if let [first, .., last] = requests.as_mut_slice()
            && self.random.percent(40)
        {
            last.waiting_on = Some(first.no);
        }
        Op::Enqueue(requests)
    }

    fn request(&mut self, world: &Reference, may_repeat: bool) -> Request {
        let mut holds = self.random.some_of(HOLD_KEYS, 25);
        holds.truncate(2);
        let random = &mut self.random;
        // A name that was used before: the same request again, or a mistake.
        let repeated = if may_repeat && random.percent(6) { random.pick(&world.jobs) } else { None };
        let no = repeated.as_ref().map_or(self.next_no, |job| job.no);
        self.next_no += JobNo::from(repeated.is_none());
        Request {
            no,
            id_given: repeated.is_some(),
            job_type: repeated.as_ref().map_or_else(|| random.below(TYPES), |job| job.job_type),
            payload: random.below(2),
            rule: match random.below(10) {
                0..=3 => Rule::Never,
                4..=6 => Rule::Key(random.below(DEDUP_KEYS)),
                7 => Rule::KeyAlways(random.below(DEDUP_KEYS)),
                _ => Rule::NewestHolder,
            },
            holds,
            priority: i32::from(random.below(3)) - 1,
            run_at: random.percent(25).then(|| world.now + i64::from(random.below(6)) * 1_000),
            max_attempts: 1 + u32::from(random.below(3)),
            backoff_max: if random.percent(50) { 30_000 } else { 2_000 },
            waiting_on: if random.percent(20) { random.pick(&world.jobs).map(|job| job.no) } else { None },
        }
    }

    /// Their names count as given: nobody else can come to use them first.
    fn follow_ups(&mut self, world: &Reference, of: JobNo) -> Vec<Request> {
        let count = if self.random.percent(40) { 1 + self.random.below(2) } else { 0 };
        let mut requests: Vec<Request> = (0..count).map(|_| self.request(world, false)).collect();
        for request in &mut requests {
            request.id_given = true;
            if self.random.percent(20) {
                request.waiting_on = Some(of);
            }
            // The job that queues its successor under its own key.
            if let Some(job) = world.job(of)
                && let Some(key) = job.key
                && self.random.percent(30)
            {
                request.job_type = job.job_type;
                request.rule = Rule::Key(key);
            }
        }
        requests
    }

    /// Mostly one that is held; sometimes any that ever was.
    fn lease(&mut self, world: &Reference) -> Option<LeaseRef> {
        let held: Vec<LeaseRef> = world.leases().iter().map(|held| held.lease).collect();
        if self.random.percent(15) { self.random.pick(&self.past_leases) } else { self.random.pick(&held) }
    }

    fn verb(&mut self, world: &Reference, lease: LeaseRef) -> Op {
        let job = world.job(lease.job);
        if job.is_some_and(|job| job.decided.is_some()) && self.random.percent(60) {
            return Op::Apply { lease, report: self.report() };
        }
        match self.random.below(24) {
            0..=1 => Op::Heartbeat { lease, progress: self.random.percent(50) },
            2..=4 => Op::Complete(vec![(lease, self.follow_ups(world, lease.job))]),
            5 => {
                let held = world.leases().into_iter().map(|held| (held.lease, Vec::new()));
                Op::Complete(held.chain([(lease, self.follow_ups(world, lease.job))]).collect())
            }
            6..=9 => {
                let mut paths = self.random.some_of(HOLD_KEYS, 60);
                paths.retain(|key| *key >= LANES);
                Op::Decide { lease, paths, follow_ups: self.follow_ups(world, lease.job) }
            }
            10..=11 => Op::Apply { lease, report: self.report() },
            12..=14 => Op::Reschedule {
                lease,
                delay: [0, 500, 3_000, 60_000][usize::from(self.random.below(4))],
                pause: [None, None, Some(2_000), Some(40_000), Some(LONGEST_PAUSE), Some(900_000_000)]
                    [usize::from(self.random.below(6))],
            },
            15..=17 => Op::Fail(lease),
            18..=20 => Op::Release(lease),
            21 => Op::AcknowledgeCancel(lease),
            _ => {
                let heartbeat = job.map_or(0, |job| job.heartbeat) + i64::from(self.random.percent(15));
                let started = [Started::Yes, Started::No, Started::Unknown][usize::from(self.random.below(3))];
                Op::ReclaimLapsed { lease, heartbeat, started }
            }
        }
    }

    fn report(&mut self) -> Report {
        self.stamp += 1;
        match self.random.below(10) {
            0..=4 => Report::Applied { stamp: self.stamp },
            5..=7 => Report::Conflict { on_disk: usize::from(self.random.below(2)), stamp: self.stamp },
            _ => Report::Deferred { delay: [0, 400, 60_000][usize::from(self.random.below(3))] },
        }
    }

    fn dead_owner(&mut self, world: &Reference) -> Op {
        let worker = self.random.below(WORKERS);
        let held = world.leases();
        let started = self
            .random
            .percent(70)
            .then(|| held.iter().map(|held| held.lease).filter(|_| self.random.percent(50)).collect::<Vec<LeaseRef>>());
        Op::ReclaimDead { worker, started }
    }

    fn job(&mut self, world: &Reference) -> Option<JobNo> {
        self.random.pick(&world.jobs).map(|job| job.no)
    }

    fn ended(&mut self, world: &Reference) -> Option<JobNo> {
        let ended = world.jobs.iter().filter(|job| matches!(job.status, Status::Failed | Status::Cancelled));
        let ended: Vec<JobNo> = ended.map(|job| job.no).collect();
        self.random.pick(&ended)
    }

    fn clock_step(&mut self) -> i64 {
        let step = i64::from(self.random.below(100));
        match self.random.below(10) {
            0 => -step * 1_000,
            1..=2 => step * 1_000,
            _ => step * 50,
        }
    }
}
