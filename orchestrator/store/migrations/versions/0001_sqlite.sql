CREATE TRIGGER job_state_needs_logged_move BEFORE UPDATE OF state ON deletion_jobs
WHEN NEW.state <> OLD.state AND NOT EXISTS (
  SELECT 1 FROM job_transitions t WHERE t.job_id = OLD.id AND t.from_state = OLD.state AND t.to_state = NEW.state)
BEGIN SELECT RAISE(ABORT, 'illegal state move'); END;
CREATE TRIGGER receipts_no_update BEFORE UPDATE ON deletion_receipts BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER receipts_no_delete BEFORE DELETE ON deletion_receipts BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER transitions_no_update BEFORE UPDATE ON job_transitions BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER transitions_no_delete BEFORE DELETE ON job_transitions BEGIN SELECT RAISE(ABORT, 'append-only'); END;
