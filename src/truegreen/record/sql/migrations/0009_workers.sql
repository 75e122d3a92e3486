-- Seats on many hosts: for how long each lease was given, so that whoever takes over waits as long;
-- who offers seats where; and on which host alone a task can run.

ALTER TABLE leases ADD COLUMN lasts {int} NOT NULL DEFAULT 60000000;

ALTER TABLE demands ADD COLUMN host {text};

CREATE TABLE workers (
  key {key},
  name {text} NOT NULL,
  holder {text} NOT NULL UNIQUE,
  labels {text} NOT NULL,
  seats {int} NOT NULL CHECK (seats > 0),
  version {text} NOT NULL,
  started_at {int} NOT NULL,
  seen_at {int} NOT NULL,
  busy {int} NOT NULL DEFAULT 0,
  draining {int} NOT NULL DEFAULT 0 CHECK (draining IN (0, 1))
) {strict};
