-- What is under way, newest first, is asked with every look at the overview; few of all runs are.

CREATE INDEX runs_live ON runs (key) WHERE exit_reason IS NULL;

-- Whose machine has started anew is asked at every look for lost runs, beside whose lease ran out.
-- On a server leases go by its clock and no boot is written down: the index is empty there.
CREATE INDEX leases_boot ON leases (boot) WHERE boot <> '';
