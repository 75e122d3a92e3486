-- Tasks from before ask for what their contracts say, so that limits and breakers hold them, too. What
-- they run is known by the latest agent that worked at them.

INSERT INTO demands (task_key, labels, definition, client, agent)
  SELECT tasks.key, COALESCE(json_extract(contract, '$.labels'), '[]'),
    COALESCE((SELECT agents.definition FROM runs JOIN agents ON agents.key = runs.agent_key
      WHERE runs.task_key = tasks.key ORDER BY runs.key DESC LIMIT 1), contract_digest),
    COALESCE(json_extract(contract, '$.adapter'), ''), COALESCE(json_extract(contract, '$.agent'), '')
  FROM tasks WHERE NOT EXISTS (SELECT 1 FROM demands WHERE demands.task_key = tasks.key);
