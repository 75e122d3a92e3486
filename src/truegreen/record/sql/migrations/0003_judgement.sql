-- A verdict that turned out wrong is never rewritten: its task wears that for ever. And who answers
-- for people is found by name and time, so that answers by the dozen can be noticed.

ALTER TABLE tasks ADD COLUMN falsified {int} NOT NULL DEFAULT 0 CHECK (falsified IN (0, 1));

CREATE INDEX events_answers ON events (actor, at) WHERE event IN ('resume', 'accept');

-- Reports look at the runs that ended in a period.

CREATE INDEX runs_ended ON runs (ended_at{then_key}) WHERE ended_at IS NOT NULL;
