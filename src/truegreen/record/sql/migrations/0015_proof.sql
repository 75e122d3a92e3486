-- A task succeeds only with a proof that its work made the difference.

ALTER TABLE tasks ADD COLUMN proof {text} CHECK ({among[proof ProofStatus]});
ALTER TABLE tasks ADD COLUMN proof_mode {text} NOT NULL DEFAULT 'required'
  CHECK ({among[proof_mode ProofMode]});
ALTER TABLE tasks ADD COLUMN noop {int} NOT NULL DEFAULT 0 CHECK (noop IN (0, 1));
ALTER TABLE runs ADD COLUMN required_level {text} CHECK ({among[required_level Level]});
ALTER TABLE runs ADD COLUMN proof {text} NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN admission {text} NOT NULL DEFAULT '';
