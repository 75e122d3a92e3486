-- What faces and outlets need: one-use login codes and browser sessions, requests that may come
-- twice, when a run last did something, what inbox items have in common, what agents hand in, and
-- how far each outlet has read the history and what it still owes, and what settings files reached
-- out with when they were last trusted.

ALTER TABLE tokens ADD COLUMN kind {text} NOT NULL DEFAULT 'key'
  CHECK (kind IN ('key', 'login', 'session'));

CREATE INDEX tokens_of_people ON tokens (key) WHERE run_key IS NULL;

ALTER TABLE leases ADD COLUMN active_at {int};

ALTER TABLE inbox ADD COLUMN topic {text} NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN whole_topic {int} NOT NULL DEFAULT 0 CHECK (whole_topic IN (0, 1));

CREATE INDEX inbox_topic ON inbox (topic) WHERE state <> 'resolved';
CREATE INDEX inbox_unread ON inbox (severity{then_key}) WHERE state <> 'resolved' AND state <> 'acked';
CREATE INDEX inbox_snoozed ON inbox (snoozed_until) WHERE state = 'snoozed';

-- From here on triggers count; what happened before is counted once, from what is kept of it.

DELETE FROM meters WHERE name IN ('runs', 'checks', 'check_us', 'evaluator_unavailable', 'rescued',
  'refused', 'moved', 'inbox', 'claims');

INSERT INTO meters (name, label, shard, total)
  SELECT 'runs', runs.status || '|' || exit_reason || '|' || exit_detail || '|' ||
    COALESCE(agents.name, ''), 0, COUNT(*) FROM runs LEFT JOIN agents ON agents.key = agent_key
    WHERE exit_reason IS NOT NULL GROUP BY runs.status, exit_reason, exit_detail, agents.name;

INSERT INTO meters (name, label, shard, total)
  SELECT 'checks', outcome || '|' || kind, 0, COUNT(*) FROM findings GROUP BY outcome, kind;

INSERT INTO meters (name, label, shard, total)
  SELECT 'check_us', kind, 0, SUM(duration_us) FROM findings GROUP BY kind;

INSERT INTO meters (name, label, shard, total)
  SELECT 'evaluator_unavailable', '', 0, COUNT(*) FROM findings
    WHERE kind = 'evaluator' AND outcome = 'inconclusive'
    AND substr(reason, 1, 21) = 'evaluator_unavailable' HAVING COUNT(*) > 0;

INSERT INTO meters (name, label, shard, total)
  SELECT 'rescued', '', 0, COUNT(*) FROM tasks WHERE rescued = 1 HAVING COUNT(*) > 0;

INSERT INTO meters (name, label, shard, total)
  SELECT 'refused', code, 0, SUM(times) FROM refusals GROUP BY code;

INSERT INTO meters (name, label, shard, total)
  SELECT 'moved', event, 0, COUNT(*) FROM events WHERE event IN ('retry', 'reopen', 'unblock')
    GROUP BY event;

INSERT INTO meters (name, label, shard, total)
  SELECT 'inbox', severity || '|' || state, 0, COUNT(*) FROM inbox GROUP BY severity, state;

-- How far an agent's word goes is a matter of its definition, not of what it is called.

CREATE TABLE honesty (
  definition {text} NOT NULL,
  outcome {text} NOT NULL,
  shard {int} NOT NULL,
  statements {int} NOT NULL,
  PRIMARY KEY (definition, outcome, shard)
) {narrow};

-- Whether checks gave an answer is counted with every cell, and whether that answer stands: green
-- that was overturned leaves green in the hour in which its run ended.

ALTER TABLE tasks ADD COLUMN checked {int} NOT NULL DEFAULT 0 CHECK (checked IN (0, 1));

ALTER TABLE runs ADD COLUMN standing {text} NOT NULL DEFAULT 'unchecked'
  CHECK ({among[standing Standing]});

UPDATE runs SET standing = 'checked' WHERE verdict <> 'pending' AND cell IS NOT NULL
  AND EXISTS (SELECT 1 FROM findings WHERE run_key = runs.key AND binding = 1
    AND phase <> 'baseline' AND kind NOT IN ('claim', 'person')
    AND outcome IN ('passed', 'failed'));

UPDATE tasks SET checked = 1 WHERE cell IS NOT NULL AND EXISTS (SELECT 1 FROM runs
  WHERE task_key = tasks.key AND runs.attempt = tasks.attempt AND standing = 'checked');

UPDATE runs SET standing = 'falsified' WHERE verdict = 'passed' AND EXISTS (SELECT 1 FROM tasks
  WHERE tasks.key = task_key AND falsified = 1
  AND (tasks.status <> 'succeeded' OR tasks.attempt <> runs.attempt));

DROP TABLE counters;

CREATE TABLE counters (
  shard {int} NOT NULL,
  run_status {text} NOT NULL,
  status {text} NOT NULL,
  cell {text} NOT NULL,
  checked {int} NOT NULL,
  tasks {int} NOT NULL,
  PRIMARY KEY (status, cell, run_status, checked, shard)
) {narrow};

INSERT INTO counters (shard, run_status, status, cell, checked, tasks)
  SELECT 0, COALESCE(run_status, ''), status, COALESCE(cell, ''), checked, COUNT(*) FROM tasks
    GROUP BY COALESCE(run_status, ''), status, COALESCE(cell, ''), checked;

DROP TABLE tallies;

CREATE TABLE tallies (
  hour {int} NOT NULL,
  cell {text} NOT NULL,
  standing {text} NOT NULL,
  exit_reason {text} NOT NULL,
  mode {text} NOT NULL,
  role {text} NOT NULL,
  shard {int} NOT NULL,
  runs {int} NOT NULL,
  PRIMARY KEY (hour, cell, standing, exit_reason, mode, role, shard)
) {narrow};

INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs)
  SELECT ended_at / 3600000000, runs.cell, standing, runs.exit_reason, mode, role, 0, COUNT(*)
    FROM runs JOIN tasks ON tasks.key = runs.task_key WHERE runs.cell IS NOT NULL
    GROUP BY ended_at / 3600000000, runs.cell, standing, runs.exit_reason, mode, role;

-- Who has waited longest for somebody is asked with every graph.

CREATE INDEX tasks_blocked ON tasks (status, settled_at) WHERE status = 'blocked';

-- What an agent worked at is asked for by the agent's name.

CREATE INDEX agents_name ON agents (name{then_key});

CREATE TABLE requests (
  actor {text} NOT NULL,
  request_key {text} NOT NULL,
  fingerprint {text} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (actor, request_key)
) {narrow};

CREATE INDEX requests_old ON requests (at);

CREATE TABLE artifacts (
  key {serial},
  run_key {int} NOT NULL REFERENCES runs (key),
  name {text} NOT NULL,
  sha256 {text} NOT NULL,
  size {int} NOT NULL CHECK (size >= 0),
  at {int} NOT NULL,
  UNIQUE (run_key, name)
) {strict};

CREATE TABLE outlets (
  name {text} PRIMARY KEY,
  xact {int} NOT NULL,
  event_key {int} NOT NULL,
  at {int} NOT NULL
) {narrow};

CREATE TABLE pins (
  file {text} PRIMARY KEY,
  reach {text} NOT NULL,
  run_key {int} NOT NULL,
  actor {text} NOT NULL,
  at {int} NOT NULL
) {narrow};

CREATE TABLE posts (
  key {serial},
  id {text} NOT NULL UNIQUE,
  outlet {text} NOT NULL,
  subject {text} NOT NULL,
  task_id {text},
  body {text} NOT NULL,
  state {text} NOT NULL CHECK (state IN ('waiting', 'sent', 'given_up', 'unsaid')),
  tries {int} NOT NULL DEFAULT 0,
  due_at {int} NOT NULL,
  error {text} NOT NULL DEFAULT '',
  created_at {int} NOT NULL,
  updated_at {int} NOT NULL,
  UNIQUE (outlet, subject)
) {strict};

CREATE INDEX posts_due ON posts (due_at{then_key}) WHERE state = 'waiting';
CREATE INDEX posts_in_turn ON posts (outlet, task_id{then_key}) WHERE state = 'waiting';
CREATE INDEX posts_past ON posts (updated_at) WHERE state IN ('sent', 'unsaid');
CREATE INDEX posts_given_up ON posts (outlet) WHERE state = 'given_up';
CREATE INDEX posts_unsaid ON posts (outlet{then_key}) WHERE state = 'unsaid';
CREATE INDEX posts_silent ON posts (task_id{then_key}) WHERE state IN ('given_up', 'unsaid');
