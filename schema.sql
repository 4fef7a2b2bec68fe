-- jobq schema, version 5.
--
-- This file is the only copy of the schema and the contract for programs in
-- any language. It needs nothing beyond a stock SQLite 3.37.
--
-- A program that is not jobq may do exactly two things here:
--
--   1. queue a job, on its own transaction:
--        INSERT INTO jobs (id, type, payload) VALUES (?, ?, ?);
--      id is a new name (letters, digits, `-` and `_`, at most 64; a UUID is
--      one), type names the handler (1 to 64 letters, digits, `_`, `.` and `-`),
--      payload is a JSON object as text, at most 16 MiB and 128 levels, and no
--      object in it has a key twice.
--      If wanted, besides:
--        priority         default 0
--        run_at           not before this time
--        max_attempts     3 if left out, also where the type has its own default
--        timeout, backoff_base, backoff_max
--                         the type's own if left out
--        waiting_on       the id of a job that was queued before and has neither
--                         failed nor been cancelled
--        correlation_id   any text
--        idempotency_key  the same as any unfinished job of this type with this
--                         key; '' means "no key, never a duplicate", NULL means
--                         "the type's own rule". Keys do not begin with 'payload:'
--        holds            a JSON array of lanes, as in '["lane:reports"]'
--      Every other column is jobq's own: leave it out, or give its default.
--      What happens then:
--        the INSERT fails              id or key is taken, or a column was given
--                                      that is jobq's own; see the triggers
--        pending, gate 'new'           until a jobq process comes that knows the
--                                      type: a worker, or any command that writes
--        pending, another gate         admitted
--        failed, 'invalid_input: …'    the payload or another column is wrong
--        cancelled, 'duplicate of …'   the same job is there, unfinished
--   2. read: the tables, and the views at the end of this file.
--
-- Everything else goes through jobq. Begin with BEGIN IMMEDIATE, set a busy
-- timeout, and PRAGMA synchronous = FULL: how durable the row is, is up to the
-- connection that inserts it. After any error roll back: a statement of several
-- rows that is refused at one of them keeps those before it. The database is in
-- WAL mode; leave that, and keep no read transaction open, so that the log can
-- be begun anew.
--
-- Times are INTEGER milliseconds since 1970-01-01 UTC, durations INTEGER
-- milliseconds, but for the times of files in `effects`, which are nanoseconds.

-- ---------------------------------------------------------------------------
-- jobq_meta: facts about this database. schema_version is kept here and not in
-- PRAGMA user_version because the application may own that one. Every write
-- transaction of jobq reads it again, so an old process never writes into a
-- schema that has moved on. root is the folder jobs may touch, if it is not the
-- one that follows from where the database is. state_folder is the inode and
-- birth time of the folder in which the queue was made: a copy is only read.
-- ---------------------------------------------------------------------------
CREATE TABLE jobq_meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO jobq_meta (key, value) VALUES ('schema_version', '5');

-- ---------------------------------------------------------------------------
-- jobs: one row per job, whatever its type. Adding a type never changes this.
--
--                        claim
--   INSERT ──► pending ─────────► claimed ───────► completed
--                │ ▲ ▲               │ │ ▲
--         cancel │ │ └── reschedule ─┘ │ └── take over (decided rows only)
--                │ │     release       │
--                │ │     reclaim       ├─► failed ────► claimed  (retry of a
--                ▼ │                   │     │           decided row)
--           cancelled ◄────────────────┘     │
--                │ └── retry ──► pending ◄───┘
--
-- The same machine is `src/state.rs`; a test compares the two pair by pair.
--
-- Small columns come first and the big ones last: SQLite has to walk past a
-- value's overflow pages to reach a column that is stored behind it.
-- ---------------------------------------------------------------------------
CREATE TABLE jobs (
    -- Order of acceptance. AUTOINCREMENT, because a plain rowid may be used
    -- again after the newest row is pruned, and order must never go back.
    seq              INTEGER PRIMARY KEY AUTOINCREMENT CHECK (seq > 0),
    -- The job's name: a ULID, or what the caller brought (letters, digits, `-`
    -- and `_`, at most 64; checked when the row is admitted).
    id               TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    type             TEXT    NOT NULL CHECK (type <> ''),
    -- CHECKs are written without function calls, which would cost every INSERT
    -- a statement journal, and with OR instead of IN, which would build a
    -- temporary table for every row.
    status           TEXT    NOT NULL DEFAULT 'pending'
                     CHECK (status = 'pending' OR status = 'claimed' OR status = 'completed'
                            OR status = 'failed' OR status = 'cancelled'),
    -- Why a pending job is not running yet; exactly one reason at a time, taken
    -- in this order, so that "claimable" is one indexed word:
    --   new       inserted by plain SQL, not yet validated and admitted by jobq
    --   waiting   for the job in waiting_on
    --   delayed   run_at was given and has not come
    --   backoff   rescheduled after a failure; run_at has not come
    --   held      another job is before it on one of its holds
    --   ready     claimable now
    gate             TEXT    DEFAULT 'new'
                     CHECK (gate = 'ready' OR gate = 'new' OR gate = 'waiting' OR gate = 'delayed'
                            OR gate = 'backoff' OR gate = 'held'),
    -- Higher runs first; equal priorities run in order of seq.
    priority         INTEGER NOT NULL DEFAULT 0
                     CHECK (priority BETWEEN -2147483648 AND 2147483647),
    -- Claims so far. One that was given back unused is taken off again.
    attempts         INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    max_attempts     INTEGER NOT NULL DEFAULT 3 CHECK (max_attempts BETWEEN 1 AND 4294967295),
    -- Fencing token: grows at every claim, never goes back. Every write on a
    -- claimed job names it.
    token            INTEGER NOT NULL DEFAULT 0 CHECK (token >= 0),
    -- Number of this job's newest event.
    event_seq        INTEGER NOT NULL DEFAULT 1,
    -- Set for a claimed job that is to stop at its next safe point.
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    -- Signs of life since the claim. Leases are judged by this number standing
    -- still on the judge's own clock; heartbeat_at is for people to read.
    heartbeat        INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL
                     DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)),
    -- Not before this time: given by the caller, or by the backoff.
    run_at           INTEGER,
    -- While claimed: since when the owner has it, and its newest sign of life.
    locked_at        INTEGER,
    heartbeat_at     INTEGER,
    -- The newest claim. It stays when the job has ended.
    claimed_at       INTEGER,
    -- When it was completed, failed or cancelled; NULL while it is unfinished.
    completed_at     INTEGER,
    -- NULL until admitted: then the type's default unless the inserter gave one.
    timeout          INTEGER CHECK (timeout > 0),
    backoff_base     INTEGER CHECK (backoff_base >= 0),
    backoff_max      INTEGER CHECK (backoff_max >= 0),
    -- Who has it, as in `owners`. NULL for a decided job that is to be applied by
    -- whoever comes.
    locked_by        TEXT,
    -- The job this one still waits for; NULL once that one has completed.
    waiting_on       TEXT,
    -- What makes it the same as another unfinished job of its type; NULL or ''
    -- when it has none.
    idempotency_key  TEXT,
    -- The caller's name for all that belongs to one cause.
    correlation_id   TEXT,
    -- sha256 (hex) over the stored bytes of payload: detects damage.
    payload_hash     TEXT,
    -- JSON array of the hold keys this job has while unfinished; NULL = none.
    holds            TEXT,
    -- `code: message` of the newest failure. Earlier ones are in job_events.
    last_error       TEXT,
    -- {"percent":…,"message":…} as last reported by the handler.
    progress         TEXT,
    -- Whatever the handler wants its next attempt to find.
    checkpoint       TEXT,
    -- JSON: what the completed job left, or a failed one (a cost).
    result           TEXT,
    -- Set by decide: result, follow-up jobs and a hash over them and the effects.
    -- A decided job is never run again; whoever comes next applies it.
    outcome          TEXT,
    payload          TEXT    NOT NULL,

    CHECK ((status = 'pending') = (gate IS NOT NULL)),
    CHECK (gate = 'new' OR payload_hash IS NOT NULL),
    CHECK (locked_by IS NULL OR status = 'claimed'),
    CHECK (status <> 'claimed' OR locked_by IS NOT NULL OR outcome IS NOT NULL),
    CHECK (status <> 'pending' OR outcome IS NULL),
    CHECK ((completed_at IS NOT NULL) = (status NOT IN ('pending', 'claimed')))
) STRICT;

-- The index a claim walks holds claimable rows and nothing else: finished,
-- delayed, waiting and held rows cost it nothing. Type comes first, so that
-- rows of a type nobody here handles are never visited.
CREATE INDEX jobs_ready ON jobs (type, priority DESC, seq) WHERE gate = 'ready';

-- Rows to be promoted when their time comes.
CREATE INDEX jobs_due ON jobs (run_at) WHERE gate IN ('delayed', 'backoff');
-- A backoff that lies farther away than the longest one possible was computed
-- by a clock that has since been set back: such a row is due.
CREATE INDEX jobs_backoff_cap ON jobs (run_at - backoff_max) WHERE gate = 'backoff';

-- Plain-SQL rows that no jobq process has admitted yet.
CREATE INDEX jobs_new ON jobs (type, seq) WHERE gate = 'new';

CREATE INDEX jobs_waiting_on ON jobs (waiting_on) WHERE waiting_on IS NOT NULL;

-- Decided jobs whose owner is gone: to be applied by whoever comes.
CREATE INDEX jobs_unowned ON jobs (run_at) WHERE status = 'claimed' AND locked_by IS NULL;

-- Uniqueness among unfinished jobs: the database refuses a second one. Told by
-- completed_at and not by status, so that a claim does not touch this index.
CREATE UNIQUE INDEX jobs_active_key ON jobs (type, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND idempotency_key <> '' AND completed_at IS NULL;
-- For unique = always, which also looks at finished jobs that are still kept.
-- Default keys ("payload:" and a hash) are left out: every completed job would
-- write to a random page of an ever larger index for the sake of a question
-- that is hardly ever asked about them (it is then answered from jobs_by_type).
CREATE INDEX jobs_finished_key ON jobs (type, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND idempotency_key <> ''
      AND (idempotency_key < 'payload:' OR idempotency_key >= 'payload;')
      AND completed_at IS NOT NULL;

-- Listing and counting. The rowid is the implied last column of every index,
-- so each stretch of one status, or of one type, is in order of seq.
CREATE INDEX jobs_by_status ON jobs (status);
CREATE INDEX jobs_by_type ON jobs (type);
-- Finished jobs by age, each kind apart: retention finds what is old enough of a
-- type without walking past what is kept (other types, failed jobs), and
-- statistics find the newest ones.
CREATE INDEX jobs_finished ON jobs (type, status, completed_at) WHERE completed_at IS NOT NULL;

-- ---------------------------------------------------------------------------
-- job_holds: keys of unfinished jobs ("path:out/a.json", "lane:reports").
-- Holders of a key run one at a time, in order of seq.
-- ---------------------------------------------------------------------------
CREATE TABLE job_holds (
    key    TEXT    NOT NULL,
    seq    INTEGER NOT NULL,
    job_id TEXT    NOT NULL,
    -- 1 while the job is claimed.
    active INTEGER NOT NULL DEFAULT 0 CHECK (active IN (0, 1)),
    PRIMARY KEY (key, seq)
) STRICT, WITHOUT ROWID;

-- Two claimed jobs on one key are impossible, whatever the code above does.
CREATE UNIQUE INDEX job_holds_active ON job_holds (key) WHERE active = 1;

-- ---------------------------------------------------------------------------
-- retry_guards: for each failed or cancelled job that had holds, whether a
-- later job on the same key has run since. If so, a manual retry is
-- refused: it would undo what the later job did.
-- ---------------------------------------------------------------------------
CREATE TABLE retry_guards (
    key          TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    overtaken_by TEXT,
    PRIMARY KEY (key, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX retry_guards_open ON retry_guards (key, seq) WHERE overtaken_by IS NULL;
CREATE INDEX retry_guards_job ON retry_guards (seq);

-- ---------------------------------------------------------------------------
-- job_events: what happened, append-only, written in the transaction of what
-- it tells. id is global (follow it), seq counts per job and never resets.
--
--   type         data (JSON, or NULL)
--   queued
--   claimed      {"worker"}; also when a decided job is taken over
--   progress     {"percent", "message"}
--   decided      {"effects", "follow_ups"}: how many
--   completed
--   failed       {"code", "message", "details"}
--   rescheduled  the same with "run_at" (RFC 3339): another attempt, or another
--                try to apply
--   released     given back; the attempt does not count
--   worker_lost  {"worker"}: its owner died or was silent for a lease
--   reclaimed    taken back from it
--   cancelled    {"duplicate_of"} if that is why
--   retried      by hand
--
-- attempt is the job's number of attempts at that time.
-- ---------------------------------------------------------------------------
CREATE TABLE job_events (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id  TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    type    TEXT    NOT NULL
            CHECK (type = 'queued' OR type = 'claimed' OR type = 'completed' OR type = 'failed'
                   OR type = 'progress' OR type = 'decided' OR type = 'rescheduled' OR type = 'released'
                   OR type = 'worker_lost' OR type = 'reclaimed' OR type = 'cancelled' OR type = 'retried'),
    data    TEXT,
    at      INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX job_events_job ON job_events (job_id, seq);

-- ---------------------------------------------------------------------------
-- effects: what decided jobs will do (planned) and have done (applied) to
-- files under the root. The latest applied effect of a path is what the disk
-- should hold. Rows outlive their jobs: see prune.
--
-- Kept in order of path, not of insertion: whoever compares all of it with the
-- disk reads one folder after the other, and there is one page less to write.
-- ---------------------------------------------------------------------------
CREATE TABLE effects (
    path         TEXT    NOT NULL,
    -- A job does one thing to a path.
    job_id       TEXT    NOT NULL,
    -- Its place among what the job does; applied in this order.
    number       INTEGER NOT NULL,
    op           TEXT    NOT NULL CHECK (op IN ('put', 'remove')),
    state        TEXT    NOT NULL DEFAULT 'planned' CHECK (state IN ('planned', 'applied')),
    -- What must be at path when the effect is applied: 'absent', or a sha256.
    precondition TEXT    NOT NULL,
    -- Size, mtime, ctime and inode of that content as noted at decide, so that
    -- a large file need not be hashed under the write lock. JSON.
    observed     TEXT,
    -- For a put: the new content, and the staged file that carries it (a
    -- name below .jobq/stage).
    sha256       TEXT,
    size         INTEGER,
    stage        TEXT,
    -- The file as apply left it, mtime in nanoseconds: the fast path of reconcile.
    mtime        INTEGER,
    inode        INTEGER,
    -- The id of the event that completed the job: orders effects by when they
    -- were applied, whatever the clock did.
    applied_in   INTEGER,
    -- When, by the clock: what is left of it when the job is gone.
    applied_at   INTEGER,
    CHECK ((op = 'put') = (sha256 IS NOT NULL)),
    CHECK ((op = 'put') = (size IS NOT NULL)),
    PRIMARY KEY (path, job_id),
    CHECK ((state = 'applied') = (applied_in IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX effects_job ON effects (job_id, number);

-- ---------------------------------------------------------------------------
-- owners: who claimed. Written with a process's first claim; read to find out
-- whether that process is still alive.
-- ---------------------------------------------------------------------------
CREATE TABLE owners (
    locked_by  TEXT    NOT NULL PRIMARY KEY,
    machine_id TEXT    NOT NULL,
    boot_id    TEXT    NOT NULL,
    pid        INTEGER NOT NULL,
    -- The file this process keeps locked while it lives, beside the database.
    lock_file  TEXT    NOT NULL,
    started_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------
-- type_pauses: types of which no job is claimed for now, because the handler
-- of one of them was told to wait (a rate limit). At most one row per type, and
-- hardly ever any: a claim reads them all. Jobs of a paused type keep their gate;
-- decided ones are applied as always.
-- ---------------------------------------------------------------------------
CREATE TABLE type_pauses (
    type   TEXT    NOT NULL PRIMARY KEY,
    until  INTEGER NOT NULL,
    -- One that has not begun yet was written by a clock that has since been set
    -- back: it is not believed.
    since  INTEGER NOT NULL,
    -- The error that asked for it.
    reason TEXT
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------
-- Triggers: the state machine, enforced for every writer in every language.
-- They refuse before the row is touched, with RAISE(FAIL): the offending row is
-- never changed, and statements that cannot leave half a row behind need no
-- journal of their own (RAISE(ABORT) would cost every write one).
-- ---------------------------------------------------------------------------

-- A job starts pending, unowned and untried, at the end of the line (an
-- automatic seq reads as -1 here), and claims nothing that only a run can give
-- it: a forged checkpoint would reach a program. Past the gate `new`, it has
-- all that admission fills in …
CREATE TRIGGER jobs_insert BEFORE INSERT ON jobs
WHEN NEW.seq <> -1 OR NEW.status <> 'pending' OR NEW.attempts <> 0 OR NEW.token <> 0 OR NEW.locked_by IS NOT NULL
  OR NEW.outcome IS NOT NULL OR NEW.event_seq <> 1 OR NEW.cancel_requested <> 0 OR NEW.heartbeat <> 0
  OR NEW.locked_at IS NOT NULL OR NEW.heartbeat_at IS NOT NULL OR NEW.claimed_at IS NOT NULL
  OR NEW.completed_at IS NOT NULL OR NEW.last_error IS NOT NULL OR NEW.progress IS NOT NULL
  OR NEW.checkpoint IS NOT NULL OR NEW.result IS NOT NULL
  OR (NEW.gate <> 'new' AND (NEW.payload_hash IS NULL OR NEW.timeout IS NULL OR NEW.backoff_base IS NULL
                             OR NEW.backoff_max IS NULL))
BEGIN
    SELECT RAISE(FAIL, 'jobq: last_error, progress, checkpoint and result come from a run of the job; leave them out')
     WHERE NEW.last_error IS NOT NULL OR NEW.progress IS NOT NULL OR NEW.checkpoint IS NOT NULL
        OR NEW.result IS NOT NULL;
    SELECT RAISE(FAIL, 'jobq: heartbeat, locked_at, heartbeat_at, claimed_at and completed_at come from a run of the job; leave them out')
     WHERE NEW.status = 'pending'
       AND (NEW.heartbeat <> 0 OR NEW.locked_at IS NOT NULL OR NEW.heartbeat_at IS NOT NULL
            OR NEW.claimed_at IS NOT NULL OR NEW.completed_at IS NOT NULL);
    SELECT RAISE(FAIL, 'jobq: gate is new until jobq has admitted the job; leave it out, and payload_hash too')
     WHERE NEW.gate <> 'new' AND (NEW.payload_hash IS NULL OR NEW.timeout IS NULL OR NEW.backoff_base IS NULL
                                  OR NEW.backoff_max IS NULL);
    SELECT RAISE(FAIL, 'jobq: a job is inserted as pending, without a seq, attempts, token, lock or outcome of its own');
END;

-- … takes nobody's place: REPLACE would delete a job without asking the
-- trigger that guards deletion …
CREATE TRIGGER jobs_no_replace BEFORE INSERT ON jobs
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = NEW.id)
  OR (NEW.gate = 'new'
      AND EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_active_key
                   WHERE type = NEW.type AND idempotency_key = NEW.idempotency_key AND idempotency_key <> ''
                     AND completed_at IS NULL))
BEGIN
    SELECT RAISE(FAIL, 'jobq: there is a job with this id or key already; jobs are never replaced');
END;

-- … and its first event says so.
CREATE TRIGGER jobs_queued AFTER INSERT ON jobs
BEGIN
    INSERT INTO job_events (job_id, seq, attempt, type, at)
    VALUES (NEW.id, 1, 0, 'queued', NEW.created_at);
END;

CREATE TRIGGER jobs_fixed BEFORE UPDATE OF seq, id, type, payload, created_at ON jobs
BEGIN
    SELECT RAISE(FAIL, 'jobq: seq, id, type, payload and created_at of a job never change; queue a new job instead');
END;

-- Written so that each usual step is found by its first words: SQLite stops at
-- the first alternative that holds. An update that leaves status, token, owner
-- and outcome as they are is no transition.
CREATE TRIGGER jobs_transition BEFORE UPDATE OF status, token, locked_by, outcome ON jobs
WHEN NOT (
    -- claim: a new token, one more attempt
    (OLD.status = 'pending' AND NEW.status = 'claimed' AND NEW.token = OLD.token + 1
        AND NEW.attempts = OLD.attempts + 1 AND NEW.locked_by IS NOT NULL AND NEW.outcome IS NULL)
    -- complete, fail
    OR (OLD.status = 'claimed' AND (NEW.status = 'completed' OR NEW.status = 'failed')
        AND NEW.token = OLD.token AND NEW.outcome IS OLD.outcome)
    -- decide, apply by its owner, or letting go of the lease
    OR (OLD.status = 'claimed' AND NEW.status = 'claimed' AND NEW.token = OLD.token
        AND (NEW.locked_by IS OLD.locked_by OR (NEW.locked_by IS NULL AND OLD.outcome IS NOT NULL))
        AND (NEW.outcome IS OLD.outcome OR OLD.outcome IS NULL))
    -- take over: only what is decided may change hands while claimed
    OR (OLD.status = 'claimed' AND NEW.status = 'claimed' AND NEW.token = OLD.token + 1
        AND OLD.outcome IS NOT NULL AND NEW.outcome IS OLD.outcome AND NEW.attempts = OLD.attempts)
    -- reschedule, release, reclaim, cancel: not once it is decided
    OR (OLD.status = 'claimed' AND (NEW.status = 'pending' OR NEW.status = 'cancelled')
        AND NEW.token = OLD.token AND OLD.outcome IS NULL AND NEW.outcome IS NULL)
    -- cancel; or an update that leaves the state as it is
    OR (OLD.status = 'pending' AND (NEW.status = 'cancelled' OR NEW.status = 'pending')
        AND NEW.token = OLD.token AND NEW.outcome IS NULL)
    -- retry; of a decided job: decided again, never pending
    OR (OLD.status = 'failed' AND NEW.status = 'pending' AND NEW.token = OLD.token
        AND OLD.outcome IS NULL AND NEW.outcome IS NULL AND NEW.attempts = 0)
    OR (OLD.status = 'failed' AND NEW.status = 'claimed' AND NEW.token = OLD.token
        AND OLD.outcome IS NOT NULL AND NEW.outcome IS OLD.outcome AND NEW.locked_by IS NULL)
    OR (OLD.status = 'cancelled' AND NEW.status = 'pending' AND NEW.token = OLD.token
        AND NEW.outcome IS OLD.outcome AND NEW.attempts = 0)
    -- finished, and it stays so
    OR (NEW.status = OLD.status AND OLD.completed_at IS NOT NULL AND NEW.token = OLD.token
        AND NEW.outcome IS OLD.outcome)
)
BEGIN
    SELECT RAISE(FAIL, 'jobq: illegal transition; the state machine is drawn in schema.sql');
END;

-- UPDATE OR REPLACE would delete a job whose key is taken over.
CREATE TRIGGER jobs_key_taken BEFORE UPDATE OF idempotency_key ON jobs
WHEN NEW.status IN ('pending', 'claimed')
 AND EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_active_key
              WHERE type = NEW.type AND idempotency_key = NEW.idempotency_key AND idempotency_key <> ''
                AND completed_at IS NULL AND seq <> NEW.seq)
BEGIN
    SELECT RAISE(FAIL, 'jobq: there is an unfinished job with this key already; jobs are never replaced');
END;

CREATE TRIGGER jobs_key_back BEFORE UPDATE OF completed_at ON jobs
WHEN OLD.completed_at IS NOT NULL AND NEW.completed_at IS NULL
 AND EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_active_key
              WHERE type = NEW.type AND idempotency_key = NEW.idempotency_key AND idempotency_key <> ''
                AND completed_at IS NULL AND seq <> NEW.seq)
BEGIN
    SELECT RAISE(FAIL, 'jobq: there is an unfinished job with this key already; jobs are never replaced');
END;

-- No job silently disappears: only finished ones can be deleted, and only when
-- nothing waits on them. What belongs to the job goes with it.
CREATE TRIGGER jobs_delete BEFORE DELETE ON jobs
BEGIN
    SELECT RAISE(FAIL, 'jobq: an unfinished job cannot be deleted; cancel it first')
     WHERE OLD.status IN ('pending', 'claimed');
    SELECT RAISE(FAIL, 'jobq: a job that another job waits on cannot be deleted')
     WHERE EXISTS (SELECT 1 FROM jobs WHERE waiting_on = OLD.id);
    DELETE FROM job_events WHERE job_id = OLD.id;
    DELETE FROM retry_guards WHERE seq = OLD.seq;
END;

-- What happened stays as it was told, as long as its job is unfinished; after
-- that it may go, with the job.
CREATE TRIGGER job_events_fixed BEFORE UPDATE ON job_events
BEGIN
    SELECT RAISE(FAIL, 'jobq: events are only ever added');
END;

CREATE TRIGGER job_events_delete BEFORE DELETE ON job_events
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job_id AND status IN ('pending', 'claimed'))
BEGIN
    SELECT RAISE(FAIL, 'jobq: events of an unfinished job cannot be deleted');
END;

-- ---------------------------------------------------------------------------
-- Views: the six questions, each one SELECT away. Times are readable here.
-- ---------------------------------------------------------------------------

-- What work is outstanding right now?
CREATE VIEW jobq_outstanding AS
SELECT type, status, gate, count(*) AS jobs,
       strftime('%Y-%m-%dT%H:%M:%fZ', min(created_at) / 1000.0, 'unixepoch') AS oldest
  FROM jobs
 WHERE status IN ('pending', 'claimed')
 GROUP BY type, status, gate;

-- What failed and why?
CREATE VIEW jobq_failed AS
SELECT id, type, attempts, last_error,
       strftime('%Y-%m-%dT%H:%M:%fZ', completed_at / 1000.0, 'unixepoch') AS failed_at
  FROM jobs
 WHERE status = 'failed'
 ORDER BY completed_at DESC;

-- Is anything stuck? No sign of life for five minutes.
CREATE VIEW jobq_stuck AS
SELECT id, type, locked_by, attempts,
       strftime('%Y-%m-%dT%H:%M:%fZ', locked_at / 1000.0, 'unixepoch') AS locked_at,
       strftime('%Y-%m-%dT%H:%M:%fZ', heartbeat_at / 1000.0, 'unixepoch') AS last_sign_of_life
  FROM jobs
 WHERE status = 'claimed'
   AND coalesce(heartbeat_at, locked_at, 0)
       < CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER) - 300000;

-- How long do jobs take? Over everything that is kept, so it reads all of it.
CREATE VIEW jobq_durations AS
SELECT type, count(*) AS jobs,
       min(completed_at - claimed_at) AS min_ms,
       CAST(avg(completed_at - claimed_at) AS INTEGER) AS avg_ms,
       max(completed_at - claimed_at) AS max_ms
  FROM jobs
 WHERE status = 'completed' AND claimed_at IS NOT NULL
 GROUP BY type;

-- Are there duplicate jobs? Among unfinished ones there cannot be; this shows
-- keys that were queued more than once over time.
CREATE VIEW jobq_duplicates AS
SELECT type, idempotency_key, count(*) AS jobs,
       sum(status IN ('pending', 'claimed')) AS unfinished
  FROM jobs
 WHERE idempotency_key IS NOT NULL AND idempotency_key <> ''
 GROUP BY type, idempotency_key
HAVING count(*) > 1;

-- What ran in the last hour? Type by type, because that is how finished jobs are
-- indexed; the types are found by leaping from one to the next.
CREATE VIEW jobq_last_hour AS
WITH RECURSIVE known (type) AS (
    SELECT min(type) FROM jobs
     UNION ALL
    SELECT (SELECT min(jobs.type) FROM jobs WHERE jobs.type > known.type) FROM known WHERE known.type IS NOT NULL
)
SELECT id, jobs.type, status, attempts, completed_at - claimed_at AS took_ms, last_error,
       strftime('%Y-%m-%dT%H:%M:%fZ', completed_at / 1000.0, 'unixepoch') AS completed_at
  FROM known CROSS JOIN jobs INDEXED BY jobs_finished
 WHERE jobs.type = known.type AND jobs.status IN ('completed', 'failed', 'cancelled')
   AND jobs.completed_at
       >= CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER) - 3600000
 ORDER BY jobs.completed_at DESC;
