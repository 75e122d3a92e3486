ALTER TABLE tasks DROP CONSTRAINT tasks_exit_pair,
  ADD CONSTRAINT tasks_exit_pair CHECK ({exit_pair_restarted});
ALTER TABLE runs DROP CONSTRAINT runs_exit_pair,
  ADD CONSTRAINT runs_exit_pair CHECK ({exit_pair_restarted});
