-- SQLite has no command that changes a CHECK: the text of the table is edited, as its documentation
-- describes.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'WHEN ''fatal_error/supervisor_crashed'' THEN 1 = 1',
    'WHEN ''fatal_error/supervisor_crashed'' THEN 1 = 1'
    || ' WHEN ''fatal_error/supervisor_restarted'' THEN 1 = 1')
  WHERE type = 'table' AND name IN ('tasks', 'runs') AND instr(sql, 'supervisor_restarted') = 0;
PRAGMA writable_schema = RESET;
