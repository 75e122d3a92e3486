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
SELECT {task}, tasks.contract, {run}, claims.kind, leases.token
  FROM runs JOIN tasks ON tasks.key = runs.task_key LEFT JOIN leases ON leases.run_key = runs.key
  LEFT JOIN claims ON claims.run_key = runs.key
  WHERE runs.id = :run {lock_tasks};

-- name: latest_locked
-- A task with its latest run; the task is held until the transaction ends.
SELECT {task}, tasks.contract, {run}, claims.kind, leases.token
  FROM tasks JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  LEFT JOIN leases ON leases.run_key = runs.key LEFT JOIN claims ON claims.run_key = runs.key
  WHERE tasks.key = :key {lock_tasks};

-- name: latest_owned
-- The same, with who owns the run and the process that the owner wrote down.
SELECT {task}, tasks.contract, {run}, leases.holder, leases.process, claims.kind, leases.token
  FROM tasks JOIN runs ON runs.task_key = tasks.key AND runs.attempt = tasks.attempt
  LEFT JOIN leases ON leases.run_key = runs.key LEFT JOIN claims ON claims.run_key = runs.key
  WHERE tasks.key = :key {lock_tasks};

-- name: ready
-- Queued tasks whose time has come, most urgent first; on PostgreSQL nobody waits for another.
SELECT tasks.id FROM tasks WHERE tasks.status = 'queued' AND tasks.not_before <= :now
  AND tasks.sealed_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM wakes WHERE wakes.task_key = tasks.key AND wakes.state = 'ready')
  ORDER BY tasks.priority DESC, tasks.key LIMIT :n {skip_locked};

-- name: dispatchable
-- Queued tasks that could start now and that nobody is about to, most urgent first: those that they
-- depend on have succeeded. A review comes with the task that it is about.
SELECT tasks.id, tasks.revision, above.id FROM tasks
  LEFT JOIN reservations held ON held.task_key = tasks.key AND held.expires_at > :now
  LEFT JOIN tasks above ON above.key = tasks.qa_of_key
  LEFT JOIN reservations chain ON chain.task_key = above.key AND chain.expires_at > :now
  WHERE tasks.status = 'queued' AND tasks.not_before <= :now AND tasks.sealed_at IS NULL
  AND held.task_key IS NULL AND chain.task_key IS NULL AND NOT EXISTS (
    SELECT 1 FROM {needed} LEFT JOIN tasks other ON other.id = needed.value
    WHERE other.status IS NULL OR other.status <> 'succeeded')
  ORDER BY tasks.priority DESC, tasks.key LIMIT :n;

-- name: unmet_needs
-- What a task depends on that has not succeeded, and how it stands.
SELECT needed.value, other.status FROM tasks, {needed}
  LEFT JOIN tasks other ON other.id = needed.value
  WHERE tasks.key = :key AND (other.status IS NULL OR other.status <> 'succeeded');

-- name: held_back
-- Queued tasks whose time has not come, the first instant of them, and those that wait for others.
SELECT COALESCE(SUM(CASE WHEN tasks.not_before > :now THEN 1 ELSE 0 END), 0),
  MIN(CASE WHEN tasks.not_before > :now THEN tasks.not_before END),
  COALESCE(SUM(CASE WHEN tasks.not_before <= :now AND EXISTS (
    SELECT 1 FROM {needed} LEFT JOIN tasks other ON other.id = needed.value
    WHERE other.status IS NULL OR other.status <> 'succeeded') THEN 1 ELSE 0 END), 0)
  FROM tasks WHERE tasks.status = 'queued' AND tasks.sealed_at IS NULL;

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
  WHERE substr(reservations.holder, 1, length(:host)) = :host ORDER BY tasks.key;

-- name: insert_task
-- A new task; its open event stands already.
INSERT INTO tasks (key, id, title, goal, role, mode, status, revision, head, attempts_max,
    deferrals_max, qa_rounds_max, priority, parent_key, qa_of_key, created_by, contract,
    contract_digest, created_at, updated_at)
  VALUES (:key, :id, :title, :goal, :role, :mode, 'queued', 1, :head, :attempts_max,
    :deferrals_max, :qa_rounds_max, :priority, :parent_key, :qa_of_key, :created_by, :contract,
    :contract_digest, :now, :now)
  RETURNING {task};

-- name: note_task
-- An event that changes nothing else about its task; no index is touched.
UPDATE tasks SET revision = :revision + 1, head = :to_head, updated_at = :now
  WHERE key = :key AND status = :status AND fence = :fence AND revision = :revision
  RETURNING {task};

-- name: write_task
-- The only statement that moves a task. It names the status, fence and revision it comes from.
UPDATE tasks SET status = :to_status, mode = :mode, exit_reason = :exit_reason,
    exit_detail = :exit_detail, run_status = :run_status, verdict = :verdict, cell = :cell,
    silent = :silent, rescued = :rescued, overridden = :overridden, falsified = :falsified,
    sealed_at = :sealed_at, fence = :to_fence, revision = :revision + 1, head = :to_head, attempt = :attempt, attempts = :attempts,
    attempts_max = :attempts_max, deferrals = :deferrals, qa_rounds = :qa_rounds,
    not_before = :not_before, agent_key = :agent_key, acceptance = :acceptance,
    updated_at = :now, settled_at = :settled_at
  WHERE key = :key AND status = :status AND fence = :fence AND revision = :revision
  RETURNING {task};

-- name: insert_event
-- What was done, by whom, why; the triggers refuse one that is stale or leads nowhere.
INSERT INTO events (id, task_key, run_id, revision, at, level, event, from_status, to_status, actor,
    reason, fence, idempotency_key, data, hash)
  VALUES (:id, :task_key, :run_id, :revision, :at, :level, :event, :from_status, :to_status, :actor,
    :reason, :fence, :idempotency_key, :data, :hash);

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
    created_at)
  VALUES (:id, :task_key, :attempt, :fence, 'starting', :agent_key, :isolation, :base_digest,
    :facts, :now);

-- name: see_run
-- The process of a run was seen.
UPDATE runs SET status = :to_status, seen_at = COALESCE(seen_at, :now)
  WHERE key = :key AND exit_reason IS NULL RETURNING key;

-- name: end_run
-- How a run ended; only one that has not.
UPDATE runs SET status = :status, exit_reason = :exit_reason, exit_detail = :exit_detail,
    exit_code = :exit_code, signal = :signal, ended_by = :ended_by, verdict = :verdict,
    verdict_reason = :reason, cell = :cell, digest = :digest, usage = :usage, facts = :facts,
    ended_at = :now
  WHERE key = :key AND exit_reason IS NULL RETURNING key;

-- name: tell_run
-- What came to light about a run after others had ended it.
UPDATE runs SET facts = :facts WHERE key = :key AND exit_reason IS NOT NULL RETURNING key;

-- name: judge_run
-- What was found about an ended run.
UPDATE runs SET verdict = :verdict, level = :level, verdict_reason = :reason, cell = :cell,
    judged_at = :now
  WHERE key = :key AND exit_reason IS NOT NULL RETURNING key;

-- name: insert_lease
-- A supervisor owns a run for a while.
INSERT INTO leases (run_key, token, holder, boot, expires_at)
  VALUES ((SELECT key FROM runs WHERE id = :run), :token, :holder, :boot, :expires_at);

-- name: renew_lease
-- A heartbeat: only for the lease and fence that it names; the lease outlives the run's process
-- until its verdict is there.
UPDATE leases SET expires_at = :expires_at, boot = :boot, process = COALESCE(:process, process)
  WHERE token = :token AND run_key = (SELECT runs.key FROM runs
    JOIN tasks ON tasks.key = runs.task_key WHERE runs.id = :run
    AND tasks.fence = :fence AND tasks.sealed_at IS NULL)
  RETURNING run_key;

-- name: take_lease
-- Another supervisor takes over what a dead one left.
UPDATE leases SET token = :token, holder = :holder, boot = :boot, expires_at = :expires_at,
    stop_asked = ''
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
  WHERE substr(leases.holder, 1, length(:host)) = :host ORDER BY leases.run_key LIMIT :n;

-- name: lease
-- Who owns a run.
SELECT {lease} FROM leases WHERE leases.run_key = :run_key;

-- name: drop_lease
-- Nobody owns the run any more.
DELETE FROM leases WHERE run_key = :run_key;

-- name: leases_that_ran_out
-- Runs whose supervisor fell silent, or whose machine has started anew.
SELECT {lease}, runs.id, tasks.id, tasks.status, tasks.fence FROM leases
  JOIN runs ON runs.key = leases.run_key JOIN tasks ON tasks.key = runs.task_key
  WHERE leases.expires_at < :now OR leases.boot <> :boot
  ORDER BY leases.expires_at LIMIT :n;

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
      AND (runs.task_key = :task_key OR runs.task_key IN (SELECT qa.key FROM tasks qa
        WHERE qa.qa_of_key = :task_key AND (qa.sealed_at IS NOT NULL OR qa.status = 'blocked'
          OR qa.status NOT IN ({settled}))))
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
      AND (runs.task_key = :task_key OR runs.task_key IN (SELECT qa.key FROM tasks qa
        WHERE qa.qa_of_key = :task_key AND (qa.sealed_at IS NOT NULL OR qa.status = 'blocked'
          OR qa.status NOT IN ({settled}))))
    UNION SELECT agents.key FROM agents JOIN family ON agents.parent_key = family.key
      OR (agents.kind = 'agent' AND agents.session = (SELECT same.session FROM agents same
        WHERE same.key = family.key AND same.kind = 'agent')))
  SELECT runs.task_key FROM runs JOIN family ON runs.agent_key = family.key
    WHERE runs.exit_reason IS NULL
    OR runs.key = (SELECT MAX(r.key) FROM runs r WHERE r.agent_key = family.key)
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
SELECT tasks.id, runs.id, runs.status, runs.isolation, runs.facts, events.data,
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
-- The same of all that was terminated since an instant.
SELECT tasks.id, runs.id, runs.status, runs.isolation, runs.facts, events.data,
    CASE WHEN events.event = 'terminate' AND runs.attempt = tasks.attempt THEN 1 ELSE 0 END,
    runs.seen_at, runs.ended_at
  FROM runs JOIN tasks ON tasks.key = runs.task_key
  LEFT JOIN events ON events.task_key = tasks.key AND events.event IN ('terminate', 'seal')
  LEFT JOIN agents ON agents.key = runs.agent_key
  WHERE tasks.sealed_at >= :at OR agents.terminated_at >= :at ORDER BY runs.key;

-- name: doubtful_runs
-- The latest runs that have ended, with whether somebody saw the last of their processes go.
SELECT tasks.id, runs.id, runs.status, runs.isolation, runs.facts, NULL, 0, runs.seen_at,
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
  AND agents.session IS NOT NULL ORDER BY agents.key;

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

-- name: fenced_runs
-- Runs whose agent was terminated since an instant.
SELECT runs.id FROM agents JOIN runs ON runs.agent_key = agents.key
  WHERE agents.terminated_at IS NOT NULL AND agents.terminated_at >= :at ORDER BY runs.key;

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

-- name: agent_at_hand
-- What an agent has before it and behind it: unread messages, wake-ups, its last task, its parent.
SELECT (SELECT COUNT(*) FROM messages LEFT JOIN deliveries d ON d.message_key = messages.key
    WHERE messages.agent_key = :agent_key AND d.message_key IS NULL),
  (SELECT COUNT(*) FROM wakes WHERE wakes.agent_key = :agent_key
    AND wakes.state IN ('armed', 'ready')),
  (SELECT tasks.id FROM runs JOIN tasks ON tasks.key = runs.task_key
    WHERE runs.agent_key = :agent_key ORDER BY runs.key DESC LIMIT 1),
  (SELECT above.id FROM agents JOIN agents above ON above.key = agents.parent_key
    WHERE agents.key = :agent_key);

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
-- Something waits for a person; the same cause again only counts.
INSERT INTO inbox (id, cause, cell, severity, task_key, run_key, title, reason, next, times, state,
    created_at, updated_at)
  VALUES (:id, :cause, :cell, :severity, :task_key, :run_key, :title, :reason, :next, 1, 'open',
    :now, :now)
  ON CONFLICT (cause) WHERE state <> 'resolved' DO UPDATE SET times = inbox.times + 1,
    task_key = :task_key, run_key = :run_key, reason = :reason, severity = :severity,
    cell = :cell, next = :next, updated_at = :now, snoozed_until = NULL,
    state = CASE inbox.state WHEN 'snoozed' THEN 'open' ELSE inbox.state END;

-- name: count_more_of_cause
-- What a person has to look at happened so many times more.
UPDATE inbox SET times = times + :n WHERE cause = :cause AND state <> 'resolved';

-- name: cause_waiting
-- Whether something with this cause is not resolved yet.
SELECT inbox.key FROM inbox WHERE inbox.cause = :cause AND inbox.state <> 'resolved';

-- name: inbox_item_locked
-- One inbox item, held until the transaction ends.
SELECT {inbox} FROM inbox WHERE inbox.id = :id {lock};

-- name: write_inbox_item
-- A person dealt with an item.
UPDATE inbox SET state = :state, owner = :owner, snoozed_until = :snoozed_until,
    outcome = :outcome, updated_at = :now
  WHERE key = :key AND state <> 'resolved' RETURNING {inbox};

-- name: inbox_waiting
-- What waits for a person with one urgency, oldest first; a snoozed item waits until its time.
SELECT {inbox}, tasks.id FROM inbox JOIN tasks ON tasks.key = inbox.task_key
  WHERE inbox.severity = :severity AND inbox.state <> 'resolved'
  AND COALESCE(inbox.snoozed_until, 0) <= :now
  ORDER BY inbox.key LIMIT :n;

-- name: resolve_inbox_of_task
-- A task that moved on needs nobody for what it waited for; what others share stays open.
UPDATE inbox SET state = 'resolved', snoozed_until = NULL, outcome = :outcome, updated_at = :now
  WHERE task_key = :task_key AND state <> 'resolved'
  AND (times = 1 OR cause = cell || ':' || :task_id);

-- name: insert_token
-- A token; only the digest of its secret is kept.
INSERT INTO tokens (id, role, name, digest, task_key, run_key, fence, created_at, expires_at)
  VALUES (:id, :role, :name, :digest, :task_key, :run_key, :fence, :now, :expires_at)
  RETURNING {token};

-- name: token_by_digest
-- The token behind a secret, with the run and the fence that it is bound to.
SELECT {token}, runs.id, runs.exit_reason, tasks.fence, tasks.sealed_at FROM tokens
  LEFT JOIN runs ON runs.key = tokens.run_key LEFT JOIN tasks ON tasks.key = tokens.task_key
  WHERE tokens.digest = :digest;

-- name: token_by_name
-- A live token that goes by this name in this role.
SELECT id FROM tokens WHERE role = :role AND name = :name AND revoked_at IS NULL
  AND COALESCE(expires_at, :now + 1) > :now LIMIT 1;

-- name: tokens_all
-- Every token, newest first; never a secret.
SELECT {token} FROM tokens ORDER BY tokens.key DESC LIMIT 1000;

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
  WHERE agents.key IN (SELECT runs.agent_key FROM runs WHERE runs.task_key = :key)
  OR (agents.kind <> 'agent'
    AND agents.parent_key IN (SELECT runs.agent_key FROM runs WHERE runs.task_key = :key))
  ORDER BY agents.key;

-- name: latest_verdict
-- The level and sentence of one run of a task.
SELECT runs.task_key, runs.level, runs.verdict_reason FROM runs
  WHERE runs.task_key = :key AND runs.attempt = :attempt;

-- name: agent
-- One agent.
SELECT {agent} FROM agents WHERE agents.id = :id;

-- name: page
-- Tasks, newest first, by any filters.
SELECT {task} FROM tasks WHERE tasks.key < :before {filters} ORDER BY tasks.key DESC LIMIT :n;

-- name: filter_silent
-- Only silent failures.
tasks.silent = 1;

-- name: filter_not_silent
-- Everything but silent failures.
tasks.silent = 0;

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
-- Only what one agent worked at.
tasks.key IN (SELECT runs.task_key FROM runs JOIN agents ON agents.key = runs.agent_key
    WHERE agents.id = :agent);

-- name: filter_search
-- Only tasks with these words in title or goal.
{matches};

-- name: counters
-- How many tasks stand where.
SELECT status, cell, run_status, CAST(SUM(tasks) AS bigint) FROM counters
  GROUP BY status, cell, run_status HAVING SUM(tasks) <> 0 ORDER BY status, cell, run_status;

-- name: tallies
-- How many runs ended how since an hour, by cell, reason, mode and role.
SELECT cell, exit_reason, mode, role, CAST(SUM(runs) AS bigint) FROM tallies WHERE hour >= :hour
  GROUP BY cell, exit_reason, mode, role HAVING SUM(runs) <> 0
  ORDER BY cell, exit_reason, mode, role;

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
SELECT {event}, tasks.id FROM events LEFT JOIN tasks ON tasks.key = events.task_key
  WHERE {feed_after} ORDER BY {feed_order} LIMIT :n;

-- name: latest_events
-- The newest events, newest first.
SELECT {event}, tasks.id FROM events LEFT JOIN tasks ON tasks.key = events.task_key
  WHERE events.key < :before ORDER BY events.key DESC LIMIT :n;

-- name: all_tasks
-- Every task in order, for the doctor and for verification.
SELECT {task} FROM tasks WHERE tasks.key > :after ORDER BY tasks.key LIMIT :n;

-- name: counters_by_hand
-- What the counters should say.
SELECT status, COALESCE(cell, ''), COALESCE(run_status, ''), COUNT(*) FROM tasks
  GROUP BY status, COALESCE(cell, ''), COALESCE(run_status, '')
  ORDER BY status, COALESCE(cell, ''), COALESCE(run_status, '');

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

-- name: answers_given
-- How often somebody has said yes since an instant: approvals and acceptances.
SELECT COUNT(*) FROM events WHERE actor = :actor AND at > :since AND event IN ('resume', 'accept');

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
  ORDER BY tasks.key LIMIT :n;

-- name: undecided
-- Tasks that wait for a person's decision, with their terms.
SELECT {task}, tasks.contract FROM tasks WHERE tasks.status = 'needs_review'
  ORDER BY tasks.key LIMIT :n;

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
  AND (runs.ended_at, runs.key) <= (:to_at, :to_key)
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
