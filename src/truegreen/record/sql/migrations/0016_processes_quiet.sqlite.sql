-- Until now this was read out of the facts: which of three keys they contain.
UPDATE runs SET processes = CASE
    WHEN COALESCE(json_array_length(facts, '$.survivors'), 0) > 0 THEN 'alive'
    WHEN json_extract(facts, '$.unconfirmed') = 1 THEN 'unconfirmed'
    WHEN json_type(facts, '$.output') IS NOT NULL THEN 'gone'
    ELSE 'unknown' END
  WHERE exit_reason IS NOT NULL;
