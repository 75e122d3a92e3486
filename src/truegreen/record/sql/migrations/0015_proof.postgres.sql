ALTER TABLE tasks DROP CONSTRAINT tasks_cell_check,
  ADD CONSTRAINT tasks_cell_check CHECK ({among[cell Cell]});
ALTER TABLE runs DROP CONSTRAINT runs_cell_check,
  ADD CONSTRAINT runs_cell_check CHECK ({among[cell Cell]});
