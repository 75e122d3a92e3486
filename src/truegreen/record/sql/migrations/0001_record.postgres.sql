-- Full-text search over what never changes about a task; 'simple' keeps words as they are written.
CREATE INDEX task_words ON tasks USING gin (to_tsvector('simple', {words_of_task}));

-- The event feed reads in the order of transactions that can no longer change.
CREATE INDEX events_feed ON events (xact, key);

CREATE STATISTICS tasks_cells (mcv) ON status, exit_reason, cell FROM tasks;
