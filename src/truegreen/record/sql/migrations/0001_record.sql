-- The record: tasks, runs, what was claimed and found, who acted, what waits for a person.
-- Words in braces are filled in from the dialect and from the enums of truegreen.model.

CREATE TABLE schema_migrations (
  version {int} PRIMARY KEY,
  name {text} NOT NULL,
  checksum {text} NOT NULL,
  applied_at {int} NOT NULL
) {strict};

CREATE TABLE schema_objects (
  name {text} PRIMARY KEY,
  definition {text} NOT NULL
) {strict};

CREATE TABLE house (
  key {int} PRIMARY KEY CHECK (key = 1),
  id {text} NOT NULL,
  revision {int} NOT NULL,
  head {blob} NOT NULL
) {strict};

CREATE TABLE agents (
  key {serial},
  id {text} NOT NULL UNIQUE,
  name {text} NOT NULL,
  definition {text} NOT NULL,
  session {text},
  parent_key {int} REFERENCES agents (key),
  registered_by {text} NOT NULL,
  status {text} NOT NULL CHECK ({among[status AgentStatus]}),
  terminated_at {int},
  created_at {int} NOT NULL,
  updated_at {int} NOT NULL,
  CHECK ((status = 'terminated') = (terminated_at IS NOT NULL))
) {strict};

CREATE INDEX agents_session ON agents (session) WHERE session IS NOT NULL;
CREATE INDEX agents_parent ON agents (parent_key) WHERE parent_key IS NOT NULL;

CREATE TABLE tasks (
  key {key},
  id {text} NOT NULL UNIQUE,
  title {text} NOT NULL,
  goal {text} NOT NULL,
  role {text} NOT NULL,
  mode {text} NOT NULL CHECK ({among[mode Mode]}),
  status {text} NOT NULL CHECK ({among[status TaskStatus]}),
  exit_reason {text} CHECK ({among[exit_reason ExitReason]}),
  exit_detail {text},
  run_status {text} CHECK ({among[run_status RunStatus]}),
  verdict {text} NOT NULL DEFAULT 'unknown' CHECK ({among[verdict Outcome]}),
  cell {text} CHECK ({among[cell Cell]}),
  silent {int} NOT NULL DEFAULT 0
    CHECK (silent = CASE WHEN cell = 'silent_failure' THEN 1 ELSE 0 END),
  rescued {int} NOT NULL DEFAULT 0 CHECK (rescued IN (0, 1)),
  overridden {int} NOT NULL DEFAULT 0 CHECK (overridden IN (0, 1)),
  sealed_at {int},
  fence {int} NOT NULL DEFAULT 0 CHECK (fence >= 0),
  revision {int} NOT NULL,
  head {blob} NOT NULL,
  attempt {int} NOT NULL DEFAULT 0,
  attempts {int} NOT NULL DEFAULT 0,
  attempts_max {int} NOT NULL,
  deferrals {int} NOT NULL DEFAULT 0,
  deferrals_max {int} NOT NULL,
  qa_rounds {int} NOT NULL DEFAULT 0,
  qa_rounds_max {int} NOT NULL,
  priority {int} NOT NULL DEFAULT 0,
  not_before {int} NOT NULL DEFAULT 0,
  agent_key {int} REFERENCES agents (key),
  parent_key {int} REFERENCES tasks (key),
  qa_of_key {int} REFERENCES tasks (key),
  created_by {text} NOT NULL,
  contract {text} NOT NULL,
  contract_digest {text} NOT NULL,
  acceptance {text},
  created_at {int} NOT NULL,
  updated_at {int} NOT NULL,
  settled_at {int},
  CONSTRAINT tasks_exit_pair CHECK ({exit_pair}),
  CONSTRAINT tasks_exit_fits_status CHECK ({exit_fits_status}),
  CONSTRAINT tasks_settled CHECK (settled_at IS NULL OR {among[status settled]}),
  CONSTRAINT tasks_terminated_is_sealed CHECK (status <> 'terminated' OR sealed_at IS NOT NULL),
  CONSTRAINT tasks_green_is_proven CHECK
    (status <> 'succeeded' OR (verdict = 'passed' AND acceptance IS NOT NULL)),
  CONSTRAINT tasks_attempts CHECK (attempts BETWEEN 0 AND attempts_max),
  CONSTRAINT tasks_deferrals CHECK (deferrals BETWEEN 0 AND deferrals_max),
  CONSTRAINT tasks_qa_rounds CHECK (qa_rounds BETWEEN 0 AND qa_rounds_max)
) {strict};

CREATE INDEX tasks_status ON tasks (status{then_key});
CREATE INDEX tasks_exit_reason ON tasks (exit_reason{then_key});
CREATE INDEX tasks_status_exit_reason ON tasks (status, exit_reason{then_key});
CREATE INDEX tasks_cell ON tasks (cell{then_key});
CREATE INDEX tasks_role ON tasks (role{then_key});
CREATE INDEX tasks_silent ON tasks (silent{then_key}) WHERE silent = 1;
CREATE INDEX tasks_silent_status ON tasks (status{then_key}) WHERE silent = 1;
CREATE INDEX tasks_silent_exit_reason ON tasks (exit_reason{then_key}) WHERE silent = 1;
CREATE INDEX tasks_silent_role ON tasks (role{then_key}) WHERE silent = 1;
CREATE INDEX tasks_ready ON tasks (status, priority DESC, key) WHERE status = 'queued';
CREATE UNIQUE INDEX tasks_one_open_qa ON tasks (qa_of_key)
  WHERE qa_of_key IS NOT NULL AND NOT {among[status settled]};
CREATE INDEX tasks_qa ON tasks (qa_of_key) WHERE qa_of_key IS NOT NULL;

CREATE TABLE runs (
  key {serial},
  id {text} NOT NULL UNIQUE,
  task_key {int} NOT NULL REFERENCES tasks (key),
  attempt {int} NOT NULL,
  fence {int} NOT NULL,
  status {text} NOT NULL CHECK ({among[status RunStatus]}),
  exit_reason {text} CHECK ({among[exit_reason ExitReason]}),
  exit_detail {text},
  exit_code {int},
  signal {int},
  ended_by {text} CHECK ({among[ended_by EndedBy]}),
  agent_key {int} REFERENCES agents (key),
  isolation {text} NOT NULL DEFAULT '',
  verdict {text} NOT NULL DEFAULT 'unknown' CHECK ({among[verdict Outcome]}),
  level {text} CHECK ({among[level Level]}),
  verdict_reason {text} NOT NULL DEFAULT '',
  cell {text} CHECK ({among[cell Cell]}),
  base_digest {text} NOT NULL DEFAULT '',
  digest {text} NOT NULL DEFAULT '',
  usage {text} NOT NULL DEFAULT '{{}}',
  facts {text} NOT NULL DEFAULT '{{}}',
  created_at {int} NOT NULL,
  seen_at {int},
  ended_at {int},
  judged_at {int},
  UNIQUE (task_key, attempt),
  CONSTRAINT runs_exit_pair CHECK ({exit_pair}),
  CONSTRAINT runs_ends CHECK ({run_ends}),
  CONSTRAINT runs_reason_when_ended CHECK ((exit_reason IS NULL) = ({among[status live_runs]})),
  CONSTRAINT runs_ended_at CHECK ((ended_at IS NULL) = (exit_reason IS NULL)),
  CONSTRAINT runs_ended_by CHECK ((ended_by IS NULL) = (exit_reason IS NULL)),
  CONSTRAINT runs_cell CHECK ((cell IS NULL) = (exit_reason IS NULL))
) {strict};

CREATE UNIQUE INDEX runs_one_live ON runs (task_key) WHERE exit_reason IS NULL;
CREATE INDEX runs_agent ON runs (agent_key{then_key}) WHERE agent_key IS NOT NULL;

CREATE TABLE leases (
  run_key {int} PRIMARY KEY REFERENCES runs (key),
  token {text} NOT NULL,
  holder {text} NOT NULL,
  boot {text} NOT NULL,
  expires_at {int} NOT NULL,
  process {text} NOT NULL DEFAULT '{{}}'
) {strict};

CREATE INDEX leases_expiry ON leases (expires_at);

CREATE TABLE charges (
  run_key {int} NOT NULL REFERENCES runs (key),
  budget {text} NOT NULL CHECK (budget IN ('reentries', 'check_errors')),
  subject {text} NOT NULL,
  used {int} NOT NULL,
  used_max {int} NOT NULL,
  PRIMARY KEY (run_key, budget, subject),
  CONSTRAINT charges_used CHECK (used BETWEEN 0 AND used_max)
) {narrow};

CREATE TABLE claims (
  key {serial},
  task_key {int} NOT NULL REFERENCES tasks (key),
  run_key {int} NOT NULL UNIQUE REFERENCES runs (key),
  kind {text} NOT NULL CHECK ({among[kind ClaimKind]}),
  reason {text} NOT NULL,
  statements {text} NOT NULL,
  extra {text} NOT NULL,
  source {text} NOT NULL,
  at {int} NOT NULL
) {strict};

CREATE TABLE findings (
  key {serial},
  id {text} NOT NULL UNIQUE,
  task_key {int} NOT NULL REFERENCES tasks (key),
  run_key {int} NOT NULL REFERENCES runs (key),
  phase {text} NOT NULL CHECK ({among[phase Phase]}),
  check_name {text} NOT NULL,
  kind {text} NOT NULL,
  outcome {text} NOT NULL CHECK ({among[outcome FindingOutcome]}),
  before {text} CHECK ({among[before FindingOutcome]}),
  level {text} NOT NULL CHECK ({among[level Level]}),
  score {real} CHECK (score BETWEEN 0 AND 1),
  counts {text} NOT NULL,
  reason {text} NOT NULL,
  evidence {text} NOT NULL,
  digest {text} NOT NULL,
  contract_digest {text} NOT NULL,
  judge {text} NOT NULL,
  judged {text} NOT NULL,
  isolation {text} NOT NULL,
  duration_us {int} NOT NULL,
  binding {int} NOT NULL CHECK (binding IN (0, 1)),
  at {int} NOT NULL
) {strict};

CREATE INDEX findings_run ON findings (run_key);

CREATE TABLE events (
  key {serial},
  id {text} NOT NULL UNIQUE,
  task_key {int},  -- the open event comes before its task; the triggers see that it exists
  run_id {text},
  revision {int} NOT NULL,
  at {int} NOT NULL,
  level {text} NOT NULL CHECK ({among[level EventLevel]}),
  event {text} NOT NULL CHECK ({among[event Event]}),
  from_status {text} CHECK ({among[from_status TaskStatus]}),
  to_status {text} CHECK ({among[to_status TaskStatus]}),
  actor {text} NOT NULL,
  reason {text} NOT NULL,
  fence {int} NOT NULL,
  idempotency_key {text},
  data {text} NOT NULL,
  hash {blob},
  xact {int} NOT NULL DEFAULT {xact}
) {strict};

CREATE UNIQUE INDEX events_task_revision ON events (task_key, revision) WHERE task_key IS NOT NULL;
CREATE UNIQUE INDEX events_house_revision ON events (revision) WHERE task_key IS NULL;
CREATE UNIQUE INDEX events_idempotency_key ON events (idempotency_key)
  WHERE idempotency_key IS NOT NULL;

CREATE TABLE refusals (
  key {serial},
  task_key {int} REFERENCES tasks (key),
  run_id {text} NOT NULL,
  verb {text} NOT NULL,
  code {text} NOT NULL,
  actor {text} NOT NULL,
  message {text} NOT NULL,
  evidence {text} NOT NULL,
  times {int} NOT NULL,
  first_at {int} NOT NULL,
  last_at {int} NOT NULL
) {strict};

CREATE INDEX refusals_task ON refusals (task_key{then_key});
CREATE UNIQUE INDEX refusals_same
  ON refusals (COALESCE(task_key, 0), run_id, verb, code, actor);

CREATE TABLE messages (
  key {serial},
  id {text} NOT NULL UNIQUE,
  agent_key {int} NOT NULL REFERENCES agents (key),
  sender {text} NOT NULL,
  body {text} NOT NULL,
  disposition {text} NOT NULL CHECK ({among[disposition Disposition]}),
  idempotency_key {text} UNIQUE,
  at {int} NOT NULL
) {strict};

CREATE INDEX messages_agent ON messages (agent_key{then_key});

CREATE TABLE inbox (
  key {serial},
  id {text} NOT NULL UNIQUE,
  cause {text} NOT NULL,
  cell {text} NOT NULL,
  severity {text} NOT NULL CHECK ({among[severity Severity]}),
  task_key {int} NOT NULL REFERENCES tasks (key),
  run_key {int} REFERENCES runs (key),
  title {text} NOT NULL,
  reason {text} NOT NULL,
  next {text} NOT NULL,
  times {int} NOT NULL,
  state {text} NOT NULL CHECK ({among[state InboxState]}),
  owner {text} NOT NULL DEFAULT '',
  snoozed_until {int},
  outcome {text},
  created_at {int} NOT NULL,
  updated_at {int} NOT NULL,
  CHECK ((state = 'resolved') = (outcome IS NOT NULL)),
  CHECK ((state = 'snoozed') = (snoozed_until IS NOT NULL))
) {strict};

CREATE UNIQUE INDEX inbox_open_cause ON inbox (cause) WHERE state <> 'resolved';
CREATE INDEX inbox_waiting ON inbox (severity, key) WHERE state <> 'resolved';
CREATE INDEX inbox_task ON inbox (task_key);

CREATE TABLE tokens (
  key {serial},
  id {text} NOT NULL UNIQUE,
  role {text} NOT NULL CHECK ({among[role Role]} AND role <> 'system'),
  name {text} NOT NULL,
  digest {blob} NOT NULL UNIQUE,
  task_key {int} REFERENCES tasks (key),
  run_key {int} REFERENCES runs (key),
  fence {int},
  created_at {int} NOT NULL,
  expires_at {int},
  revoked_at {int},
  CHECK (role NOT IN ('agent', 'judge') OR (run_key IS NOT NULL AND fence IS NOT NULL))
) {strict};

CREATE INDEX tokens_task ON tokens (task_key) WHERE task_key IS NOT NULL;

CREATE TABLE counters (
  shard {int} NOT NULL,
  run_status {text} NOT NULL,
  status {text} NOT NULL,
  cell {text} NOT NULL,
  tasks {int} NOT NULL,
  PRIMARY KEY (status, cell, run_status, shard)
) {narrow};

CREATE TABLE tallies (
  hour {int} NOT NULL,
  cell {text} NOT NULL,
  exit_reason {text} NOT NULL,
  mode {text} NOT NULL,
  role {text} NOT NULL,
  shard {int} NOT NULL,
  runs {int} NOT NULL,
  PRIMARY KEY (hour, cell, exit_reason, mode, role, shard)
) {narrow};

CREATE TABLE meters (
  name {text} NOT NULL,
  label {text} NOT NULL,
  shard {int} NOT NULL,
  total {int} NOT NULL,
  PRIMARY KEY (name, label, shard)
) {narrow};
