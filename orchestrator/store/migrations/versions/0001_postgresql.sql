CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'append-only'; END $$;
CREATE FUNCTION guard_state() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM job_transitions t
     WHERE t.job_id = OLD.id AND t.from_state = OLD.state AND t.to_state = NEW.state)
  THEN RAISE EXCEPTION 'illegal state move'; END IF; RETURN NEW; END $$;
CREATE TRIGGER job_state_needs_logged_move BEFORE UPDATE OF state ON deletion_jobs
  FOR EACH ROW WHEN (NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION guard_state();
CREATE TRIGGER receipts_append_only BEFORE UPDATE OR DELETE ON deletion_receipts FOR EACH ROW EXECUTE FUNCTION refuse();
CREATE TRIGGER transitions_append_only BEFORE UPDATE OR DELETE ON job_transitions FOR EACH ROW EXECUTE FUNCTION refuse();
