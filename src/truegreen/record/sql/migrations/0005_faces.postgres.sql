-- What became of the statements of agents, as it stands in what was found about them. No text of
-- PostgreSQL holds a NUL, not even on the way; the same word with a blank in it is as good here.
INSERT INTO meters (name, label, shard, total)
  SELECT 'claims', COALESCE(said.value ->> 'outcome', 'None') || '|' || COALESCE(agents.name, ''),
    0, COUNT(*) FROM findings JOIN runs ON runs.key = findings.run_key
    LEFT JOIN agents ON agents.key = runs.agent_key
    CROSS JOIN LATERAL (SELECT CAST(replace(evidence, '\u0000', '\u0020') AS json) AS told) kept
    CROSS JOIN LATERAL json_array_elements(CASE WHEN json_typeof(told -> 'statements') = 'array'
      THEN told -> 'statements' END) said
    WHERE findings.kind = 'claim' GROUP BY 2;

INSERT INTO honesty (definition, outcome, shard, statements)
  SELECT agents.definition, COALESCE(said.value ->> 'outcome', 'None'), 0, COUNT(*)
    FROM findings JOIN runs ON runs.key = findings.run_key
    JOIN agents ON agents.key = runs.agent_key
    CROSS JOIN LATERAL (SELECT CAST(replace(evidence, '\u0000', '\u0020') AS json) AS told) kept
    CROSS JOIN LATERAL json_array_elements(CASE WHEN json_typeof(told -> 'statements') = 'array'
      THEN told -> 'statements' END) said
    WHERE findings.kind = 'claim' GROUP BY 1, 2;

-- What items that wait have in common, where it can be told from what is kept of them; what can't is
-- called something when it happens again.
UPDATE inbox SET topic = COALESCE((
  SELECT CASE WHEN what = '' OR what <> trim(what) OR length(what) > 80 OR length(place) > 80
      OR what LIKE '%  %' OR what LIKE '%' || chr(10) || '%' THEN ''
    WHEN place = '' THEN inbox.cell || ': ' || what
    ELSE inbox.cell || ': ' || what || ' in ' || place END
  FROM (
    SELECT
      CASE WHEN inbox.cell = 'awaiting_approval' THEN inbox.reason
        WHEN inbox.cell = 'zombie' THEN split_part(inbox.reason, ' after', 1)
        WHEN inbox.cell NOT IN ('outage', 'cap_hit', 'blocked') OR runs.exit_detail IS NULL
          THEN split_part(inbox.reason, ':', 1)
        WHEN runs.exit_detail IN ('launch_failed', 'config_invalid', 'connector_missing',
          'permission_denied', 'egress_denied', 'input_needed', 'approval_checkpoint',
          'approval_expired') THEN ''
        WHEN runs.exit_detail IN ('provider_error', 'rate_limited', 'auth_invalid')
          AND worked.adapter <> '' THEN runs.exit_detail || ' (' || worked.adapter || ')'
        ELSE runs.exit_detail END AS what,
      CASE WHEN inbox.cell = 'pending_qa' OR (inbox.cell IN ('outage', 'cap_hit', 'blocked')
          AND runs.exit_detail IN ('provider_error', 'rate_limited', 'auth_invalid', 'disk_full'))
        THEN '' ELSE worked.cwd END AS place
    FROM (SELECT key, COALESCE(CAST(replace(contract, '\u0000', '') AS json) ->> 'cwd', '') AS cwd,
        COALESCE(CAST(replace(contract, '\u0000', '') AS json) ->> 'adapter', '') AS adapter FROM tasks) AS worked
      LEFT JOIN runs ON runs.key = inbox.run_key WHERE worked.key = inbox.task_key
  ) AS called), '') WHERE state <> 'resolved';
