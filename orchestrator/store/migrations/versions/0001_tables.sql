-- The control database. Ids: UUID text. *_us: microseconds UTC. Flags: SMALLINT 0/1. *_ref: keyed hash under the reference key.
-- No memory text anywhere; raw subject ids in four columns of deletion_jobs, emptied by CHECK at verified or cancelled.
CREATE TABLE deletion_jobs (
  id                TEXT     PRIMARY KEY CHECK (length(id) = 36),
  purpose           TEXT     NOT NULL DEFAULT 'erase' CHECK (purpose IN ('erase','preview')),
  tenant            TEXT     NOT NULL,                    -- an organisation: rights hang on it
  user_id           TEXT,
  project           TEXT,                                 -- NULL with a user = all projects
  selector_kind     TEXT     NOT NULL CHECK (selector_kind IN ('key','memory','source','subject')),
  selector_value    TEXT,                                 -- NULL for 'subject'
  subject_ref       TEXT     NOT NULL,
  selector_ref      TEXT     NOT NULL,
  round             INTEGER  NOT NULL DEFAULT 1 CHECK (round BETWEEN 1 AND 5),
  revision          BIGINT,                               -- the sources' scope revision after revoke
  trigger_kind      TEXT     NOT NULL CHECK (trigger_kind IN ('request','expiry','resurrection')),
  parent_job        TEXT     REFERENCES deletion_jobs (id),
  reason_code       TEXT     NOT NULL CHECK (length(reason_code) BETWEEN 1 AND 40),
  reference         TEXT     CHECK (length(reference) BETWEEN 1 AND 128 AND reference = lower(reference)),
  requested_by_ref  TEXT     NOT NULL,
  idempotency_ref   TEXT,                                 -- hash: callers put e-mail addresses there
  payload_sha256    TEXT     NOT NULL,                    -- same key, other payload: refused
  state             TEXT     NOT NULL DEFAULT 'requested' CHECK (state IN
                     ('requested','source_revoked','derived_cleanup','verified','completed','cancelled')),
  due_at_us         BIGINT,                               -- measured against verified_at_us
  requested_at_us   BIGINT   NOT NULL,
  revoked_at_us     BIGINT,
  cleanup_at_us     BIGINT,
  verified_at_us    BIGINT,
  completed_at_us   BIGINT,
  cancelled_at_us   BIGINT,
  CHECK ((revoked_at_us   IS NOT NULL) = (state IN ('source_revoked','derived_cleanup','verified','completed'))),
  CHECK ((cleanup_at_us   IS NOT NULL) = (state IN ('derived_cleanup','verified','completed'))),
  CHECK ((verified_at_us  IS NOT NULL) = (state IN ('verified','completed'))),
  CHECK ((completed_at_us IS NOT NULL) = (state = 'completed')),
  CHECK ((cancelled_at_us IS NOT NULL) = (state = 'cancelled')),
  CHECK (state NOT IN ('verified','completed','cancelled')
         OR (user_id IS NULL AND project IS NULL AND selector_value IS NULL)),
  CHECK (state IN ('verified','completed','cancelled')
         OR (user_id IS NOT NULL AND (selector_value IS NULL) = (selector_kind = 'subject')))
);
CREATE UNIQUE INDEX ux_jobs_idempotency ON deletion_jobs (tenant, idempotency_ref) WHERE idempotency_ref IS NOT NULL;
CREATE INDEX ix_jobs_list    ON deletion_jobs (tenant, state, requested_at_us, id);
CREATE INDEX ix_jobs_subject ON deletion_jobs (tenant, subject_ref);
CREATE INDEX ix_jobs_overdue ON deletion_jobs (due_at_us) WHERE verified_at_us IS NULL AND cancelled_at_us IS NULL;

CREATE TABLE job_transitions (                            -- append-only; the order of states is a fact of the schema
  job_id      TEXT   NOT NULL REFERENCES deletion_jobs (id),
  from_state  TEXT,
  to_state    TEXT   NOT NULL,
  at_us       BIGINT NOT NULL,
  worker      TEXT   NOT NULL,
  PRIMARY KEY (job_id, to_state),
  FOREIGN KEY (job_id, from_state) REFERENCES job_transitions (job_id, to_state),
  CHECK (coalesce(from_state, '-') || '>' || to_state IN
         ('->requested', 'requested>source_revoked', 'source_revoked>derived_cleanup',
          'derived_cleanup>verified', 'verified>completed', 'requested>cancelled'))
);
CREATE UNIQUE INDEX ux_transitions_no_fork ON job_transitions (job_id, from_state) WHERE from_state IS NOT NULL;

CREATE TABLE deletion_targets (                           -- written down before anything is cut; the stores' own handles
  job_id      TEXT    NOT NULL REFERENCES deletion_jobs (id),
  adapter     TEXT    NOT NULL,
  kind        TEXT    NOT NULL,
  handle      TEXT    NOT NULL,
  version     BIGINT  NOT NULL DEFAULT 0,
  derived_of  TEXT,
  item_ref    TEXT,                                       -- set when a hold covers just this item: a page of its own
  page        INTEGER NOT NULL CHECK (page >= 0),
  round       INTEGER NOT NULL CHECK (round >= 1),
  find_pass   INTEGER NOT NULL DEFAULT 0 CHECK (find_pass BETWEEN 0 AND 2),   -- 0 = named by the source itself
  PRIMARY KEY (job_id, adapter, round, kind, handle, version)
);
CREATE INDEX ix_targets_page ON deletion_targets (job_id, adapter, round, page);

CREATE TABLE scrub_runs (                                 -- belongs to a store's files, serves many jobs and adapters
  id             TEXT     PRIMARY KEY,
  store          TEXT     NOT NULL,
  lease_owner    TEXT     NOT NULL,
  lease_until_us BIGINT   NOT NULL,
  started_at_us  BIGINT   NOT NULL,
  finished_at_us BIGINT,
  outcome        TEXT     CHECK (outcome IN ('clean','busy','failed','unsupported')),
  control_found  SMALLINT CHECK (control_found IN (0, 1)),
  residuals      TEXT     NOT NULL DEFAULT '[]',
  error_code     TEXT,
  CHECK ((finished_at_us IS NULL) = (outcome IS NULL)),
  CHECK (finished_at_us >= started_at_us)
);
CREATE UNIQUE INDEX ux_scrub_one_open ON scrub_runs (store) WHERE finished_at_us IS NULL;   -- the sweep fails one whose lease ended

CREATE TABLE deletion_units (                             -- the only thing that is claimed; its own outbox
  id                 TEXT     PRIMARY KEY,
  job_id             TEXT     NOT NULL REFERENCES deletion_jobs (id),
  adapter            TEXT     NOT NULL,
  phase              TEXT     NOT NULL CHECK (phase IN ('revoke','find','erase','verify','close')),
  page               INTEGER  NOT NULL DEFAULT 0 CHECK (page >= 0),
  round              INTEGER  NOT NULL DEFAULT 1 CHECK (round >= 1),
  required           SMALLINT NOT NULL DEFAULT 1 CHECK (required IN (0, 1)),
  status             TEXT     NOT NULL DEFAULT 'pending' CHECK (status IN ('pending','running','done','parked')),
  parked             TEXT     CHECK (parked IN ('attempts_exhausted','permanent_error','unsupported','needs_confirmation')),
  find_pass          INTEGER  NOT NULL DEFAULT 0 CHECK (find_pass BETWEEN 0 AND 2),
  known_page         INTEGER  NOT NULL DEFAULT 0 CHECK (known_page >= 0),     -- which page of known targets it looks from
  cursor             TEXT,                                 -- where the store's last answer ended
  no_lineage         BIGINT   NOT NULL DEFAULT 0 CHECK (no_lineage >= 0),
  item_ref           TEXT,
  attempts           INTEGER  NOT NULL DEFAULT 0 CHECK (attempts >= 0),    -- counted at the claim: a killer task parks
  fence              BIGINT   NOT NULL DEFAULT 0 CHECK (fence >= 0),
  lease_owner        TEXT,
  lease_until_us     BIGINT,
  next_attempt_at_us BIGINT   NOT NULL,                                    -- backoff, quiet_time
  scrub_after_us     BIGINT,                                               -- verify: the scrub must have started after this (last erase + quiet_time)
  last_error_code    TEXT,
  UNIQUE (job_id, adapter, phase, page, round),
  CHECK ((lease_owner IS NULL) = (lease_until_us IS NULL)),
  CHECK ((status = 'running') = (lease_owner IS NOT NULL)),
  CHECK ((status = 'parked') = (parked IS NOT NULL))
);
CREATE INDEX ix_units_claim ON deletion_units (adapter, phase, next_attempt_at_us, id) WHERE status = 'pending';
CREATE INDEX ix_units_lease ON deletion_units (lease_until_us) WHERE status = 'running';
CREATE INDEX ix_units_open  ON deletion_units (job_id) WHERE status <> 'done';

CREATE TABLE unit_attempts (                              -- failures; a success has a receipt
  unit_id    TEXT    NOT NULL REFERENCES deletion_units (id),
  attempt    INTEGER NOT NULL,
  fence      BIGINT  NOT NULL,
  at_us      BIGINT  NOT NULL,
  error_code TEXT    NOT NULL,
  PRIMARY KEY (unit_id, fence)
);

CREATE TABLE deletion_receipts (                          -- append-only, one per unit
  id              TEXT     PRIMARY KEY,
  unit_id         TEXT     NOT NULL UNIQUE REFERENCES deletion_units (id),
  job_id          TEXT     NOT NULL REFERENCES deletion_jobs (id),
  adapter         TEXT     NOT NULL,
  phase           TEXT     NOT NULL CHECK (phase IN ('revoke','erase','verify','close')),
  page            INTEGER  NOT NULL,
  round           INTEGER  NOT NULL,
  attempt         INTEGER  NOT NULL CHECK (attempt >= 1),
  fence           BIGINT   NOT NULL,
  started_at_us   BIGINT   NOT NULL,
  finished_at_us  BIGINT   NOT NULL,
  outcome         TEXT     NOT NULL,
  expected        BIGINT   NOT NULL CHECK (expected >= 0),
  erased          BIGINT   NOT NULL CHECK (erased >= 0),
  already_absent  BIGINT   NOT NULL CHECK (already_absent >= 0),
  scheduled       BIGINT   NOT NULL DEFAULT 0 CHECK (scheduled >= 0),
  extra           BIGINT   NOT NULL DEFAULT 0 CHECK (extra >= 0),
  remaining       BIGINT   NOT NULL CHECK (remaining >= 0),
  reach           TEXT     CHECK (reach IN ('logical','physical')),
  scrub_run_id    TEXT     REFERENCES scrub_runs (id),
  residuals       TEXT     NOT NULL DEFAULT '[]',
  error_code      TEXT,
  body            BYTEA    NOT NULL,                      -- the exact bytes; a log leaf can be made of them later
  salt            BYTEA    NOT NULL,
  UNIQUE (job_id, adapter, phase, page, round),
  CHECK (finished_at_us >= started_at_us),
  CHECK ((phase = 'revoke' AND outcome IN ('revoked','nothing_found'))
      OR (phase = 'erase'  AND outcome IN ('erased','nothing_found','scheduled'))
      OR (phase = 'verify' AND outcome IN ('absent','present'))
      OR (phase = 'close'  AND outcome = 'closed')),
  CHECK (outcome <> 'erased'        OR (erased > 0 AND remaining = 0 AND erased + already_absent = expected + extra)),
  CHECK (outcome <> 'nothing_found' OR (erased = 0 AND remaining = 0 AND already_absent = expected)),
  CHECK (outcome <> 'scheduled'     OR (scheduled > 0 AND remaining = scheduled AND erased + already_absent + scheduled = expected + extra)),
  CHECK (scheduled = 0 OR outcome = 'scheduled'),
  CHECK (outcome <> 'absent'        OR remaining = 0),
  CHECK (outcome <> 'present'       OR remaining > 0),
  CHECK (reach IS NULL OR reach <> 'physical' OR (scrub_run_id IS NOT NULL AND remaining = 0))
);

CREATE TABLE retention_windows (                          -- a copy that cannot be edited
  job_id            TEXT   NOT NULL REFERENCES deletion_jobs (id),
  adapter           TEXT   NOT NULL,
  copy_handle       TEXT   NOT NULL,
  until_us          BIGINT NOT NULL,
  closed_at_us      BIGINT,                               -- only when seen gone
  PRIMARY KEY (job_id, adapter, copy_handle)              -- a copy seen gone early closes early
);
CREATE INDEX ix_windows_open ON retention_windows (until_us) WHERE closed_at_us IS NULL;

CREATE TABLE waivers (
  job_id        TEXT   NOT NULL REFERENCES deletion_jobs (id),
  adapter       TEXT   NOT NULL,
  reason_code   TEXT   NOT NULL,
  granted_by_ref TEXT  NOT NULL,
  at_us         BIGINT NOT NULL,
  PRIMARY KEY (job_id, adapter)
);

CREATE TABLE fingerprints (                               -- keyed 16-byte windows for the byte scan; gone at verified
  job_id TEXT   NOT NULL REFERENCES deletion_jobs (id),
  roll   BIGINT NOT NULL,
  mac    TEXT   NOT NULL CHECK (length(mac) = 64),
  PRIMARY KEY (job_id, roll, mac)
);

CREATE TABLE tombstones (                                 -- the set beside the source decides; this copy outlives a restore
  tenant         TEXT   NOT NULL,
  key_id         TEXT   NOT NULL,
  mac            TEXT   NOT NULL CHECK (length(mac) = 64),
  kind           TEXT   NOT NULL CHECK (kind IN ('source','subject','key','text','source_token','fact_source')),
  cut_off        BIGINT NOT NULL CHECK (cut_off >= 0),    -- accepted position, not a time
  job_id         TEXT   NOT NULL,                         -- no foreign key: merged from the source after a restore
  reason_code    TEXT   NOT NULL,
  created_at_us  BIGINT NOT NULL,
  PRIMARY KEY (tenant, key_id, mac, kind, job_id)
);

CREATE TABLE legal_holds (
  id              TEXT   PRIMARY KEY,
  tenant          TEXT   NOT NULL,
  subject_ref     TEXT   NOT NULL,
  item_ref        TEXT,                                   -- NULL = the whole subject
  reason_code     TEXT   NOT NULL,
  reference       TEXT   CHECK (length(reference) <= 128),
  placed_by_ref   TEXT   NOT NULL,
  placed_at_us    BIGINT NOT NULL,
  in_force_at_us  BIGINT,                                 -- NULL = placing: a covered call is still running
  released_at_us  BIGINT,
  released_by_ref TEXT,
  CHECK (released_at_us >= placed_at_us),
  CHECK ((released_at_us IS NULL) = (released_by_ref IS NULL))
);
CREATE INDEX ix_holds_active ON legal_holds (tenant, subject_ref) WHERE released_at_us IS NULL;

CREATE TABLE adapter_health (                             -- circuit breaker and cap, one row per adapter
  adapter       TEXT    PRIMARY KEY,
  breaker       TEXT    NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed','open','half_open')),
  failures      INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
  open_until_us BIGINT,                                   -- half_open ends with its probe's lease
  announced_at_us BIGINT,                                 -- NULL = no announcement is outstanding
  CHECK ((breaker = 'open') = (open_until_us IS NOT NULL))
);
CREATE TABLE sources (                                   -- the epoch of each source database; raised by every restore
  adapter TEXT   PRIMARY KEY,
  epoch   BIGINT NOT NULL CHECK (epoch >= 1)
);
CREATE TABLE restore_replays (                            -- a restored file serves nothing before such a row exists
  copy_handle      TEXT   NOT NULL,
  restored_at_us   BIGINT NOT NULL,
  tombstones       BIGINT NOT NULL CHECK (tombstones >= 0),
  erased           BIGINT NOT NULL CHECK (erased >= 0),
  finished_at_us   BIGINT NOT NULL CHECK (finished_at_us >= restored_at_us),
  PRIMARY KEY (copy_handle, restored_at_us)
);
