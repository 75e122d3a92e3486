-- Whether the processes of a run are gone, as its supervisor reported it together with the end.

ALTER TABLE runs ADD COLUMN processes {text} NOT NULL DEFAULT 'unknown'
  CHECK (processes IN ('unknown', 'gone', 'unconfirmed', 'alive'));

-- Until when an alert that a person resolved is not raised again, as long as its condition lasts.

ALTER TABLE inbox ADD COLUMN quiet_until {int} NOT NULL DEFAULT 0;

CREATE INDEX inbox_quiet ON inbox (quiet_until) WHERE quiet_until > 0;

UPDATE inbox SET quiet_until = updated_at + 86400000000
  WHERE state = 'resolved' AND closed_by <> ''
  AND cell IN ('blocked_long', 'pending_long', 'unknown_share', 'queue_age', 'queue_depth');
