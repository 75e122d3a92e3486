-- Full-text search over what never changes about a task.
CREATE VIRTUAL TABLE task_words USING fts5 (
  title, goal, content = 'tasks', content_rowid = 'key', detail = none, columnsize = 0
);
