-- Version 2 to 3: what a claim and a completion write is less, and effects are
-- kept in order of path.

-- Keys are told by completed_at, so that a claim does not touch their index;
-- finished jobs are found by type, status and age.
DROP TRIGGER jobs_no_replace;
DROP TRIGGER jobs_transition;
DROP TRIGGER jobs_key_taken;
DROP TRIGGER jobs_key_back;
DROP INDEX jobs_active_key;
DROP INDEX jobs_finished_key;
DROP INDEX jobs_by_type;
DROP INDEX jobs_finished;

CREATE UNIQUE INDEX jobs_active_key ON jobs (type, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND idempotency_key <> '' AND completed_at IS NULL;
CREATE INDEX jobs_finished_key ON jobs (type, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND idempotency_key <> ''
      AND (idempotency_key < 'payload:' OR idempotency_key >= 'payload;')
      AND completed_at IS NOT NULL;
CREATE INDEX jobs_by_type ON jobs (type);
CREATE INDEX jobs_finished ON jobs (type, status, completed_at) WHERE completed_at IS NOT NULL;

CREATE TRIGGER jobs_no_replace BEFORE INSERT ON jobs
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = NEW.id)
  OR (NEW.gate = 'new'
      AND EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_active_key
                   WHERE type = NEW.type AND idempotency_key = NEW.idempotency_key AND idempotency_key <> ''
                     AND completed_at IS NULL))
BEGIN
    SELECT RAISE(FAIL, 'jobq: there is a job with this id or key already; jobs are never replaced');
END;

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

DROP VIEW jobq_last_hour;

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

-- Effects in order of path. A job did one thing to a path; should one be there
-- twice, the last one counts.
DROP INDEX effects_job;
DROP INDEX effects_latest;
ALTER TABLE effects RENAME TO effects_of_version_2;

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
    -- For a put: the new content, and the staged file that carries it.
    sha256       TEXT,
    size         INTEGER,
    stage        TEXT,
    -- The file as apply left it: the fast path of reconcile.
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

INSERT OR REPLACE INTO effects (path, job_id, number, op, state, precondition, observed, sha256, size, stage, mtime,
                                inode, applied_in, applied_at)
SELECT path, job_id, row_number() OVER (PARTITION BY job_id ORDER BY id) - 1, op, state, precondition, observed, sha256,
       size, stage, mtime, inode, applied_in,
       iif(state = 'applied', (SELECT completed_at FROM jobs WHERE jobs.id = job_id), NULL)
  FROM effects_of_version_2 ORDER BY id;

DROP TABLE effects_of_version_2;

CREATE INDEX effects_job ON effects (job_id, number);
