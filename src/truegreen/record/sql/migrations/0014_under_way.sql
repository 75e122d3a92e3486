-- What is under way, newest first, is asked with every look at the overview; few of all runs are.

CREATE INDEX runs_live ON runs (key) WHERE exit_reason IS NULL;
