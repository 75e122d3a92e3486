-- What a queued task waits for beside other tasks, each met once or never: a message, a person's
-- word, a file.

CREATE TABLE conditions (
  key {serial},
  id {text} NOT NULL UNIQUE,
  task_key {int} NOT NULL REFERENCES tasks (key),
  kind {text} NOT NULL CHECK (kind IN ('message', 'human', 'file')),
  what {text} NOT NULL,
  armed_by {text} NOT NULL,
  created_at {int} NOT NULL,
  met_at {int},
  met_by {text} NOT NULL DEFAULT '',
  fact {text} NOT NULL DEFAULT '',
  CONSTRAINT conditions_met_by CHECK ((met_at IS NULL) = (met_by = ''))
) {strict};

CREATE UNIQUE INDEX conditions_open ON conditions (task_key, kind, what) WHERE met_at IS NULL;
CREATE INDEX conditions_awaited ON conditions (kind, what{then_key}) WHERE met_at IS NULL;
CREATE INDEX conditions_answered ON conditions (met_by, met_at) WHERE kind = 'human';
CREATE INDEX conditions_task ON conditions (task_key{then_key});
