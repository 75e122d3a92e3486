-- What outlets told of what waits for people: since when it waits, who closed it, what was folded
-- into one message, and which step of an escalation came last. And who looks for work, and how well.

ALTER TABLE inbox ADD COLUMN open_since {int} NOT NULL DEFAULT 0;

ALTER TABLE inbox ADD COLUMN closed_by {text} NOT NULL DEFAULT '';

CREATE TABLE told (
  outlet {text} NOT NULL,
  item_key {int} NOT NULL REFERENCES inbox (key),
  subject {text} NOT NULL,
  post_id {text} NOT NULL,
  at {int} NOT NULL,
  arrived_at {int},
  step {int} NOT NULL DEFAULT 0,
  since {int} NOT NULL DEFAULT 0,
  PRIMARY KEY (outlet, item_key)
) {narrow};

CREATE INDEX told_post ON told (post_id);

CREATE TABLE cooling (
  outlet {text} NOT NULL,
  topic {text} NOT NULL,
  until {int} NOT NULL,
  post_id {text},
  PRIMARY KEY (outlet, topic)
) {narrow};

CREATE TABLE folds (
  outlet {text} NOT NULL,
  subject {text} NOT NULL,
  at {int} NOT NULL,
  PRIMARY KEY (outlet, subject)
) {narrow};

CREATE TABLE beats (
  name {text} PRIMARY KEY,
  kind {text} NOT NULL,
  host {text} NOT NULL,
  began_at {int} NOT NULL,
  at {int} NOT NULL,
  ended_at {int},
  trouble {text} NOT NULL DEFAULT '',
  pinged_at {int},
  unsent {text} NOT NULL DEFAULT ''
) {narrow};
