-- SQLite has no command that changes a CHECK: the text of the table is edited, as its documentation
-- describes. A store that was made by this version has the new cell already.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'WHEN ''silent_failure'' THEN 1 = 1',
    'WHEN ''silent_failure'' THEN 1 = 1 WHEN ''reported_failure'' THEN 1 = 1')
  WHERE type = 'table' AND name IN ('tasks', 'runs') AND instr(sql, 'reported_failure') = 0;
PRAGMA writable_schema = RESET;
