-- Every statement of the record, by name, with a line that says what it is for. Words in braces are
-- SELECT lists of truegreen.record.rows or fragments of a dialect. Lock order: task, run, the rest.

-- name: schema_migrations
-- What was applied, in order.
SELECT version, name, checksum FROM schema_migrations ORDER BY version;

-- name: schema_objects
-- The schema as it stood after the last migration.
SELECT name, definition FROM schema_objects;

-- name: next_task_key
-- The key that the next task will have; its open event is written first.
{next_task_key};

-- name: task_locked
-- One task, held until the transaction ends.
SELECT {task} FROM tasks WHERE tasks.id = :id {lock};

-- name: task_locked_by_key
-- One task by its key, held until the transaction ends.
SELECT {task} FROM tasks WHERE tasks.key = :key {lock};

-- name: work_locked
-- A run with its task and lease; the task is held until the transaction ends.
SELECT {task}, tasks.contract, {run}, {probing}, claims.kind, leases.token
  FROM runs JOIN tasks ON tasks.key = runs.task_key LEFT JOIN leases ON leases.run_key = runs.key
  LEFT JOIN claims ON claims.run_key = runs.key
  WHERE runs.id = :run {lock_tasks};

-- name: works_locked
-- Some runs as above; their tasks are held until the transaction ends.
SELECT {task}, tasks.contract, {run}, {probing}, claims.kind, leases.token
  FROM runs JOIN tasks ON tasks.key = runs.task_key LEFT JOIN leases ON leases.run_key = runs.key
  LEFT JOIN claims ON claims.run_key = runs.key
  WHERE runs.key IN ({keys}) ORDER BY tasks.key {lock_tasks};

-- name: latest_locked
-- A task with its latest run; the task is held until the transaction ends.
SELECT {task}, tasks.contract, {run}, {probing}, claims.kind, leases.token
  FROM tasks JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  LEFT JOIN leases ON leases.run_key = runs.key LEFT JOIN claims ON claims.run_key = runs.key
  WHERE tasks.key = :key {lock_tasks};

-- name: latest_owned
-- The same, with who owns the run and the process that the owner wrote down.
SELECT {task}, tasks.contract, {run}, {probing}, leases.holder, leases.process, claims.kind,
    leases.token
  FROM tasks JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  LEFT JOIN leases ON leases.run_key = runs.key LEFT JOIN claims ON claims.run_key = runs.key
  WHERE tasks.key = :key {lock_tasks};

-- name: ready
-- Queued tasks that could start now, most urgent first, and whether the start of one could keep
-- another from it; on PostgreSQL nobody waits for another.
SELECT tasks.id, {together} FROM tasks
  WHERE tasks.status = 'queued' AND {hold} IS NULL AND NOT EXISTS (
    SELECT 1 FROM wakes WHERE wakes.task_key = tasks.key AND wakes.state = 'ready')
  ORDER BY tasks.priority DESC, tasks.key LIMIT :n {skip_locked};

-- name: dispatchable
-- Queued tasks that could start now and that nobody is about to, most urgent first. A review comes
-- with the task that it is about.
SELECT tasks.id, tasks.revision, above.id, {shares_folder} FROM tasks
  LEFT JOIN tasks above ON above.key = tasks.qa_of_key
  WHERE tasks.status = 'queued' AND {hold} IS NULL
  ORDER BY tasks.priority DESC, tasks.key LIMIT :n;

-- name: hold_of_task
-- The first thing that holds a queued task back, as the dispatcher sees it.
SELECT {hold} FROM tasks WHERE tasks.key = :key;

-- name: is_held
-- Whether something holds a queued task back by now.
SELECT 1 FROM tasks WHERE tasks.key = :key AND {hold} IS NOT NULL;

-- name: is_folder_in_use
-- Whether another task works in the folder of a queued one, or is about to.
SELECT 1 FROM tasks WHERE tasks.id = :task AND {folder_in_use};

-- name: unmet_needs
-- What tasks depend on that has not succeeded and was not waived, and how it stands.
SELECT tasks.key, needed.value, {needed_status} FROM tasks, {needed}
  WHERE tasks.key IN ({keys}) AND {unmet} ORDER BY tasks.key, needed.value;

-- name: held_back
-- How many queued tasks are held back, by what holds them first.
SELECT {hold}, COUNT(*) FROM tasks WHERE tasks.status = 'queued' GROUP BY 1;

-- name: held_tasks
-- Those tasks, in the order in which they would start.
SELECT {task}, {hold} FROM tasks WHERE tasks.status = 'queued' AND {hold} IS NOT NULL
  ORDER BY tasks.priority DESC, tasks.key LIMIT :n;

-- name: waits_of_tasks
-- What keeps some tasks from every worker that was heard of lately, and below it what they need.
SELECT tasks.key, {hold_of_all}, NULL, NULL FROM tasks
  WHERE tasks.key IN ({keys}) AND tasks.status = 'queued'
UNION ALL SELECT tasks.key, NULL, needed.value, {needed_status} FROM tasks, {needed}
  WHERE tasks.key IN ({keys}) AND {unmet};

-- name: holds_of_tasks
-- What keeps some tasks from every worker that was heard of lately.
SELECT tasks.key, {hold_of_all} FROM tasks
  WHERE tasks.key IN ({keys}) AND tasks.status = 'queued';

-- name: insert_demand
-- What a new task asks of whoever starts it.
INSERT INTO demands (task_key, labels, lane, definition, client, agent, host, folder_host, folder)
  VALUES (:task_key, :labels, :lane, :definition, :client, :agent, :host, :folder_host, :folder);

-- name: demand
-- What a task asks of whoever starts it, the task whose live run is in its lane, and its folder.
SELECT demands.labels, demands.lane, other.id, demands.host, demands.folder_host, demands.folder
  FROM demands
  LEFT JOIN runs ON runs.lane = demands.lane AND runs.exit_reason IS NULL
  LEFT JOIN tasks other ON other.key = runs.task_key
  WHERE demands.task_key = :task_key;

-- name: reservation
-- Who is about to carry out a task, or the one that it reviews.
SELECT holder, expires_at FROM reservations
  WHERE task_key IN (SELECT tasks.key FROM tasks WHERE tasks.key = :task_key
    UNION SELECT tasks.qa_of_key FROM tasks WHERE tasks.key = :task_key) AND expires_at > :now;

-- name: insert_waiver
-- A task may do without one that it needs; said once.
INSERT INTO waivers (task_key, needed, actor, reason, at)
  VALUES (:task_key, :needed, :actor, :reason, :now) ON CONFLICT DO NOTHING;

-- name: insert_condition
-- Something else that a queued task waits for.
INSERT INTO conditions (id, task_key, kind, what, armed_by, created_at)
  VALUES (:id, :task_key, :kind, :what, :armed_by, :now);

-- name: conditions_of_task
-- What a task waits for, and has waited for, beside other tasks.
SELECT {condition} FROM conditions WHERE conditions.task_key = :task_key ORDER BY conditions.key;

-- name: open_conditions
-- What some tasks still wait for beside other tasks.
SELECT {condition} FROM conditions WHERE conditions.task_key IN ({keys})
  AND conditions.met_at IS NULL ORDER BY conditions.key;

-- name: asked_before_start
-- What people are asked before some queued tasks start, the first question of each first.
SELECT {condition} FROM conditions JOIN tasks ON tasks.key = conditions.task_key
  WHERE conditions.task_key IN ({keys}) AND conditions.kind = 'human'
  AND conditions.met_at IS NULL AND tasks.status = 'queued' AND tasks.sealed_at IS NULL
  ORDER BY conditions.key;

-- name: condition
-- One thing that is waited for.
SELECT {condition} FROM conditions WHERE conditions.id = :id;

-- name: messages_awaited
-- What queued tasks wait to be told about a topic, or by a task.
SELECT {condition} FROM conditions JOIN tasks ON tasks.key = conditions.task_key
  WHERE conditions.kind = 'message' AND conditions.what IN (:topic, :sender)
  AND conditions.met_at IS NULL AND tasks.status = 'queued' AND tasks.sealed_at IS NULL
  ORDER BY conditions.task_key, conditions.key;

-- name: files_awaited
-- The files that queued tasks wait for which could start on a host; or those of one task.
SELECT {condition}, tasks.id FROM conditions JOIN tasks ON tasks.key = conditions.task_key
  LEFT JOIN demands ON demands.task_key = tasks.key
  WHERE conditions.kind = 'file' AND conditions.met_at IS NULL AND conditions.key > :after
  AND tasks.status = 'queued' AND tasks.sealed_at IS NULL
  AND (demands.host IS NULL OR demands.host = :host) AND :task IN ('', tasks.id)
  ORDER BY conditions.key LIMIT :n;

-- name: meet_condition
-- What was waited for has happened; its event stands already.
UPDATE conditions SET met_at = :now, met_by = :met_by, fact = :fact
  WHERE key = :key AND met_at IS NULL RETURNING key;

-- name: waits_between
-- What tasks that do not run wait for: others, or messages from others.
SELECT tasks.id, needed.value, (SELECT other.key FROM tasks other WHERE other.id = needed.value)
  FROM tasks, {needed}
  WHERE tasks.key IN ({keys}) AND tasks.status IN ('queued', {settled}) AND {unmet}
UNION ALL SELECT tasks.id, conditions.what, other.key FROM tasks
  JOIN conditions ON conditions.task_key = tasks.key AND conditions.kind = 'message'
    AND conditions.met_at IS NULL
  JOIN tasks other ON other.id = conditions.what
  WHERE tasks.key IN ({keys}) AND tasks.status IN ('queued', {settled});

-- name: reserve_task
-- Somebody is about to carry a task out; no row where another one is.
INSERT INTO reservations (task_key, holder, expires_at)
  SELECT tasks.key, :holder, :expires_at FROM tasks WHERE tasks.id = :task
  ON CONFLICT (task_key) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
  WHERE :take = 1 OR reservations.expires_at <= :now OR reservations.holder = excluded.holder
  RETURNING task_key;

-- name: release_task
-- Whoever was about to carry a task out is not any more.
DELETE FROM reservations WHERE task_key = (SELECT tasks.key FROM tasks WHERE tasks.id = :task)
  AND holder = :holder;

-- name: reservations_of_holders
-- Which tasks processes of one machine are about to carry out.
SELECT tasks.id, reservations.holder FROM reservations
  JOIN tasks ON tasks.key = reservations.task_key
  WHERE substr(reservations.holder, 1, length(:host)) = :host ORDER BY reservations.task_key;

-- name: insert_task
-- A new task; its open event stands already.
INSERT INTO tasks (key, id, title, goal, role, mode, status, revision, head, attempts_max,
    deferrals_max, qa_rounds_max, priority, parent_key, qa_of_key, created_by, contract,
    contract_digest, proof_mode, not_before, created_at, updated_at)
  VALUES (:key, :id, :title, :goal, :role, :mode, 'queued', 1, :head, :attempts_max,
    :deferrals_max, :qa_rounds_max, :priority, :parent_key, :qa_of_key, :created_by, :contract,
    :contract_digest, :proof_mode, :not_before, :now, :now)
  RETURNING {task};

-- name: note_task
-- An event that changes nothing else about its task; no index is touched.
UPDATE tasks SET revision = :revision + 1, head = :to_head, updated_at = :now
  WHERE key = :key AND status = :status AND fence = :fence AND revision = :revision
  RETURNING {task};

-- name: write_task
-- The statement that moves a task. It names the status, fence and revision it comes from.
UPDATE tasks SET status = :to_status, mode = :mode, exit_reason = :exit_reason,
    exit_detail = :exit_detail, run_status = :run_status, verdict = :verdict, cell = :cell,
    silent = :silent, rescued = :rescued, overridden = :overridden, falsified = :falsified,
    checked = :checked,
    sealed_at = :sealed_at, fence = :to_fence, revision = :revision + 1, head = :to_head, attempt = :attempt, attempts = :attempts,
    attempts_max = :attempts_max, deferrals = :deferrals, qa_rounds = :qa_rounds,
    not_before = :not_before, agent_key = :agent_key, acceptance = :acceptance, proof = :proof,
    noop = :noop, updated_at = :now, settled_at = :settled_at
  WHERE key = :key AND status = :status AND fence = :fence AND revision = :revision
  RETURNING {task};

-- name: write_tasks
-- The same of several at once.
UPDATE tasks SET
    status = given.value ->> 'to_status', mode = given.value ->> 'mode',
    exit_reason = given.value ->> 'exit_reason', exit_detail = given.value ->> 'exit_detail',
    run_status = given.value ->> 'run_status', verdict = given.value ->> 'verdict',
    cell = given.value ->> 'cell', silent = CAST(given.value ->> 'silent' AS bigint),
    rescued = CAST(given.value ->> 'rescued' AS bigint),
    overridden = CAST(given.value ->> 'overridden' AS bigint),
    falsified = CAST(given.value ->> 'falsified' AS bigint),
    checked = CAST(given.value ->> 'checked' AS bigint),
    sealed_at = CAST(given.value ->> 'sealed_at' AS bigint),
    fence = CAST(given.value ->> 'to_fence' AS bigint),
    revision = CAST(given.value ->> 'revision' AS bigint) + 1,
    head = {given_head}, attempt = CAST(given.value ->> 'attempt' AS bigint),
    attempts = CAST(given.value ->> 'attempts' AS bigint),
    attempts_max = CAST(given.value ->> 'attempts_max' AS bigint),
    deferrals = CAST(given.value ->> 'deferrals' AS bigint),
    qa_rounds = CAST(given.value ->> 'qa_rounds' AS bigint),
    not_before = CAST(given.value ->> 'not_before' AS bigint),
    agent_key = CAST(given.value ->> 'agent_key' AS bigint),
    acceptance = given.value ->> 'acceptance', proof = given.value ->> 'proof',
    noop = CAST(given.value ->> 'noop' AS bigint), updated_at = CAST(given.value ->> 'now' AS bigint),
    settled_at = CAST(given.value ->> 'settled_at' AS bigint)
  FROM {given} WHERE tasks.key = CAST(given.value ->> 'key' AS bigint)
    AND tasks.status = given.value ->> 'status'
    AND tasks.fence = CAST(given.value ->> 'fence' AS bigint)
    AND tasks.revision = CAST(given.value ->> 'revision' AS bigint)
  RETURNING tasks.id;

-- name: insert_event
-- What was done, by whom, why; the triggers refuse one that is stale or leads nowhere.
INSERT INTO events (id, task_key, run_id, revision, at, level, event, from_status, to_status, actor,
    reason, fence, idempotency_key, data, hash)
  VALUES (:id, :task_key, :run_id, :revision, :at, :level, :event, :from_status, :to_status, :actor,
    :reason, :fence, :idempotency_key, :data, :hash);

-- name: insert_events
-- The same of several tasks at once.
INSERT INTO events (id, task_key, run_id, revision, at, level, event, from_status, to_status, actor,
    reason, fence, idempotency_key, data, hash)
  SELECT
    given.value ->> 'id', CAST(given.value ->> 'task_key' AS bigint), given.value ->> 'run_id',
    CAST(given.value ->> 'revision' AS bigint), CAST(given.value ->> 'at' AS bigint),
    given.value ->> 'level', given.value ->> 'event', given.value ->> 'from_status',
    given.value ->> 'to_status', given.value ->> 'actor', given.value ->> 'reason',
    CAST(given.value ->> 'fence' AS bigint), given.value ->> 'idempotency_key',
    given.value ->> 'data', {given_hash}
  FROM {given} WHERE 1 = 1 RETURNING id;

-- name: event_landed
-- Whether an event with this client-made id was committed.
SELECT 1 FROM events WHERE id = :id;

-- name: event_by_key
-- What was done under an idempotency key.
SELECT {event}, (SELECT tasks.id FROM tasks WHERE tasks.key = events.task_key) FROM events
  WHERE idempotency_key = :idempotency_key;

-- name: house
-- The chain of what concerns no task.
SELECT revision, head FROM house WHERE key = 1 {lock};

-- name: house_now
-- The head of the house's chain, for whoever only looks.
SELECT revision, head FROM house WHERE key = 1;

-- name: found_house
-- The first event that concerns no task founds the chain.
INSERT INTO house (key, id, revision, head) VALUES (1, :id, 0, :head) ON CONFLICT DO NOTHING;

-- name: write_house
-- The house's chain grows by one.
UPDATE house SET revision = :revision, head = :head WHERE key = 1 AND revision = :revision - 1
  RETURNING key;

-- name: insert_run
-- A run under the fence of its running task.
INSERT INTO runs (id, task_key, attempt, fence, status, agent_key, isolation, base_digest, facts,
    lane, cost_granted, tokens_granted, folder_host, folder, created_at)
  VALUES (:id, :task_key, :attempt, :fence, 'starting', :agent_key, :isolation, :base_digest,
    :facts, (SELECT lane FROM demands WHERE demands.task_key = :task_key), :cost_granted,
    :tokens_granted, :folder_host, :folder, :now);

-- name: see_run
-- The process of a run was seen.
UPDATE runs SET status = :to_status, seen_at = COALESCE(seen_at, :now)
  WHERE key = :key AND exit_reason IS NULL RETURNING key;

-- name: end_run
-- How a run ended; only one that has not.
UPDATE runs SET status = :status, exit_reason = :exit_reason, exit_detail = :exit_detail,
    exit_code = :exit_code, signal = :signal, ended_by = :ended_by, admission = :admission,
    verdict = :verdict, verdict_reason = :reason, cell = :cell, digest = :digest, usage = :usage, facts = :facts,
    processes = :processes,
    cost = :cost, tokens = :tokens, ended_at = :now
  WHERE key = :key AND exit_reason IS NULL RETURNING key;

-- name: end_runs
-- The same of several at once.
UPDATE runs SET
    status = given.value ->> 'status', exit_reason = given.value ->> 'exit_reason',
    exit_detail = given.value ->> 'exit_detail',
    exit_code = CAST(given.value ->> 'exit_code' AS bigint),
    signal = CAST(given.value ->> 'signal' AS bigint), ended_by = given.value ->> 'ended_by',
    admission = given.value ->> 'admission', verdict = given.value ->> 'verdict', verdict_reason = given.value ->> 'reason',
    cell = given.value ->> 'cell', digest = given.value ->> 'digest',
    usage = given.value ->> 'usage', facts = given.value ->> 'facts',
    processes = given.value ->> 'processes',
    cost = CAST(given.value ->> 'cost' AS bigint),
    tokens = CAST(given.value ->> 'tokens' AS bigint),
    ended_at = CAST(given.value ->> 'now' AS bigint)
  FROM {given} WHERE runs.key = CAST(given.value ->> 'key' AS bigint)
    AND runs.exit_reason IS NULL
  RETURNING runs.id;

-- name: tell_run
-- What came to light about a run after others had ended it.
UPDATE runs SET facts = :facts, cost = CASE WHEN :cost > cost THEN :cost ELSE cost END,
    tokens = CASE WHEN :tokens > tokens THEN :tokens ELSE tokens END,
    processes = CASE WHEN processes = 'unknown' THEN :processes ELSE processes END
  WHERE key = :key AND exit_reason IS NOT NULL RETURNING key;

-- name: judge_run
-- What was found about an ended run.
UPDATE runs SET verdict = :verdict, level = :level, required_level = :required_level,
    proof = :proof, verdict_reason = :reason, cell = :cell, standing = :standing, judged_at = :now
  WHERE key = :key AND exit_reason IS NOT NULL RETURNING key;

-- name: insert_lease
-- A supervisor owns a run for a while.
INSERT INTO leases (run_key, token, holder, boot, expires_at, lasts, folder_host, folder)
  VALUES ((SELECT key FROM runs WHERE id = :run), :token, :holder, :boot, :expires_at, :lasts,
    :folder_host, :folder);

-- name: renew_lease
-- A heartbeat: only for the lease and fence that it names; the lease outlives the run's process
-- until its verdict is there.
UPDATE leases SET expires_at = :expires_at, lasts = :lasts, boot = :boot,
    process = COALESCE(:process, process), active_at = COALESCE(:active_at, active_at)
  WHERE token = :token AND run_key = (SELECT runs.key FROM runs
    JOIN tasks ON tasks.key = runs.task_key WHERE runs.id = :run
    AND tasks.fence = :fence AND tasks.sealed_at IS NULL)
  RETURNING run_key;

-- name: take_lease
-- Another supervisor takes over what a dead one left; nothing works in its folder any more.
UPDATE leases SET token = :token, holder = :holder, boot = :boot, expires_at = :expires_at,
    lasts = :lasts, stop_asked = '', folder_host = '', folder = ''
  WHERE run_key = :run_key RETURNING run_key;

-- name: ask_stop
-- Somebody wants the run to end; its supervisor reads it.
UPDATE leases SET stop_asked = :actor WHERE run_key = :run_key RETURNING run_key;

-- name: standing
-- What a supervisor has to know while its run goes on.
SELECT tasks.status, tasks.fence, tasks.sealed_at, runs.exit_reason, leases.token, leases.stop_asked
  FROM runs JOIN tasks ON tasks.key = runs.task_key LEFT JOIN leases ON leases.run_key = runs.key
  WHERE runs.id = :run;

-- name: leases_of_holders
-- Runs whose owner's name begins so.
SELECT {lease}, runs.id, tasks.id, tasks.status, tasks.fence FROM leases
  JOIN runs ON runs.key = leases.run_key JOIN tasks ON tasks.key = runs.task_key
  WHERE substr(leases.holder, 1, length(:host)) = :host AND leases.run_key > :after
  ORDER BY leases.run_key LIMIT :n;

-- name: lease
-- Who owns a run.
SELECT {lease} FROM leases WHERE leases.run_key = :run_key;

-- name: leases_of
-- Who owns some runs.
SELECT {lease} FROM leases WHERE leases.run_key IN ({keys});

-- name: folder_in_use
-- The run that works in a folder, or in one above or below it, and its task.
SELECT tasks.id, runs.id, leases.folder FROM leases
  JOIN runs ON runs.key = leases.run_key JOIN tasks ON tasks.key = runs.task_key
  JOIN {asked_folder} ON {folders_overlap}
  WHERE {folder_held} AND tasks.id <> :task ORDER BY leases.run_key LIMIT 1;

-- name: folder_reserved
-- A task that has begun in a folder, and that a supervisor is about to go on with.
SELECT begun.id, '', own.folder FROM tasks begun
  JOIN reservations ON reservations.task_key = begun.key AND reservations.expires_at > :now
  JOIN demands own ON own.task_key = begun.key JOIN {asked_folder} ON {own_overlaps}
  WHERE begun.status = 'queued' AND begun.attempt > 0 AND begun.sealed_at IS NULL
  AND begun.id <> :task ORDER BY begun.key LIMIT 1;

-- name: folder_begun
-- The first task that has begun in the folder of a queued one and is queued to go on there.
SELECT begun.id {between_attempts} AND demands.task_key = :task_key
  ORDER BY begun.key LIMIT 1;

-- name: folder_awaited
-- A task that a supervisor is about to carry out in the folder of a queued one.
SELECT (SELECT tasks.id FROM tasks WHERE tasks.key = reservations.task_key) {about_to}
  AND demands.task_key = :task_key ORDER BY reservations.task_key LIMIT 1;

-- name: folder_used_since
-- The task whose run began in a folder, or above or below it, after a run.
SELECT tasks.id FROM runs JOIN tasks ON tasks.key = runs.task_key
  JOIN {asked_folder} ON {runs_overlap}
  WHERE runs.key > :after AND runs.folder <> '' AND tasks.id <> :task
  ORDER BY runs.key DESC LIMIT 1;

-- name: last_run_key
-- The newest run of all.
SELECT COALESCE(MAX(runs.key), 0) FROM runs;

-- name: drop_lease
-- Nobody owns the run any more.
DELETE FROM leases WHERE run_key = :run_key;

-- name: drop_leases
-- Nobody owns these runs any more.
DELETE FROM leases WHERE run_key IN ({keys});

-- name: leases_that_ran_out
-- Runs whose supervisor fell silent, or whose machine has started anew; an index leads to each.
SELECT * FROM (SELECT {lease}, runs.id, tasks.id AS task, tasks.status, tasks.fence
    FROM leases JOIN runs ON runs.key = leases.run_key JOIN tasks ON tasks.key = runs.task_key
    WHERE leases.expires_at < :now ORDER BY leases.expires_at LIMIT :n) AS late
  UNION SELECT * FROM (SELECT {lease}, runs.id, tasks.id AS task, tasks.status, tasks.fence
    FROM leases JOIN runs ON runs.key = leases.run_key JOIN tasks ON tasks.key = runs.task_key
    WHERE leases.boot <> '' AND leases.boot < :boot ORDER BY leases.boot LIMIT :n) AS before
  UNION SELECT * FROM (SELECT {lease}, runs.id, tasks.id AS task, tasks.status, tasks.fence
    FROM leases JOIN runs ON runs.key = leases.run_key JOIN tasks ON tasks.key = runs.task_key
    WHERE leases.boot <> '' AND leases.boot > :boot ORDER BY leases.boot LIMIT :n) AS after
  ORDER BY expires_at LIMIT :n;

-- name: charge_run
-- One more re-entry or check error of a run; the CHECK refuses one too many.
INSERT INTO charges (run_key, budget, subject, used, used_max)
  VALUES (:run_key, :budget, :subject, 1, :used_max)
  ON CONFLICT (run_key, budget, subject) DO UPDATE SET used = charges.used + 1
  RETURNING used, used_max;

-- name: charges_of_task
-- What the runs of a task were charged.
SELECT charges.run_key, charges.budget, charges.subject, charges.used, charges.used_max
  FROM charges JOIN runs ON runs.key = charges.run_key WHERE runs.task_key = :key
  ORDER BY charges.run_key, charges.budget, charges.subject;

-- name: insert_claim
-- The first declaration of a run; a second finds the row taken.
INSERT INTO claims (task_key, run_key, kind, reason, statements, extra, source, at)
  SELECT :task_key, :run_key, :kind, :reason, :statements, :extra, :source, :now
  WHERE NOT EXISTS (SELECT 1 FROM claims WHERE run_key = :run_key) RETURNING key;

-- name: insert_finding
-- One check's answer.
INSERT INTO findings (id, task_key, run_key, phase, check_name, kind, outcome, before, level, score,
    counts, reason, evidence, digest, contract_digest, judge, judged, isolation, duration_us,
    binding, at)
  VALUES (:id, :task_key, :run_key, :phase, :check_name, :kind, :outcome, :before, :level, :score,
    :counts, :reason, :evidence, :digest, :contract_digest, :judge, :judged, :isolation,
    :duration_us, :binding, :now);

-- name: findings_of_run
-- Everything that was found about a run, oldest first.
SELECT {finding} FROM findings WHERE findings.run_key = :run_key ORDER BY findings.key;

-- name: findings_of_task
-- Everything that was found about a task, oldest first.
SELECT {finding} FROM runs JOIN findings ON findings.run_key = runs.key
  WHERE runs.task_key = :key ORDER BY findings.key;

-- name: rejection_of_tree
-- The latest no of a person about one tree that runs of a task left, and who said it.
SELECT findings.judge, findings.reason FROM runs JOIN findings ON findings.run_key = runs.key
  WHERE runs.task_key = :key AND findings.digest = :digest AND findings.kind = 'person'
  AND findings.outcome = 'failed' AND findings.binding = 1
  ORDER BY findings.key DESC LIMIT 1;

-- name: claim_of_run
-- What the agent of a run declared.
SELECT {claim} FROM runs JOIN claims ON claims.run_key = runs.key WHERE runs.id = :run;

-- name: claims_of_task
-- What the agents of a task declared, oldest first.
SELECT {claim} FROM runs JOIN claims ON claims.run_key = runs.key
  WHERE runs.task_key = :key ORDER BY claims.key;

-- name: keep_refusal
-- A refused write as evidence; the same one again only counts.
INSERT INTO refusals (task_key, run_id, verb, code, actor, message, evidence, times, first_at,
    last_at)
  VALUES ((SELECT key FROM tasks WHERE id = :task), :run_id, :verb, :code, :actor, :message,
    :evidence, 1, :now, :now)
  ON CONFLICT (COALESCE(task_key, 0), run_id, verb, code, actor)
  DO UPDATE SET times = refusals.times + 1, last_at = :now;

-- name: refusals_of_task
-- Late and conflicting writes about a task.
SELECT {refusal} FROM refusals WHERE refusals.task_key = :key ORDER BY refusals.key LIMIT 100;

-- name: refusals_latest
-- Late and conflicting writes, newest first, also those about no task.
SELECT {refusal} FROM refusals ORDER BY refusals.key DESC LIMIT :n;

-- name: insert_agent
-- A new conversation; under a terminated parent it is born terminated.
INSERT INTO agents (id, name, definition, session, parent_key, registered_by, status,
    terminated_at, kind, created_at, updated_at)
  VALUES (:id, :name, :definition, :session, :parent_key, :registered_by, :status,
    :terminated_at, :kind, :now, :now)
  RETURNING {agent};

-- name: agent_inside
-- What a client calls so inside of an agent's conversation.
SELECT {agent} FROM agents WHERE agents.parent_key = :parent_key AND agents.kind = :kind
  AND agents.session = :session {lock};

-- name: terminated_session
-- A terminated agent that held this conversation.
SELECT agents.id FROM agents WHERE agents.session = :session AND agents.status = 'terminated'
  AND agents.kind IN ('agent', 'conversation') LIMIT 1;

-- name: terminated_inside
-- A terminated one of that name inside of a conversation, whoever held that.
SELECT agents.id FROM agents JOIN agents holder ON holder.key = agents.parent_key
  WHERE agents.session = :session AND agents.kind = :kind AND agents.status = 'terminated'
  AND holder.session = :within LIMIT 1;

-- name: settle_inside
-- What lived inside of an agent's conversation is over with its run.
UPDATE agents SET status = 'completed', updated_at = :now
  WHERE parent_key = :parent_key AND kind <> 'agent' AND status = 'in_progress';

-- name: agent_locked
-- One agent, held until the transaction ends.
SELECT {agent} FROM agents WHERE agents.id = :id {lock};

-- name: agent_by_key
-- One agent by its key.
SELECT {agent} FROM agents WHERE agents.key = :key;

-- name: task_in_tree
-- Whether somebody opened a task or one above it.
WITH RECURSIVE up (parent_key, maker) AS (
    SELECT parent_key, created_by FROM tasks WHERE key = :key
    UNION ALL SELECT tasks.parent_key, tasks.created_by FROM tasks
      JOIN up ON tasks.key = up.parent_key)
  SELECT 1 FROM up WHERE maker = :actor LIMIT 1;

-- name: agent_in_tree
-- Whether somebody registered an agent, one above it, or opened a task that one of them worked at.
WITH RECURSIVE up (key, parent_key, maker) AS (
    SELECT key, parent_key, registered_by FROM agents WHERE key = :key
    UNION ALL SELECT agents.key, agents.parent_key, agents.registered_by FROM agents
      JOIN up ON agents.key = up.parent_key),
  work (key, parent_key, maker) AS (
    SELECT tasks.key, tasks.parent_key, tasks.created_by FROM tasks JOIN runs
      ON runs.task_key = tasks.key WHERE runs.agent_key IN (SELECT key FROM up)
    UNION SELECT tasks.key, tasks.parent_key, tasks.created_by FROM tasks
      JOIN work ON tasks.key = work.parent_key)
  SELECT 1 FROM up WHERE maker = :actor UNION SELECT 1 FROM work WHERE maker = :actor LIMIT 1;

-- name: write_agent
-- An agent moves on; a terminated one never does. The first name of its conversation stays.
UPDATE agents SET status = :to_status, session = COALESCE(session, :session), updated_at = :now
  WHERE key = :key AND status <> 'terminated' RETURNING {agent};

-- name: family
-- Agents and all their descendants, held until the transaction ends; those of a task are also those
-- of its reviews that end with it. Names of what lives inside tie nobody to anybody.
WITH RECURSIVE family (key) AS (
    SELECT key FROM agents WHERE id = :agent
    UNION SELECT runs.agent_key FROM runs WHERE runs.agent_key IS NOT NULL
      AND runs.task_key IN (SELECT tasks.key FROM tasks WHERE tasks.key = :task_key
        UNION ALL SELECT qa.key FROM tasks qa WHERE qa.qa_of_key = :task_key
        AND (qa.sealed_at IS NOT NULL OR qa.status = 'blocked' OR qa.status NOT IN ({settled})))
    UNION SELECT agents.key FROM agents JOIN family ON agents.parent_key = family.key
      OR (agents.kind = 'agent' AND agents.session = (SELECT same.session FROM agents same
        WHERE same.key = family.key AND same.kind = 'agent')))
  SELECT {agent} FROM agents WHERE agents.key IN (SELECT key FROM family)
  ORDER BY agents.key {lock};

-- name: tasks_of_family
-- Tasks that agents and their descendants are at or were at last, or that are queued to wake one.
WITH RECURSIVE family (key) AS (
    SELECT key FROM agents WHERE id = :agent
    UNION SELECT runs.agent_key FROM runs WHERE runs.agent_key IS NOT NULL
      AND runs.task_key IN (SELECT tasks.key FROM tasks WHERE tasks.key = :task_key
        UNION ALL SELECT qa.key FROM tasks qa WHERE qa.qa_of_key = :task_key
        AND (qa.sealed_at IS NOT NULL OR qa.status = 'blocked' OR qa.status NOT IN ({settled})))
    UNION SELECT agents.key FROM agents JOIN family ON agents.parent_key = family.key
      OR (agents.kind = 'agent' AND agents.session = (SELECT same.session FROM agents same
        WHERE same.key = family.key AND same.kind = 'agent')))
  SELECT runs.task_key FROM family JOIN runs ON runs.agent_key = family.key
    WHERE runs.exit_reason IS NULL
  UNION SELECT runs.task_key FROM family JOIN runs
    ON runs.key = (SELECT MAX(r.key) FROM runs r WHERE r.agent_key = family.key)
  UNION SELECT wakes.task_key FROM wakes JOIN family ON wakes.agent_key = family.key
    WHERE wakes.state = 'ready' ORDER BY 1;

-- name: terminate_agent
-- For ever.
UPDATE agents SET status = 'terminated', terminated_at = :now, updated_at = :now
  WHERE key = :key AND status <> 'terminated' RETURNING key;

-- name: agents_at_nothing
-- Agents that are not terminated and at no run of their own, held until the transaction ends.
SELECT {agent} FROM agents WHERE agents.status <> 'terminated'
  AND (agents.status <> 'in_progress' OR agents.kind <> 'agent')
  ORDER BY agents.key LIMIT :n {lock};

-- name: terminate_agents
-- For ever, all those up to one that are at no run of their own.
UPDATE agents SET status = 'terminated', terminated_at = :now, updated_at = :now
  WHERE key <= :last AND status <> 'terminated' AND (status <> 'in_progress' OR kind <> 'agent');

-- name: revoke_tokens_of_the_dead
-- Every token that speaks for a terminated agent.
UPDATE tokens SET revoked_at = :now WHERE revoked_at IS NULL AND run_key IN (SELECT runs.key
  FROM runs JOIN agents ON agents.key = runs.agent_key WHERE agents.status = 'terminated');

-- name: void_wakes_of_the_dead
-- Nothing wakes a terminated agent.
UPDATE wakes SET state = 'void', why = :why, updated_at = :now WHERE state IN ('armed', 'ready')
  AND agent_key IN (SELECT key FROM agents WHERE status = 'terminated');

-- name: count_calls
-- So many more calls of this kind.
INSERT INTO meters (name, label, shard, total) VALUES (:name, :label, {shard}, :n)
  ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + :n;

-- name: fenced_work
-- Runs of tasks that are sealed or whose agent is terminated, and what was said then of who owned
-- the latest one; the last but two columns say whether it was ended by that.
SELECT tasks.id, runs.id, runs.status, runs.isolation, runs.processes, events.data,
    CASE WHEN events.event = 'terminate' AND runs.attempt = tasks.attempt THEN 1 ELSE 0 END,
    runs.seen_at, runs.ended_at
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  LEFT JOIN events ON events.task_key = tasks.key AND events.event IN ('terminate', 'seal')
  LEFT JOIN agents ON agents.key = runs.agent_key
  WHERE runs.task_key IN (
    SELECT t.key FROM tasks t WHERE t.id = :task OR t.qa_of_key =
      (SELECT o.key FROM tasks o WHERE o.id = :task)
    UNION SELECT r.task_key FROM runs r JOIN agents a ON a.key = r.agent_key WHERE a.id = :agent)
  AND (tasks.sealed_at IS NOT NULL OR agents.status = 'terminated') ORDER BY runs.key;

-- name: fenced_work_since
-- The same of all that was terminated since an instant; with an end, PostgreSQL takes it for little.
SELECT tasks.id, runs.id, runs.status, runs.isolation, runs.processes, events.data,
    CASE WHEN events.event = 'terminate' AND runs.attempt = tasks.attempt THEN 1 ELSE 0 END,
    runs.seen_at, runs.ended_at
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  LEFT JOIN events ON events.task_key = tasks.key AND events.event IN ('terminate', 'seal')
  WHERE runs.key IN (
    SELECT r.key FROM tasks t JOIN runs r ON r.task_key = t.key
      WHERE t.sealed_at BETWEEN :at AND 9223372036854775807
    UNION SELECT r.key FROM agents a JOIN runs r ON r.agent_key = a.key
      WHERE a.terminated_at BETWEEN :at AND 9223372036854775807)
  ORDER BY runs.key;

-- name: doubtful_runs
-- The latest runs that have ended, with whether somebody saw the last of their processes go.
SELECT tasks.id, runs.id, runs.status, runs.isolation, runs.processes, NULL, 0, runs.seen_at,
    runs.ended_at
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  WHERE runs.exit_reason IS NOT NULL ORDER BY runs.key DESC LIMIT :n;

-- name: runs_of_agent
-- Every run of an agent.
SELECT runs.id FROM runs JOIN agents ON agents.key = runs.agent_key WHERE agents.id = :agent
  ORDER BY runs.key;

-- name: dead_conversation
-- The conversation of a terminated agent, with the run that it was at last, and its first one.
SELECT agents.id, agents.kind, agents.session, runs.id, runs.facts, (SELECT first.facts
    FROM runs first WHERE first.key = (SELECT MIN(r.key) FROM runs r WHERE r.agent_key =
      CASE WHEN agents.kind = 'agent' THEN agents.key ELSE agents.parent_key END)) FROM agents
  JOIN runs ON runs.key = (SELECT MAX(r.key) FROM runs r WHERE r.agent_key =
    CASE WHEN agents.kind = 'agent' THEN agents.key ELSE agents.parent_key END)
  WHERE agents.id = :agent AND agents.session IS NOT NULL AND agents.status = 'terminated';

-- name: dead_conversations
-- The same of all that were terminated since an instant.
SELECT agents.id, agents.kind, agents.session, runs.id, runs.facts, (SELECT first.facts
    FROM runs first WHERE first.key = (SELECT MIN(r.key) FROM runs r WHERE r.agent_key =
      CASE WHEN agents.kind = 'agent' THEN agents.key ELSE agents.parent_key END)) FROM agents
  JOIN runs ON runs.key = (SELECT MAX(r.key) FROM runs r WHERE r.agent_key =
    CASE WHEN agents.kind = 'agent' THEN agents.key ELSE agents.parent_key END)
  WHERE agents.terminated_at IS NOT NULL AND agents.terminated_at >= :at
  AND agents.session IS NOT NULL ORDER BY agents.key + 0;

-- name: children_of_agent
-- What is registered below an agent, newest first.
SELECT {agent} FROM agents WHERE agents.parent_key = :agent_key ORDER BY agents.key DESC LIMIT :n;

-- name: work_of_agent
-- The runs of an agent with their tasks, newest first.
SELECT runs.id, runs.status, tasks.id, tasks.status, tasks.title, runs.created_at
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  WHERE runs.agent_key = :agent_key ORDER BY runs.key DESC LIMIT :n;

-- name: letters_of_agent
-- An agent's messages with the run that was given each, newest first.
SELECT {message}, deliveries.run_id, deliveries.at FROM messages
  LEFT JOIN deliveries ON deliveries.message_key = messages.key
  WHERE messages.agent_key = :agent_key ORDER BY messages.key DESC LIMIT :n;

-- name: latest_wakes_of_agent
-- An agent's wake-ups, newest first.
SELECT {wake} FROM wakes WHERE wakes.agent_key = :agent_key ORDER BY wakes.key DESC LIMIT :n;

-- name: ids_from_wake
-- Wake-ups whose id begins like this.
SELECT id FROM wakes WHERE id >= :low AND id < :high ORDER BY id LIMIT 9;

-- name: lost_with_agent
-- The messages that a terminated agent never read, and the wake-ups that died with it.
SELECT (SELECT COUNT(*) FROM messages LEFT JOIN deliveries d ON d.message_key = messages.key
    WHERE messages.agent_key = agents.key AND d.message_key IS NULL),
  (SELECT COUNT(*) FROM wakes WHERE wakes.agent_key = agents.key AND wakes.state = 'void'
    AND wakes.updated_at = agents.terminated_at)
  FROM agents WHERE agents.id = :agent;

-- name: agents_called
-- Agents of a name, those that are not terminated first.
SELECT agents.id, agents.status FROM agents WHERE agents.name = :name AND agents.kind = 'agent'
  ORDER BY CASE agents.status WHEN 'terminated' THEN 1 ELSE 0 END, agents.key DESC LIMIT 9;

-- name: tasks_under_way_of_agent
-- Tasks that an agent has a live run of, or that are queued to wake it.
SELECT tasks.key FROM tasks JOIN runs ON runs.task_key = tasks.key
  WHERE runs.agent_key = :agent_key AND runs.exit_reason IS NULL
  UNION SELECT wakes.task_key FROM wakes
  WHERE wakes.agent_key = :agent_key AND wakes.state = 'ready' ORDER BY 1;

-- name: unsettled_children
-- QA tasks of a task that are still under way.
SELECT tasks.key FROM tasks WHERE tasks.qa_of_key = :key
  AND (tasks.status = 'blocked' OR tasks.status NOT IN ({settled})) ORDER BY tasks.key;

-- name: latest_run_of_agent
-- The run that an agent was at last, with its task; the task is held until the transaction ends.
SELECT {task}, tasks.contract, {run}, claims.kind, leases.token
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  LEFT JOIN leases ON leases.run_key = runs.key LEFT JOIN claims ON claims.run_key = runs.key
  WHERE runs.key = (SELECT MAX(r.key) FROM runs r WHERE r.agent_key = :agent_key) {lock_tasks};

-- name: conversation
-- Who holds a conversation, a terminated one first and then the newest, with the run that it was
-- at last and its task. What lives inside of one holds none.
SELECT whose.id, agents.status, runs.id, tasks.id FROM agents
  JOIN agents whose ON whose.key =
    CASE WHEN agents.kind = 'agent' THEN agents.key ELSE agents.parent_key END
  LEFT JOIN runs ON runs.key = (SELECT MAX(r.key) FROM runs r WHERE r.agent_key = whose.key)
  LEFT JOIN tasks ON tasks.key = runs.task_key
  WHERE agents.session = :session AND agents.kind IN ('agent', 'conversation')
  ORDER BY CASE WHEN agents.status = 'terminated' THEN 0 ELSE 1 END,
    CASE WHEN agents.kind = 'agent' THEN 0 ELSE 1 END, agents.key DESC LIMIT 1;

-- name: inside
-- What a client calls so inside of conversations, a terminated one first and then the newest.
SELECT agents.id, agents.status FROM agents
  WHERE agents.session = :session AND agents.kind NOT IN ('agent', 'conversation')
  ORDER BY CASE WHEN agents.status = 'terminated' THEN 0 ELSE 1 END, agents.key DESC LIMIT 9;

-- name: inside_of_run
-- The same inside of the conversation of a run's agent, whoever held that.
SELECT agents.id, agents.status FROM runs JOIN agents mine ON mine.key = runs.agent_key
  JOIN agents holder ON holder.key = mine.key OR holder.session = mine.session
  JOIN agents ON agents.parent_key = holder.key
  WHERE runs.id = :run AND agents.session = :session
  AND agents.kind NOT IN ('agent', 'conversation')
  ORDER BY CASE WHEN agents.status = 'terminated' THEN 0 ELSE 1 END, agents.key DESC LIMIT 1;

-- name: runs_around
-- The live runs in whose conversation somebody lives.
SELECT runs.id FROM agents JOIN runs ON runs.agent_key = agents.parent_key
  WHERE agents.id = :agent AND agents.kind <> 'agent' AND runs.exit_reason IS NULL
  ORDER BY runs.key;

-- name: fenced_agents
-- Agents that were terminated since an instant, with the conversations that they held.
SELECT agents.id, CASE WHEN agents.kind IN ('agent', 'conversation')
    THEN COALESCE(agents.session, '') ELSE '' END FROM agents
  WHERE agents.terminated_at IS NOT NULL AND agents.terminated_at >= :at
  ORDER BY agents.terminated_at, agents.key;

-- name: fenced_children
-- What was terminated inside of a conversation since an instant, by every name of that.
SELECT around.session, agents.session FROM agents JOIN agents around
  ON around.key = agents.parent_key
  OR (around.parent_key = agents.parent_key AND around.kind = 'conversation')
  WHERE agents.terminated_at IS NOT NULL AND agents.terminated_at >= :at
  AND agents.kind NOT IN ('agent', 'conversation')
  AND agents.session IS NOT NULL AND around.session IS NOT NULL ORDER BY agents.key, around.key;

-- name: names_inside
-- The names of one that lives inside of a conversation: that conversation's, and its own.
SELECT around.session, agents.session FROM agents JOIN agents around
  ON around.key = agents.parent_key
  OR (around.parent_key = agents.parent_key AND around.kind = 'conversation')
  WHERE agents.id = :agent AND agents.kind NOT IN ('agent', 'conversation')
  AND agents.session IS NOT NULL AND around.session IS NOT NULL ORDER BY around.key;

-- name: names_in_run
-- What the agent of a run, and what lives inside of its conversation, call themselves by.
SELECT DISTINCT agents.session FROM agents JOIN runs
  ON runs.agent_key = agents.key OR runs.agent_key = agents.parent_key
  WHERE runs.id = :run AND agents.session IS NOT NULL;

-- name: fenced_runs
-- Runs whose agent was terminated since an instant.
SELECT runs.id FROM agents JOIN runs ON runs.agent_key = agents.key
  WHERE agents.terminated_at IS NOT NULL AND agents.terminated_at >= :at ORDER BY runs.key + 0;

-- name: insert_wake
-- An agent is to be woken; a terminated one never is.
INSERT INTO wakes (id, agent_key, cause, body, due_at, state, armed_by, created_at, updated_at)
  VALUES (:id, :agent_key, :cause, :body, :due_at, 'armed', :armed_by, :now, :now)
  RETURNING {wake};

-- name: wake
-- One wake-up.
SELECT {wake} FROM wakes WHERE wakes.id = :id;

-- name: fire_wake
-- The run that an agent is woken for has started.
UPDATE wakes SET state = 'fired', run_id = :run_id, updated_at = :now
  WHERE id = :id AND state = 'ready' AND task_key = :task_key AND agent_key = :agent_key
  RETURNING key;

-- name: wake_locked
-- One wake-up, held until the transaction ends.
SELECT {wake} FROM wakes WHERE wakes.id = :id {lock};

-- name: wakes_due
-- Wake-ups whose time has come and whose agent and task could go on now, the oldest first.
SELECT {wake} FROM wakes JOIN agents ON agents.key = wakes.agent_key
  JOIN runs ON runs.key = (SELECT MAX(r.key) FROM runs r WHERE r.agent_key = wakes.agent_key)
  JOIN tasks ON tasks.key = runs.task_key
  WHERE wakes.state = 'armed' AND wakes.due_at <= :now AND agents.status IN ('completed', 'error')
  AND (tasks.agent_key <> agents.key OR tasks.status IN
    ('queued', 'succeeded', 'blocked', 'needs_review', 'failed', 'canceled'))
  AND NOT EXISTS (SELECT 1 FROM wakes r WHERE r.agent_key = wakes.agent_key AND r.state = 'ready')
  ORDER BY wakes.due_at, wakes.key LIMIT :n;

-- name: ready_wake_of_agent
-- The wake-up that an agent is about to be woken by.
SELECT wakes.id FROM wakes WHERE wakes.agent_key = :agent_key AND wakes.state = 'ready';

-- name: last_work
-- The run that an agent was at last, with its task.
SELECT {run}, tasks.id, tasks.contract, tasks.qa_of_key FROM runs
  JOIN tasks ON tasks.key = runs.task_key
  WHERE runs.key = (SELECT MAX(r.key) FROM runs r JOIN agents ON agents.key = r.agent_key
    WHERE agents.id = :agent);

-- name: agents_at_hand
-- What agents have before them and behind them: unread messages, wake-ups, last task, parent.
SELECT agents.key,
  (SELECT COUNT(*) FROM messages LEFT JOIN deliveries d ON d.message_key = messages.key
    WHERE messages.agent_key = agents.key AND d.message_key IS NULL),
  (SELECT COUNT(*) FROM wakes WHERE wakes.agent_key = agents.key
    AND wakes.state IN ('armed', 'ready')),
  (SELECT tasks.id FROM runs JOIN tasks ON tasks.key = runs.task_key
    WHERE runs.agent_key = agents.key ORDER BY runs.key DESC LIMIT 1),
  (SELECT above.id FROM agents above WHERE above.key = agents.parent_key)
  FROM agents WHERE agents.key IN ({keys});

-- name: wakes_of_agent
-- An agent's wake-ups, oldest first.
SELECT {wake} FROM wakes WHERE wakes.agent_key = :agent_key AND wakes.key > :after
  ORDER BY wakes.key LIMIT :n;

-- name: ready_wake
-- The wake-up that a queued task waits to be carried out for.
SELECT {wake}, agents.id, COALESCE(agents.session, '') FROM wakes
  JOIN agents ON agents.key = wakes.agent_key
  WHERE wakes.task_key = :task_key AND wakes.state = 'ready';

-- name: write_wake
-- A wake-up goes on; it is used once.
UPDATE wakes SET state = :to_state, task_key = COALESCE(:task_key, task_key), run_id = :run_id,
    why = :why, updated_at = :now
  WHERE key = :key AND state = :state RETURNING {wake};

-- name: void_wakes_of_agent
-- Nothing wakes a terminated agent.
UPDATE wakes SET state = 'void', why = :why, updated_at = :now
  WHERE agent_key = :agent_key AND state IN ('armed', 'ready');

-- name: call_off_wakes
-- Nobody is woken for a task that was stopped, nor by what its agents were to be woken for next.
UPDATE wakes SET state = 'void', why = :why, updated_at = :now
  WHERE (task_key = :task_key AND state = 'ready') OR (state = 'armed' AND agent_key IN (
    SELECT r.agent_key FROM runs r WHERE r.task_key = :task_key
    AND r.key = (SELECT MAX(l.key) FROM runs l WHERE l.agent_key = r.agent_key)))
  RETURNING wakes.id;

-- name: wakes_of_task
-- Wake-ups that queued a task, oldest first: their agents were at it or at the one before it.
SELECT {wake} FROM wakes WHERE wakes.task_key = :task_key AND wakes.agent_key IN (
    SELECT runs.agent_key FROM runs WHERE runs.task_key = :task_key
    OR runs.task_key = (SELECT tasks.parent_key FROM tasks WHERE tasks.key = :task_key))
  ORDER BY wakes.key;

-- name: messages_given_for_task
-- Messages that runs of a task were given, oldest first.
SELECT {message} FROM runs JOIN messages ON messages.agent_key = runs.agent_key
  JOIN deliveries ON deliveries.message_key = messages.key AND deliveries.run_id = runs.id
  WHERE runs.task_key = :task_key ORDER BY messages.key;

-- name: unread_for_run
-- Messages that wait for the agent of a run, oldest first.
SELECT {message} FROM runs JOIN messages ON messages.agent_key = runs.agent_key
  LEFT JOIN deliveries ON deliveries.message_key = messages.key
  WHERE runs.id = :run AND deliveries.message_key IS NULL ORDER BY messages.key LIMIT :n;

-- name: void_wakes_of_task
-- Nobody is woken for a task that is over.
UPDATE wakes SET state = 'void', why = :why, updated_at = :now
  WHERE task_key = :task_key AND state = 'ready';

-- name: unread_messages
-- Messages that no run of their agent has been given yet, oldest first.
SELECT {message} FROM messages LEFT JOIN deliveries ON deliveries.message_key = messages.key
  WHERE messages.agent_key = :agent_key AND deliveries.message_key IS NULL
  ORDER BY messages.key LIMIT :n;

-- name: unread_of_run
-- How many messages wait for the agent of a run.
SELECT COUNT(*) FROM runs JOIN messages ON messages.agent_key = runs.agent_key
  LEFT JOIN deliveries ON deliveries.message_key = messages.key
  WHERE runs.id = :run AND deliveries.message_key IS NULL;

-- name: deliver_message
-- A run is given a message; it is given once.
INSERT INTO deliveries (message_key, run_id, at) VALUES (:message_key, :run_id, :now)
  ON CONFLICT (message_key) DO NOTHING;

-- name: frozen
-- Who has frozen the store, if somebody has.
SELECT actor, reason, at FROM switches WHERE name = 'frozen';

-- name: starts_held
-- Whoever is just starting a run comes first; who comes later sees what this transaction writes.
{starts_held};

-- name: freeze
-- Nothing starts any more; who freezes it to stay takes a passing freeze over, since when it was.
INSERT INTO switches (name, actor, reason, at) VALUES ('frozen', :actor, :reason, :now)
  ON CONFLICT (name) DO UPDATE SET actor = :actor, reason = :reason;

-- name: thaw
-- Runs may start again.
DELETE FROM switches WHERE name = 'frozen';

-- name: insert_message
-- A message; a terminated agent gets none.
INSERT INTO messages (id, agent_key, sender, body, disposition, idempotency_key, at)
  VALUES (:id, :agent_key, :sender, :body, :disposition, :idempotency_key, :now)
  RETURNING {message};

-- name: message_by_key
-- The message that was sent under an idempotency key.
SELECT {message} FROM messages WHERE messages.idempotency_key = :idempotency_key;

-- name: messages_of_agent
-- An agent's messages, oldest first.
SELECT {message} FROM messages WHERE messages.agent_key = :agent_key AND messages.key > :after
  ORDER BY messages.key LIMIT :n;

-- name: agents_page
-- Agents, newest first.
SELECT {agent} FROM agents WHERE agents.key < :before {filters}
  ORDER BY agents.key DESC LIMIT :n;

-- name: filter_agent_status
-- Only agents in one status.
agents.status = :status;

-- name: open_inbox_item
-- Something waits for a person; the same cause again only counts. What is critical, a question, and
-- what has another reason this time wakes up, whoever took it or put it off.
INSERT INTO inbox (id, cause, topic, cell, severity, task_key, run_key, title, reason, next, times,
    state, snoozed_until, created_at, updated_at, open_since)
  VALUES (:id, :cause, :topic, :cell, :severity, :task_key, :run_key, :title, :reason, :next, 1,
    :state, :snoozed_until, :now, :now, :now)
  ON CONFLICT (cause) WHERE state <> 'resolved' DO UPDATE SET times = inbox.times + 1,
    task_key = :task_key, run_key = :run_key, reason = :reason, severity = :severity,
    cell = :cell, next = :next, topic = :topic, updated_at = :now,
    open_since = CASE WHEN inbox.state = 'open' THEN inbox.open_since
      WHEN :wakes = 1 OR inbox.topic NOT IN ('', :topic) THEN :now
      WHEN inbox.state = 'snoozed' AND inbox.snoozed_until <= :now THEN inbox.snoozed_until
      ELSE inbox.open_since END,
    snoozed_until = CASE WHEN :wakes = 0 AND inbox.topic IN ('', :topic)
      AND inbox.snoozed_until > :now THEN inbox.snoozed_until END,
    whole_topic = CASE WHEN inbox.topic = :topic THEN inbox.whole_topic ELSE 0 END,
    state = CASE WHEN :wakes = 1 OR inbox.topic NOT IN ('', :topic) THEN 'open'
      WHEN inbox.state <> 'snoozed' THEN inbox.state
      WHEN inbox.snoozed_until > :now THEN 'snoozed' ELSE 'open' END;

-- name: count_more_of_cause
-- What a person has to look at happened so many times more.
UPDATE inbox SET times = times + :n WHERE cause = :cause AND state <> 'resolved';

-- name: cause_waiting
-- Whether something with this cause is not resolved yet.
SELECT inbox.key FROM inbox WHERE inbox.cause = :cause AND inbox.state <> 'resolved';

-- name: run_of_cause
-- The run because of which somebody has to look at this, until it is resolved.
SELECT runs.id FROM inbox JOIN runs ON runs.key = inbox.run_key
  WHERE inbox.cause = :cause AND inbox.state <> 'resolved';

-- name: inbox_item_locked
-- One inbox item, held until the transaction ends.
SELECT {inbox} FROM inbox WHERE inbox.id = :id {lock};

-- name: write_inbox_item
-- A person dealt with an item.
UPDATE inbox SET state = :state, owner = :owner, snoozed_until = :snoozed_until,
    whole_topic = :whole_topic, outcome = :outcome, updated_at = :now,
    closed_by = CASE WHEN CAST(:outcome AS text) IS NULL THEN '' ELSE :owner END,
    quiet_until = :quiet_until
  WHERE key = :key AND state <> 'resolved' RETURNING {inbox};

-- name: inbox_waiting
-- What waits for a person with one urgency, oldest first; a snoozed item waits until its time.
SELECT {inbox}, tasks.id FROM inbox JOIN tasks ON tasks.key = inbox.task_key
  WHERE inbox.severity = :severity AND inbox.state <> 'resolved' AND inbox.key > :after
  AND COALESCE(inbox.snoozed_until, 0) <= :now
  ORDER BY inbox.key LIMIT :n;

-- name: resolve_inbox_of_task
-- A task that moved on needs nobody for what it waited for; what others share stays open.
UPDATE inbox SET state = 'resolved', snoozed_until = NULL, outcome = :outcome, updated_at = :now
  WHERE task_key = :task_key AND state <> 'resolved'
  AND cell NOT IN
    ('settings_changed', 'unknown_share', 'queue_age', 'queue_depth', 'breaker', 'limit')
  AND (times = 1 OR cause = cell || ':' || :task_id);

-- name: insert_token
-- A token; only the digest of its secret is kept.
INSERT INTO tokens (id, role, name, digest, task_key, run_key, fence, created_at, expires_at, kind)
  VALUES (:id, :role, :name, :digest, :task_key, :run_key, :fence, :now, :expires_at, :kind)
  RETURNING {token};

-- name: token_by_digest
-- The token behind a secret, with the run and the fence that it is bound to.
SELECT {token}, runs.id, runs.exit_reason, tasks.fence, tasks.sealed_at FROM tokens
  LEFT JOIN runs ON runs.key = tokens.run_key LEFT JOIN tasks ON tasks.key = tokens.task_key
  WHERE tokens.digest = :digest;

-- name: token_by_name
-- A live token that goes by this name in this role.
SELECT id FROM tokens WHERE role = :role AND name = :name AND kind = 'key'
  AND revoked_at IS NULL AND COALESCE(expires_at, :now + 1) > :now LIMIT 1;

-- name: tokens_of_people
-- Keys, login codes and sessions, newest first; never a secret.
SELECT {token} FROM tokens WHERE tokens.run_key IS NULL ORDER BY tokens.key DESC LIMIT 1000;

-- name: tokens_of_runs
-- What runs were given, newest first; never a secret.
SELECT {token} FROM tokens WHERE tokens.run_key IS NOT NULL ORDER BY tokens.key DESC LIMIT 1000;

-- name: token_locked
-- One token, held until the transaction ends.
SELECT {token} FROM tokens WHERE tokens.id = :id {lock};

-- name: revoke_token
-- A token dies at once.
UPDATE tokens SET revoked_at = :now WHERE key = :key AND revoked_at IS NULL RETURNING key;

-- name: revoke_tokens_of_task
-- Every token of a task dies at once.
UPDATE tokens SET revoked_at = :now WHERE task_key = :task_key AND revoked_at IS NULL;

-- name: revoke_tokens_of_agent
-- Every token that speaks for an agent dies at once.
UPDATE tokens SET revoked_at = :now WHERE revoked_at IS NULL
  AND run_key IN (SELECT runs.key FROM runs WHERE runs.agent_key = :agent_key);

-- name: ids_from_task
-- Tasks whose id begins like this.
SELECT id FROM tasks WHERE id >= :low AND id < :high ORDER BY id LIMIT 9;

-- name: ids_from_run
-- Runs whose id begins like this.
SELECT id FROM runs WHERE id >= :low AND id < :high ORDER BY id LIMIT 9;

-- name: ids_from_agent
-- Agents whose id begins like this.
SELECT id FROM agents WHERE id >= :low AND id < :high ORDER BY id LIMIT 9;

-- name: ids_from_token
-- Tokens whose id begins like this.
SELECT id FROM tokens WHERE id >= :low AND id < :high ORDER BY id LIMIT 9;

-- name: ids_from_inbox
-- Inbox items whose id begins like this.
SELECT id FROM inbox WHERE id >= :low AND id < :high ORDER BY id LIMIT 9;

-- name: task
-- One task with its frozen contract and goal.
SELECT {task}, tasks.contract FROM tasks WHERE tasks.id = :id;

-- name: run
-- One run and the id of its task.
SELECT {run}, tasks.id FROM runs JOIN tasks ON tasks.key = runs.task_key WHERE runs.id = :id;

-- name: runs_of_task
-- Every attempt at a task, oldest first.
SELECT {run} FROM runs WHERE runs.task_key = :key ORDER BY runs.attempt;

-- name: agents_of_task
-- Who worked at a task, and who lived inside of their conversations.
SELECT {agent} FROM agents
  WHERE agents.key IN (SELECT runs.agent_key FROM runs WHERE runs.task_key = :key
    UNION SELECT inside.key FROM runs JOIN agents inside ON inside.parent_key = runs.agent_key
    WHERE runs.task_key = :key AND inside.kind <> 'agent') ORDER BY agents.key;

-- name: latest_verdicts
-- The level and sentence of the latest run of some tasks, and what its agent was kept in and said.
SELECT runs.task_key, runs.level, runs.verdict_reason, runs.isolation,
    CASE WHEN claims.source <> 'exit' THEN claims.reason ELSE '' END
  FROM tasks JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  LEFT JOIN claims ON claims.run_key = runs.key
  WHERE tasks.key IN ({keys});

-- name: called_off
-- By whom some tasks were called off or terminated, and why.
SELECT tasks.key, events.actor, events.reason FROM tasks
  JOIN events ON events.task_key = tasks.key AND events.revision = (SELECT ended.revision
    FROM events AS ended WHERE ended.task_key = tasks.key
    AND ended.event IN ('cancel', 'terminate') ORDER BY ended.revision DESC LIMIT 1)
  WHERE tasks.key IN ({keys});

-- name: agent
-- One agent.
SELECT {agent} FROM agents WHERE agents.id = :id;

-- name: page
-- Tasks, newest first, by any filters.
SELECT {task} FROM tasks WHERE tasks.key < :before {filters} ORDER BY tasks.key DESC LIMIT :n;

-- name: page_of_words
-- The same of what an index of words has found; nobody goes through all keys beside it.
SELECT {task} FROM tasks WHERE tasks.key + 0 < :before {filters} ORDER BY {found_first} LIMIT :n;

-- name: page_of_agent
-- The same of what one agent worked at, each task once.
SELECT {task} FROM runs CROSS JOIN tasks
  WHERE runs.agent_key = :agent_key AND runs.task_key < :before AND runs.key =
    (SELECT MAX(r.key) FROM runs r WHERE r.agent_key = :agent_key AND r.task_key = runs.task_key)
  AND tasks.key = runs.task_key {filters} ORDER BY runs.task_key DESC LIMIT :n;

-- name: ranked
-- The same by their place, where an index leads to what the filters choose.
SELECT {task} FROM tasks WHERE {place} > :floor AND {place} < :before {filters}
  ORDER BY {place} DESC LIMIT :n;

-- name: ranked_by_two
-- The same where an index leads to two of the filters.
SELECT {task} FROM tasks WHERE {place_of_two} > :floor AND {place_of_two} < :before {filters}
  ORDER BY {place_of_two} DESC LIMIT :n;

-- name: edge_of_words
-- The task before the newest so many with some words; none where there are no more than these.
{edge_of_words};

-- name: agent_key
-- The key of an agent.
SELECT agents.key FROM agents WHERE agents.id = :id;

-- name: filter_silent
-- Only silent failures.
tasks.silent = 1;

-- name: filter_not_silent
-- Everything but silent failures.
tasks.silent = 0;

-- name: filter_found_silent
-- Only silent failures among what was found already: no index of all of them is laid beside it.
tasks.silent + 0 = 1;

-- name: filter_found_not_silent
-- Everything but silent failures, likewise.
tasks.silent + 0 = 0;

-- name: filter_status
-- Only one task status.
tasks.status = :status;

-- name: filter_cell
-- Only one cell.
tasks.cell = :cell;

-- name: filter_exit_reason
-- Only one exit reason.
tasks.exit_reason = :exit_reason;

-- name: filter_role
-- Only one role.
tasks.role = :role;

-- name: filter_agent
-- Only silent failures that one agent worked at, however much it has worked at.
tasks.key IN (SELECT runs.task_key FROM runs WHERE runs.agent_key = :agent_key
    INTERSECT SELECT red.key FROM tasks red WHERE red.silent = 1);

-- name: filter_agents
-- Only what some agents worked at.
tasks.key IN (SELECT runs.task_key FROM runs WHERE runs.agent_key IN ({keys}));

-- name: filter_called
-- Only what agents of a name worked at, where there are very many of them.
EXISTS (SELECT 1 FROM runs CROSS JOIN agents WHERE runs.task_key = tasks.key
    AND agents.key = runs.agent_key AND agents.name = :called);

-- name: agents_named
-- The keys of agents of a name.
SELECT agents.key FROM agents WHERE agents.name = :name ORDER BY agents.key LIMIT :n;

-- name: filter_since
-- Only what was created since an instant; nothing up to that key was.
tasks.key > :low AND tasks.created_at >= :since;

-- name: filter_ended_since
-- Only what was created before an instant, and has ended since.
tasks.created_at < :since AND tasks.key IN (SELECT runs.task_key FROM runs
    WHERE runs.ended_at >= :since);

-- name: filter_until
-- Only what was created before an instant, and has not ended since.
tasks.created_at < :until AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.task_key = tasks.key
    AND runs.ended_at >= :until);

-- name: last_task_before
-- The key of the last task before an id.
SELECT tasks.key FROM tasks WHERE tasks.id < :id ORDER BY tasks.id DESC LIMIT 1;

-- name: first_task_from
-- The key of the first task from an id on.
SELECT tasks.key FROM tasks WHERE tasks.id >= :id ORDER BY tasks.id LIMIT 1;

-- name: filter_search
-- Only tasks with these words in title or goal.
{matches};

-- name: filter_search_each
-- The same, where there is less to choose from than has these words.
{each_matches};

-- name: counters
-- How many tasks stand where, and whether a check gave an answer about them.
SELECT status, cell, run_status, CAST(SUM(tasks) AS bigint), checked FROM counters
  GROUP BY status, cell, run_status, checked HAVING SUM(tasks) <> 0
  ORDER BY status, cell, run_status, checked;

-- name: tallies
-- How many runs ended how since an hour, by cell, reason, mode, role, and whether that stands.
SELECT cell, exit_reason, mode, role, CAST(SUM(runs) AS bigint), standing FROM tallies
  WHERE hour BETWEEN :hour AND 9223372036854775807
  GROUP BY cell, exit_reason, mode, role, standing HAVING SUM(runs) <> 0
  ORDER BY cell, exit_reason, mode, role, standing;

-- name: count_call
-- One more call of this kind; calls are counted even when they change nothing.
INSERT INTO meters (name, label, shard, total) VALUES (:name, :label, {shard}, 1)
  ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + 1;

-- name: meters
-- How often which call was made, by label.
SELECT name, label, CAST(SUM(total) AS bigint) FROM meters GROUP BY name, label
  ORDER BY name, label;

-- name: events_of_task
-- A task's events, oldest first.
SELECT {event}, tasks.id FROM events JOIN tasks ON tasks.key = events.task_key
  WHERE events.task_key = :key AND events.revision > :after ORDER BY events.revision LIMIT :n;

-- name: chains
-- The chains of all tasks, one after the other, for whoever walks them.
SELECT {event} FROM events WHERE events.task_key IS NOT NULL
  AND (events.task_key, events.revision) > (:after_task, :after)
  ORDER BY events.task_key, events.revision LIMIT :n;

-- name: events_of_house
-- Events that concern no task, oldest first.
SELECT {event}, NULL FROM events WHERE events.task_key IS NULL AND events.revision > :after
  ORDER BY events.revision LIMIT :n;

-- name: feed
-- All events in an order that no later commit can change.
SELECT {event}, (SELECT tasks.id FROM tasks WHERE tasks.key = events.task_key) FROM events
  WHERE {feed_after} ORDER BY {feed_order} LIMIT :n;

-- name: feed_in_doubt
-- Whether a writer ended during the look, and nobody can tell any more in which database it was.
{feed_in_doubt};

-- name: latest_events
-- The newest events, newest first.
SELECT {event}, (SELECT tasks.id FROM tasks WHERE tasks.key = events.task_key) FROM events
  WHERE events.key < :before ORDER BY events.key DESC LIMIT :n;

-- name: all_tasks
-- Every task in order, for the doctor and for verification.
SELECT {task} FROM tasks WHERE tasks.key > :after ORDER BY tasks.key LIMIT :n;

-- name: counters_by_hand
-- What the counters should say.
SELECT status, COALESCE(cell, ''), COALESCE(run_status, ''), COUNT(*), checked FROM tasks
  GROUP BY status, COALESCE(cell, ''), COALESCE(run_status, ''), checked
  ORDER BY status, COALESCE(cell, ''), COALESCE(run_status, ''), checked;

-- name: contradictions
-- Tasks that say something else than their latest run, or are green without a check that passed.
SELECT tasks.id FROM tasks JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  WHERE tasks.status NOT IN ('queued', 'canceled', 'terminated')
  AND (runs.verdict <> tasks.verdict OR runs.status <> COALESCE(tasks.run_status, '')
    OR COALESCE(runs.cell, '') <> COALESCE(tasks.cell, '')
    OR (tasks.status = 'succeeded' AND NOT EXISTS (SELECT 1 FROM findings
      WHERE findings.run_key = runs.key AND findings.outcome = 'passed'
      AND findings.binding = 1)))
  ORDER BY tasks.key LIMIT 100;

-- name: orphans
-- Events whose task is gone.
SELECT events.id FROM events LEFT JOIN tasks ON tasks.key = events.task_key
  WHERE events.task_key IS NOT NULL AND tasks.key IS NULL ORDER BY events.key LIMIT 100;

-- name: ghosts
-- Unfinished runs that nobody holds a lease of.
SELECT runs.id, tasks.id FROM runs JOIN tasks ON tasks.key = runs.task_key
  LEFT JOIN leases ON leases.run_key = runs.key
  WHERE runs.exit_reason IS NULL AND leases.run_key IS NULL ORDER BY runs.task_key LIMIT 100;

-- name: answers_question
-- The event that brought a task where it waits for somebody.
SELECT {event} FROM events WHERE events.task_key = :key AND events.to_status = :status
  ORDER BY events.revision DESC LIMIT 1;

-- name: answers_questions
-- The events since which some tasks stand where they stand, and the tree that each one's run left.
SELECT {event}, tasks.key, tasks.status, runs.key, runs.digest FROM tasks
  JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  JOIN events ON events.task_key = tasks.key AND events.revision = (SELECT arrived.revision
    FROM events AS arrived WHERE arrived.task_key = tasks.key AND arrived.to_status = tasks.status
    ORDER BY arrived.revision DESC LIMIT 1)
  WHERE tasks.key IN ({keys}) AND tasks.sealed_at IS NULL;

-- name: answers_given
-- How often somebody has said yes since an instant: approvals and acceptances.
SELECT (SELECT COUNT(*) FROM events
    WHERE actor = :actor AND at > :since AND event IN ('resume', 'accept'))
  + (SELECT COUNT(*) FROM conditions
    WHERE kind = 'human' AND met_by = :actor AND met_at > :since);

-- name: answers_by_qa
-- The QA reviews of a task, oldest first.
SELECT {task} FROM tasks WHERE tasks.qa_of_key = :key ORDER BY tasks.key;

-- name: task_by_key
-- One task by its key, looked at.
SELECT {task} FROM tasks WHERE tasks.key = :key;

-- name: qa_unattended
-- Tasks that wait for a QA review which nobody carries on: none is open.
SELECT {task} FROM tasks WHERE tasks.status = 'pending_qa' AND NOT EXISTS
  (SELECT 1 FROM tasks r WHERE r.qa_of_key = tasks.key AND r.status NOT IN ({settled}))
  ORDER BY {place} LIMIT :n;

-- name: undecided
-- Tasks that wait for a person's decision, with their terms.
SELECT tasks.id, tasks.updated_at, tasks.contract FROM tasks WHERE tasks.status = 'needs_review'
  ORDER BY {place} LIMIT :n;

-- name: audit_runs
-- Runs that ended in a period, with their task, agent and claim; the terms where green hangs on them.
SELECT tasks.key, tasks.id, tasks.title, tasks.role, tasks.mode, tasks.status, tasks.rescued,
    tasks.overridden, tasks.falsified, tasks.qa_of_key,
    CASE WHEN tasks.status = 'succeeded' AND runs.attempt = tasks.attempt
      THEN tasks.contract ELSE '' END,
    runs.key, runs.id, CASE WHEN runs.attempt = tasks.attempt THEN 1 ELSE 0 END,
    runs.exit_reason, runs.verdict, runs.level, runs.cell, runs.digest, runs.facts, runs.ended_at,
    COALESCE(agents.name, ''), COALESCE(agents.definition, ''), COALESCE(agents.session, ''),
    COALESCE(claims.kind, '')
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  LEFT JOIN agents ON agents.key = runs.agent_key LEFT JOIN claims ON claims.run_key = runs.key
  WHERE runs.ended_at IS NOT NULL AND (runs.ended_at, runs.key) > (:after_at, :after_key)
  ORDER BY runs.ended_at, runs.key LIMIT :n;

-- name: audit_findings
-- What was found about a page of runs; outputs of gates stay where they are.
SELECT findings.run_key, findings.check_name, findings.kind, findings.phase, findings.outcome,
    findings.level, findings.score, findings.binding, findings.judge, findings.judged,
    findings.digest, findings.duration_us, findings.at,
    CASE WHEN findings.kind IN ('claim', 'qa') THEN findings.evidence ELSE '' END
  FROM runs JOIN findings ON findings.run_key = runs.key
  WHERE runs.ended_at IS NOT NULL AND (runs.ended_at, runs.key) > (:after_at, :after_key)
  AND (runs.ended_at, runs.key) <= (:to_at, :to_key) AND runs.ended_at BETWEEN :after_at AND :to_at
  ORDER BY runs.ended_at, runs.key, findings.key;

-- name: audit_late
-- Runs that were accepted in a period, by one actor, and had ended before it.
SELECT DISTINCT runs.key, runs.ended_at FROM events JOIN runs ON runs.id = events.run_id
  WHERE events.actor = :actor AND events.at >= :since AND events.event IN ('resume', 'accept')
  AND runs.ended_at < :since AND runs.key > :after_key
  ORDER BY runs.key LIMIT :n;

-- name: audit_answerers
-- The next of those who have ever said yes, in the order of their names.
SELECT actor FROM events WHERE event IN ('resume', 'accept') AND actor > :after
  ORDER BY actor LIMIT 1;

-- name: audit_answers
-- What one actor said yes to in a period, when that was asked, and whether it was taken back.
SELECT events.key, events.actor, events.event, events.at, events.data, tasks.id, tasks.title,
    (SELECT asked.at FROM events asked WHERE asked.task_key = events.task_key
      AND asked.revision < events.revision AND asked.to_status = events.from_status
      ORDER BY asked.revision DESC LIMIT 1),
    CASE WHEN EXISTS (SELECT 1 FROM events undone WHERE undone.task_key = events.task_key
      AND undone.revision > events.revision AND undone.event = 'reopen') THEN 1 ELSE 0 END
  FROM events JOIN tasks ON tasks.key = events.task_key
  WHERE events.actor = :actor AND events.event IN ('resume', 'accept')
  AND events.at >= :since AND (events.at, events.key) > (:after_at, :after_key)
  ORDER BY events.at, events.key LIMIT :n;

-- name: login_locked
-- A login code that is still good, held until the transaction ends.
SELECT {token} FROM tokens WHERE tokens.digest = :digest AND tokens.kind = 'login'
  AND tokens.revoked_at IS NULL AND tokens.expires_at > :now {lock};

-- name: keep_request
-- A request that may come twice, by whoever sends it.
INSERT INTO requests (actor, request_key, fingerprint, at)
  VALUES (:actor, :request_key, :fingerprint, :now) ON CONFLICT DO NOTHING;

-- name: request_kept
-- What a key was used for first.
SELECT fingerprint, at FROM requests WHERE actor = :actor AND request_key = :request_key;

-- name: forget_requests
-- Nobody sends a request again after so long.
DELETE FROM requests WHERE at < :before;

-- name: see_active
-- An agent says that it lives.
UPDATE leases SET active_at = :now WHERE run_key = :run_key;

-- name: insert_artifact
-- Something that an agent handed in.
INSERT INTO artifacts (run_key, name, sha256, size, at)
  VALUES (:run_key, :name, :content, :size, :now) RETURNING {artifact};

-- name: artifacts_of_run
-- What an agent handed in, oldest first.
SELECT {artifact} FROM artifacts JOIN runs ON runs.key = artifacts.run_key
  WHERE runs.id = :run ORDER BY artifacts.key;

-- name: latest_event
-- How far the history reaches.
SELECT COALESCE(MAX(key), 0) FROM events;

-- name: tallies_by_hour
-- How many runs ended in which cell, hour by hour, and whether that stands. Bounded on both sides,
-- or PostgreSQL takes the stretch for a third of all.
SELECT hour, cell, CAST(SUM(runs) AS bigint), standing FROM tallies
  WHERE hour >= :hour AND hour <= :hour + 1000000 GROUP BY hour, cell, standing HAVING SUM(runs) <> 0 ORDER BY hour, cell, standing;

-- name: live_runs
-- Runs that have not ended, newest first, with whom they belong to and when they last did something.
SELECT {run}, tasks.id, tasks.title, tasks.role, agents.id, agents.name, leases.holder,
    leases.active_at, leases.expires_at, leases.boot, tasks.contract
  FROM (SELECT runs.key FROM runs WHERE runs.exit_reason IS NULL ORDER BY runs.key DESC
    LIMIT :n) AS newest JOIN runs ON runs.key = newest.key JOIN tasks ON tasks.key = runs.task_key
  LEFT JOIN agents ON agents.key = runs.agent_key LEFT JOIN leases ON leases.run_key = runs.key
  ORDER BY newest.key DESC;

-- name: live_runs_of_tasks
-- The runs of some tasks that have not ended, with the same beside them.
SELECT {run}, tasks.id, tasks.title, tasks.role, agents.id, agents.name, leases.holder,
    leases.active_at, leases.expires_at, leases.boot, tasks.contract
  FROM runs JOIN tasks ON tasks.key = runs.task_key LEFT JOIN agents ON agents.key = runs.agent_key
  LEFT JOIN leases ON leases.run_key = runs.key
  WHERE runs.task_key IN ({keys}) AND runs.exit_reason IS NULL;

-- name: verdict_times
-- How long the latest runs took from their start to their verdict.
SELECT judged_at - created_at FROM runs WHERE ended_at >= :since AND judged_at IS NOT NULL
  ORDER BY ended_at DESC LIMIT :n;

-- name: inbox_item
-- One inbox item and its task.
SELECT {inbox}, tasks.id FROM inbox JOIN tasks ON tasks.key = inbox.task_key
  WHERE inbox.id = :id;

-- name: inbox_put_off
-- What is put off, the first to come back first.
SELECT {inbox}, tasks.id FROM inbox JOIN tasks ON tasks.key = inbox.task_key
  WHERE inbox.state = 'snoozed' AND inbox.snoozed_until > :now
  ORDER BY inbox.snoozed_until LIMIT :n;

-- name: inbox_all
-- Everything that waits for a person, or did, newest first.
SELECT {inbox}, tasks.id FROM inbox JOIN tasks ON tasks.key = inbox.task_key
  ORDER BY inbox.key DESC LIMIT :n;

-- name: inbox_of_topic
-- What waits for a person with one topic, oldest first; what is put off, too.
SELECT inbox.id FROM inbox WHERE inbox.topic = :topic AND inbox.state <> 'resolved'
  ORDER BY inbox.key + 0 LIMIT :n;

-- name: inbox_of_task
-- What waits for a person about one task, or did, newest first.
SELECT {inbox}, tasks.id FROM inbox JOIN tasks ON tasks.key = inbox.task_key
  WHERE inbox.task_key = :task_key ORDER BY inbox.key DESC LIMIT :n;

-- name: inbox_of_cause
-- What a person has to look at, or had to, because of something at an instant: by its cause, or else
-- by its task and kind.
SELECT {inbox} FROM inbox
  WHERE (inbox.cause = :cause OR (inbox.task_key = :task_key AND inbox.cell = :cell))
  AND inbox.created_at <= :at ORDER BY inbox.key + 0 DESC LIMIT 1;

-- name: inbox_sums
-- How much of the inbox is in which state, by urgency; resolved items are counted as well.
SELECT label, CAST(SUM(total) AS bigint) FROM meters WHERE name = 'inbox' GROUP BY label;

-- name: inbox_sleeping
-- How much is put off, by urgency: it waits for nobody now.
SELECT severity, CAST(COUNT(*) AS bigint) FROM inbox
  WHERE state = 'snoozed' AND snoozed_until > :now GROUP BY severity;

-- name: inbox_oldest
-- Since when the oldest waits with each urgency, and the oldest of those that nobody took.
SELECT each.column1,
    (SELECT created_at FROM inbox WHERE severity = each.column1 AND state <> 'resolved'
      AND COALESCE(snoozed_until, 0) <= :now ORDER BY key LIMIT 1),
    (SELECT created_at FROM inbox WHERE severity = each.column1 AND state <> 'resolved'
      AND state <> 'acked' AND COALESCE(snoozed_until, 0) <= :now ORDER BY key LIMIT 1)
  FROM (VALUES {severities}) AS each;

-- name: topic_put_off
-- Until when somebody put off everything with this topic, whatever still comes.
SELECT MAX(snoozed_until) FROM inbox WHERE topic = :topic AND state = 'snoozed'
  AND whole_topic = 1 AND snoozed_until > :now;

-- name: blocked_longest
-- Since when the task is blocked that has been blocked longest.
SELECT settled_at FROM tasks WHERE status = 'blocked' ORDER BY settled_at LIMIT 1;

-- name: outlet
-- How far an outlet has read the history.
SELECT xact, event_key FROM outlets WHERE name = :name;

-- name: move_outlet
-- An outlet has read so far.
INSERT INTO outlets (name, xact, event_key, at) VALUES (:name, :xact, :event_key, :now)
  ON CONFLICT (name) DO UPDATE SET xact = :xact, event_key = :event_key, at = :now;

-- name: pin
-- What a settings file reached out with when it was last trusted.
SELECT reach, run_key, actor, at FROM pins WHERE file = :file;

-- name: keep_pin
-- A settings file is trusted as it is now; no run before this one can have written it since.
INSERT INTO pins (file, reach, run_key, actor, at)
  SELECT :file, :reach, COALESCE((SELECT MIN(key) FROM runs WHERE exit_reason IS NULL),
    (SELECT MAX(key) FROM runs) + 1, 0), :actor, :now WHERE 1 = 1
  ON CONFLICT (file) DO UPDATE SET reach = excluded.reach, run_key = excluded.run_key,
    actor = excluded.actor, at = excluded.at RETURNING reach, run_key, actor, at;

-- name: runs_from
-- Runs from one on, oldest first, with what is known of each.
SELECT runs.key, runs.id, tasks.id, runs.facts, runs.created_at, runs.ended_at
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  WHERE runs.key >= :key ORDER BY runs.key LIMIT :n;

-- name: runs_during
-- Runs that lived at some time, oldest first, with what is known of each.
SELECT runs.key, runs.id, tasks.id, runs.facts, runs.created_at, runs.ended_at
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  WHERE runs.created_at <= :until AND (runs.ended_at IS NULL OR runs.ended_at >= :since)
  ORDER BY runs.key LIMIT :n;

-- name: pinned
-- Every settings file that was trusted once.
SELECT file FROM pins ORDER BY file;

-- name: resolve_inbox_of_cause
-- Nobody has to look at this any more.
UPDATE inbox SET state = 'resolved', snoozed_until = NULL, outcome = :outcome, updated_at = :now
  WHERE cause = :cause AND state <> 'resolved';

-- name: insert_post
-- Something that an outlet owes, or can't say and why; the same subject again is none.
INSERT INTO posts (id, outlet, subject, task_id, body, state, error, due_at, created_at, updated_at)
  VALUES (:id, :outlet, :subject, :task_id, :body, :state, :error, :now, :now, :now)
  ON CONFLICT (outlet, subject) DO NOTHING;

-- name: posts_due
-- What is to be sent now, the longest due first; of one task the earlier news goes first.
SELECT {post} FROM posts WHERE posts.state = 'waiting' AND posts.due_at <= :now {filters}
  AND NOT EXISTS (SELECT 1 FROM posts AS earlier WHERE earlier.outlet = posts.outlet
    AND earlier.task_id = posts.task_id AND earlier.key < posts.key AND earlier.state = 'waiting')
  ORDER BY posts.due_at, posts.key LIMIT :n;

-- name: filter_outlet
-- Only what one outlet owes.
posts.outlet = :outlet;

-- name: lease_post
-- Nobody else sends it meanwhile.
UPDATE posts SET due_at = :due_at, updated_at = :now
  WHERE key = :key AND state = 'waiting' AND due_at = :was_due_at RETURNING key;

-- name: write_post
-- What became of it.
UPDATE posts SET state = :state, tries = tries + 1, due_at = :due_at, error = :error,
    updated_at = :now
  WHERE id = :id AND state = 'waiting' RETURNING {post};

-- name: post_again
-- Somebody wants what was given up to be tried again.
UPDATE posts SET state = 'waiting', tries = 0, due_at = :now, updated_at = :now
  WHERE id = :id AND state = 'given_up' RETURNING {post};

-- name: posts_latest
-- What outlets sent or owe, newest first.
SELECT {post} FROM posts WHERE posts.key < :before ORDER BY posts.key DESC LIMIT :n;

-- name: posts_counted
-- How many posts wait, were given up or not said, by outlet; what was sent is counted when it is.
SELECT outlet, 'waiting', CAST(COUNT(*) AS bigint) FROM posts WHERE state = 'waiting'
  GROUP BY outlet
  UNION ALL SELECT outlet, 'given_up', CAST(COUNT(*) AS bigint) FROM posts
  WHERE state = 'given_up' GROUP BY outlet
  UNION ALL SELECT outlet, 'unsaid', CAST(COUNT(*) AS bigint) FROM posts
  WHERE state = 'unsaid' GROUP BY outlet;

-- name: posts_unsaid
-- The latest thing that each outlet did not say.
SELECT {post} FROM posts WHERE posts.key IN
  (SELECT MAX(key) FROM posts WHERE state = 'unsaid' GROUP BY outlet);

-- name: posts_silent
-- What nobody outside was told about one task, newest first.
SELECT {post} FROM posts WHERE posts.task_id = :task_id AND posts.state IN ('given_up', 'unsaid')
  ORDER BY posts.key DESC LIMIT :n;

-- name: drop_posts
-- Nobody wants to send any more what an outlet owes.
UPDATE posts SET state = 'unsaid', error = :error, updated_at = :now
  WHERE outlet = :outlet AND (state = 'waiting' OR state = 'given_up') RETURNING key;

-- name: forget_posts
-- What was sent long ago, or not said, is forgotten.
DELETE FROM posts WHERE state IN ('sent', 'unsaid') AND updated_at < :before;

-- name: count_honesty
-- So many statements of agents with one definition came out like this.
INSERT INTO honesty (definition, outcome, shard, statements)
  SELECT agents.definition, :outcome, {shard}, :n FROM agents WHERE agents.key = :agent_key
  ON CONFLICT (definition, outcome, shard)
  DO UPDATE SET statements = honesty.statements + excluded.statements;

-- name: honesty_of_agents
-- What became of the statements of everybody with the definitions of some agents.
SELECT definition, outcome, CAST(SUM(statements) AS bigint) FROM honesty
  WHERE definition IN (SELECT agents.definition FROM agents WHERE agents.key IN ({keys}))
  GROUP BY definition, outcome;

-- name: count_statements
-- So many statements of an agent came out like this.
INSERT INTO meters (name, label, shard, total)
  SELECT :name, CAST(:outcome AS text) || '|' ||
    COALESCE((SELECT agents.name FROM agents WHERE agents.key = :agent_key), ''), {shard}, :n
  ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + :n;

-- Routines: what is to happen again and again, and each time that it was due.

-- name: routine_locked
-- One routine by its name, held until the transaction ends.
SELECT {routine} FROM routines WHERE routines.name = :name {lock};

-- name: routines
-- Every routine, by name.
SELECT {routine} FROM routines ORDER BY routines.name;

-- name: routine
-- One routine by its name.
SELECT {routine} FROM routines WHERE routines.name = :name;

-- name: routines_due
-- Routines about which something may be done now; those who do it look again.
SELECT routines.name FROM routines LEFT JOIN tasks ON tasks.key = routines.task_key
  WHERE routines.gone_at IS NULL AND routines.paused_at IS NULL AND routines.ended IS NULL
  AND CASE WHEN routines.kind = 'cycle' THEN tasks.status IS NULL OR tasks.status IN ({settled})
    ELSE COALESCE(routines.next_at <= :now, 1 = 0) OR (EXISTS (SELECT 1 FROM occurrences
        WHERE occurrences.routine_key = routines.key AND occurrences.state = 'waiting')
      AND NOT EXISTS (SELECT 1 FROM tasks busy JOIN occurrences ON occurrences.task_key = busy.key
        WHERE busy.status IN ({under_way}) AND occurrences.routine_key = routines.key)) END
  ORDER BY routines.key LIMIT :n;

-- name: routines_of_source
-- The routines that a settings file had when it was last taken over, held until the end.
SELECT {routine} FROM routines WHERE routines.source = :source AND routines.gone_at IS NULL
  ORDER BY routines.key {lock};

-- name: insert_routine
-- A routine that trusted settings name for the first time.
INSERT INTO routines (name, kind, settings, contract, digest, source, paused_by, paused_at, next_at,
    created_at, updated_at)
  VALUES (:name, :kind, :settings, :contract, :digest, :source, :paused_by, :paused_at, :next_at,
    :now, :now)
  RETURNING {routine};

-- name: write_routine
-- How a routine stands; it names the revision that it comes from.
UPDATE routines SET kind = :kind, settings = :settings, contract = :contract, digest = :digest,
    source = :source, paused_by = :paused_by, paused_at = :paused_at, next_at = :next_at,
    generation = :generation, iteration = :iteration, failures = :failures, task_key = :task_key,
    ended = :ended, ended_at = :ended_at, gone_at = :gone_at, revision = :revision + 1,
    updated_at = :now
  WHERE key = :key AND revision = :revision RETURNING {routine};

-- name: insert_occurrence
-- A routine was due: what became of it.
INSERT INTO occurrences (routine_key, slot, generation, first_at, due_at, times, state, cause,
    task_key, actor, at, updated_at)
  VALUES (:routine_key, :slot, :generation, :first_at, :due_at, :times, :state, :cause, :task_key,
    :actor, :now, :now);

-- name: write_occurrence
-- What became of an occurrence that waited.
UPDATE occurrences SET state = :state, cause = :cause, task_key = :task_key, updated_at = :now
  WHERE key = :key AND state = 'waiting' RETURNING key;

-- name: latest_seen_to
-- The latest occurrence of a schedule between two slots; slots sort as their instants do.
SELECT due_at FROM occurrences WHERE routine_key = :routine_key AND generation = 0
  AND slot >= :first AND slot <= :last ORDER BY slot DESC LIMIT 1;

-- name: occurrences_waiting
-- What waits for the occurrence before it, oldest first.
SELECT {occurrence} FROM occurrences WHERE occurrences.routine_key = :routine_key
  AND occurrences.state = 'waiting' ORDER BY occurrences.key;

-- name: routine_under_way
-- The first task of a routine that is under way.
SELECT tasks.id FROM tasks JOIN occurrences ON occurrences.task_key = tasks.key
  WHERE tasks.status IN ({under_way}) AND occurrences.routine_key = :routine_key
  ORDER BY tasks.key LIMIT 1;

-- name: iteration_of_cycle
-- How the latest iteration of a cycle stands, and what its agent declared.
SELECT tasks.id, tasks.status, tasks.sealed_at, claims.kind FROM tasks
  LEFT JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  LEFT JOIN claims ON claims.run_key = runs.key WHERE tasks.key = :task_key;

-- name: occurrences_of_routine
-- The latest occurrences of a routine with their tasks, newest first.
SELECT {occurrence}, tasks.id, tasks.status, tasks.run_status, tasks.cell FROM occurrences
  LEFT JOIN tasks ON tasks.key = occurrences.task_key
  WHERE occurrences.routine_key = :routine_key AND occurrences.key < :before
  ORDER BY occurrences.key DESC LIMIT :n;

-- name: occurrences_counted
-- How many occurrences of a routine came to what; of the missed ones how many there were.
SELECT state, CAST(SUM(times) AS bigint) FROM occurrences WHERE routine_key = :routine_key
  AND state IN ('missed', 'waiting') GROUP BY state;

-- name: statuses_of_generation
-- How the tasks of one round of a cycle stand.
SELECT DISTINCT tasks.status FROM occurrences JOIN tasks ON tasks.key = occurrences.task_key
  WHERE occurrences.routine_key = :routine_key AND occurrences.generation = :generation;

-- name: statuses_of_latest
-- How the latest tasks of a schedule stand; what waits has none yet, what was skipped never will.
SELECT tasks.status FROM occurrences LEFT JOIN tasks ON tasks.key = occurrences.task_key
  WHERE occurrences.routine_key = :routine_key AND occurrences.state <> 'skipped'
  ORDER BY occurrences.key DESC LIMIT :n;

-- name: routine_of_task
-- The routine that a task was opened for, and which occurrence it is.
SELECT routines.name, occurrences.due_at, occurrences.state FROM occurrences
  JOIN routines ON routines.key = occurrences.routine_key WHERE occurrences.task_key = :task_key;

-- name: insert_missed_run
-- A run that never began: there was nobody to start it in time.
INSERT INTO runs (id, task_key, attempt, fence, status, exit_reason, exit_detail, ended_by, verdict,
    verdict_reason, cell, facts, created_at, ended_at)
  VALUES (:id, :task_key, :attempt, :fence, 'missed', :exit_reason, :exit_detail, :ended_by,
    'unknown', :reason, :cell, :facts, :now, :now);

-- What outlets tell of what waits for people, and what is looked at by age and share.

-- name: outlet_held
-- An outlet, held until the transaction ends: what it owes is decided by one at a time.
SELECT xact, event_key FROM outlets WHERE name = :name {lock};

-- name: post_known
-- Whether something was owed before, by itself or among others.
SELECT 1 FROM posts WHERE outlet = :outlet AND subject = :subject
  UNION ALL SELECT 1 FROM folds WHERE outlet = :outlet AND subject = :subject;

-- name: insert_fold
-- Something that is told among others.
INSERT INTO folds (outlet, subject, at) VALUES (:outlet, :subject, :now)
  ON CONFLICT (outlet, subject) DO NOTHING;

-- name: forget_folds
-- What was told among others long ago is forgotten.
DELETE FROM folds WHERE at < :before;

-- name: cooling
-- Until when an outlet says nothing more of a topic by itself, and what it says then.
SELECT until, post_id FROM cooling WHERE outlet = :outlet AND topic = :topic;

-- name: cool
-- From now on an outlet says of a topic only how much more of it there was.
INSERT INTO cooling (outlet, topic, until, post_id) VALUES (:outlet, :topic, :until, :post_id)
  ON CONFLICT (outlet, topic) DO UPDATE SET until = :until, post_id = :post_id;

-- name: end_cooling
-- What has this topic is told at once again.
DELETE FROM cooling WHERE topic = :topic;

-- name: forget_cooling
-- What has cooled down long ago is forgotten.
DELETE FROM cooling WHERE until < :before;

-- name: unsent_post
-- A post that nobody has tried to send.
SELECT body FROM posts WHERE id = :id AND state = 'waiting' AND tries = 0;

-- name: delay_post
-- A post waits for its time.
UPDATE posts SET due_at = :due_at, updated_at = :now WHERE id = :id AND state = 'waiting';

-- name: rewrite_post
-- A post that nobody has tried to send says more.
UPDATE posts SET body = :body, updated_at = :now
  WHERE id = :id AND state = 'waiting' AND tries = 0;

-- name: tell_item
-- An outlet tells of something that waits for a person; again in another night, too.
INSERT INTO told (outlet, item_key, subject, post_id, at)
  SELECT :outlet, inbox.key, :subject, :post_id, :now FROM inbox WHERE inbox.key = :item_key
  ON CONFLICT (outlet, item_key) DO UPDATE SET post_id = :post_id;

-- name: tell_item_once
-- An outlet tells of something that waits for a person, unless it has before.
INSERT INTO told (outlet, item_key, subject, post_id, at)
  VALUES (:outlet, :item_key, :subject, :post_id, :now)
  ON CONFLICT (outlet, item_key) DO NOTHING;

-- name: told_arrived
-- What an outlet told has arrived.
UPDATE told SET arrived_at = :now WHERE post_id = :post_id AND arrived_at IS NULL;

-- name: told_resolved
-- What an outlet told, and what nobody has to look at any more.
SELECT {inbox}, tasks.id, told.subject, inbox.closed_by FROM told
  JOIN inbox ON inbox.key = told.item_key JOIN tasks ON tasks.key = inbox.task_key
  WHERE told.outlet = :outlet AND told.arrived_at IS NOT NULL AND inbox.state = 'resolved'
  ORDER BY told.item_key LIMIT :n;

-- name: untell_item
-- Nothing more will be told of it.
DELETE FROM told WHERE outlet = :outlet AND item_key = :item_key RETURNING subject;

-- name: forget_told
-- What never arrived, and was resolved long ago, is forgotten.
DELETE FROM told WHERE EXISTS (SELECT 1 FROM inbox WHERE inbox.key = told.item_key
  AND inbox.state = 'resolved' AND inbox.updated_at < :before);

-- name: told_untaken
-- What an outlet told and nobody has taken, put off or dealt with; the steps that were made for it.
SELECT {inbox}, tasks.id, told.subject, told.step, told.since,
    CASE WHEN told.at > COALESCE(inbox.snoozed_until, 0) AND told.at > inbox.open_since
      THEN told.at WHEN COALESCE(inbox.snoozed_until, 0) > inbox.open_since
      THEN inbox.snoozed_until ELSE inbox.open_since END AS waits_since
  FROM told JOIN inbox ON inbox.key = told.item_key JOIN tasks ON tasks.key = inbox.task_key
  WHERE told.outlet = :outlet AND inbox.state IN ('open', 'snoozed')
  AND COALESCE(inbox.snoozed_until, 0) <= :now ORDER BY told.item_key LIMIT :n;

-- name: step_told
-- One step further for something that nobody took; only from where it stood.
UPDATE told SET step = :step, since = :since
  WHERE outlet = :outlet AND item_key = :item_key AND step = :was AND since = :was_since
  AND EXISTS (SELECT 1 FROM inbox WHERE inbox.key = told.item_key
    AND inbox.state IN ('open', 'snoozed') AND COALESCE(inbox.snoozed_until, 0) <= :now)
  RETURNING subject;

-- name: alert_quiet
-- Whether something was brought up already, or a person has resolved it and it has lasted since.
SELECT 1 FROM inbox WHERE inbox.cause = :cause
  AND (inbox.state <> 'resolved' OR inbox.quiet_until > :now) LIMIT 1;

-- name: alerts_quiet
-- The causes of alerts that people resolved and that are not raised again for now.
SELECT DISTINCT inbox.cause FROM inbox WHERE inbox.quiet_until > 0 AND inbox.quiet_until > :now
  LIMIT :n;

-- name: end_quiet
-- The condition of an alert is over: when it comes back, that is news.
UPDATE inbox SET quiet_until = 0 WHERE cause = :cause AND quiet_until > 0;

-- name: alerts_open
-- What was brought up by age and share, and is not dealt with; of which task.
SELECT inbox.cause, inbox.cell, tasks.id FROM inbox JOIN tasks ON tasks.key = inbox.task_key
  WHERE inbox.state <> 'resolved' AND inbox.cell IN
    ('blocked_long', 'pending_long', 'unknown_share', 'queue_age', 'queue_depth')
  ORDER BY inbox.key LIMIT :n;

-- name: blocked_since
-- Tasks that are blocked for too long, the longest first.
SELECT tasks.id, settled_at FROM tasks WHERE status = 'blocked' AND settled_at <= :before
  ORDER BY settled_at LIMIT :n;

-- name: pending_since
-- Tasks whose checks don't come to an end, oldest first.
SELECT first.id, first.updated_at, first.status FROM (
    SELECT * FROM (SELECT key, id, updated_at, status FROM tasks WHERE status = 'pending_eval'
      AND updated_at <= :before ORDER BY {place} LIMIT :n) AS of_runs
    UNION ALL SELECT * FROM (SELECT key, id, updated_at, status FROM tasks
      WHERE status = 'failed_pending_eval' AND updated_at <= :before ORDER BY {place} LIMIT :n)
      AS of_failures
    UNION ALL SELECT * FROM (SELECT key, id, updated_at, status FROM tasks
      WHERE status = 'pending_qa' AND updated_at <= :before ORDER BY {place} LIMIT :n) AS of_reviews
  ) AS first ORDER BY first.key LIMIT :n;

-- name: unknown_lately
-- Of the latest runs that ended since an instant: how many, and how many nobody can say the reason of.
SELECT CAST(COUNT(*) AS bigint),
    CAST(COALESCE(SUM(CASE WHEN late.exit_reason = 'unknown' THEN 1 ELSE 0 END), 0) AS bigint),
    MAX(CASE WHEN late.exit_reason = 'unknown' THEN late.key END)
  FROM (SELECT runs.key, runs.exit_reason FROM runs WHERE runs.ended_at >= :since
    ORDER BY runs.ended_at DESC LIMIT :n) AS late;

-- name: task_of_run_key
-- The task of a run.
SELECT tasks.id FROM runs JOIN tasks ON tasks.key = runs.task_key WHERE runs.key = :key;

-- name: waits_for_a_seat
-- Among the first that are queued, the one that could have started first, and since when it could;
-- one that no worker has the labels for waits as well.
SELECT first.id, first.since FROM (SELECT queued.key, queued.id, CASE
      WHEN COALESCE(queued.not_before, 0) > queued.updated_at THEN queued.not_before
      ELSE queued.updated_at END AS since
    FROM (SELECT key, id, updated_at, not_before FROM tasks WHERE status = 'queued'
      ORDER BY key LIMIT :n) AS queued ORDER BY since, queued.key LIMIT :n) AS first
  WHERE COALESCE((SELECT {hold} FROM tasks WHERE tasks.key = first.key), 'labels') = 'labels'
  ORDER BY first.since, first.key LIMIT 1;

-- name: queued_first
-- The task that is queued longest.
SELECT tasks.id FROM tasks WHERE status = 'queued' ORDER BY tasks.key LIMIT 1;

-- name: beat
-- Somebody who looks for work is there.
INSERT INTO beats (name, kind, host, began_at, at, trouble, pinged_at, unsent)
  VALUES (:name, :kind, :host, :now, :now, :trouble, :pinged_at, :unsent)
  ON CONFLICT (name) DO UPDATE SET at = :now, ended_at = NULL, trouble = :trouble,
    pinged_at = :pinged_at, unsent = :unsent RETURNING {beat};

-- name: end_beat
-- Somebody who looked for work ends as it should.
UPDATE beats SET ended_at = :now, at = :now WHERE name = :name;

-- name: beats
-- Who looks for work, or did, the last seen first.
SELECT {beat} FROM beats ORDER BY at DESC, name LIMIT :n;

-- name: forget_beats
-- Who was not seen for long is forgotten; the last one is not.
DELETE FROM beats WHERE at < :before AND at < (SELECT MAX(at) FROM beats);

-- Budgets over the fleet: failures that repeat, breakers, limits, spending.

-- name: policy
-- When a breaker of a kind opens; held, so that of two failures at once the second sees the first.
SELECT after, within, pause, most FROM policies WHERE kind = :kind {lock};

-- name: demanded
-- Who does a task: the definition, its client, and what it is called.
SELECT definition, client, agent FROM demands WHERE task_key = :task_key;

-- name: demanded_of
-- Who does some tasks, as above.
SELECT task_key, definition, client, agent FROM demands WHERE task_key IN ({keys});

-- name: policies
-- When breakers of each kind open.
SELECT kind, after, within, pause, most, file FROM policies;

-- name: write_policy
-- When breakers of a kind open from now on.
UPDATE policies SET after = :after, within = :within, pause = :pause, most = :most, file = :file,
    stated = :stated
  WHERE kind = :kind RETURNING kind;

-- name: insert_strike
-- A failure that counts.
INSERT INTO strikes (kind, subject, signature, task_key, at)
  VALUES (:kind, :subject, :signature, :task_key, :now);

-- name: strikes_alike
-- How many tasks failed alike since an instant.
SELECT COUNT(DISTINCT task_key) FROM strikes
  WHERE kind = :kind AND subject = :subject AND at > :since AND (signature = :signature
    OR (kind = 'provider' AND signature <> 'auth_invalid' AND :signature <> 'auth_invalid'));

-- name: forget_strikes
-- Failures that count for nothing any more.
DELETE FROM strikes WHERE at < :before;

-- name: forget_strikes_alike
-- A breaker has closed: what opened it counts no more.
DELETE FROM strikes WHERE kind = :kind AND subject = :subject AND at <= :now
  AND (signature = :signature OR kind = 'provider');

-- name: ends_lately
-- Of the runs that started last, how many ended since an instant, how many of them could not work,
-- of how many definitions; what a breaker of its own explains is left out.
SELECT COUNT(*), COALESCE(SUM(CASE WHEN hit THEN 1 ELSE 0 END), 0), COUNT(DISTINCT definition),
    COUNT(DISTINCT CASE WHEN hit THEN definition END)
  FROM (SELECT demands.definition, latest.key = :run OR latest.exit_detail IN ({outage}) AS hit
    FROM (SELECT runs.key, runs.task_key, runs.exit_detail, runs.exit_reason, runs.ended_at
      FROM runs ORDER BY runs.key DESC LIMIT 100) latest
    JOIN demands ON demands.task_key = latest.task_key
    WHERE (latest.key = :run OR (latest.ended_at > :since
      AND latest.exit_reason <> 'user_cancelled'
      AND latest.exit_detail NOT IN
        ('process_lost', 'supervisor_crashed', 'supervisor_restarted')))
    AND NOT EXISTS (SELECT 1 FROM breakers WHERE breakers.closed_at IS NULL
      AND ((breakers.kind = 'agent' AND breakers.subject = demands.definition)
        OR (breakers.kind = 'provider' AND breakers.subject = demands.client)))) lately;

-- name: breaker_open
-- The breaker that holds this back, held itself until the transaction ends.
SELECT {breaker} FROM breakers WHERE kind = :kind AND subject = :subject AND closed_at IS NULL
  AND (signature = :signature OR kind <> 'agent') ORDER BY key LIMIT 1 {lock};

-- name: open_breaker
-- A breaker opens; no row where it is open already.
INSERT INTO breakers (id, kind, subject, signature, name, trips, tried, opened_at, open_until)
  VALUES (:id, :kind, :subject, :signature, :name, 1, :tried, :now, :open_until)
  ON CONFLICT DO NOTHING RETURNING {breaker};

-- name: trip_breaker
-- A breaker opens again, after one task more has tried in vain.
UPDATE breakers SET trips = trips + 1, signature = :signature, tried = :tried,
    open_until = CASE WHEN :open_until > open_until THEN :open_until ELSE open_until END
  WHERE key = :key AND closed_at IS NULL RETURNING {breaker};

-- name: extend_breaker
-- One more has failed alike that was under way; the provider may say that it will take longer.
UPDATE breakers SET tried = CASE WHEN :tried > tried THEN :tried ELSE tried END,
    open_until = CASE WHEN :open_until > open_until THEN :open_until ELSE open_until END
  WHERE key = :key AND closed_at IS NULL;

-- name: close_breaker
-- A breaker closes, once.
UPDATE breakers SET closed_at = :now, closed_by = :closed_by, reason = :reason
  WHERE key = :key AND closed_at IS NULL RETURNING {breaker};

-- name: breakers_probed
-- The breakers that let a run through to try.
SELECT {breaker} FROM probes JOIN breakers ON breakers.key = probes.breaker_key
  WHERE probes.run_id = :run AND breakers.closed_at IS NULL ORDER BY breakers.key;

-- name: breakers_latest
-- Breakers that hold somebody back first, then those that did; with the run that tries.
SELECT {breaker}, tasks.id FROM breakers LEFT JOIN probes ON probes.breaker_key = breakers.key
  LEFT JOIN runs ON runs.id = probes.run_id AND (runs.exit_reason IS NULL OR runs.verdict = 'pending')
  LEFT JOIN tasks ON tasks.key = runs.task_key
  ORDER BY CASE WHEN breakers.closed_at IS NULL THEN 0 ELSE 1 END, breakers.key DESC LIMIT :n;

-- name: breakers_of_task
-- The breakers that are about a queued task, and the task that tries each.
SELECT {breaker}, trying.id FROM demands CROSS JOIN breakers
  LEFT JOIN probes ON probes.breaker_key = breakers.key
  LEFT JOIN runs ON runs.id = probes.run_id AND (runs.exit_reason IS NULL OR runs.verdict = 'pending')
  LEFT JOIN tasks trying ON trying.key = runs.task_key
  WHERE demands.task_key = :task_key AND breakers.closed_at IS NULL AND ({is_about})
  ORDER BY breakers.key;

-- name: breaker_locked
-- One breaker, held until the transaction ends.
SELECT {breaker} FROM breakers WHERE id = :id {lock};

-- name: ids_from_breaker
-- Breakers whose id begins like this.
SELECT id FROM breakers WHERE id >= :low AND id < :high ORDER BY id LIMIT 9;

-- name: probes_at_work
-- Breakers of providers and of the fleet whose probe has been at work for a while.
SELECT {breaker} FROM probes JOIN breakers ON breakers.key = probes.breaker_key
  JOIN runs ON runs.id = probes.run_id JOIN leases ON leases.run_key = runs.key
  WHERE breakers.closed_at IS NULL AND breakers.kind <> 'agent' AND runs.exit_reason IS NULL
  AND leases.active_at > runs.seen_at + :lived ORDER BY breakers.key;

-- name: add_spending
-- What judges used on a task, beside what its runs did.
INSERT INTO spending (hour, agent, labels, shard, cost, tokens, runs)
  SELECT :hour, demands.agent, demands.labels, {shard}, :cost, :tokens, 0 FROM demands
    WHERE demands.task_key = :task_key
  ON CONFLICT (hour, agent, labels, shard) DO UPDATE SET cost = spending.cost + excluded.cost,
    tokens = spending.tokens + excluded.tokens;

-- name: limits
-- What all may spend together, and what of it is spent or set aside now.
SELECT {limit}, {used_runs}, {used_cost}, {used_tokens}, {set_aside} FROM limits ORDER BY key;

-- name: limits_of_task
-- The same, of those that are about one task.
SELECT {limit}, {used_runs}, {used_cost}, {used_tokens}, {set_aside} FROM limits
  JOIN demands ON demands.task_key = :task_key WHERE {limit_is_about} ORDER BY key;

-- name: insert_limit
-- A limit that a settings file names for the first time.
INSERT INTO limits (id, file, hours, agent, label, cost, tokens, runs, stated)
  VALUES (:id, :file, :hours, :agent, :label, :cost, :tokens, :runs, :stated)
  ON CONFLICT DO NOTHING;

-- name: write_limit
-- A settings file says otherwise of a limit.
UPDATE limits SET cost = :cost, tokens = :tokens, runs = :runs, stated = :stated
  WHERE id = :id RETURNING id;

-- name: limits_now
-- The limits of a settings file, for whoever only looks.
SELECT {limit} FROM limits WHERE file = :file ORDER BY key;

-- name: limits_of_file
-- The limits that a settings file has set.
SELECT {limit} FROM limits WHERE file = :file ORDER BY key {lock};

-- name: drop_limit
-- A settings file names this limit no more.
DELETE FROM limits WHERE id = :id RETURNING id;

-- name: first_held_by_limit
-- A queued task that a limit is about, for people to look at.
SELECT tasks.id FROM tasks JOIN demands ON demands.task_key = tasks.key
  JOIN limits ON limits.key = :limit WHERE tasks.status = 'queued' AND {limit_is_about}
  ORDER BY tasks.priority DESC, tasks.key LIMIT 1;

-- name: causes_waiting
-- What waits for a person with causes that begin so.
SELECT inbox.cause FROM inbox WHERE inbox.state <> 'resolved'
  AND inbox.cause >= :low AND inbox.cause < :high;

-- Engines: jobs that carry tasks out on somebody else's nodes.

-- name: insert_job
-- A task is about to be handed to an engine.
INSERT INTO jobs (id, task_key, attempt, engine, state, word, created_at, updated_at)
  VALUES (:id, :task_key, :attempt, :engine, 'placed', 'unknown', :now, :now) RETURNING {job};

-- name: job
-- One job, and the task that it is for.
SELECT {job}, tasks.id FROM jobs JOIN tasks ON tasks.key = jobs.task_key WHERE jobs.id = :id;

-- name: place_job
-- What the engine calls it.
UPDATE jobs SET handle = :handle, updated_at = :now WHERE id = :id AND handle = '' RETURNING {job};

-- name: see_job
-- What the engine says of a job now, and since when it says that it is gone.
UPDATE jobs SET word = :word, said = :said, looked_at = :now, updated_at = :now,
    gone_at = CASE WHEN CAST(:word AS text) = 'gone' THEN COALESCE(gone_at, :now) END
  WHERE id = :id AND state IN ('placed', 'taken') RETURNING {job};

-- name: keep_for_job
-- A task stays reserved for the job that waits with its engine.
UPDATE reservations SET expires_at = :expires_at WHERE task_key = :task_key AND holder = :own;

-- name: take_reservation
-- A job hands its task over to the supervisor that it has started; no row where it is not its any more.
UPDATE reservations SET holder = :holder, expires_at = :expires_at
  WHERE task_key = :task_key AND holder = :own RETURNING task_key;

-- name: take_job
-- A supervisor has begun with the task of a job: the first one, and nobody after it.
UPDATE jobs SET state = 'taken', holder = :holder, updated_at = :now
  WHERE id = :id AND state = 'placed' RETURNING {job};

-- name: end_job
-- Nothing more comes of a job.
UPDATE jobs SET state = :to_state, said = :said, updated_at = :now
  WHERE id = :id AND state = :from_state RETURNING {job};

-- name: jobs_lost
-- How many jobs of a task came to nothing since it last ran.
SELECT COUNT(*) FROM jobs WHERE task_key = :task_key AND attempt = :attempt AND state = 'lost';

-- name: open_jobs
-- The jobs that an engine may still have, with how their tasks stand and who is about to do them.
SELECT {job}, tasks.id, tasks.status, tasks.sealed_at, reservations.holder FROM jobs
  JOIN tasks ON tasks.key = jobs.task_key
  LEFT JOIN reservations ON reservations.task_key = jobs.task_key
  WHERE jobs.engine = :engine AND jobs.state IN ('placed', 'taken') ORDER BY jobs.key LIMIT :n;

-- name: jobs_of_task
-- Every job that a task was handed over as, the first one first.
SELECT {job} FROM jobs JOIN tasks ON tasks.key = jobs.task_key
  WHERE tasks.id = :task ORDER BY jobs.key;

-- workers on many hosts ----------------------------------------------------------------------------

-- name: enlist_worker
-- Somebody offers seats.
INSERT INTO workers (name, holder, labels, seats, version, started_at, seen_at, busy, draining)
  VALUES (:name, :holder, :labels, :seats, :version, :now, :now, :busy, :draining)
  ON CONFLICT (holder) DO UPDATE SET seen_at = excluded.seen_at, busy = excluded.busy,
    draining = excluded.draining;

-- name: dismiss_worker
-- Somebody offers no seats any more.
DELETE FROM workers WHERE holder = :holder;

-- name: forget_workers
-- Those that have not been heard of for long.
DELETE FROM workers WHERE seen_at < :before;

-- name: workers
-- Who offers seats, by name.
SELECT {worker} FROM workers ORDER BY name, key LIMIT :n;

-- name: release_silent
-- What workers that fell silent were about to carry out is free again.
DELETE FROM reservations WHERE holder IN (SELECT holder FROM workers WHERE seen_at < :before)
  RETURNING task_key;

-- name: queue_depth
-- How many tasks are queued, and since when the oldest that could start now is.
SELECT COUNT(*), MIN(CASE WHEN not_before <= :now THEN updated_at END)
  FROM tasks WHERE status = 'queued' AND sealed_at IS NULL;
