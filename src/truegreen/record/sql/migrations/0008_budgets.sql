-- What holds over the whole fleet: failures that repeat and the breakers that they open, which run
-- tries whether one may close, what all may spend together, and what they have spent.

ALTER TABLE demands ADD COLUMN agent {text} NOT NULL DEFAULT '';

-- In millionths of a dollar: what a run used, and what was set aside for it when it started.

ALTER TABLE runs ADD COLUMN cost {int} NOT NULL DEFAULT 0 CHECK (cost >= 0);
ALTER TABLE runs ADD COLUMN tokens {int} NOT NULL DEFAULT 0 CHECK (tokens >= 0);
ALTER TABLE runs ADD COLUMN cost_granted {int} NOT NULL DEFAULT 10000;
ALTER TABLE runs ADD COLUMN tokens_granted {int} NOT NULL DEFAULT 1;

CREATE TABLE strikes (
  key {serial},
  kind {text} NOT NULL CHECK (kind IN ('agent', 'provider', 'fleet')),
  subject {text} NOT NULL,
  signature {text} NOT NULL,
  task_key {int} NOT NULL REFERENCES tasks (key),
  at {int} NOT NULL
) {strict};

CREATE INDEX strikes_alike ON strikes (kind, subject, signature, at);
CREATE INDEX strikes_old ON strikes (at);

CREATE TABLE breakers (
  key {serial},
  id {text} NOT NULL UNIQUE,
  kind {text} NOT NULL CHECK (kind IN ('agent', 'provider', 'fleet')),
  subject {text} NOT NULL,
  signature {text} NOT NULL,
  name {text} NOT NULL,
  trips {int} NOT NULL CHECK (trips >= 1),
  tried {int} NOT NULL DEFAULT 0,
  opened_at {int} NOT NULL,
  open_until {int} NOT NULL,
  closed_at {int},
  closed_by {text} NOT NULL DEFAULT '',
  reason {text} NOT NULL DEFAULT ''
) {strict};

CREATE UNIQUE INDEX breakers_open ON breakers (kind, subject, signature) WHERE closed_at IS NULL;

CREATE TABLE probes (
  breaker_key {int} PRIMARY KEY REFERENCES breakers (key),
  run_id {text} NOT NULL
) {narrow};

CREATE INDEX probes_run ON probes (run_id);

-- `stated`: the revision of the house whose event says so, here and of limits.

CREATE TABLE policies (
  kind {text} PRIMARY KEY CHECK (kind IN ('agent', 'provider', 'fleet')),
  after {int} NOT NULL CHECK (after BETWEEN 2 AND 100),
  within {int} NOT NULL CHECK (within BETWEEN 1000000 AND 86400000000),
  pause {int} NOT NULL CHECK (pause BETWEEN 1000000 AND most),
  most {int} NOT NULL CHECK (most <= 86400000000),
  file {text} NOT NULL DEFAULT '',
  stated {int} NOT NULL DEFAULT 0
) {narrow};

INSERT INTO policies (kind, after, within, pause, most) VALUES
  ('agent', 5, 600000000, 60000000, 3600000000),
  ('provider', 5, 600000000, 60000000, 3600000000),
  ('fleet', 6, 300000000, 60000000, 900000000);

-- A label is kept as it stands in a list of labels, quotes and all.

CREATE TABLE limits (
  key {serial},
  id {text} NOT NULL UNIQUE,
  file {text} NOT NULL,
  hours {int} NOT NULL CHECK (hours IN (1, 24)),
  agent {text} NOT NULL,
  label {text} NOT NULL,
  cost {int} CHECK (cost > 0),
  tokens {int} CHECK (tokens > 0),
  runs {int} CHECK (runs > 0),
  turns {int} NOT NULL DEFAULT 0,
  stated {int} NOT NULL DEFAULT 0,
  UNIQUE (file, hours, agent, label),
  CHECK (cost IS NOT NULL OR tokens IS NOT NULL OR runs IS NOT NULL)
) {strict};

CREATE TABLE spending (
  hour {int} NOT NULL,
  agent {text} NOT NULL,
  labels {text} NOT NULL,
  shard {int} NOT NULL,
  cost {int} NOT NULL CHECK (cost >= 0),
  tokens {int} NOT NULL CHECK (tokens >= 0),
  runs {int} NOT NULL CHECK (runs >= 0),
  PRIMARY KEY (hour, agent, labels, shard)
) {narrow};
