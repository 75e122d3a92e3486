-- What a queued task asks of whoever starts it; tasks of one lane run one at a time; and which
-- needs somebody let a task do without.

CREATE TABLE demands (
  task_key {int} PRIMARY KEY REFERENCES tasks (key),
  labels {text} NOT NULL,
  lane {text},
  definition {text} NOT NULL,
  client {text} NOT NULL
) {narrow};

ALTER TABLE runs ADD COLUMN lane {text};

CREATE UNIQUE INDEX runs_one_in_lane ON runs (lane) WHERE lane IS NOT NULL AND exit_reason IS NULL;

CREATE TABLE waivers (
  task_key {int} NOT NULL REFERENCES tasks (key),
  needed {text} NOT NULL,
  actor {text} NOT NULL,
  reason {text} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (task_key, needed)
) {narrow};
