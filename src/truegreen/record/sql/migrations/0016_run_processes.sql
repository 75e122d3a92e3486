-- Whether the processes of a run are gone, as its supervisor reported it together with the end.

ALTER TABLE runs ADD COLUMN processes {text} NOT NULL DEFAULT 'unknown'
  CHECK (processes IN ('unknown', 'gone', 'unconfirmed', 'alive'));
