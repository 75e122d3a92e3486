-- Until now this was read out of the facts: which of three keys they contain.
UPDATE runs SET processes = CASE
    WHEN COALESCE((facts::json -> 'survivors')::text, '[]') <> '[]' THEN 'alive'
    WHEN (facts::json -> 'unconfirmed')::text = 'true' THEN 'unconfirmed'
    WHEN facts::json -> 'output' IS NOT NULL THEN 'gone'
    ELSE 'unknown' END
  WHERE exit_reason IS NOT NULL;
