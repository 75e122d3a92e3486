-- What is to happen again and again, as it was last taken from trusted settings; and one row for each
-- time that it was due, by whomever it was seen.

CREATE TABLE routines (
  key {serial},
  name {text} NOT NULL,
  kind {text} NOT NULL CHECK (kind IN ('schedule', 'cycle')),
  settings {text} NOT NULL,
  contract {text} NOT NULL,
  digest {text} NOT NULL,
  source {text} NOT NULL,
  paused_by {text} NOT NULL DEFAULT '',
  paused_at {int},
  next_at {int},
  generation {int} NOT NULL DEFAULT 0,
  iteration {int} NOT NULL DEFAULT 0,
  failures {int} NOT NULL DEFAULT 0,
  task_key {int} REFERENCES tasks (key),
  ended {text},
  ended_at {int},
  gone_at {int},
  revision {int} NOT NULL DEFAULT 1,
  created_at {int} NOT NULL,
  updated_at {int} NOT NULL,
  CONSTRAINT routines_name UNIQUE (name),
  CONSTRAINT routines_paused CHECK ((paused_at IS NULL) = (paused_by = '')),
  CONSTRAINT routines_ended CHECK ((ended IS NULL) = (ended_at IS NULL)),
  CONSTRAINT routines_next CHECK (kind = 'schedule' OR next_at IS NULL),
  CONSTRAINT routines_cycle CHECK (kind = 'cycle' OR ended IS NULL)
) {strict};

CREATE TABLE occurrences (
  key {serial},
  routine_key {int} NOT NULL REFERENCES routines (key),
  slot {text} NOT NULL,
  generation {int} NOT NULL DEFAULT 0,
  first_at {int} NOT NULL,
  due_at {int} NOT NULL,
  times {int} NOT NULL DEFAULT 1 CHECK (times > 0),
  state {text} NOT NULL CHECK (state IN ('fired', 'skipped', 'missed', 'waiting')),
  cause {text} NOT NULL,
  task_key {int} REFERENCES tasks (key),
  actor {text} NOT NULL,
  at {int} NOT NULL,
  updated_at {int} NOT NULL,
  CONSTRAINT occurrences_slot UNIQUE (routine_key, slot),
  CONSTRAINT occurrences_task CHECK ((state IN ('fired', 'missed')) = (task_key IS NOT NULL)),
  CONSTRAINT occurrences_times CHECK (times = 1 OR state = 'missed')
) {strict};

CREATE UNIQUE INDEX occurrences_of_task ON occurrences (task_key) WHERE task_key IS NOT NULL;
CREATE INDEX occurrences_of_routine ON occurrences (routine_key{then_key});
CREATE INDEX occurrences_waiting ON occurrences (routine_key{then_key}) WHERE state = 'waiting';
CREATE INDEX occurrences_missed ON occurrences (routine_key) WHERE state = 'missed';
