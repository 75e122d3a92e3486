CREATE TABLE agents (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  definition TEXT NOT NULL,
  session TEXT,
  parent_key INTEGER REFERENCES agents (key),
  registered_by TEXT NOT NULL,
  status TEXT NOT NULL CHECK ((CASE status WHEN 'pending' THEN 1 = 1 WHEN 'in_progress' THEN 1 = 1 WHEN 'completed' THEN 1 = 1 WHEN 'error' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 ELSE status IS NULL END)),
  terminated_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, kind TEXT NOT NULL DEFAULT 'agent'
  CHECK (kind IN ('agent', 'conversation', 'subagent', 'background', 'wakeup', 'cron')),
  CHECK ((status = 'terminated') = (terminated_at IS NOT NULL))
) STRICT;

CREATE TABLE artifacts (
  key INTEGER PRIMARY KEY,
  run_key INTEGER NOT NULL REFERENCES runs (key),
  name TEXT NOT NULL,
  sha256 TEXT NOT NULL,
  size INTEGER NOT NULL CHECK (size >= 0),
  at INTEGER NOT NULL,
  UNIQUE (run_key, name)
) STRICT;

CREATE TABLE beats (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  host TEXT NOT NULL,
  began_at INTEGER NOT NULL,
  at INTEGER NOT NULL,
  ended_at INTEGER,
  trouble TEXT NOT NULL DEFAULT '',
  pinged_at INTEGER,
  unsent TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE TABLE breakers (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('agent', 'provider', 'fleet')),
  subject TEXT NOT NULL,
  signature TEXT NOT NULL,
  name TEXT NOT NULL,
  trips INTEGER NOT NULL CHECK (trips >= 1),
  tried INTEGER NOT NULL DEFAULT 0,
  opened_at INTEGER NOT NULL,
  open_until INTEGER NOT NULL,
  closed_at INTEGER,
  closed_by TEXT NOT NULL DEFAULT '',
  reason TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE charges (
  run_key INTEGER NOT NULL REFERENCES runs (key),
  budget TEXT NOT NULL CHECK (budget IN ('reentries', 'check_errors')),
  subject TEXT NOT NULL,
  used INTEGER NOT NULL,
  used_max INTEGER NOT NULL,
  PRIMARY KEY (run_key, budget, subject),
  CONSTRAINT charges_used CHECK (used BETWEEN 0 AND used_max)
) STRICT, WITHOUT ROWID;

CREATE TABLE claims (
  key INTEGER PRIMARY KEY,
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  run_key INTEGER NOT NULL UNIQUE REFERENCES runs (key),
  kind TEXT NOT NULL CHECK ((CASE kind WHEN 'done' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 WHEN 'noop' THEN 1 = 1 ELSE kind IS NULL END)),
  reason TEXT NOT NULL,
  statements TEXT NOT NULL,
  extra TEXT NOT NULL,
  source TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE conditions (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  kind TEXT NOT NULL CHECK (kind IN ('message', 'human', 'file')),
  what TEXT NOT NULL,
  armed_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  met_at INTEGER,
  met_by TEXT NOT NULL DEFAULT '',
  fact TEXT NOT NULL DEFAULT '',
  CONSTRAINT conditions_met_by CHECK ((met_at IS NULL) = (met_by = ''))
) STRICT;

CREATE TABLE cooling (
  outlet TEXT NOT NULL,
  topic TEXT NOT NULL,
  until INTEGER NOT NULL,
  post_id TEXT,
  PRIMARY KEY (outlet, topic)
) STRICT, WITHOUT ROWID;

CREATE TABLE counters (
  shard INTEGER NOT NULL,
  run_status TEXT NOT NULL,
  status TEXT NOT NULL,
  cell TEXT NOT NULL,
  checked INTEGER NOT NULL,
  tasks INTEGER NOT NULL,
  PRIMARY KEY (status, cell, run_status, checked, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
  message_key INTEGER PRIMARY KEY REFERENCES messages (key),
  run_id TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE demands (
  task_key INTEGER PRIMARY KEY REFERENCES tasks (key),
  labels TEXT NOT NULL,
  lane TEXT,
  definition TEXT NOT NULL,
  client TEXT NOT NULL
, agent TEXT NOT NULL DEFAULT '', host TEXT, folder_host TEXT, folder TEXT) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  task_key INTEGER,  -- the open event comes before its task; the triggers see that it exists
  run_id TEXT,
  revision INTEGER NOT NULL,
  at INTEGER NOT NULL,
  level TEXT NOT NULL CHECK ((CASE level WHEN 'info' THEN 1 = 1 WHEN 'warn' THEN 1 = 1 ELSE level IS NULL END)),
  event TEXT NOT NULL CHECK ((CASE event WHEN 'start' THEN 1 = 1 WHEN 'declare' THEN 1 = 1 WHEN 'fall_silent' THEN 1 = 1 WHEN 'pause' THEN 1 = 1 WHEN 'resume' THEN 1 = 1 WHEN 'block' THEN 1 = 1 WHEN 'retry' THEN 1 = 1 WHEN 'fail' THEN 1 = 1 WHEN 'review' THEN 1 = 1 WHEN 'chain' THEN 1 = 1 WHEN 'accept' THEN 1 = 1 WHEN 'unblock' THEN 1 = 1 WHEN 'reopen' THEN 1 = 1 WHEN 'cancel' THEN 1 = 1 WHEN 'terminate' THEN 1 = 1 WHEN 'open' THEN 1 = 1 WHEN 'seen' THEN 1 = 1 WHEN 'claim' THEN 1 = 1 WHEN 'findings' THEN 1 = 1 WHEN 'end' THEN 1 = 1 WHEN 'charge' THEN 1 = 1 WHEN 'adopt' THEN 1 = 1 WHEN 'seal' THEN 1 = 1 WHEN 'mode' THEN 1 = 1 WHEN 'agent' THEN 1 = 1 WHEN 'message' THEN 1 = 1 WHEN 'token' THEN 1 = 1 WHEN 'inbox' THEN 1 = 1 ELSE event IS NULL END)),
  from_status TEXT CHECK ((CASE from_status WHEN 'queued' THEN 1 = 1 WHEN 'running' THEN 1 = 1 WHEN 'awaiting_approval' THEN 1 = 1 WHEN 'pending_eval' THEN 1 = 1 WHEN 'failed_pending_eval' THEN 1 = 1 WHEN 'pending_qa' THEN 1 = 1 WHEN 'needs_review' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 WHEN 'succeeded' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'canceled' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 ELSE from_status IS NULL END)),
  to_status TEXT CHECK ((CASE to_status WHEN 'queued' THEN 1 = 1 WHEN 'running' THEN 1 = 1 WHEN 'awaiting_approval' THEN 1 = 1 WHEN 'pending_eval' THEN 1 = 1 WHEN 'failed_pending_eval' THEN 1 = 1 WHEN 'pending_qa' THEN 1 = 1 WHEN 'needs_review' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 WHEN 'succeeded' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'canceled' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 ELSE to_status IS NULL END)),
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  fence INTEGER NOT NULL,
  idempotency_key TEXT,
  data TEXT NOT NULL,
  hash BLOB,
  xact INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE findings (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  run_key INTEGER NOT NULL REFERENCES runs (key),
  phase TEXT NOT NULL CHECK ((CASE phase WHEN 'baseline' THEN 1 = 1 WHEN 'after' THEN 1 = 1 WHEN 'review' THEN 1 = 1 ELSE phase IS NULL END)),
  check_name TEXT NOT NULL,
  kind TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK ((CASE outcome WHEN 'passed' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'inconclusive' THEN 1 = 1 WHEN 'skipped' THEN 1 = 1 ELSE outcome IS NULL END)),
  before TEXT CHECK ((CASE before WHEN 'passed' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'inconclusive' THEN 1 = 1 WHEN 'skipped' THEN 1 = 1 ELSE before IS NULL END)),
  level TEXT NOT NULL CHECK ((CASE level WHEN 'A0' THEN 1 = 1 WHEN 'A1' THEN 1 = 1 WHEN 'A2' THEN 1 = 1 WHEN 'A3' THEN 1 = 1 WHEN 'A4' THEN 1 = 1 ELSE level IS NULL END)),
  score REAL CHECK (score BETWEEN 0 AND 1),
  counts TEXT NOT NULL,
  reason TEXT NOT NULL,
  evidence TEXT NOT NULL,
  digest TEXT NOT NULL,
  contract_digest TEXT NOT NULL,
  judge TEXT NOT NULL,
  judged TEXT NOT NULL,
  isolation TEXT NOT NULL,
  duration_us INTEGER NOT NULL,
  binding INTEGER NOT NULL CHECK (binding IN (0, 1)),
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE folder_turns (
  host TEXT PRIMARY KEY,
  turns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE folds (
  outlet TEXT NOT NULL,
  subject TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (outlet, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE honesty (
  definition TEXT NOT NULL,
  outcome TEXT NOT NULL,
  shard INTEGER NOT NULL,
  statements INTEGER NOT NULL,
  PRIMARY KEY (definition, outcome, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE house (
  key INTEGER PRIMARY KEY CHECK (key = 1),
  id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  head BLOB NOT NULL
) STRICT;

CREATE TABLE inbox (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  cause TEXT NOT NULL,
  cell TEXT NOT NULL,
  severity TEXT NOT NULL CHECK ((CASE severity WHEN 'critical' THEN 1 = 1 WHEN 'high' THEN 1 = 1 WHEN 'normal' THEN 1 = 1 ELSE severity IS NULL END)),
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  run_key INTEGER REFERENCES runs (key),
  title TEXT NOT NULL,
  reason TEXT NOT NULL,
  next TEXT NOT NULL,
  times INTEGER NOT NULL,
  state TEXT NOT NULL CHECK ((CASE state WHEN 'open' THEN 1 = 1 WHEN 'acked' THEN 1 = 1 WHEN 'snoozed' THEN 1 = 1 WHEN 'resolved' THEN 1 = 1 ELSE state IS NULL END)),
  owner TEXT NOT NULL DEFAULT '',
  snoozed_until INTEGER,
  outcome TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, topic TEXT NOT NULL DEFAULT '', whole_topic INTEGER NOT NULL DEFAULT 0 CHECK (whole_topic IN (0, 1)), open_since INTEGER NOT NULL DEFAULT 0, closed_by TEXT NOT NULL DEFAULT '', quiet_until INTEGER NOT NULL DEFAULT 0,
  CHECK ((state = 'resolved') = (outcome IS NOT NULL)),
  CHECK ((state = 'snoozed') = (snoozed_until IS NOT NULL))
) STRICT;

CREATE TABLE jobs (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  attempt INTEGER NOT NULL,
  engine TEXT NOT NULL,
  handle TEXT NOT NULL DEFAULT '',
  state TEXT NOT NULL CHECK (state IN ('placed', 'taken', 'lost', 'over')),
  holder TEXT NOT NULL DEFAULT '',
  word TEXT NOT NULL CHECK (word IN ('queued', 'running', 'gone', 'unknown')),
  said TEXT NOT NULL DEFAULT '',
  gone_at INTEGER,
  created_at INTEGER NOT NULL,
  looked_at INTEGER,
  updated_at INTEGER NOT NULL,
  CONSTRAINT jobs_taken_by CHECK (state <> 'taken' OR holder <> '')
) STRICT;

CREATE TABLE leases (
  run_key INTEGER PRIMARY KEY REFERENCES runs (key),
  token TEXT NOT NULL,
  holder TEXT NOT NULL,
  boot TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  process TEXT NOT NULL DEFAULT '{}'
, stop_asked TEXT NOT NULL DEFAULT '', active_at INTEGER, lasts INTEGER NOT NULL DEFAULT 60000000, folder_host TEXT NOT NULL DEFAULT '', folder TEXT NOT NULL DEFAULT '') STRICT;

CREATE TABLE limits (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  file TEXT NOT NULL,
  hours INTEGER NOT NULL CHECK (hours IN (1, 24)),
  agent TEXT NOT NULL,
  label TEXT NOT NULL,
  cost INTEGER CHECK (cost > 0),
  tokens INTEGER CHECK (tokens > 0),
  runs INTEGER CHECK (runs > 0),
  turns INTEGER NOT NULL DEFAULT 0,
  stated INTEGER NOT NULL DEFAULT 0,
  UNIQUE (file, hours, agent, label),
  CHECK (cost IS NOT NULL OR tokens IS NOT NULL OR runs IS NOT NULL)
) STRICT;

CREATE TABLE messages (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  agent_key INTEGER NOT NULL REFERENCES agents (key),
  sender TEXT NOT NULL,
  body TEXT NOT NULL,
  disposition TEXT NOT NULL CHECK ((CASE disposition WHEN 'delivered' THEN 1 = 1 WHEN 'queued_for_resume' THEN 1 = 1 WHEN 'duplicate' THEN 1 = 1 ELSE disposition IS NULL END)),
  idempotency_key TEXT UNIQUE,
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE meters (
  name TEXT NOT NULL,
  label TEXT NOT NULL,
  shard INTEGER NOT NULL,
  total INTEGER NOT NULL,
  PRIMARY KEY (name, label, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE occurrences (
  key INTEGER PRIMARY KEY,
  routine_key INTEGER NOT NULL REFERENCES routines (key),
  slot TEXT NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  first_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  times INTEGER NOT NULL DEFAULT 1 CHECK (times > 0),
  state TEXT NOT NULL CHECK (state IN ('fired', 'skipped', 'missed', 'waiting')),
  cause TEXT NOT NULL,
  task_key INTEGER REFERENCES tasks (key),
  actor TEXT NOT NULL,
  at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CONSTRAINT occurrences_slot UNIQUE (routine_key, slot),
  CONSTRAINT occurrences_task CHECK ((state IN ('fired', 'missed')) = (task_key IS NOT NULL)),
  CONSTRAINT occurrences_times CHECK (times = 1 OR state = 'missed')
) STRICT;

CREATE TABLE outlets (
  name TEXT PRIMARY KEY,
  xact INTEGER NOT NULL,
  event_key INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE pins (
  file TEXT PRIMARY KEY,
  reach TEXT NOT NULL,
  run_key INTEGER NOT NULL,
  actor TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE policies (
  kind TEXT PRIMARY KEY CHECK (kind IN ('agent', 'provider', 'fleet')),
  after INTEGER NOT NULL CHECK (after BETWEEN 2 AND 100),
  within INTEGER NOT NULL CHECK (within BETWEEN 1000000 AND 86400000000),
  pause INTEGER NOT NULL CHECK (pause BETWEEN 1000000 AND most),
  most INTEGER NOT NULL CHECK (most <= 86400000000),
  file TEXT NOT NULL DEFAULT '',
  stated INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE TABLE posts (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  outlet TEXT NOT NULL,
  subject TEXT NOT NULL,
  task_id TEXT,
  body TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'given_up', 'unsaid')),
  tries INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL,
  error TEXT NOT NULL DEFAULT '',
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (outlet, subject)
) STRICT;

CREATE TABLE probes (
  breaker_key INTEGER PRIMARY KEY REFERENCES breakers (key),
  run_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE refusals (
  key INTEGER PRIMARY KEY,
  task_key INTEGER REFERENCES tasks (key),
  run_id TEXT NOT NULL,
  verb TEXT NOT NULL,
  code TEXT NOT NULL,
  actor TEXT NOT NULL,
  message TEXT NOT NULL,
  evidence TEXT NOT NULL,
  times INTEGER NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL
) STRICT;

CREATE TABLE requests (
  actor TEXT NOT NULL,
  request_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (actor, request_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE reservations (
  task_key INTEGER PRIMARY KEY REFERENCES tasks (key),
  holder TEXT NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE routines (
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('schedule', 'cycle')),
  settings TEXT NOT NULL,
  contract TEXT NOT NULL,
  digest TEXT NOT NULL,
  source TEXT NOT NULL,
  paused_by TEXT NOT NULL DEFAULT '',
  paused_at INTEGER,
  next_at INTEGER,
  generation INTEGER NOT NULL DEFAULT 0,
  iteration INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  task_key INTEGER REFERENCES tasks (key),
  ended TEXT,
  ended_at INTEGER,
  gone_at INTEGER,
  revision INTEGER NOT NULL DEFAULT 1,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CONSTRAINT routines_name UNIQUE (name),
  CONSTRAINT routines_paused CHECK ((paused_at IS NULL) = (paused_by = '')),
  CONSTRAINT routines_ended CHECK ((ended IS NULL) = (ended_at IS NULL)),
  CONSTRAINT routines_next CHECK (kind = 'schedule' OR next_at IS NULL),
  CONSTRAINT routines_cycle CHECK (kind = 'cycle' OR ended IS NULL)
) STRICT;

CREATE TABLE runs (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  attempt INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  status TEXT NOT NULL CHECK ((CASE status WHEN 'starting' THEN 1 = 1 WHEN 'running' THEN 1 = 1 WHEN 'paused' THEN 1 = 1 WHEN 'exited' THEN 1 = 1 WHEN 'crashed' THEN 1 = 1 WHEN 'capped' THEN 1 = 1 WHEN 'stopped' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 WHEN 'lost' THEN 1 = 1 WHEN 'missed' THEN 1 = 1 ELSE status IS NULL END)),
  exit_reason TEXT CHECK ((CASE exit_reason WHEN 'done' THEN 1 = 1 WHEN 'max_iterations' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 WHEN 'fatal_error' THEN 1 = 1 WHEN 'user_cancelled' THEN 1 = 1 WHEN 'unknown' THEN 1 = 1 ELSE exit_reason IS NULL END)),
  exit_detail TEXT,
  exit_code INTEGER,
  signal INTEGER,
  ended_by TEXT CHECK ((CASE ended_by WHEN 'agent' THEN 1 = 1 WHEN 'cap' THEN 1 = 1 WHEN 'operator' THEN 1 = 1 WHEN 'lead' THEN 1 = 1 WHEN 'supervisor' THEN 1 = 1 WHEN 'machine' THEN 1 = 1 ELSE ended_by IS NULL END)),
  agent_key INTEGER REFERENCES agents (key),
  isolation TEXT NOT NULL DEFAULT '',
  verdict TEXT NOT NULL DEFAULT 'unknown' CHECK ((CASE verdict WHEN 'passed' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'inconclusive' THEN 1 = 1 WHEN 'unknown' THEN 1 = 1 WHEN 'pending' THEN 1 = 1 ELSE verdict IS NULL END)),
  level TEXT CHECK ((CASE level WHEN 'A0' THEN 1 = 1 WHEN 'A1' THEN 1 = 1 WHEN 'A2' THEN 1 = 1 WHEN 'A3' THEN 1 = 1 WHEN 'A4' THEN 1 = 1 ELSE level IS NULL END)),
  verdict_reason TEXT NOT NULL DEFAULT '',
  cell TEXT CHECK ((CASE cell WHEN 'true_green' THEN 1 = 1 WHEN 'silent_failure' THEN 1 = 1 WHEN 'reported_failure' THEN 1 = 1 WHEN 'undecided' THEN 1 = 1 WHEN 'unverified' THEN 1 = 1 WHEN 'awaiting_verdict' THEN 1 = 1 WHEN 'rescued' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'outage' THEN 1 = 1 WHEN 'rescue_under_way' THEN 1 = 1 WHEN 'finished_at_the_cap' THEN 1 = 1 WHEN 'cap_hit' THEN 1 = 1 WHEN 'kept' THEN 1 = 1 WHEN 'stopped' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 ELSE cell IS NULL END)),
  base_digest TEXT NOT NULL DEFAULT '',
  digest TEXT NOT NULL DEFAULT '',
  usage TEXT NOT NULL DEFAULT '{}',
  facts TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL,
  seen_at INTEGER,
  ended_at INTEGER,
  judged_at INTEGER, standing TEXT NOT NULL DEFAULT 'unchecked'
  CHECK ((CASE standing WHEN 'unchecked' THEN 1 = 1 WHEN 'checked' THEN 1 = 1 WHEN 'falsified' THEN 1 = 1 ELSE standing IS NULL END)), lane TEXT, cost INTEGER NOT NULL DEFAULT 0 CHECK (cost >= 0), tokens INTEGER NOT NULL DEFAULT 0 CHECK (tokens >= 0), cost_granted INTEGER NOT NULL DEFAULT 10000, tokens_granted INTEGER NOT NULL DEFAULT 1, required_level TEXT CHECK ((CASE required_level WHEN 'A0' THEN 1 = 1 WHEN 'A1' THEN 1 = 1 WHEN 'A2' THEN 1 = 1 WHEN 'A3' THEN 1 = 1 WHEN 'A4' THEN 1 = 1 ELSE required_level IS NULL END)), proof TEXT NOT NULL DEFAULT '', admission TEXT NOT NULL DEFAULT '', folder_host TEXT NOT NULL DEFAULT '', folder TEXT NOT NULL DEFAULT '', processes TEXT NOT NULL DEFAULT 'unknown'
  CHECK (processes IN ('unknown', 'gone', 'unconfirmed', 'alive')),
  UNIQUE (task_key, attempt),
  CONSTRAINT runs_exit_pair CHECK ((exit_reason IS NULL) = (exit_detail IS NULL) AND (CASE exit_reason || '/' || exit_detail WHEN 'done/completed' THEN 1 = 1 WHEN 'done/declared_failure' THEN 1 = 1 WHEN 'done/noop' THEN 1 = 1 WHEN 'max_iterations/turn_cap' THEN 1 = 1 WHEN 'max_iterations/time_cap' THEN 1 = 1 WHEN 'max_iterations/idle_cap' THEN 1 = 1 WHEN 'max_iterations/cost_cap' THEN 1 = 1 WHEN 'max_iterations/token_cap' THEN 1 = 1 WHEN 'max_iterations/context_cap' THEN 1 = 1 WHEN 'max_iterations/reentry_cap' THEN 1 = 1 WHEN 'blocked/approval_checkpoint' THEN 1 = 1 WHEN 'blocked/approval_expired' THEN 1 = 1 WHEN 'blocked/permission_denied' THEN 1 = 1 WHEN 'blocked/egress_denied' THEN 1 = 1 WHEN 'blocked/connector_missing' THEN 1 = 1 WHEN 'blocked/refused' THEN 1 = 1 WHEN 'blocked/input_needed' THEN 1 = 1 WHEN 'fatal_error/agent_error' THEN 1 = 1 WHEN 'fatal_error/launch_failed' THEN 1 = 1 WHEN 'fatal_error/signaled' THEN 1 = 1 WHEN 'fatal_error/oom' THEN 1 = 1 WHEN 'fatal_error/process_lost' THEN 1 = 1 WHEN 'fatal_error/zero_output' THEN 1 = 1 WHEN 'fatal_error/provider_error' THEN 1 = 1 WHEN 'fatal_error/rate_limited' THEN 1 = 1 WHEN 'fatal_error/auth_invalid' THEN 1 = 1 WHEN 'fatal_error/disk_full' THEN 1 = 1 WHEN 'fatal_error/config_invalid' THEN 1 = 1 WHEN 'fatal_error/supervisor_crashed' THEN 1 = 1 WHEN 'fatal_error/supervisor_restarted' THEN 1 = 1 WHEN 'user_cancelled/stopped' THEN 1 = 1 WHEN 'user_cancelled/canceled' THEN 1 = 1 WHEN 'user_cancelled/terminated' THEN 1 = 1 WHEN 'user_cancelled/superseded' THEN 1 = 1 WHEN 'unknown/unclaimed' THEN 1 = 1 WHEN 'unknown/unclassified' THEN 1 = 1 ELSE exit_reason || '/' || exit_detail IS NULL END)),
  CONSTRAINT runs_ends CHECK ((CASE exit_reason || '/' || status WHEN 'done/exited' THEN 1 = 1 WHEN 'max_iterations/capped' THEN 1 = 1 WHEN 'blocked/exited' THEN 1 = 1 WHEN 'blocked/crashed' THEN 1 = 1 WHEN 'blocked/stopped' THEN 1 = 1 WHEN 'blocked/lost' THEN 1 = 1 WHEN 'fatal_error/crashed' THEN 1 = 1 WHEN 'fatal_error/lost' THEN 1 = 1 WHEN 'fatal_error/missed' THEN 1 = 1 WHEN 'user_cancelled/stopped' THEN 1 = 1 WHEN 'user_cancelled/terminated' THEN 1 = 1 WHEN 'unknown/exited' THEN 1 = 1 WHEN 'unknown/crashed' THEN 1 = 1 WHEN 'unknown/missed' THEN 1 = 1 ELSE exit_reason || '/' || status IS NULL END)),
  CONSTRAINT runs_reason_when_ended CHECK ((exit_reason IS NULL) = ((CASE status WHEN 'starting' THEN 1 = 1 WHEN 'running' THEN 1 = 1 WHEN 'paused' THEN 1 = 1 ELSE status IS NULL END))),
  CONSTRAINT runs_ended_at CHECK ((ended_at IS NULL) = (exit_reason IS NULL)),
  CONSTRAINT runs_ended_by CHECK ((ended_by IS NULL) = (exit_reason IS NULL)),
  CONSTRAINT runs_cell CHECK ((cell IS NULL) = (exit_reason IS NULL))
) STRICT;

CREATE TABLE schema_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE schema_objects (
  name TEXT PRIMARY KEY,
  definition TEXT NOT NULL
) STRICT;

CREATE TABLE spending (
  hour INTEGER NOT NULL,
  agent TEXT NOT NULL,
  labels TEXT NOT NULL,
  shard INTEGER NOT NULL,
  cost INTEGER NOT NULL CHECK (cost >= 0),
  tokens INTEGER NOT NULL CHECK (tokens >= 0),
  runs INTEGER NOT NULL CHECK (runs >= 0),
  PRIMARY KEY (hour, agent, labels, shard)
) STRICT, WITHOUT ROWID;

CREATE TABLE strikes (
  key INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('agent', 'provider', 'fleet')),
  subject TEXT NOT NULL,
  signature TEXT NOT NULL,
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  at INTEGER NOT NULL
) STRICT;

CREATE TABLE switches (
  name TEXT PRIMARY KEY CHECK (name = 'frozen'),
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tallies (
  hour INTEGER NOT NULL,
  cell TEXT NOT NULL,
  standing TEXT NOT NULL,
  exit_reason TEXT NOT NULL,
  mode TEXT NOT NULL,
  role TEXT NOT NULL,
  shard INTEGER NOT NULL,
  runs INTEGER NOT NULL,
  PRIMARY KEY (hour, cell, standing, exit_reason, mode, role, shard)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE task_words USING fts5 (
  title, goal, content = 'tasks', content_rowid = 'key', detail = none, columnsize = 0
);

CREATE TABLE 'task_words_config'(k PRIMARY KEY, v) WITHOUT ROWID;

CREATE TABLE 'task_words_data'(id INTEGER PRIMARY KEY, block BLOB);

CREATE TABLE 'task_words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;

CREATE TABLE tasks (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  goal TEXT NOT NULL,
  role TEXT NOT NULL,
  mode TEXT NOT NULL CHECK ((CASE mode WHEN 'interactive' THEN 1 = 1 WHEN 'assisted' THEN 1 = 1 WHEN 'autonomous' THEN 1 = 1 ELSE mode IS NULL END)),
  status TEXT NOT NULL CHECK ((CASE status WHEN 'queued' THEN 1 = 1 WHEN 'running' THEN 1 = 1 WHEN 'awaiting_approval' THEN 1 = 1 WHEN 'pending_eval' THEN 1 = 1 WHEN 'failed_pending_eval' THEN 1 = 1 WHEN 'pending_qa' THEN 1 = 1 WHEN 'needs_review' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 WHEN 'succeeded' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'canceled' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 ELSE status IS NULL END)),
  exit_reason TEXT CHECK ((CASE exit_reason WHEN 'done' THEN 1 = 1 WHEN 'max_iterations' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 WHEN 'fatal_error' THEN 1 = 1 WHEN 'user_cancelled' THEN 1 = 1 WHEN 'unknown' THEN 1 = 1 ELSE exit_reason IS NULL END)),
  exit_detail TEXT,
  run_status TEXT CHECK ((CASE run_status WHEN 'starting' THEN 1 = 1 WHEN 'running' THEN 1 = 1 WHEN 'paused' THEN 1 = 1 WHEN 'exited' THEN 1 = 1 WHEN 'crashed' THEN 1 = 1 WHEN 'capped' THEN 1 = 1 WHEN 'stopped' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 WHEN 'lost' THEN 1 = 1 WHEN 'missed' THEN 1 = 1 ELSE run_status IS NULL END)),
  verdict TEXT NOT NULL DEFAULT 'unknown' CHECK ((CASE verdict WHEN 'passed' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'inconclusive' THEN 1 = 1 WHEN 'unknown' THEN 1 = 1 WHEN 'pending' THEN 1 = 1 ELSE verdict IS NULL END)),
  cell TEXT CHECK ((CASE cell WHEN 'true_green' THEN 1 = 1 WHEN 'silent_failure' THEN 1 = 1 WHEN 'reported_failure' THEN 1 = 1 WHEN 'undecided' THEN 1 = 1 WHEN 'unverified' THEN 1 = 1 WHEN 'awaiting_verdict' THEN 1 = 1 WHEN 'rescued' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'outage' THEN 1 = 1 WHEN 'rescue_under_way' THEN 1 = 1 WHEN 'finished_at_the_cap' THEN 1 = 1 WHEN 'cap_hit' THEN 1 = 1 WHEN 'kept' THEN 1 = 1 WHEN 'stopped' THEN 1 = 1 WHEN 'blocked' THEN 1 = 1 ELSE cell IS NULL END)),
  silent INTEGER NOT NULL DEFAULT 0
    CHECK (silent = CASE WHEN cell = 'silent_failure' THEN 1 ELSE 0 END),
  rescued INTEGER NOT NULL DEFAULT 0 CHECK (rescued IN (0, 1)),
  overridden INTEGER NOT NULL DEFAULT 0 CHECK (overridden IN (0, 1)),
  sealed_at INTEGER,
  fence INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
  revision INTEGER NOT NULL,
  head BLOB NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  attempts_max INTEGER NOT NULL,
  deferrals INTEGER NOT NULL DEFAULT 0,
  deferrals_max INTEGER NOT NULL,
  qa_rounds INTEGER NOT NULL DEFAULT 0,
  qa_rounds_max INTEGER NOT NULL,
  priority INTEGER NOT NULL DEFAULT 0,
  not_before INTEGER NOT NULL DEFAULT 0,
  agent_key INTEGER REFERENCES agents (key),
  parent_key INTEGER REFERENCES tasks (key),
  qa_of_key INTEGER REFERENCES tasks (key),
  created_by TEXT NOT NULL,
  contract TEXT NOT NULL,
  contract_digest TEXT NOT NULL,
  acceptance TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  settled_at INTEGER, falsified INTEGER NOT NULL DEFAULT 0 CHECK (falsified IN (0, 1)), checked INTEGER NOT NULL DEFAULT 0 CHECK (checked IN (0, 1)), proof TEXT CHECK ((CASE proof WHEN 'shown' THEN 1 = 1 WHEN 'missing' THEN 1 = 1 WHEN 'waived' THEN 1 = 1 ELSE proof IS NULL END)), proof_mode TEXT NOT NULL DEFAULT 'required'
  CHECK ((CASE proof_mode WHEN 'required' THEN 1 = 1 WHEN 'regression' THEN 1 = 1 ELSE proof_mode IS NULL END)), noop INTEGER NOT NULL DEFAULT 0 CHECK (noop IN (0, 1)),
  CONSTRAINT tasks_exit_pair CHECK ((exit_reason IS NULL) = (exit_detail IS NULL) AND (CASE exit_reason || '/' || exit_detail WHEN 'done/completed' THEN 1 = 1 WHEN 'done/declared_failure' THEN 1 = 1 WHEN 'done/noop' THEN 1 = 1 WHEN 'max_iterations/turn_cap' THEN 1 = 1 WHEN 'max_iterations/time_cap' THEN 1 = 1 WHEN 'max_iterations/idle_cap' THEN 1 = 1 WHEN 'max_iterations/cost_cap' THEN 1 = 1 WHEN 'max_iterations/token_cap' THEN 1 = 1 WHEN 'max_iterations/context_cap' THEN 1 = 1 WHEN 'max_iterations/reentry_cap' THEN 1 = 1 WHEN 'blocked/approval_checkpoint' THEN 1 = 1 WHEN 'blocked/approval_expired' THEN 1 = 1 WHEN 'blocked/permission_denied' THEN 1 = 1 WHEN 'blocked/egress_denied' THEN 1 = 1 WHEN 'blocked/connector_missing' THEN 1 = 1 WHEN 'blocked/refused' THEN 1 = 1 WHEN 'blocked/input_needed' THEN 1 = 1 WHEN 'fatal_error/agent_error' THEN 1 = 1 WHEN 'fatal_error/launch_failed' THEN 1 = 1 WHEN 'fatal_error/signaled' THEN 1 = 1 WHEN 'fatal_error/oom' THEN 1 = 1 WHEN 'fatal_error/process_lost' THEN 1 = 1 WHEN 'fatal_error/zero_output' THEN 1 = 1 WHEN 'fatal_error/provider_error' THEN 1 = 1 WHEN 'fatal_error/rate_limited' THEN 1 = 1 WHEN 'fatal_error/auth_invalid' THEN 1 = 1 WHEN 'fatal_error/disk_full' THEN 1 = 1 WHEN 'fatal_error/config_invalid' THEN 1 = 1 WHEN 'fatal_error/supervisor_crashed' THEN 1 = 1 WHEN 'fatal_error/supervisor_restarted' THEN 1 = 1 WHEN 'user_cancelled/stopped' THEN 1 = 1 WHEN 'user_cancelled/canceled' THEN 1 = 1 WHEN 'user_cancelled/terminated' THEN 1 = 1 WHEN 'user_cancelled/superseded' THEN 1 = 1 WHEN 'unknown/unclaimed' THEN 1 = 1 WHEN 'unknown/unclassified' THEN 1 = 1 ELSE exit_reason || '/' || exit_detail IS NULL END)),
  CONSTRAINT tasks_exit_fits_status CHECK (CASE status WHEN 'succeeded' THEN exit_reason IS NOT NULL AND (exit_reason = 'done' OR rescued = 1) WHEN 'blocked' THEN exit_reason IS NOT NULL AND exit_reason = 'blocked' WHEN 'canceled' THEN exit_reason IS NOT NULL AND exit_reason = 'user_cancelled' WHEN 'terminated' THEN exit_reason IS NOT NULL AND exit_reason = 'user_cancelled' WHEN 'failed' THEN exit_reason IS NOT NULL AND exit_reason <> 'user_cancelled' ELSE 1 = 1 END),
  CONSTRAINT tasks_settled CHECK (settled_at IS NULL OR (CASE status WHEN 'blocked' THEN 1 = 1 WHEN 'succeeded' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'canceled' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 ELSE status IS NULL END)),
  CONSTRAINT tasks_terminated_is_sealed CHECK (status <> 'terminated' OR sealed_at IS NOT NULL),
  CONSTRAINT tasks_green_is_proven CHECK
    (status <> 'succeeded' OR (verdict = 'passed' AND acceptance IS NOT NULL)),
  CONSTRAINT tasks_attempts CHECK (attempts BETWEEN 0 AND attempts_max),
  CONSTRAINT tasks_deferrals CHECK (deferrals BETWEEN 0 AND deferrals_max),
  CONSTRAINT tasks_qa_rounds CHECK (qa_rounds BETWEEN 0 AND qa_rounds_max)
) STRICT;

CREATE TABLE tokens (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK ((CASE role WHEN 'agent' THEN 1 = 1 WHEN 'judge' THEN 1 = 1 WHEN 'lead' THEN 1 = 1 WHEN 'operator' THEN 1 = 1 WHEN 'viewer' THEN 1 = 1 WHEN 'system' THEN 1 = 1 ELSE role IS NULL END) AND role <> 'system'),
  name TEXT NOT NULL,
  digest BLOB NOT NULL UNIQUE,
  task_key INTEGER REFERENCES tasks (key),
  run_key INTEGER REFERENCES runs (key),
  fence INTEGER,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER, kind TEXT NOT NULL DEFAULT 'key'
  CHECK (kind IN ('key', 'login', 'session')),
  CHECK (role NOT IN ('agent', 'judge') OR (run_key IS NOT NULL AND fence IS NOT NULL))
) STRICT;

CREATE TABLE told (
  outlet TEXT NOT NULL,
  item_key INTEGER NOT NULL REFERENCES inbox (key),
  subject TEXT NOT NULL,
  post_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  arrived_at INTEGER,
  step INTEGER NOT NULL DEFAULT 0,
  since INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (outlet, item_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE waivers (
  task_key INTEGER NOT NULL REFERENCES tasks (key),
  needed TEXT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (task_key, needed)
) STRICT, WITHOUT ROWID;

CREATE TABLE wakes (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  agent_key INTEGER NOT NULL REFERENCES agents (key),
  task_key INTEGER REFERENCES tasks (key),
  cause TEXT NOT NULL CHECK (cause IN ('resume', 'message', 'schedule')),
  body TEXT NOT NULL,
  due_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('armed', 'ready', 'fired', 'void')),
  why TEXT NOT NULL DEFAULT '',
  run_id TEXT NOT NULL DEFAULT '',
  armed_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CONSTRAINT wakes_ready_for CHECK (state NOT IN ('ready', 'fired') OR task_key IS NOT NULL),
  CONSTRAINT wakes_fired_by CHECK ((state = 'fired') = (run_id <> ''))
) STRICT;

CREATE TABLE workers (
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  holder TEXT NOT NULL UNIQUE,
  labels TEXT NOT NULL,
  seats INTEGER NOT NULL CHECK (seats > 0),
  version TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  busy INTEGER NOT NULL DEFAULT 0,
  draining INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1))
) STRICT;

CREATE UNIQUE INDEX agents_inside ON agents (parent_key, kind, session)
  WHERE kind <> 'agent' AND session IS NOT NULL;

CREATE INDEX agents_name ON agents (name);

CREATE INDEX agents_parent ON agents (parent_key) WHERE parent_key IS NOT NULL;

CREATE INDEX agents_session ON agents (session) WHERE session IS NOT NULL;

CREATE INDEX agents_terminated ON agents (terminated_at) WHERE terminated_at IS NOT NULL;

CREATE UNIQUE INDEX breakers_open ON breakers (kind, subject, signature) WHERE closed_at IS NULL;

CREATE INDEX conditions_answered ON conditions (met_by, met_at) WHERE kind = 'human';

CREATE INDEX conditions_awaited ON conditions (kind, what) WHERE met_at IS NULL;

CREATE UNIQUE INDEX conditions_open ON conditions (task_key, kind, what) WHERE met_at IS NULL;

CREATE INDEX conditions_task ON conditions (task_key);

CREATE INDEX events_answers ON events (actor, at) WHERE event IN ('resume', 'accept');

CREATE UNIQUE INDEX events_house_revision ON events (revision) WHERE task_key IS NULL;

CREATE UNIQUE INDEX events_idempotency_key ON events (idempotency_key)
  WHERE idempotency_key IS NOT NULL;

CREATE UNIQUE INDEX events_task_revision ON events (task_key, revision) WHERE task_key IS NOT NULL;

CREATE INDEX findings_run ON findings (run_key);

CREATE INDEX inbox_alerts ON inbox (key) WHERE state <> 'resolved'
  AND cell IN ('blocked_long', 'pending_long', 'unknown_share', 'queue_age', 'queue_depth');

CREATE INDEX inbox_cause ON inbox (cause);

CREATE UNIQUE INDEX inbox_open_cause ON inbox (cause) WHERE state <> 'resolved';

CREATE INDEX inbox_quiet ON inbox (quiet_until) WHERE quiet_until > 0;

CREATE INDEX inbox_snoozed ON inbox (snoozed_until) WHERE state = 'snoozed';

CREATE INDEX inbox_task ON inbox (task_key);

CREATE INDEX inbox_topic ON inbox (topic) WHERE state <> 'resolved';

CREATE INDEX inbox_unread ON inbox (severity) WHERE state <> 'resolved' AND state <> 'acked';

CREATE INDEX inbox_waiting ON inbox (severity, key) WHERE state <> 'resolved';

CREATE INDEX jobs_open ON jobs (engine) WHERE state IN ('placed', 'taken');

CREATE INDEX jobs_task ON jobs (task_key);

CREATE INDEX leases_boot ON leases (boot) WHERE boot <> '';

CREATE INDEX leases_expiry ON leases (expires_at);

CREATE INDEX leases_folder ON leases (folder_host) WHERE folder <> '';

CREATE INDEX messages_agent ON messages (agent_key);

CREATE INDEX occurrences_missed ON occurrences (routine_key) WHERE state = 'missed';

CREATE INDEX occurrences_of_routine ON occurrences (routine_key);

CREATE UNIQUE INDEX occurrences_of_task ON occurrences (task_key) WHERE task_key IS NOT NULL;

CREATE INDEX occurrences_waiting ON occurrences (routine_key) WHERE state = 'waiting';

CREATE INDEX posts_due ON posts (due_at) WHERE state = 'waiting';

CREATE INDEX posts_given_up ON posts (outlet) WHERE state = 'given_up';

CREATE INDEX posts_in_turn ON posts (outlet, task_id) WHERE state = 'waiting';

CREATE INDEX posts_past ON posts (updated_at) WHERE state IN ('sent', 'unsaid');

CREATE INDEX posts_silent ON posts (task_id) WHERE state IN ('given_up', 'unsaid');

CREATE INDEX posts_unsaid ON posts (outlet) WHERE state = 'unsaid';

CREATE INDEX probes_run ON probes (run_id);

CREATE UNIQUE INDEX refusals_same
  ON refusals (COALESCE(task_key, 0), run_id, verb, code, actor);

CREATE INDEX refusals_task ON refusals (task_key);

CREATE INDEX requests_old ON requests (at);

CREATE INDEX runs_agent ON runs (agent_key) WHERE agent_key IS NOT NULL;

CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_live ON runs (key) WHERE exit_reason IS NULL;

CREATE INDEX runs_live_of_agent ON runs (agent_key, task_key)
  WHERE agent_key IS NOT NULL AND exit_reason IS NULL;

CREATE UNIQUE INDEX runs_one_in_lane ON runs (lane) WHERE lane IS NOT NULL AND exit_reason IS NULL;

CREATE UNIQUE INDEX runs_one_live ON runs (task_key) WHERE exit_reason IS NULL;

CREATE INDEX runs_tasks_of_agent ON runs (agent_key, task_key)
  WHERE agent_key IS NOT NULL;

CREATE INDEX strikes_alike ON strikes (kind, subject, signature, at);

CREATE INDEX strikes_old ON strikes (at);

CREATE INDEX tasks_begun ON tasks (status, attempt) WHERE status = 'queued' AND attempt > 0;

CREATE INDEX tasks_blocked ON tasks (status, settled_at) WHERE status = 'blocked';

CREATE INDEX tasks_cell ON tasks (cell, (silent * 4611686018427387904 + key)) WHERE cell IS NOT NULL;

CREATE INDEX tasks_cell_exit_reason ON tasks (cell, exit_reason, (key + silent * 4611686018427387904))
  WHERE cell IS NOT NULL;

CREATE INDEX tasks_exit_reason ON tasks (exit_reason, (silent * 4611686018427387904 + key)) WHERE exit_reason IS NOT NULL;

CREATE UNIQUE INDEX tasks_one_open_qa ON tasks (qa_of_key)
  WHERE qa_of_key IS NOT NULL AND NOT (CASE status WHEN 'blocked' THEN 1 = 1 WHEN 'succeeded' THEN 1 = 1 WHEN 'failed' THEN 1 = 1 WHEN 'canceled' THEN 1 = 1 WHEN 'terminated' THEN 1 = 1 ELSE status IS NULL END);

CREATE INDEX tasks_qa ON tasks (qa_of_key) WHERE qa_of_key IS NOT NULL;

CREATE INDEX tasks_queued ON tasks (key) WHERE status = 'queued';

CREATE INDEX tasks_ready ON tasks (status, priority DESC, key) WHERE status = 'queued';

CREATE INDEX tasks_role ON tasks (role, (silent * 4611686018427387904 + key));

CREATE INDEX tasks_role_status ON tasks (role, status, (key + silent * 4611686018427387904));

CREATE INDEX tasks_sealed ON tasks (sealed_at) WHERE sealed_at IS NOT NULL;

CREATE INDEX tasks_silent ON tasks (key) WHERE silent = 1;

CREATE INDEX tasks_status ON tasks (status, (silent * 4611686018427387904 + key));

CREATE INDEX tasks_status_exit_reason ON tasks (status, exit_reason, (key + silent * 4611686018427387904))
  WHERE exit_reason IS NOT NULL;

CREATE INDEX tokens_of_people ON tokens (key) WHERE run_key IS NULL;

CREATE INDEX tokens_task ON tokens (task_key) WHERE task_key IS NOT NULL;

CREATE INDEX told_post ON told (post_id);

CREATE INDEX wakes_agent ON wakes (agent_key);

CREATE INDEX wakes_due ON wakes (due_at) WHERE state = 'armed';

CREATE UNIQUE INDEX wakes_one_ready ON wakes (task_key) WHERE state = 'ready';

CREATE TRIGGER agents_kept BEFORE UPDATE ON agents BEGIN
  SELECT RAISE(ABORT, 'truegreen/terminated: terminated is final') WHERE OLD.status = 'terminated' AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.terminated_at IS DISTINCT FROM OLD.terminated_at OR NEW.session IS DISTINCT FROM OLD.session);
  SELECT RAISE(ABORT, 'truegreen/illegal_move: no edge leads between these statuses of an agent') WHERE NEW.status <> OLD.status AND NOT (CASE OLD.status || '>' || NEW.status WHEN 'pending>completed' THEN 1 = 1 WHEN 'pending>error' THEN 1 = 1 WHEN 'pending>in_progress' THEN 1 = 1 WHEN 'pending>terminated' THEN 1 = 1 WHEN 'in_progress>completed' THEN 1 = 1 WHEN 'in_progress>error' THEN 1 = 1 WHEN 'in_progress>terminated' THEN 1 = 1 WHEN 'completed>in_progress' THEN 1 = 1 WHEN 'completed>terminated' THEN 1 = 1 WHEN 'error>in_progress' THEN 1 = 1 WHEN 'error>terminated' THEN 1 = 1 ELSE OLD.status || '>' || NEW.status IS NULL END);
  SELECT RAISE(ABORT, 'truegreen/forbidden: the identity of an agent is frozen') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.name IS DISTINCT FROM OLD.name OR NEW.definition IS DISTINCT FROM OLD.definition OR NEW.parent_key IS DISTINCT FROM OLD.parent_key OR NEW.registered_by IS DISTINCT FROM OLD.registered_by OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.kind IS DISTINCT FROM OLD.kind;
END;

CREATE TRIGGER agents_no_delete BEFORE DELETE ON agents BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: agents are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER agents_no_push BEFORE UPDATE ON agents BEGIN
  SELECT RAISE(ABORT, 'truegreen/stale: agents are kept: one pushes no other out') WHERE EXISTS (SELECT 1 FROM agents WHERE kind <> 'agent' AND parent_key = NEW.parent_key AND kind = NEW.kind AND session = NEW.session AND key <> NEW.key);
END;

CREATE TRIGGER agents_no_replace BEFORE INSERT ON agents BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: agents are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM agents WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM agents WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM agents WHERE parent_key = NEW.parent_key AND kind = NEW.kind AND session = NEW.session AND kind <> 'agent');
END;

CREATE TRIGGER agents_registered BEFORE INSERT ON agents BEGIN
  SELECT RAISE(ABORT, 'truegreen/terminated: a child of a terminated agent is terminated') WHERE NEW.status <> 'terminated' AND EXISTS (SELECT 1 FROM agents p WHERE p.key = NEW.parent_key AND p.status = 'terminated');
END;

CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: artifacts are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER artifacts_no_replace BEFORE INSERT ON artifacts BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: artifacts are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM artifacts WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM artifacts WHERE run_key = NEW.run_key AND name = NEW.name);
END;

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: artifacts are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER breakers_kept BEFORE UPDATE ON breakers BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a breaker stays about what it opened for') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.subject IS DISTINCT FROM OLD.subject OR NEW.name IS DISTINCT FROM OLD.name OR NEW.opened_at IS DISTINCT FROM OLD.opened_at;
  SELECT RAISE(ABORT, 'truegreen/stale: a closed breaker stays closed') WHERE OLD.closed_at IS NOT NULL;
  SELECT RAISE(ABORT, 'truegreen/forbidden: what a breaker holds back waits no shorter than was said') WHERE NEW.open_until < OLD.open_until OR NEW.trips NOT IN (OLD.trips, OLD.trips + 1) OR (NEW.trips = OLD.trips AND (NEW.signature IS DISTINCT FROM OLD.signature));
  SELECT RAISE(ABORT, 'truegreen/forbidden: a breaker closes only with its event, which says by whom and why') WHERE (NEW.closed_at IS DISTINCT FROM OLD.closed_at OR NEW.closed_by IS DISTINCT FROM OLD.closed_by OR NEW.reason IS DISTINCT FROM OLD.reason) AND NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, OLD.id, '') <> events.data AND events.actor = NEW.closed_by AND events.reason = NEW.reason);
END;

CREATE TRIGGER breakers_no_delete BEFORE DELETE ON breakers BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: breakers are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER breakers_no_push BEFORE UPDATE ON breakers BEGIN
  SELECT RAISE(ABORT, 'truegreen/stale: breakers are kept: one pushes no other out') WHERE EXISTS (SELECT 1 FROM breakers WHERE closed_at IS NULL AND NEW.closed_at IS NULL AND kind = NEW.kind AND subject = NEW.subject AND signature = NEW.signature AND key <> OLD.key);
END;

CREATE TRIGGER breakers_no_replace BEFORE INSERT ON breakers BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: breakers are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM breakers WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM breakers WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM breakers WHERE kind = NEW.kind AND subject = NEW.subject AND signature = NEW.signature AND closed_at IS NULL AND NEW.closed_at IS NULL);
END;

CREATE TRIGGER charges_kept BEFORE UPDATE ON charges BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: what was charged stays charged') WHERE NEW.run_key IS DISTINCT FROM OLD.run_key OR NEW.budget IS DISTINCT FROM OLD.budget OR NEW.subject IS DISTINCT FROM OLD.subject OR NEW.used_max IS DISTINCT FROM OLD.used_max OR NEW.used < OLD.used;
END;

CREATE TRIGGER charges_no_delete BEFORE DELETE ON charges BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: charges are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER claims_no_delete BEFORE DELETE ON claims BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: claims are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER claims_no_replace BEFORE INSERT ON claims BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: claims are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM claims WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM claims WHERE run_key = NEW.run_key);
END;

CREATE TRIGGER claims_no_update BEFORE UPDATE ON claims BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: claims are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER conditions_armed BEFORE INSERT ON conditions BEGIN
  SELECT RAISE(ABORT, 'truegreen/stale: a queued task waits, and what it waits for has not happened yet') WHERE NEW.met_at IS NOT NULL OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.status = 'queued' AND t.sealed_at IS NULL);
  SELECT RAISE(ABORT, 'truegreen/forbidden: a condition begins with its event') WHERE NOT EXISTS (SELECT 1 FROM tasks t JOIN events e ON e.task_key = t.key AND e.revision = t.revision WHERE t.key = NEW.task_key AND e.actor = NEW.armed_by AND (e.event = 'open' OR replace(e.data, NEW.id, '') <> e.data));
END;

CREATE TRIGGER conditions_kept BEFORE UPDATE ON conditions BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a condition stays about what it was made for') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.what IS DISTINCT FROM OLD.what OR NEW.armed_by IS DISTINCT FROM OLD.armed_by OR NEW.created_at IS DISTINCT FROM OLD.created_at;
  SELECT RAISE(ABORT, 'truegreen/stale: a condition is met once, and stays met') WHERE OLD.met_at IS NOT NULL;
  SELECT RAISE(ABORT, 'truegreen/forbidden: a condition is met only with its event, which says by whom') WHERE NOT EXISTS (SELECT 1 FROM tasks t JOIN events e ON e.task_key = t.key AND e.revision = t.revision WHERE t.key = OLD.task_key AND e.actor = NEW.met_by AND (replace(e.data, OLD.id, '') <> e.data));
  SELECT RAISE(ABORT, 'truegreen/forbidden: what a person is asked is answered by a person') WHERE OLD.kind = 'human' AND NOT substr(NEW.met_by, 1, 9) = 'operator:';
  SELECT RAISE(ABORT, 'truegreen/forbidden: a file is seen by whoever would start the task') WHERE OLD.kind = 'file' AND NOT (substr(NEW.met_by, 1, 7) = 'system:' OR substr(NEW.met_by, 1, 9) = 'operator:');
END;

CREATE TRIGGER conditions_no_delete BEFORE DELETE ON conditions BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: conditions are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER conditions_no_replace BEFORE INSERT ON conditions BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: conditions are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM conditions WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM conditions WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM conditions WHERE task_key = NEW.task_key AND kind = NEW.kind AND what = NEW.what AND met_at IS NULL AND NEW.met_at IS NULL);
END;

CREATE TRIGGER deliveries_no_delete BEFORE DELETE ON deliveries BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: deliveries are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER deliveries_no_update BEFORE UPDATE ON deliveries BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: deliveries are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER demands_no_delete BEFORE DELETE ON demands BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: demands are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER demands_no_replace BEFORE INSERT ON demands BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: demands are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM demands WHERE task_key = NEW.task_key);
END;

CREATE TRIGGER demands_no_update BEFORE UPDATE ON demands BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: demands are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER events_again_metered AFTER INSERT ON events
WHEN NEW.event IN ('retry', 'reopen', 'unblock') BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('moved', NEW.event, 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: events are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER events_no_replace BEFORE INSERT ON events BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: events are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM events WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM events WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM events WHERE idempotency_key = NEW.idempotency_key) OR EXISTS (SELECT 1 FROM events WHERE task_key = NEW.task_key AND revision = NEW.revision) OR EXISTS (SELECT 1 FROM events WHERE task_key IS NULL AND NEW.task_key IS NULL AND revision = NEW.revision);
END;

CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: events are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER events_true BEFORE INSERT ON events BEGIN
  SELECT RAISE(ABORT, 'truegreen/stale: the task has moved on: its revision or fence is another') WHERE NEW.task_key IS NOT NULL AND (NEW.event <> 'open' OR NEW.revision <> 1) AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.revision = NEW.revision - 1 AND t.fence <= NEW.fence);
  SELECT RAISE(ABORT, 'truegreen/illegal_move: a move names the statuses that it leads from and to, a note names none') WHERE (CASE NEW.event WHEN 'start' THEN 1 = 1 WHEN 'declare' THEN 1 = 1 WHEN 'fall_silent' THEN 1 = 1 WHEN 'pause' THEN 1 = 1 WHEN 'resume' THEN 1 = 1 WHEN 'block' THEN 1 = 1 WHEN 'retry' THEN 1 = 1 WHEN 'fail' THEN 1 = 1 WHEN 'review' THEN 1 = 1 WHEN 'chain' THEN 1 = 1 WHEN 'accept' THEN 1 = 1 WHEN 'unblock' THEN 1 = 1 WHEN 'reopen' THEN 1 = 1 WHEN 'cancel' THEN 1 = 1 WHEN 'terminate' THEN 1 = 1 ELSE NEW.event IS NULL END) <> (NEW.from_status IS NOT NULL) OR (NEW.from_status IS NULL) <> (NEW.to_status IS NULL);
  SELECT RAISE(ABORT, 'truegreen/illegal_move: no such edge') WHERE NEW.from_status IS NOT NULL AND NOT (CASE NEW.event || ':' || NEW.from_status || '>' || NEW.to_status WHEN 'start:queued>running' THEN 1 = 1 WHEN 'declare:running>pending_eval' THEN 1 = 1 WHEN 'fall_silent:running>failed_pending_eval' THEN 1 = 1 WHEN 'pause:running>awaiting_approval' THEN 1 = 1 WHEN 'resume:awaiting_approval>running' THEN 1 = 1 WHEN 'block:running>blocked' THEN 1 = 1 WHEN 'block:awaiting_approval>blocked' THEN 1 = 1 WHEN 'block:failed_pending_eval>blocked' THEN 1 = 1 WHEN 'retry:running>queued' THEN 1 = 1 WHEN 'retry:pending_eval>queued' THEN 1 = 1 WHEN 'retry:failed_pending_eval>queued' THEN 1 = 1 WHEN 'retry:pending_qa>queued' THEN 1 = 1 WHEN 'retry:needs_review>queued' THEN 1 = 1 WHEN 'fail:running>failed' THEN 1 = 1 WHEN 'fail:pending_eval>failed' THEN 1 = 1 WHEN 'fail:failed_pending_eval>failed' THEN 1 = 1 WHEN 'fail:pending_qa>failed' THEN 1 = 1 WHEN 'fail:needs_review>failed' THEN 1 = 1 WHEN 'review:pending_eval>needs_review' THEN 1 = 1 WHEN 'review:failed_pending_eval>needs_review' THEN 1 = 1 WHEN 'review:pending_qa>needs_review' THEN 1 = 1 WHEN 'chain:pending_eval>pending_qa' THEN 1 = 1 WHEN 'chain:failed_pending_eval>pending_qa' THEN 1 = 1 WHEN 'accept:pending_eval>succeeded' THEN 1 = 1 WHEN 'accept:failed_pending_eval>succeeded' THEN 1 = 1 WHEN 'accept:pending_qa>succeeded' THEN 1 = 1 WHEN 'accept:needs_review>succeeded' THEN 1 = 1 WHEN 'unblock:blocked>queued' THEN 1 = 1 WHEN 'reopen:failed>queued' THEN 1 = 1 WHEN 'reopen:canceled>queued' THEN 1 = 1 WHEN 'reopen:succeeded>queued' THEN 1 = 1 WHEN 'cancel:queued>canceled' THEN 1 = 1 WHEN 'cancel:running>canceled' THEN 1 = 1 WHEN 'cancel:awaiting_approval>canceled' THEN 1 = 1 WHEN 'cancel:pending_eval>canceled' THEN 1 = 1 WHEN 'cancel:failed_pending_eval>canceled' THEN 1 = 1 WHEN 'cancel:pending_qa>canceled' THEN 1 = 1 WHEN 'cancel:needs_review>canceled' THEN 1 = 1 WHEN 'cancel:blocked>canceled' THEN 1 = 1 WHEN 'terminate:queued>terminated' THEN 1 = 1 WHEN 'terminate:running>terminated' THEN 1 = 1 WHEN 'terminate:awaiting_approval>terminated' THEN 1 = 1 WHEN 'terminate:pending_eval>terminated' THEN 1 = 1 WHEN 'terminate:failed_pending_eval>terminated' THEN 1 = 1 WHEN 'terminate:pending_qa>terminated' THEN 1 = 1 WHEN 'terminate:needs_review>terminated' THEN 1 = 1 WHEN 'terminate:blocked>terminated' THEN 1 = 1 ELSE NEW.event || ':' || NEW.from_status || '>' || NEW.to_status IS NULL END);
  SELECT RAISE(ABORT, 'truegreen/stale: the task is not in the status that the event leads from, or it is sealed') WHERE NEW.from_status IS NOT NULL AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.status = NEW.from_status AND t.sealed_at IS NULL);
  SELECT RAISE(ABORT, 'truegreen/forbidden: a block is written with level warn') WHERE NEW.to_status IS NOT NULL AND NEW.to_status = 'blocked' AND NEW.level <> 'warn';
  SELECT RAISE(ABORT, 'truegreen/forbidden: an event carries its hash') WHERE NEW.hash IS NULL AND (NEW.actor <> 'system:database' OR NEW.event <> 'block');
END;

CREATE TRIGGER findings_metered AFTER INSERT ON findings BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('checks', NEW.outcome || '|' || NEW.kind, 0, 1), ('check_us', NEW.kind, 0, NEW.duration_us) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER findings_no_delete BEFORE DELETE ON findings BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: findings are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER findings_no_replace BEFORE INSERT ON findings BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: findings are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM findings WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM findings WHERE id = NEW.id);
END;

CREATE TRIGGER findings_no_update BEFORE UPDATE ON findings BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: findings are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER findings_unavailable_metered AFTER INSERT ON findings
WHEN NEW.kind = 'evaluator' AND NEW.outcome = 'inconclusive' AND substr(NEW.reason, 1, 21) = 'evaluator_unavailable' BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('evaluator_unavailable', '', 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER inbox_kept BEFORE UPDATE ON inbox BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a resolved item stays resolved, and keeps its cause') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.cause IS DISTINCT FROM OLD.cause OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.state = 'resolved' AND (NEW.state IS DISTINCT FROM OLD.state OR NEW.outcome IS DISTINCT FROM OLD.outcome OR NEW.times IS DISTINCT FROM OLD.times OR NEW.topic IS DISTINCT FROM OLD.topic OR NEW.closed_by IS DISTINCT FROM OLD.closed_by));
END;

CREATE TRIGGER inbox_metered AFTER INSERT ON inbox BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('inbox', NEW.severity || '|' || NEW.state, 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER inbox_moved_metered AFTER UPDATE ON inbox
WHEN NEW.state <> OLD.state OR NEW.severity <> OLD.severity BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('inbox', OLD.severity || '|' || OLD.state, 0, -1), ('inbox', NEW.severity || '|' || NEW.state, 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER inbox_no_delete BEFORE DELETE ON inbox BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: inbox are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER jobs_kept BEFORE UPDATE ON jobs BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a job stays the order that it was') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.engine IS DISTINCT FROM OLD.engine OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.handle <> '' AND NEW.handle IS DISTINCT FROM OLD.handle);
  SELECT RAISE(ABORT, 'truegreen/stale: a job is taken once, and what became of it stays') WHERE (NEW.state <> OLD.state AND OLD.state || '>' || NEW.state NOT IN ('placed>taken', 'placed>lost', 'placed>over', 'taken>lost', 'taken>over')) OR (OLD.state IN ('lost', 'over') AND (NEW.word IS DISTINCT FROM OLD.word OR NEW.said IS DISTINCT FROM OLD.said OR NEW.gone_at IS DISTINCT FROM OLD.gone_at)) OR (NEW.holder IS DISTINCT FROM OLD.holder) AND OLD.state || '>' || NEW.state <> 'placed>taken';
END;

CREATE TRIGGER jobs_no_delete BEFORE DELETE ON jobs BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: jobs are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER jobs_no_replace BEFORE INSERT ON jobs BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: jobs are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM jobs WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM jobs WHERE id = NEW.id);
END;

CREATE TRIGGER leases_folder_free AFTER INSERT ON leases
WHEN NEW.folder <> '' BEGIN
  SELECT RAISE(ABORT, 'truegreen/held: another run works in this folder: truegreen list --status running') WHERE EXISTS (SELECT 1 FROM leases other WHERE other.run_key <> NEW.run_key AND other.folder <> '' AND other.expires_at >= (NEW.expires_at - NEW.lasts) AND other.boot = NEW.boot AND other.folder_host = NEW.folder_host AND (substr(other.folder, 1, length(NEW.folder)) = NEW.folder OR substr(NEW.folder, 1, length(other.folder)) = other.folder));
END;

CREATE TRIGGER leases_folder_kept AFTER UPDATE ON leases
WHEN NEW.folder <> '' AND (OLD.boot <> NEW.boot OR OLD.expires_at < (NEW.expires_at - NEW.lasts) OR OLD.folder <> NEW.folder OR OLD.folder_host <> NEW.folder_host) BEGIN
  SELECT RAISE(ABORT, 'truegreen/stale: its lease ran out, and another run works in its folder') WHERE EXISTS (SELECT 1 FROM leases other WHERE other.run_key <> NEW.run_key AND other.folder <> '' AND other.expires_at >= (NEW.expires_at - NEW.lasts) AND other.boot = NEW.boot AND other.folder_host = NEW.folder_host AND (substr(other.folder, 1, length(NEW.folder)) = NEW.folder OR substr(NEW.folder, 1, length(other.folder)) = other.folder));
END;

CREATE TRIGGER leases_folder_late_turn BEFORE UPDATE ON leases
WHEN NEW.folder <> '' AND (OLD.boot <> NEW.boot OR OLD.expires_at < (NEW.expires_at - NEW.lasts) OR OLD.folder <> NEW.folder OR OLD.folder_host <> NEW.folder_host) BEGIN
  INSERT INTO folder_turns (host, turns) VALUES (NEW.folder_host, 1) ON CONFLICT (host) DO UPDATE SET turns = folder_turns.turns + 1;
END;

CREATE TRIGGER leases_folder_turn BEFORE INSERT ON leases
WHEN NEW.folder <> '' BEGIN
  INSERT INTO folder_turns (host, turns) VALUES (NEW.folder_host, 1) ON CONFLICT (host) DO UPDATE SET turns = folder_turns.turns + 1;
END;

CREATE TRIGGER limits_dropped BEFORE DELETE ON limits BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a limit goes only with its event') WHERE NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, OLD.id, '') <> events.data AND house.revision > OLD.stated);
END;

CREATE TRIGGER limits_kept BEFORE UPDATE ON limits BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a limit stays about what it was set for') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.file IS DISTINCT FROM OLD.file OR NEW.hours IS DISTINCT FROM OLD.hours OR NEW.agent IS DISTINCT FROM OLD.agent OR NEW.label IS DISTINCT FROM OLD.label;
  SELECT RAISE(ABORT, 'truegreen/forbidden: what may be spent changes only with its event') WHERE (NEW.cost IS DISTINCT FROM OLD.cost OR NEW.tokens IS DISTINCT FROM OLD.tokens OR NEW.runs IS DISTINCT FROM OLD.runs OR NEW.stated IS DISTINCT FROM OLD.stated) AND NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, OLD.id, '') <> events.data AND house.revision > OLD.stated AND house.revision = NEW.stated);
END;

CREATE TRIGGER limits_no_replace BEFORE INSERT ON limits BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: limits are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM limits WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM limits WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM limits WHERE file = NEW.file AND hours = NEW.hours AND agent = NEW.agent AND label = NEW.label);
END;

CREATE TRIGGER messages_heard BEFORE INSERT ON messages BEGIN
  SELECT RAISE(ABORT, 'truegreen/terminated: a terminated agent gets no messages') WHERE EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key AND a.status = 'terminated');
END;

CREATE TRIGGER messages_kept BEFORE UPDATE ON messages BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a message stays as it was sent') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.agent_key IS DISTINCT FROM OLD.agent_key OR NEW.sender IS DISTINCT FROM OLD.sender OR NEW.body IS DISTINCT FROM OLD.body OR NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key OR NEW.at IS DISTINCT FROM OLD.at;
END;

CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: messages are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER messages_no_replace BEFORE INSERT ON messages BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: messages are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM messages WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM messages WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM messages WHERE idempotency_key = NEW.idempotency_key);
END;

CREATE TRIGGER occurrences_kept BEFORE UPDATE ON occurrences BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: an occurrence stays what it is about') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.routine_key IS DISTINCT FROM OLD.routine_key OR NEW.slot IS DISTINCT FROM OLD.slot OR NEW.generation IS DISTINCT FROM OLD.generation OR NEW.first_at IS DISTINCT FROM OLD.first_at OR NEW.due_at IS DISTINCT FROM OLD.due_at OR NEW.times IS DISTINCT FROM OLD.times OR NEW.actor IS DISTINCT FROM OLD.actor OR NEW.at IS DISTINCT FROM OLD.at;
  SELECT RAISE(ABORT, 'truegreen/forbidden: what became of an occurrence stays; one that waits becomes something once') WHERE OLD.state <> 'waiting' OR NEW.state = 'waiting';
END;

CREATE TRIGGER occurrences_no_delete BEFORE DELETE ON occurrences BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: occurrences are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER occurrences_no_replace BEFORE INSERT ON occurrences BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: occurrences are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM occurrences WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM occurrences WHERE routine_key = NEW.routine_key AND slot = NEW.slot);
END;

CREATE TRIGGER policies_kept BEFORE UPDATE ON policies BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: there are terms for every kind of breaker') WHERE NEW.kind IS DISTINCT FROM OLD.kind;
  SELECT RAISE(ABORT, 'truegreen/forbidden: when breakers open changes only with its event') WHERE (NEW.after IS DISTINCT FROM OLD.after OR NEW.within IS DISTINCT FROM OLD.within OR NEW.pause IS DISTINCT FROM OLD.pause OR NEW.most IS DISTINCT FROM OLD.most OR NEW.file IS DISTINCT FROM OLD.file OR NEW.stated IS DISTINCT FROM OLD.stated) AND NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, '"' || OLD.kind || '"', '') <> events.data AND house.revision > OLD.stated AND house.revision = NEW.stated);
END;

CREATE TRIGGER policies_no_delete BEFORE DELETE ON policies BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: policies are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER policies_no_replace BEFORE INSERT ON policies BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: policies are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM policies WHERE kind = NEW.kind);
END;

CREATE TRIGGER probes_begun BEFORE INSERT ON probes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a run is a probe from its start on, or never') WHERE EXISTS (SELECT 1 FROM runs WHERE runs.id = NEW.run_id);
END;

CREATE TRIGGER probes_no_replace BEFORE INSERT ON probes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: probes are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM probes WHERE breaker_key = NEW.breaker_key);
END;

CREATE TRIGGER probes_no_update BEFORE UPDATE ON probes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: probes are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER probes_over BEFORE DELETE ON probes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a probe stays until something came of it: one tries at a time') WHERE EXISTS (SELECT 1 FROM runs WHERE runs.id = OLD.run_id AND (runs.exit_reason IS NULL OR runs.verdict = 'pending'));
END;

CREATE TRIGGER refusals_again_metered AFTER UPDATE ON refusals BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('refused', NEW.code, 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER refusals_metered AFTER INSERT ON refusals BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('refused', NEW.code, 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER refusals_no_delete BEFORE DELETE ON refusals BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: refusals are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER routines_kept BEFORE UPDATE ON routines BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a routine keeps its name') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.name IS DISTINCT FROM OLD.name OR NEW.created_at IS DISTINCT FROM OLD.created_at;
  SELECT RAISE(ABORT, 'truegreen/stale: a cycle never goes back') WHERE NEW.revision <> OLD.revision + 1 OR NEW.generation < OLD.generation OR (NEW.generation = OLD.generation AND NEW.kind = OLD.kind AND NEW.iteration < OLD.iteration);
  SELECT RAISE(ABORT, 'truegreen/forbidden: what a routine does changes only with its digest: settings taken over mend it') WHERE (NEW.settings IS DISTINCT FROM OLD.settings OR NEW.contract IS DISTINCT FROM OLD.contract) AND NEW.digest = OLD.digest;
END;

CREATE TRIGGER routines_no_delete BEFORE DELETE ON routines BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: routines are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER routines_no_replace BEFORE INSERT ON routines BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: routines are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM routines WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM routines WHERE name = NEW.name);
END;

CREATE TRIGGER runs_ended_metered AFTER UPDATE ON runs
WHEN OLD.exit_reason IS NULL AND NEW.exit_reason IS NOT NULL BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('runs', NEW.status || '|' || NEW.exit_reason || '|' || NEW.exit_detail || '|' || COALESCE((SELECT name FROM agents WHERE key = NEW.agent_key), ''), 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER runs_ended_tallied AFTER UPDATE ON runs
WHEN OLD.cell IS NULL AND NEW.cell IS NOT NULL BEGIN
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT NEW.ended_at / 3600000000, NEW.cell, NEW.standing, NEW.exit_reason, mode, role, 0, 1 FROM tasks WHERE key = NEW.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs + 1;
END;

CREATE TRIGGER runs_in_turn BEFORE INSERT ON runs
WHEN NEW.exit_reason IS NULL BEGIN
  UPDATE limits SET turns = turns + 1 WHERE EXISTS (SELECT 1 FROM demands WHERE demands.task_key = NEW.task_key AND (limits.agent IN ('', demands.agent) AND (limits.label = '' OR replace(demands.labels, limits.label, '') <> demands.labels)));
  DELETE FROM probes WHERE breaker_key IN (SELECT breakers.key FROM breakers CROSS JOIN demands WHERE breakers.closed_at IS NULL AND demands.task_key = NEW.task_key AND breakers.open_until <= NEW.created_at AND ((breakers.kind = 'agent' AND breakers.subject = demands.definition) OR (breakers.kind = 'provider' AND breakers.subject = demands.client) OR (breakers.kind = 'fleet' AND 1 = 1)) AND NOT EXISTS (SELECT 1 FROM probes JOIN runs probing ON probing.id = probes.run_id WHERE probes.breaker_key = breakers.key AND (probing.exit_reason IS NULL OR probing.verdict = 'pending')));
  INSERT INTO probes (breaker_key, run_id) SELECT breakers.key, NEW.id FROM breakers CROSS JOIN demands WHERE breakers.closed_at IS NULL AND demands.task_key = NEW.task_key AND breakers.open_until <= NEW.created_at AND ((breakers.kind = 'agent' AND breakers.subject = demands.definition) OR (breakers.kind = 'provider' AND breakers.subject = demands.client) OR (breakers.kind = 'fleet' AND 1 = 1)) AND NOT EXISTS (SELECT 1 FROM probes WHERE probes.breaker_key = breakers.key) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER runs_judged_tallied AFTER UPDATE ON runs
WHEN OLD.cell IS NOT NULL AND (NEW.cell <> OLD.cell OR NEW.standing <> OLD.standing) BEGIN
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT OLD.ended_at / 3600000000, OLD.cell, OLD.standing, OLD.exit_reason, mode, role, 0, -1 FROM tasks WHERE key = OLD.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs - 1;
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT NEW.ended_at / 3600000000, NEW.cell, NEW.standing, NEW.exit_reason, mode, role, 0, 1 FROM tasks WHERE key = NEW.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs + 1;
END;

CREATE TRIGGER runs_kept BEFORE UPDATE ON runs BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: the identity of a run is frozen') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.fence IS DISTINCT FROM OLD.fence OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.agent_key IS DISTINCT FROM OLD.agent_key OR NEW.base_digest IS DISTINCT FROM OLD.base_digest OR NEW.isolation IS DISTINCT FROM OLD.isolation OR NEW.lane IS DISTINCT FROM OLD.lane OR NEW.cost_granted IS DISTINCT FROM OLD.cost_granted OR NEW.tokens_granted IS DISTINCT FROM OLD.tokens_granted OR NEW.folder_host IS DISTINCT FROM OLD.folder_host OR NEW.folder IS DISTINCT FROM OLD.folder;
  SELECT RAISE(ABORT, 'truegreen/forbidden: what a run used is known when it has ended') WHERE NEW.exit_reason IS NULL AND (NEW.cost IS DISTINCT FROM OLD.cost OR NEW.tokens IS DISTINCT FROM OLD.tokens);
  SELECT RAISE(ABORT, 'truegreen/stale: the first exit reason won; an ended run stays as it ended') WHERE OLD.exit_reason IS NOT NULL AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.exit_reason IS DISTINCT FROM OLD.exit_reason OR NEW.exit_detail IS DISTINCT FROM OLD.exit_detail OR NEW.exit_code IS DISTINCT FROM OLD.exit_code OR NEW.signal IS DISTINCT FROM OLD.signal OR NEW.ended_by IS DISTINCT FROM OLD.ended_by OR NEW.ended_at IS DISTINCT FROM OLD.ended_at OR NEW.usage IS DISTINCT FROM OLD.usage OR NEW.digest IS DISTINCT FROM OLD.digest OR NEW.admission IS DISTINCT FROM OLD.admission);
  SELECT RAISE(ABORT, 'truegreen/forbidden: whether the processes of a run are gone is recorded once, with or after its end') WHERE (NEW.processes IS DISTINCT FROM OLD.processes) AND (OLD.processes <> 'unknown' OR NEW.exit_reason IS NULL);
  SELECT RAISE(ABORT, 'truegreen/forbidden: a run passes only with its task') WHERE ((NEW.verdict = 'passed' AND OLD.verdict <> 'passed') OR (NEW.cell IS DISTINCT FROM OLD.cell AND NEW.cell IN ('true_green', 'rescued', 'finished_at_the_cap', 'kept'))) AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.attempt = NEW.attempt AND t.verdict = 'passed');
  SELECT RAISE(ABORT, 'truegreen/forbidden: a failure is a reported one only if the agent said so') WHERE NEW.cell = 'reported_failure' AND NEW.cell IS DISTINCT FROM OLD.cell AND NEW.admission = '' AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.run_key = NEW.key AND c.kind IN ('failed', 'blocked'));
  SELECT RAISE(ABORT, 'truegreen/forbidden: a run is checked only with its task, and what turned out wrong stays so') WHERE (OLD.standing = 'falsified' AND NEW.standing <> 'falsified') OR (NEW.standing = 'checked' AND OLD.standing <> 'checked' AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.attempt = NEW.attempt AND t.checked = 1));
END;

CREATE TRIGGER runs_let_through AFTER INSERT ON runs
WHEN NEW.exit_reason IS NULL BEGIN
  SELECT RAISE(ABORT, 'truegreen/held: a breaker is open: truegreen breakers') WHERE EXISTS (SELECT 1 FROM breakers CROSS JOIN demands WHERE breakers.closed_at IS NULL AND demands.task_key = NEW.task_key AND ((breakers.kind = 'agent' AND breakers.subject = demands.definition) OR (breakers.kind = 'provider' AND breakers.subject = demands.client) OR (breakers.kind = 'fleet' AND 1 = 1)) AND (breakers.open_until > NEW.created_at OR NOT EXISTS (SELECT 1 FROM probes WHERE probes.breaker_key = breakers.key AND probes.run_id = NEW.id)));
  SELECT RAISE(ABORT, 'truegreen/held: what may be spent is spent, or set aside for others: truegreen limits') WHERE EXISTS (SELECT 1 FROM limits CROSS JOIN demands WHERE demands.task_key = NEW.task_key AND (limits.agent IN ('', demands.agent) AND (limits.label = '' OR replace(demands.labels, limits.label, '') <> demands.labels)) AND (limits.runs < COALESCE((SELECT CAST(SUM(spending.runs) AS bigint) FROM spending WHERE spending.hour >= (NEW.created_at / 3600000000 / limits.hours) * limits.hours AND (limits.agent IN ('', spending.agent) AND (limits.label = '' OR replace(spending.labels, limits.label, '') <> spending.labels))), 0) + COALESCE((SELECT CAST(SUM(1) AS bigint) FROM runs live WHERE live.exit_reason IS NULL AND EXISTS (SELECT 1 FROM demands own WHERE own.task_key = live.task_key AND (limits.agent IN ('', own.agent) AND (limits.label = '' OR replace(own.labels, limits.label, '') <> own.labels)) LIMIT 1 OFFSET 0)), 0) OR limits.cost < COALESCE((SELECT CAST(SUM(spending.cost) AS bigint) FROM spending WHERE spending.hour >= (NEW.created_at / 3600000000 / limits.hours) * limits.hours AND (limits.agent IN ('', spending.agent) AND (limits.label = '' OR replace(spending.labels, limits.label, '') <> spending.labels))), 0) + COALESCE((SELECT CAST(SUM(live.cost_granted) AS bigint) FROM runs live WHERE live.exit_reason IS NULL AND EXISTS (SELECT 1 FROM demands own WHERE own.task_key = live.task_key AND (limits.agent IN ('', own.agent) AND (limits.label = '' OR replace(own.labels, limits.label, '') <> own.labels)) LIMIT 1 OFFSET 0)), 0) OR limits.tokens < COALESCE((SELECT CAST(SUM(spending.tokens) AS bigint) FROM spending WHERE spending.hour >= (NEW.created_at / 3600000000 / limits.hours) * limits.hours AND (limits.agent IN ('', spending.agent) AND (limits.label = '' OR replace(spending.labels, limits.label, '') <> spending.labels))), 0) + COALESCE((SELECT CAST(SUM(live.tokens_granted) AS bigint) FROM runs live WHERE live.exit_reason IS NULL AND EXISTS (SELECT 1 FROM demands own WHERE own.task_key = live.task_key AND (limits.agent IN ('', own.agent) AND (limits.label = '' OR replace(own.labels, limits.label, '') <> own.labels)) LIMIT 1 OFFSET 0)), 0)));
END;

CREATE TRIGGER runs_missed_metered AFTER INSERT ON runs
WHEN NEW.exit_reason IS NOT NULL BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('runs', NEW.status || '|' || NEW.exit_reason || '|' || NEW.exit_detail || '|' || COALESCE((SELECT name FROM agents WHERE key = NEW.agent_key), ''), 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: runs are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER runs_no_replace BEFORE INSERT ON runs BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: runs are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM runs WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM runs WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM runs WHERE task_key = NEW.task_key AND attempt = NEW.attempt) OR EXISTS (SELECT 1 FROM runs WHERE task_key = NEW.task_key AND exit_reason IS NULL AND NEW.exit_reason IS NULL);
END;

CREATE TRIGGER runs_spent AFTER UPDATE ON runs
WHEN NEW.exit_reason IS NOT NULL AND (OLD.exit_reason IS NULL OR NEW.cost <> OLD.cost OR NEW.tokens <> OLD.tokens) BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: what was spent stays spent') WHERE NEW.cost < OLD.cost OR NEW.tokens < OLD.tokens;
  INSERT INTO spending (hour, agent, labels, shard, cost, tokens, runs) SELECT NEW.ended_at / 3600000000, demands.agent, demands.labels, 0, NEW.cost - OLD.cost, NEW.tokens - OLD.tokens, CASE WHEN OLD.exit_reason IS NULL THEN 1 ELSE 0 END FROM demands WHERE demands.task_key = NEW.task_key ON CONFLICT (hour, agent, labels, shard) DO UPDATE SET cost = spending.cost + excluded.cost, tokens = spending.tokens + excluded.tokens, runs = spending.runs + excluded.runs;
END;

CREATE TRIGGER runs_started BEFORE INSERT ON runs BEGIN
  SELECT RAISE(ABORT, 'truegreen/stale: a run begins under the fence of its running task') WHERE NEW.status NOT IN ('starting', 'missed') OR NEW.verdict <> 'unknown' OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.sealed_at IS NULL AND (NEW.status = 'missed' OR (t.status = 'running' AND t.fence = NEW.fence)));
  SELECT RAISE(ABORT, 'truegreen/frozen: the store is frozen: nothing starts before truegreen thaw --reason WHY') WHERE NEW.status <> 'missed' AND EXISTS (SELECT 1 FROM switches WHERE name = 'frozen');
  SELECT RAISE(ABORT, 'truegreen/stale: the task is queued to wake another agent') WHERE EXISTS (SELECT 1 FROM wakes w WHERE w.task_key = NEW.task_key AND w.state = 'ready' AND w.agent_key IS DISTINCT FROM NEW.agent_key);
END;

CREATE TRIGGER runs_tallied AFTER INSERT ON runs
WHEN NEW.cell IS NOT NULL BEGIN
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT NEW.ended_at / 3600000000, NEW.cell, NEW.standing, NEW.exit_reason, mode, role, 0, 1 FROM tasks WHERE key = NEW.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs + 1;
END;

CREATE TRIGGER runs_waited_for BEFORE INSERT ON runs BEGIN
  SELECT RAISE(ABORT, 'truegreen/held: the task waits for something that has not happened: truegreen why') WHERE NEW.status <> 'missed' AND EXISTS (SELECT 1 FROM conditions WHERE conditions.task_key = NEW.task_key AND conditions.met_at IS NULL LIMIT 1 OFFSET 0);
END;

CREATE TRIGGER spending_kept BEFORE UPDATE ON spending BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: what was spent stays spent') WHERE NEW.hour IS DISTINCT FROM OLD.hour OR NEW.agent IS DISTINCT FROM OLD.agent OR NEW.labels IS DISTINCT FROM OLD.labels OR NEW.shard IS DISTINCT FROM OLD.shard OR NEW.cost < OLD.cost OR NEW.tokens < OLD.tokens OR NEW.runs < OLD.runs;
END;

CREATE TRIGGER spending_no_delete BEFORE DELETE ON spending BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: spending are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER strikes_no_update BEFORE UPDATE ON strikes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: strikes are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER strikes_over BEFORE DELETE ON strikes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a failure counts until its breaker has closed') WHERE NOT EXISTS (SELECT 1 FROM breakers WHERE breakers.opened_at - 86400000000 > OLD.at) AND NOT EXISTS (SELECT 1 FROM breakers WHERE breakers.kind = OLD.kind AND breakers.subject = OLD.subject AND breakers.closed_at >= OLD.at AND (breakers.signature = OLD.signature OR breakers.kind = 'provider'));
END;

CREATE TRIGGER tasks_blocked_by_hand BEFORE UPDATE ON tasks
WHEN NEW.status = 'blocked' AND OLD.status <> 'blocked' AND NEW.revision = OLD.revision BEGIN
  INSERT INTO events (id, task_key, revision, at, level, event, from_status, to_status, actor, reason, fence, data) VALUES ('evt_' || lower(hex(randomblob(9))), OLD.key, OLD.revision + 1, CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), 'warn', 'block', OLD.status, 'blocked', 'system:database', 'blocked by raw SQL', OLD.fence, '{}');
  DELETE FROM leases WHERE run_key IN (SELECT key FROM runs WHERE task_key = OLD.key);
  UPDATE agents SET status = 'completed' WHERE status = 'in_progress' AND key IN (SELECT agent_key FROM runs WHERE task_key = OLD.key AND exit_reason IS NULL);
  UPDATE runs SET status = 'stopped', exit_reason = NEW.exit_reason, exit_detail = NEW.exit_detail, ended_by = 'operator', ended_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), cell = 'blocked' WHERE task_key = OLD.key AND exit_reason IS NULL;
  UPDATE runs SET verdict = 'unknown', cell = 'blocked' WHERE task_key = OLD.key AND attempt = OLD.attempt AND verdict = 'pending';
END;

CREATE TRIGGER tasks_blocked_counted AFTER UPDATE ON tasks
WHEN NEW.status = 'blocked' AND OLD.status <> 'blocked' AND NEW.revision = OLD.revision BEGIN
  UPDATE tasks SET revision = revision + 1, cell = 'blocked', silent = 0, checked = 0, verdict = 'unknown', settled_at = CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER), run_status = (SELECT status FROM runs WHERE task_key = NEW.key AND attempt = NEW.attempt) WHERE key = NEW.key;
END;

CREATE TRIGGER tasks_counted AFTER INSERT ON tasks BEGIN
  INSERT INTO counters (shard, run_status, status, cell, checked, tasks) VALUES (0, COALESCE(NEW.run_status, ''), NEW.status, COALESCE(NEW.cell, ''), NEW.checked, 1) ON CONFLICT (status, cell, run_status, checked, shard) DO UPDATE SET tasks = counters.tasks + 1;
END;

CREATE TRIGGER tasks_falsified AFTER UPDATE ON tasks
WHEN OLD.status = 'succeeded' AND NEW.status <> 'succeeded' BEGIN
  UPDATE runs SET standing = 'falsified' WHERE task_key = OLD.key AND attempt = OLD.attempt;
END;

CREATE TRIGGER tasks_kept BEFORE UPDATE ON tasks BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: the contract and the identity of a task are frozen') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.title IS DISTINCT FROM OLD.title OR NEW.goal IS DISTINCT FROM OLD.goal OR NEW.role IS DISTINCT FROM OLD.role OR NEW.contract IS DISTINCT FROM OLD.contract OR NEW.contract_digest IS DISTINCT FROM OLD.contract_digest OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.created_by IS DISTINCT FROM OLD.created_by OR NEW.parent_key IS DISTINCT FROM OLD.parent_key OR NEW.qa_of_key IS DISTINCT FROM OLD.qa_of_key OR NEW.proof_mode IS DISTINCT FROM OLD.proof_mode;
  SELECT RAISE(ABORT, 'truegreen/stale: the fence never falls') WHERE NEW.fence < OLD.fence;
  SELECT RAISE(ABORT, 'truegreen/terminated: sealed stays sealed') WHERE OLD.sealed_at IS NOT NULL AND (NEW.status <> OLD.status OR NEW.sealed_at IS DISTINCT FROM OLD.sealed_at);
  SELECT RAISE(ABORT, 'truegreen/forbidden: a badge stays for ever') WHERE NEW.rescued < OLD.rescued OR NEW.overridden < OLD.overridden OR NEW.falsified < OLD.falsified OR NEW.noop < OLD.noop;
  SELECT RAISE(ABORT, 'truegreen/stale: revisions go up one by one') WHERE NEW.revision NOT IN (OLD.revision, OLD.revision + 1);
  SELECT RAISE(ABORT, 'truegreen/illegal_move: no edge leads from the old status to the new one') WHERE NEW.status <> OLD.status AND NOT (CASE OLD.status || '>' || NEW.status WHEN 'queued>running' THEN 1 = 1 WHEN 'running>pending_eval' THEN 1 = 1 WHEN 'running>failed_pending_eval' THEN 1 = 1 WHEN 'running>awaiting_approval' THEN 1 = 1 WHEN 'awaiting_approval>running' THEN 1 = 1 WHEN 'running>blocked' THEN 1 = 1 WHEN 'awaiting_approval>blocked' THEN 1 = 1 WHEN 'failed_pending_eval>blocked' THEN 1 = 1 WHEN 'running>queued' THEN 1 = 1 WHEN 'pending_eval>queued' THEN 1 = 1 WHEN 'failed_pending_eval>queued' THEN 1 = 1 WHEN 'pending_qa>queued' THEN 1 = 1 WHEN 'needs_review>queued' THEN 1 = 1 WHEN 'running>failed' THEN 1 = 1 WHEN 'pending_eval>failed' THEN 1 = 1 WHEN 'failed_pending_eval>failed' THEN 1 = 1 WHEN 'pending_qa>failed' THEN 1 = 1 WHEN 'needs_review>failed' THEN 1 = 1 WHEN 'pending_eval>needs_review' THEN 1 = 1 WHEN 'failed_pending_eval>needs_review' THEN 1 = 1 WHEN 'pending_qa>needs_review' THEN 1 = 1 WHEN 'pending_eval>pending_qa' THEN 1 = 1 WHEN 'failed_pending_eval>pending_qa' THEN 1 = 1 WHEN 'pending_eval>succeeded' THEN 1 = 1 WHEN 'failed_pending_eval>succeeded' THEN 1 = 1 WHEN 'pending_qa>succeeded' THEN 1 = 1 WHEN 'needs_review>succeeded' THEN 1 = 1 WHEN 'blocked>queued' THEN 1 = 1 WHEN 'failed>queued' THEN 1 = 1 WHEN 'canceled>queued' THEN 1 = 1 WHEN 'succeeded>queued' THEN 1 = 1 WHEN 'queued>canceled' THEN 1 = 1 WHEN 'running>canceled' THEN 1 = 1 WHEN 'awaiting_approval>canceled' THEN 1 = 1 WHEN 'pending_eval>canceled' THEN 1 = 1 WHEN 'failed_pending_eval>canceled' THEN 1 = 1 WHEN 'pending_qa>canceled' THEN 1 = 1 WHEN 'needs_review>canceled' THEN 1 = 1 WHEN 'blocked>canceled' THEN 1 = 1 WHEN 'queued>terminated' THEN 1 = 1 WHEN 'running>terminated' THEN 1 = 1 WHEN 'awaiting_approval>terminated' THEN 1 = 1 WHEN 'pending_eval>terminated' THEN 1 = 1 WHEN 'failed_pending_eval>terminated' THEN 1 = 1 WHEN 'pending_qa>terminated' THEN 1 = 1 WHEN 'needs_review>terminated' THEN 1 = 1 WHEN 'blocked>terminated' THEN 1 = 1 ELSE OLD.status || '>' || NEW.status IS NULL END);
  SELECT RAISE(ABORT, 'truegreen/illegal_move: a start raises the fence') WHERE OLD.status = 'queued' AND NEW.status = 'running' AND NEW.fence <= OLD.fence;
  SELECT RAISE(ABORT, 'truegreen/forbidden: what is known about a task changes only with its event') WHERE NEW.revision = OLD.revision AND ((NOT (NEW.status = 'blocked' AND OLD.status <> 'blocked' AND NEW.revision = OLD.revision) AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.exit_reason IS DISTINCT FROM OLD.exit_reason OR NEW.exit_detail IS DISTINCT FROM OLD.exit_detail)) OR NEW.mode IS DISTINCT FROM OLD.mode OR NEW.run_status IS DISTINCT FROM OLD.run_status OR NEW.verdict IS DISTINCT FROM OLD.verdict OR NEW.cell IS DISTINCT FROM OLD.cell OR NEW.silent IS DISTINCT FROM OLD.silent OR NEW.rescued IS DISTINCT FROM OLD.rescued OR NEW.overridden IS DISTINCT FROM OLD.overridden OR NEW.falsified IS DISTINCT FROM OLD.falsified OR NEW.checked IS DISTINCT FROM OLD.checked OR NEW.proof IS DISTINCT FROM OLD.proof OR NEW.noop IS DISTINCT FROM OLD.noop OR NEW.sealed_at IS DISTINCT FROM OLD.sealed_at OR NEW.settled_at IS DISTINCT FROM OLD.settled_at OR NEW.fence IS DISTINCT FROM OLD.fence OR NEW.head IS DISTINCT FROM OLD.head OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.acceptance IS DISTINCT FROM OLD.acceptance OR NEW.attempts IS DISTINCT FROM OLD.attempts OR NEW.attempts_max IS DISTINCT FROM OLD.attempts_max OR NEW.deferrals IS DISTINCT FROM OLD.deferrals OR NEW.deferrals_max IS DISTINCT FROM OLD.deferrals_max OR NEW.qa_rounds IS DISTINCT FROM OLD.qa_rounds OR NEW.qa_rounds_max IS DISTINCT FROM OLD.qa_rounds_max OR NEW.agent_key IS DISTINCT FROM OLD.agent_key);
  SELECT RAISE(ABORT, 'truegreen/forbidden: a status changes only with its event') WHERE NEW.revision > OLD.revision AND NOT EXISTS (SELECT 1 FROM events e WHERE e.task_key = OLD.key AND e.revision = NEW.revision AND ((NEW.status = OLD.status AND (e.to_status IS NULL OR e.actor = 'system:database')) OR (e.from_status = OLD.status AND e.to_status = NEW.status)));
  SELECT RAISE(ABORT, 'truegreen/forbidden: a verdict that is overturned is called false') WHERE OLD.status = 'succeeded' AND NEW.status <> 'succeeded' AND NEW.falsified = 0;
  SELECT RAISE(ABORT, 'truegreen/forbidden: a task succeeds only with a recorded proof that its work made the difference') WHERE NEW.status = 'succeeded' AND OLD.status <> 'succeeded' AND NEW.qa_of_key IS NULL AND NOT ((COALESCE(NEW.proof, '') = 'shown' AND EXISTS (SELECT 1 FROM runs r JOIN findings f ON f.run_key = r.key WHERE r.task_key = NEW.key AND r.attempt = NEW.attempt AND f.binding = 1 AND f.phase <> 'baseline' AND f.outcome = 'passed' AND f.kind <> 'claim' AND (f.before = 'failed' OR f.kind IN ('evaluator', 'qa', 'person')))) OR (COALESCE(NEW.proof, '') = 'waived' AND (NEW.proof_mode = 'regression' OR (NEW.noop = 1 AND COALESCE(NEW.exit_detail, '') = 'noop'))));
  SELECT RAISE(ABORT, 'truegreen/forbidden: checked is what a check gave an answer about') WHERE NEW.checked = 1 AND OLD.checked = 0 AND NOT EXISTS (SELECT 1 FROM runs r JOIN findings f ON f.run_key = r.key WHERE r.task_key = NEW.key AND r.attempt = NEW.attempt AND f.binding = 1 AND f.phase <> 'baseline' AND f.kind NOT IN ('claim', 'person') AND f.outcome IN ('passed', 'failed'));
END;

CREATE TRIGGER tasks_no_delete BEFORE DELETE ON tasks BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: tasks are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER tasks_no_replace BEFORE INSERT ON tasks BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: tasks are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM tasks WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM tasks WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM tasks WHERE qa_of_key = NEW.qa_of_key AND settled_at IS NULL);
END;

CREATE TRIGGER tasks_open BEFORE INSERT ON tasks BEGIN
  SELECT RAISE(ABORT, 'truegreen/illegal_move: a task begins queued, without an exit, a verdict, a seal or a badge') WHERE NEW.status <> 'queued' OR NEW.revision <> 1 OR NEW.exit_reason IS NOT NULL OR NEW.sealed_at IS NOT NULL OR NEW.rescued <> 0 OR NEW.overridden <> 0 OR NEW.falsified <> 0 OR NEW.checked <> 0 OR NEW.noop <> 0 OR NEW.verdict <> 'unknown' OR NEW.cell IS NOT NULL OR NEW.acceptance IS NOT NULL OR NEW.proof IS NOT NULL;
  SELECT RAISE(ABORT, 'truegreen/illegal_move: a task begins with its open event') WHERE NOT EXISTS (SELECT 1 FROM events WHERE task_key = NEW.key AND revision = 1 AND event = 'open');
END;

CREATE TRIGGER tasks_recounted AFTER UPDATE ON tasks
WHEN NEW.status IS DISTINCT FROM OLD.status OR NEW.run_status IS DISTINCT FROM OLD.run_status OR NEW.cell IS DISTINCT FROM OLD.cell OR NEW.checked IS DISTINCT FROM OLD.checked BEGIN
  INSERT INTO counters (shard, run_status, status, cell, checked, tasks) VALUES (0, COALESCE(OLD.run_status, ''), OLD.status, COALESCE(OLD.cell, ''), OLD.checked, -1) ON CONFLICT (status, cell, run_status, checked, shard) DO UPDATE SET tasks = counters.tasks - 1;
  INSERT INTO counters (shard, run_status, status, cell, checked, tasks) VALUES (0, COALESCE(NEW.run_status, ''), NEW.status, COALESCE(NEW.cell, ''), NEW.checked, 1) ON CONFLICT (status, cell, run_status, checked, shard) DO UPDATE SET tasks = counters.tasks + 1;
END;

CREATE TRIGGER tasks_rescued_metered AFTER UPDATE ON tasks
WHEN OLD.rescued = 0 AND NEW.rescued = 1 BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('rescued', '', 0, 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
END;

CREATE TRIGGER tasks_searched AFTER INSERT ON tasks BEGIN
  INSERT INTO task_words (rowid, title, goal) VALUES (NEW.key, NEW.title, NEW.goal);
END;

CREATE TRIGGER tokens_kept BEFORE UPDATE ON tokens BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a token can only be revoked, once') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.role IS DISTINCT FROM OLD.role OR NEW.digest IS DISTINCT FROM OLD.digest OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.run_key IS DISTINCT FROM OLD.run_key OR NEW.fence IS DISTINCT FROM OLD.fence OR NEW.name IS DISTINCT FROM OLD.name OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.expires_at IS DISTINCT FROM OLD.expires_at OR OLD.revoked_at IS NOT NULL;
END;

CREATE TRIGGER tokens_no_delete BEFORE DELETE ON tokens BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: tokens are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER tokens_no_replace BEFORE INSERT ON tokens BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: tokens are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM tokens WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM tokens WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM tokens WHERE digest = NEW.digest);
END;

CREATE TRIGGER waivers_no_delete BEFORE DELETE ON waivers BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: waivers are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER waivers_no_replace BEFORE INSERT ON waivers BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: waivers are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM waivers WHERE task_key = NEW.task_key AND needed = NEW.needed);
END;

CREATE TRIGGER waivers_no_update BEFORE UPDATE ON waivers BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: waivers are kept: update is refused') WHERE 1 = 1;
END;

CREATE TRIGGER wakes_armed BEFORE INSERT ON wakes BEGIN
  SELECT RAISE(ABORT, 'truegreen/terminated: a terminated agent is never woken') WHERE EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key AND a.status = 'terminated');
  SELECT RAISE(ABORT, 'truegreen/illegal_move: a wake-up begins armed') WHERE NEW.state <> 'armed';
END;

CREATE TRIGGER wakes_kept BEFORE UPDATE ON wakes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: a wake-up stays as it was armed') WHERE NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.agent_key IS DISTINCT FROM OLD.agent_key OR NEW.cause IS DISTINCT FROM OLD.cause OR NEW.body IS DISTINCT FROM OLD.body OR NEW.due_at IS DISTINCT FROM OLD.due_at OR NEW.armed_by IS DISTINCT FROM OLD.armed_by OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.task_key IS NOT NULL AND NEW.task_key IS DISTINCT FROM OLD.task_key);
  SELECT RAISE(ABORT, 'truegreen/illegal_move: a wake-up is used once') WHERE OLD.state || '>' || NEW.state NOT IN ('armed>ready', 'armed>void', 'ready>fired', 'ready>void');
  SELECT RAISE(ABORT, 'truegreen/terminated: a terminated agent does not wake') WHERE NEW.state <> 'void' AND EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key AND a.status = 'terminated');
END;

CREATE TRIGGER wakes_no_delete BEFORE DELETE ON wakes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: wakes are kept: delete is refused') WHERE 1 = 1;
END;

CREATE TRIGGER wakes_no_push BEFORE UPDATE ON wakes BEGIN
  SELECT RAISE(ABORT, 'truegreen/stale: wakes are kept: one pushes no other out') WHERE EXISTS (SELECT 1 FROM wakes WHERE state = 'ready' AND NEW.state = 'ready' AND task_key = NEW.task_key AND key <> NEW.key);
END;

CREATE TRIGGER wakes_no_replace BEFORE INSERT ON wakes BEGIN
  SELECT RAISE(ABORT, 'truegreen/forbidden: wakes are kept: replace is refused') WHERE EXISTS (SELECT 1 FROM wakes WHERE key = NEW.key) OR EXISTS (SELECT 1 FROM wakes WHERE id = NEW.id);
END;
