-- Tasks from before ask for what their contracts say, so that limits and breakers hold them, too. What
-- they run is known by the latest agent that worked at them.

INSERT INTO demands (task_key, labels, definition, client, agent)
  SELECT tasks.key, COALESCE((contract::jsonb -> 'labels')::text, '[]'),
    COALESCE((SELECT agents.definition FROM runs JOIN agents ON agents.key = runs.agent_key
      WHERE runs.task_key = tasks.key ORDER BY runs.key DESC LIMIT 1), contract_digest),
    COALESCE(contract::jsonb ->> 'adapter', ''), COALESCE(contract::jsonb ->> 'agent', '')
  FROM tasks WHERE NOT EXISTS (SELECT 1 FROM demands WHERE demands.task_key = tasks.key);
