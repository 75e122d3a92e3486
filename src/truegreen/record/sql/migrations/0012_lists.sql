-- Lists, terminate and claims that stay quick as tasks become many.
--
-- Silent failures come first in every list, then what is newest. A place says both in one number,
-- and only these indexes know it: no database walks through all tasks by age in the hope to meet
-- enough that fit. For two columns the same sum is written the other way round, so that the index of
-- one of them is not taken instead.

DROP INDEX tasks_silent;
DROP INDEX tasks_silent_status;
DROP INDEX tasks_silent_exit_reason;
DROP INDEX tasks_silent_role;
DROP INDEX tasks_status;
DROP INDEX tasks_exit_reason;
DROP INDEX tasks_status_exit_reason;
DROP INDEX tasks_cell;
DROP INDEX tasks_role;

CREATE INDEX tasks_silent ON tasks (key) WHERE silent = 1;
CREATE INDEX tasks_status ON tasks (status, {place});
CREATE INDEX tasks_role ON tasks (role, {place});
CREATE INDEX tasks_role_status ON tasks (role, status, {place_of_two});

-- What has not ended is in none of these, and moves without them.
CREATE INDEX tasks_exit_reason ON tasks (exit_reason, {place}) WHERE exit_reason IS NOT NULL;
CREATE INDEX tasks_status_exit_reason ON tasks (status, exit_reason, {place_of_two})
  WHERE exit_reason IS NOT NULL;
CREATE INDEX tasks_cell ON tasks (cell, {place}) WHERE cell IS NOT NULL;
CREATE INDEX tasks_cell_exit_reason ON tasks (cell, exit_reason, {place_of_two})
  WHERE cell IS NOT NULL;

-- What an agent is at, and what it was at, newest task first.
CREATE INDEX runs_live_of_agent ON runs (agent_key, task_key)
  WHERE agent_key IS NOT NULL AND exit_reason IS NULL;
CREATE INDEX runs_tasks_of_agent ON runs (agent_key, task_key{then_key})
  WHERE agent_key IS NOT NULL;

-- Few of many: who is queued longest, what was sealed lately, what is told of ages and shares.
CREATE INDEX tasks_queued ON tasks (key) WHERE status = 'queued';
CREATE INDEX tasks_sealed ON tasks (sealed_at) WHERE sealed_at IS NOT NULL;
CREATE INDEX inbox_cause ON inbox (cause);
CREATE INDEX inbox_alerts ON inbox (key) WHERE state <> 'resolved'
  AND cell IN ('blocked_long', 'pending_long', 'unknown_share', 'queue_age', 'queue_depth');
