-- Tasks that were handed to an engine, each as one job; and what the engine says of it, which is
-- kept to be shown and decides nothing.

CREATE TABLE jobs (
  key {serial},
  id {text} NOT NULL UNIQUE,
  task_key {int} NOT NULL REFERENCES tasks (key),
  attempt {int} NOT NULL,
  engine {text} NOT NULL,
  handle {text} NOT NULL DEFAULT '',
  state {text} NOT NULL CHECK (state IN ('placed', 'taken', 'lost', 'over')),
  holder {text} NOT NULL DEFAULT '',
  word {text} NOT NULL CHECK (word IN ('queued', 'running', 'gone', 'unknown')),
  said {text} NOT NULL DEFAULT '',
  gone_at {int},
  created_at {int} NOT NULL,
  looked_at {int},
  updated_at {int} NOT NULL,
  CONSTRAINT jobs_taken_by CHECK (state <> 'taken' OR holder <> '')
) {strict};

CREATE INDEX jobs_open ON jobs (engine{then_key}) WHERE state IN ('placed', 'taken');
CREATE INDEX jobs_task ON jobs (task_key{then_key});
