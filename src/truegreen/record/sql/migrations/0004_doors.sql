-- Agents that live inside of another; wake-ups, each used once; who has read which message; who is
-- about to carry out which task; and the switch that keeps everything from starting.

ALTER TABLE agents ADD COLUMN kind {text} NOT NULL DEFAULT 'agent'
  CHECK (kind IN ('agent', 'conversation', 'subagent', 'background', 'wakeup', 'cron'));

CREATE UNIQUE INDEX agents_inside ON agents (parent_key, kind, session)
  WHERE kind <> 'agent' AND session IS NOT NULL;
CREATE INDEX agents_terminated ON agents (terminated_at) WHERE terminated_at IS NOT NULL;

CREATE TABLE wakes (
  key {serial},
  id {text} NOT NULL UNIQUE,
  agent_key {int} NOT NULL REFERENCES agents (key),
  task_key {int} REFERENCES tasks (key),
  cause {text} NOT NULL CHECK (cause IN ('resume', 'message', 'schedule')),
  body {text} NOT NULL,
  due_at {int} NOT NULL,
  state {text} NOT NULL CHECK (state IN ('armed', 'ready', 'fired', 'void')),
  why {text} NOT NULL DEFAULT '',
  run_id {text} NOT NULL DEFAULT '',
  armed_by {text} NOT NULL,
  created_at {int} NOT NULL,
  updated_at {int} NOT NULL,
  CONSTRAINT wakes_ready_for CHECK (state NOT IN ('ready', 'fired') OR task_key IS NOT NULL),
  CONSTRAINT wakes_fired_by CHECK ((state = 'fired') = (run_id <> ''))
) {strict};

CREATE INDEX wakes_due ON wakes (due_at{then_key}) WHERE state = 'armed';
CREATE UNIQUE INDEX wakes_one_ready ON wakes (task_key) WHERE state = 'ready';
CREATE INDEX wakes_agent ON wakes (agent_key{then_key});

CREATE TABLE deliveries (
  message_key {int} PRIMARY KEY REFERENCES messages (key),
  run_id {text} NOT NULL,
  at {int} NOT NULL
) {narrow};

CREATE TABLE reservations (
  task_key {int} PRIMARY KEY REFERENCES tasks (key),
  holder {text} NOT NULL,
  expires_at {int} NOT NULL
) {narrow};

CREATE TABLE switches (
  name {text} PRIMARY KEY CHECK (name = 'frozen'),
  actor {text} NOT NULL,
  reason {text} NOT NULL,
  at {int} NOT NULL
) {narrow};
