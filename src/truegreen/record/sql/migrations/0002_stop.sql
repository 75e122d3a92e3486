-- Whoever wants a run to end says so beside its lease, where its supervisor looks anyway.

ALTER TABLE leases ADD COLUMN stop_asked {text} NOT NULL DEFAULT '';
