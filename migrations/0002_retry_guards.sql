-- Version 1 to 2: retry_guards, so that a manual retry can tell whether a later
-- job has run on the same key since; and no job can be replaced by an INSERT.

CREATE TABLE retry_guards (
    key          TEXT    NOT NULL,
    seq          INTEGER NOT NULL,
    overtaken_by TEXT,
    PRIMARY KEY (key, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX retry_guards_open ON retry_guards (key, seq) WHERE overtaken_by IS NULL;
CREATE INDEX retry_guards_job ON retry_guards (seq);

-- Jobs that ended before this version: a later one that was ever claimed and
-- names the same key has overtaken them.
INSERT INTO retry_guards (key, seq, overtaken_by)
SELECT held.value, ended.seq,
       (SELECT later.id FROM jobs later, json_each(later.holds) theirs
         WHERE later.seq > ended.seq AND later.token > 0 AND theirs.value = held.value
         ORDER BY later.seq LIMIT 1)
  FROM jobs ended, json_each(ended.holds) held
 WHERE ended.status IN ('failed', 'cancelled');

DROP TRIGGER jobs_delete;

CREATE TRIGGER jobs_delete BEFORE DELETE ON jobs
BEGIN
    SELECT RAISE(FAIL, 'jobq: an unfinished job cannot be deleted; cancel it first')
     WHERE OLD.status IN ('pending', 'claimed');
    SELECT RAISE(FAIL, 'jobq: a job that another job waits on cannot be deleted')
     WHERE EXISTS (SELECT 1 FROM jobs WHERE waiting_on = OLD.id);
    DELETE FROM job_events WHERE job_id = OLD.id;
    DELETE FROM retry_guards WHERE seq = OLD.seq;
END;

CREATE TRIGGER jobs_no_replace BEFORE INSERT ON jobs
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = NEW.id)
  OR (NEW.gate = 'new'
      AND EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_active_key
                   WHERE type = NEW.type AND idempotency_key = NEW.idempotency_key AND idempotency_key <> ''
                     AND status IN ('pending', 'claimed')))
BEGIN
    SELECT RAISE(FAIL, 'jobq: there is a job with this id or key already; jobs are never replaced');
END;

CREATE TRIGGER jobs_key_taken BEFORE UPDATE OF idempotency_key ON jobs
WHEN NEW.status IN ('pending', 'claimed')
 AND EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_active_key
              WHERE type = NEW.type AND idempotency_key = NEW.idempotency_key AND idempotency_key <> ''
                AND status IN ('pending', 'claimed') AND seq <> NEW.seq)
BEGIN
    SELECT RAISE(FAIL, 'jobq: there is an unfinished job with this key already; jobs are never replaced');
END;

CREATE TRIGGER jobs_key_back BEFORE UPDATE OF status ON jobs
WHEN OLD.status IN ('failed', 'cancelled') AND NEW.status <> OLD.status
 AND EXISTS (SELECT 1 FROM jobs INDEXED BY jobs_active_key
              WHERE type = NEW.type AND idempotency_key = NEW.idempotency_key AND idempotency_key <> ''
                AND status IN ('pending', 'claimed') AND seq <> NEW.seq)
BEGIN
    SELECT RAISE(FAIL, 'jobq: there is an unfinished job with this key already; jobs are never replaced');
END;

CREATE TRIGGER job_events_fixed BEFORE UPDATE ON job_events
BEGIN
    SELECT RAISE(FAIL, 'jobq: events are only ever added');
END;

CREATE TRIGGER job_events_delete BEFORE DELETE ON job_events
WHEN EXISTS (SELECT 1 FROM jobs WHERE id = OLD.job_id AND status IN ('pending', 'claimed'))
BEGIN
    SELECT RAISE(FAIL, 'jobq: events of an unfinished job cannot be deleted');
END;
