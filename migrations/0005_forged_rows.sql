-- Version 4 to 5: an INSERT no longer claims what only a run or admission gives a job.
DROP TRIGGER jobs_insert;

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
