-- A task succeeds only with a proof that its work made the difference.

ALTER TABLE tasks ADD COLUMN proof {text} CHECK ({among[proof ProofStatus]});
ALTER TABLE tasks ADD COLUMN proof_mode {text} NOT NULL DEFAULT 'required'
  CHECK ({among[proof_mode ProofMode]});
ALTER TABLE tasks ADD COLUMN noop {int} NOT NULL DEFAULT 0 CHECK (noop IN (0, 1));
ALTER TABLE runs ADD COLUMN required_level {text} CHECK ({among[required_level Level]});
ALTER TABLE runs ADD COLUMN proof {text} NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN admission {text} NOT NULL DEFAULT '';

-- One task per folder: a lease names the folder that its run may write to, a run keeps it, and a
-- queued task says where it would work. Empty or NULL: in a folder of its own.
ALTER TABLE leases ADD COLUMN folder_host {text} NOT NULL DEFAULT '';
ALTER TABLE leases ADD COLUMN folder {text} NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN folder_host {text} NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN folder {text} NOT NULL DEFAULT '';
ALTER TABLE demands ADD COLUMN folder_host {text};
ALTER TABLE demands ADD COLUMN folder {text};

CREATE TABLE folder_turns (
  host {text} PRIMARY KEY,
  turns {int} NOT NULL
) {narrow};

CREATE INDEX leases_folder ON leases (folder_host) WHERE folder <> '';
CREATE INDEX tasks_begun ON tasks (status, attempt) WHERE status = 'queued' AND attempt > 0;
