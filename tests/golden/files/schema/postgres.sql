TABLE agents
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  name text NOT NULL
  definition text NOT NULL
  session text
  parent_key bigint
  registered_by text NOT NULL
  status text NOT NULL
  terminated_at bigint
  created_at bigint NOT NULL
  updated_at bigint NOT NULL
  kind text NOT NULL DEFAULT 'agent'::text
  agents_check: CHECK (((status = 'terminated'::text) = (terminated_at IS NOT NULL)))
  agents_id_key: UNIQUE (id)
  agents_kind_check: CHECK ((kind = ANY (ARRAY['agent'::text, 'conversation'::text, 'subagent'::text, 'background'::text, 'wakeup'::text, 'cron'::text])))
  agents_parent_key_fkey: FOREIGN KEY (parent_key) REFERENCES agents(key)
  agents_pkey: PRIMARY KEY (key)
  agents_status_check: CHECK ((status = ANY ('{pending,in_progress,completed,error,terminated}'::text[])))
  agents_id_key: CREATE UNIQUE INDEX agents_id_key ON public.agents USING btree (id)
  agents_inside: CREATE UNIQUE INDEX agents_inside ON public.agents USING btree (parent_key, kind, session) WHERE ((kind <> 'agent'::text) AND (session IS NOT NULL))
  agents_name: CREATE INDEX agents_name ON public.agents USING btree (name, key)
  agents_parent: CREATE INDEX agents_parent ON public.agents USING btree (parent_key) WHERE (parent_key IS NOT NULL)
  agents_pkey: CREATE UNIQUE INDEX agents_pkey ON public.agents USING btree (key)
  agents_session: CREATE INDEX agents_session ON public.agents USING btree (session) WHERE (session IS NOT NULL)
  agents_terminated: CREATE INDEX agents_terminated ON public.agents USING btree (terminated_at) WHERE (terminated_at IS NOT NULL)
  agents_kept: CREATE TRIGGER agents_kept BEFORE UPDATE ON public.agents FOR EACH ROW EXECUTE FUNCTION truegreen_agents_kept()
  agents_no_delete: CREATE TRIGGER agents_no_delete BEFORE DELETE ON public.agents FOR EACH ROW EXECUTE FUNCTION truegreen_agents_no_delete()
  agents_no_truncate: CREATE TRIGGER agents_no_truncate BEFORE TRUNCATE ON public.agents FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  agents_registered: CREATE TRIGGER agents_registered BEFORE INSERT ON public.agents FOR EACH ROW EXECUTE FUNCTION truegreen_agents_registered()

SEQUENCE agents_key_seq

TABLE artifacts
  key bigint NOT NULL IDENTITY d
  run_key bigint NOT NULL
  name text NOT NULL
  sha256 text NOT NULL
  size bigint NOT NULL
  at bigint NOT NULL
  artifacts_pkey: PRIMARY KEY (key)
  artifacts_run_key_fkey: FOREIGN KEY (run_key) REFERENCES runs(key)
  artifacts_run_key_name_key: UNIQUE (run_key, name)
  artifacts_size_check: CHECK ((size >= 0))
  artifacts_pkey: CREATE UNIQUE INDEX artifacts_pkey ON public.artifacts USING btree (key)
  artifacts_run_key_name_key: CREATE UNIQUE INDEX artifacts_run_key_name_key ON public.artifacts USING btree (run_key, name)
  artifacts_no_delete: CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON public.artifacts FOR EACH ROW EXECUTE FUNCTION truegreen_artifacts_no_delete()
  artifacts_no_truncate: CREATE TRIGGER artifacts_no_truncate BEFORE TRUNCATE ON public.artifacts FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  artifacts_no_update: CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON public.artifacts FOR EACH ROW EXECUTE FUNCTION truegreen_artifacts_no_update()

SEQUENCE artifacts_key_seq

TABLE beats
  name text NOT NULL
  kind text NOT NULL
  host text NOT NULL
  began_at bigint NOT NULL
  at bigint NOT NULL
  ended_at bigint
  trouble text NOT NULL DEFAULT ''::text
  pinged_at bigint
  unsent text NOT NULL DEFAULT ''::text
  beats_pkey: PRIMARY KEY (name)
  beats_pkey: CREATE UNIQUE INDEX beats_pkey ON public.beats USING btree (name)

TABLE breakers
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  kind text NOT NULL
  subject text NOT NULL
  signature text NOT NULL
  name text NOT NULL
  trips bigint NOT NULL
  tried bigint NOT NULL DEFAULT 0
  opened_at bigint NOT NULL
  open_until bigint NOT NULL
  closed_at bigint
  closed_by text NOT NULL DEFAULT ''::text
  reason text NOT NULL DEFAULT ''::text
  breakers_id_key: UNIQUE (id)
  breakers_kind_check: CHECK ((kind = ANY (ARRAY['agent'::text, 'provider'::text, 'fleet'::text])))
  breakers_pkey: PRIMARY KEY (key)
  breakers_trips_check: CHECK ((trips >= 1))
  breakers_id_key: CREATE UNIQUE INDEX breakers_id_key ON public.breakers USING btree (id)
  breakers_open: CREATE UNIQUE INDEX breakers_open ON public.breakers USING btree (kind, subject, signature) WHERE (closed_at IS NULL)
  breakers_pkey: CREATE UNIQUE INDEX breakers_pkey ON public.breakers USING btree (key)
  breakers_kept: CREATE TRIGGER breakers_kept BEFORE UPDATE ON public.breakers FOR EACH ROW EXECUTE FUNCTION truegreen_breakers_kept()
  breakers_no_delete: CREATE TRIGGER breakers_no_delete BEFORE DELETE ON public.breakers FOR EACH ROW EXECUTE FUNCTION truegreen_breakers_no_delete()
  breakers_no_truncate: CREATE TRIGGER breakers_no_truncate BEFORE TRUNCATE ON public.breakers FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE breakers_key_seq

TABLE charges
  run_key bigint NOT NULL
  budget text NOT NULL
  subject text NOT NULL
  used bigint NOT NULL
  used_max bigint NOT NULL
  charges_budget_check: CHECK ((budget = ANY (ARRAY['reentries'::text, 'check_errors'::text])))
  charges_pkey: PRIMARY KEY (run_key, budget, subject)
  charges_run_key_fkey: FOREIGN KEY (run_key) REFERENCES runs(key)
  charges_used: CHECK (((used >= 0) AND (used <= used_max)))
  charges_pkey: CREATE UNIQUE INDEX charges_pkey ON public.charges USING btree (run_key, budget, subject)
  charges_kept: CREATE TRIGGER charges_kept BEFORE UPDATE ON public.charges FOR EACH ROW EXECUTE FUNCTION truegreen_charges_kept()
  charges_no_delete: CREATE TRIGGER charges_no_delete BEFORE DELETE ON public.charges FOR EACH ROW EXECUTE FUNCTION truegreen_charges_no_delete()
  charges_no_truncate: CREATE TRIGGER charges_no_truncate BEFORE TRUNCATE ON public.charges FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

TABLE claims
  key bigint NOT NULL IDENTITY d
  task_key bigint NOT NULL
  run_key bigint NOT NULL
  kind text NOT NULL
  reason text NOT NULL
  statements text NOT NULL
  extra text NOT NULL
  source text NOT NULL
  at bigint NOT NULL
  claims_kind_check: CHECK ((kind = ANY ('{done,failed,blocked,noop}'::text[])))
  claims_pkey: PRIMARY KEY (key)
  claims_run_key_fkey: FOREIGN KEY (run_key) REFERENCES runs(key)
  claims_run_key_key: UNIQUE (run_key)
  claims_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  claims_pkey: CREATE UNIQUE INDEX claims_pkey ON public.claims USING btree (key)
  claims_run_key_key: CREATE UNIQUE INDEX claims_run_key_key ON public.claims USING btree (run_key)
  claims_no_delete: CREATE TRIGGER claims_no_delete BEFORE DELETE ON public.claims FOR EACH ROW EXECUTE FUNCTION truegreen_claims_no_delete()
  claims_no_truncate: CREATE TRIGGER claims_no_truncate BEFORE TRUNCATE ON public.claims FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  claims_no_update: CREATE TRIGGER claims_no_update BEFORE UPDATE ON public.claims FOR EACH ROW EXECUTE FUNCTION truegreen_claims_no_update()

SEQUENCE claims_key_seq

TABLE conditions
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  task_key bigint NOT NULL
  kind text NOT NULL
  what text NOT NULL
  armed_by text NOT NULL
  created_at bigint NOT NULL
  met_at bigint
  met_by text NOT NULL DEFAULT ''::text
  fact text NOT NULL DEFAULT ''::text
  conditions_id_key: UNIQUE (id)
  conditions_kind_check: CHECK ((kind = ANY (ARRAY['message'::text, 'human'::text, 'file'::text])))
  conditions_met_by: CHECK (((met_at IS NULL) = (met_by = ''::text)))
  conditions_pkey: PRIMARY KEY (key)
  conditions_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  conditions_answered: CREATE INDEX conditions_answered ON public.conditions USING btree (met_by, met_at) WHERE (kind = 'human'::text)
  conditions_awaited: CREATE INDEX conditions_awaited ON public.conditions USING btree (kind, what, key) WHERE (met_at IS NULL)
  conditions_id_key: CREATE UNIQUE INDEX conditions_id_key ON public.conditions USING btree (id)
  conditions_open: CREATE UNIQUE INDEX conditions_open ON public.conditions USING btree (task_key, kind, what) WHERE (met_at IS NULL)
  conditions_pkey: CREATE UNIQUE INDEX conditions_pkey ON public.conditions USING btree (key)
  conditions_task: CREATE INDEX conditions_task ON public.conditions USING btree (task_key, key)
  conditions_armed: CREATE TRIGGER conditions_armed BEFORE INSERT ON public.conditions FOR EACH ROW EXECUTE FUNCTION truegreen_conditions_armed()
  conditions_kept: CREATE TRIGGER conditions_kept BEFORE UPDATE ON public.conditions FOR EACH ROW EXECUTE FUNCTION truegreen_conditions_kept()
  conditions_no_delete: CREATE TRIGGER conditions_no_delete BEFORE DELETE ON public.conditions FOR EACH ROW EXECUTE FUNCTION truegreen_conditions_no_delete()
  conditions_no_truncate: CREATE TRIGGER conditions_no_truncate BEFORE TRUNCATE ON public.conditions FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE conditions_key_seq

TABLE cooling
  outlet text NOT NULL
  topic text NOT NULL
  until bigint NOT NULL
  post_id text
  cooling_pkey: PRIMARY KEY (outlet, topic)
  cooling_pkey: CREATE UNIQUE INDEX cooling_pkey ON public.cooling USING btree (outlet, topic)

TABLE counters
  shard bigint NOT NULL
  run_status text NOT NULL
  status text NOT NULL
  cell text NOT NULL
  checked bigint NOT NULL
  tasks bigint NOT NULL
  counters_pkey: PRIMARY KEY (status, cell, run_status, checked, shard)
  counters_pkey: CREATE UNIQUE INDEX counters_pkey ON public.counters USING btree (status, cell, run_status, checked, shard)

TABLE deliveries
  message_key bigint NOT NULL
  run_id text NOT NULL
  at bigint NOT NULL
  deliveries_message_key_fkey: FOREIGN KEY (message_key) REFERENCES messages(key)
  deliveries_pkey: PRIMARY KEY (message_key)
  deliveries_pkey: CREATE UNIQUE INDEX deliveries_pkey ON public.deliveries USING btree (message_key)
  deliveries_no_delete: CREATE TRIGGER deliveries_no_delete BEFORE DELETE ON public.deliveries FOR EACH ROW EXECUTE FUNCTION truegreen_deliveries_no_delete()
  deliveries_no_truncate: CREATE TRIGGER deliveries_no_truncate BEFORE TRUNCATE ON public.deliveries FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  deliveries_no_update: CREATE TRIGGER deliveries_no_update BEFORE UPDATE ON public.deliveries FOR EACH ROW EXECUTE FUNCTION truegreen_deliveries_no_update()

TABLE demands
  task_key bigint NOT NULL
  labels text NOT NULL
  lane text
  definition text NOT NULL
  client text NOT NULL
  agent text NOT NULL DEFAULT ''::text
  host text
  folder_host text
  folder text
  demands_pkey: PRIMARY KEY (task_key)
  demands_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  demands_pkey: CREATE UNIQUE INDEX demands_pkey ON public.demands USING btree (task_key)
  demands_no_delete: CREATE TRIGGER demands_no_delete BEFORE DELETE ON public.demands FOR EACH ROW EXECUTE FUNCTION truegreen_demands_no_delete()
  demands_no_truncate: CREATE TRIGGER demands_no_truncate BEFORE TRUNCATE ON public.demands FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  demands_no_update: CREATE TRIGGER demands_no_update BEFORE UPDATE ON public.demands FOR EACH ROW EXECUTE FUNCTION truegreen_demands_no_update()

TABLE events
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  task_key bigint
  run_id text
  revision bigint NOT NULL
  at bigint NOT NULL
  level text NOT NULL
  event text NOT NULL
  from_status text
  to_status text
  actor text NOT NULL
  reason text NOT NULL
  fence bigint NOT NULL
  idempotency_key text
  data text NOT NULL
  hash bytea
  xact bigint NOT NULL DEFAULT ((pg_current_xact_id())::text)::bigint
  events_event_check: CHECK ((event = ANY ('{start,declare,fall_silent,pause,resume,block,retry,fail,review,chain,accept,unblock,reopen,cancel,terminate,open,seen,claim,findings,end,charge,adopt,seal,mode,agent,message,token,inbox}'::text[])))
  events_from_status_check: CHECK ((from_status = ANY ('{queued,running,awaiting_approval,pending_eval,failed_pending_eval,pending_qa,needs_review,blocked,succeeded,failed,canceled,terminated}'::text[])))
  events_id_key: UNIQUE (id)
  events_level_check: CHECK ((level = ANY ('{info,warn}'::text[])))
  events_pkey: PRIMARY KEY (key)
  events_to_status_check: CHECK ((to_status = ANY ('{queued,running,awaiting_approval,pending_eval,failed_pending_eval,pending_qa,needs_review,blocked,succeeded,failed,canceled,terminated}'::text[])))
  events_answers: CREATE INDEX events_answers ON public.events USING btree (actor, at) WHERE (event = ANY (ARRAY['resume'::text, 'accept'::text]))
  events_feed: CREATE INDEX events_feed ON public.events USING btree (xact, key)
  events_house_revision: CREATE UNIQUE INDEX events_house_revision ON public.events USING btree (revision) WHERE (task_key IS NULL)
  events_id_key: CREATE UNIQUE INDEX events_id_key ON public.events USING btree (id)
  events_idempotency_key: CREATE UNIQUE INDEX events_idempotency_key ON public.events USING btree (idempotency_key) WHERE (idempotency_key IS NOT NULL)
  events_pkey: CREATE UNIQUE INDEX events_pkey ON public.events USING btree (key)
  events_task_revision: CREATE UNIQUE INDEX events_task_revision ON public.events USING btree (task_key, revision) WHERE (task_key IS NOT NULL)
  events_again_metered: CREATE TRIGGER events_again_metered AFTER INSERT ON public.events FOR EACH ROW WHEN ((new.event = ANY (ARRAY['retry'::text, 'reopen'::text, 'unblock'::text]))) EXECUTE FUNCTION truegreen_events_again_metered()
  events_no_delete: CREATE TRIGGER events_no_delete BEFORE DELETE ON public.events FOR EACH ROW EXECUTE FUNCTION truegreen_events_no_delete()
  events_no_truncate: CREATE TRIGGER events_no_truncate BEFORE TRUNCATE ON public.events FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  events_no_update: CREATE TRIGGER events_no_update BEFORE UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION truegreen_events_no_update()
  events_true: CREATE TRIGGER events_true BEFORE INSERT ON public.events FOR EACH ROW EXECUTE FUNCTION truegreen_events_true()

SEQUENCE events_key_seq

TABLE findings
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  task_key bigint NOT NULL
  run_key bigint NOT NULL
  phase text NOT NULL
  check_name text NOT NULL
  kind text NOT NULL
  outcome text NOT NULL
  before text
  level text NOT NULL
  score double precision
  counts text NOT NULL
  reason text NOT NULL
  evidence text NOT NULL
  digest text NOT NULL
  contract_digest text NOT NULL
  judge text NOT NULL
  judged text NOT NULL
  isolation text NOT NULL
  duration_us bigint NOT NULL
  binding bigint NOT NULL
  at bigint NOT NULL
  findings_before_check: CHECK ((before = ANY ('{passed,failed,inconclusive,skipped}'::text[])))
  findings_binding_check: CHECK ((binding = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  findings_id_key: UNIQUE (id)
  findings_level_check: CHECK ((level = ANY ('{A0,A1,A2,A3,A4}'::text[])))
  findings_outcome_check: CHECK ((outcome = ANY ('{passed,failed,inconclusive,skipped}'::text[])))
  findings_phase_check: CHECK ((phase = ANY ('{baseline,after,review}'::text[])))
  findings_pkey: PRIMARY KEY (key)
  findings_run_key_fkey: FOREIGN KEY (run_key) REFERENCES runs(key)
  findings_score_check: CHECK (((score >= (0)::double precision) AND (score <= (1)::double precision)))
  findings_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  findings_id_key: CREATE UNIQUE INDEX findings_id_key ON public.findings USING btree (id)
  findings_pkey: CREATE UNIQUE INDEX findings_pkey ON public.findings USING btree (key)
  findings_run: CREATE INDEX findings_run ON public.findings USING btree (run_key)
  findings_metered: CREATE TRIGGER findings_metered AFTER INSERT ON public.findings FOR EACH ROW EXECUTE FUNCTION truegreen_findings_metered()
  findings_no_delete: CREATE TRIGGER findings_no_delete BEFORE DELETE ON public.findings FOR EACH ROW EXECUTE FUNCTION truegreen_findings_no_delete()
  findings_no_truncate: CREATE TRIGGER findings_no_truncate BEFORE TRUNCATE ON public.findings FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  findings_no_update: CREATE TRIGGER findings_no_update BEFORE UPDATE ON public.findings FOR EACH ROW EXECUTE FUNCTION truegreen_findings_no_update()
  findings_unavailable_metered: CREATE TRIGGER findings_unavailable_metered AFTER INSERT ON public.findings FOR EACH ROW WHEN (((new.kind = 'evaluator'::text) AND (new.outcome = 'inconclusive'::text) AND (substr(new.reason, 1, 21) = 'evaluator_unavailable'::text))) EXECUTE FUNCTION truegreen_findings_unavailable_metered()

SEQUENCE findings_key_seq

TABLE folder_turns
  host text NOT NULL
  turns bigint NOT NULL
  folder_turns_pkey: PRIMARY KEY (host)
  folder_turns_pkey: CREATE UNIQUE INDEX folder_turns_pkey ON public.folder_turns USING btree (host)

TABLE folds
  outlet text NOT NULL
  subject text NOT NULL
  at bigint NOT NULL
  folds_pkey: PRIMARY KEY (outlet, subject)
  folds_pkey: CREATE UNIQUE INDEX folds_pkey ON public.folds USING btree (outlet, subject)

TABLE honesty
  definition text NOT NULL
  outcome text NOT NULL
  shard bigint NOT NULL
  statements bigint NOT NULL
  honesty_pkey: PRIMARY KEY (definition, outcome, shard)
  honesty_pkey: CREATE UNIQUE INDEX honesty_pkey ON public.honesty USING btree (definition, outcome, shard)

TABLE house
  key bigint NOT NULL
  id text NOT NULL
  revision bigint NOT NULL
  head bytea NOT NULL
  house_key_check: CHECK ((key = 1))
  house_pkey: PRIMARY KEY (key)
  house_pkey: CREATE UNIQUE INDEX house_pkey ON public.house USING btree (key)

TABLE inbox
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  cause text NOT NULL
  cell text NOT NULL
  severity text NOT NULL
  task_key bigint NOT NULL
  run_key bigint
  title text NOT NULL
  reason text NOT NULL
  next text NOT NULL
  times bigint NOT NULL
  state text NOT NULL
  owner text NOT NULL DEFAULT ''::text
  snoozed_until bigint
  outcome text
  created_at bigint NOT NULL
  updated_at bigint NOT NULL
  topic text NOT NULL DEFAULT ''::text
  whole_topic bigint NOT NULL DEFAULT 0
  open_since bigint NOT NULL DEFAULT 0
  closed_by text NOT NULL DEFAULT ''::text
  quiet_until bigint NOT NULL DEFAULT 0
  inbox_check: CHECK (((state = 'resolved'::text) = (outcome IS NOT NULL)))
  inbox_check1: CHECK (((state = 'snoozed'::text) = (snoozed_until IS NOT NULL)))
  inbox_id_key: UNIQUE (id)
  inbox_pkey: PRIMARY KEY (key)
  inbox_run_key_fkey: FOREIGN KEY (run_key) REFERENCES runs(key)
  inbox_severity_check: CHECK ((severity = ANY ('{critical,high,normal}'::text[])))
  inbox_state_check: CHECK ((state = ANY ('{open,acked,snoozed,resolved}'::text[])))
  inbox_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  inbox_whole_topic_check: CHECK ((whole_topic = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  inbox_alerts: CREATE INDEX inbox_alerts ON public.inbox USING btree (key) WHERE ((state <> 'resolved'::text) AND (cell = ANY (ARRAY['blocked_long'::text, 'pending_long'::text, 'unknown_share'::text, 'queue_age'::text, 'queue_depth'::text])))
  inbox_cause: CREATE INDEX inbox_cause ON public.inbox USING btree (cause)
  inbox_id_key: CREATE UNIQUE INDEX inbox_id_key ON public.inbox USING btree (id)
  inbox_open_cause: CREATE UNIQUE INDEX inbox_open_cause ON public.inbox USING btree (cause) WHERE (state <> 'resolved'::text)
  inbox_pkey: CREATE UNIQUE INDEX inbox_pkey ON public.inbox USING btree (key)
  inbox_quiet: CREATE INDEX inbox_quiet ON public.inbox USING btree (quiet_until) WHERE (quiet_until > 0)
  inbox_snoozed: CREATE INDEX inbox_snoozed ON public.inbox USING btree (snoozed_until) WHERE (state = 'snoozed'::text)
  inbox_task: CREATE INDEX inbox_task ON public.inbox USING btree (task_key)
  inbox_topic: CREATE INDEX inbox_topic ON public.inbox USING btree (topic) WHERE (state <> 'resolved'::text)
  inbox_unread: CREATE INDEX inbox_unread ON public.inbox USING btree (severity, key) WHERE ((state <> 'resolved'::text) AND (state <> 'acked'::text))
  inbox_waiting: CREATE INDEX inbox_waiting ON public.inbox USING btree (severity, key) WHERE (state <> 'resolved'::text)
  inbox_kept: CREATE TRIGGER inbox_kept BEFORE UPDATE ON public.inbox FOR EACH ROW EXECUTE FUNCTION truegreen_inbox_kept()
  inbox_metered: CREATE TRIGGER inbox_metered AFTER INSERT ON public.inbox FOR EACH ROW EXECUTE FUNCTION truegreen_inbox_metered()
  inbox_moved_metered: CREATE TRIGGER inbox_moved_metered AFTER UPDATE ON public.inbox FOR EACH ROW WHEN (((new.state <> old.state) OR (new.severity <> old.severity))) EXECUTE FUNCTION truegreen_inbox_moved_metered()
  inbox_no_delete: CREATE TRIGGER inbox_no_delete BEFORE DELETE ON public.inbox FOR EACH ROW EXECUTE FUNCTION truegreen_inbox_no_delete()
  inbox_no_truncate: CREATE TRIGGER inbox_no_truncate BEFORE TRUNCATE ON public.inbox FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE inbox_key_seq

TABLE jobs
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  task_key bigint NOT NULL
  attempt bigint NOT NULL
  engine text NOT NULL
  handle text NOT NULL DEFAULT ''::text
  state text NOT NULL
  holder text NOT NULL DEFAULT ''::text
  word text NOT NULL
  said text NOT NULL DEFAULT ''::text
  gone_at bigint
  created_at bigint NOT NULL
  looked_at bigint
  updated_at bigint NOT NULL
  jobs_id_key: UNIQUE (id)
  jobs_pkey: PRIMARY KEY (key)
  jobs_state_check: CHECK ((state = ANY (ARRAY['placed'::text, 'taken'::text, 'lost'::text, 'over'::text])))
  jobs_taken_by: CHECK (((state <> 'taken'::text) OR (holder <> ''::text)))
  jobs_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  jobs_word_check: CHECK ((word = ANY (ARRAY['queued'::text, 'running'::text, 'gone'::text, 'unknown'::text])))
  jobs_id_key: CREATE UNIQUE INDEX jobs_id_key ON public.jobs USING btree (id)
  jobs_open: CREATE INDEX jobs_open ON public.jobs USING btree (engine, key) WHERE (state = ANY (ARRAY['placed'::text, 'taken'::text]))
  jobs_pkey: CREATE UNIQUE INDEX jobs_pkey ON public.jobs USING btree (key)
  jobs_task: CREATE INDEX jobs_task ON public.jobs USING btree (task_key, key)
  jobs_kept: CREATE TRIGGER jobs_kept BEFORE UPDATE ON public.jobs FOR EACH ROW EXECUTE FUNCTION truegreen_jobs_kept()
  jobs_no_delete: CREATE TRIGGER jobs_no_delete BEFORE DELETE ON public.jobs FOR EACH ROW EXECUTE FUNCTION truegreen_jobs_no_delete()
  jobs_no_truncate: CREATE TRIGGER jobs_no_truncate BEFORE TRUNCATE ON public.jobs FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE jobs_key_seq

TABLE leases
  run_key bigint NOT NULL
  token text NOT NULL
  holder text NOT NULL
  boot text NOT NULL
  expires_at bigint NOT NULL
  process text NOT NULL DEFAULT '{}'::text
  stop_asked text NOT NULL DEFAULT ''::text
  active_at bigint
  lasts bigint NOT NULL DEFAULT 60000000
  folder_host text NOT NULL DEFAULT ''::text
  folder text NOT NULL DEFAULT ''::text
  leases_pkey: PRIMARY KEY (run_key)
  leases_run_key_fkey: FOREIGN KEY (run_key) REFERENCES runs(key)
  leases_boot: CREATE INDEX leases_boot ON public.leases USING btree (boot) WHERE (boot <> ''::text)
  leases_expiry: CREATE INDEX leases_expiry ON public.leases USING btree (expires_at)
  leases_folder: CREATE INDEX leases_folder ON public.leases USING btree (folder_host) WHERE (folder <> ''::text)
  leases_pkey: CREATE UNIQUE INDEX leases_pkey ON public.leases USING btree (run_key)
  leases_folder_free: CREATE TRIGGER leases_folder_free AFTER INSERT ON public.leases FOR EACH ROW WHEN ((new.folder <> ''::text)) EXECUTE FUNCTION truegreen_leases_folder_free()
  leases_folder_kept: CREATE TRIGGER leases_folder_kept AFTER UPDATE ON public.leases FOR EACH ROW WHEN (((new.folder <> ''::text) AND ((old.boot <> new.boot) OR (old.expires_at < (new.expires_at - new.lasts)) OR (old.folder <> new.folder) OR (old.folder_host <> new.folder_host)))) EXECUTE FUNCTION truegreen_leases_folder_kept()
  leases_folder_late_turn: CREATE TRIGGER leases_folder_late_turn BEFORE UPDATE ON public.leases FOR EACH ROW WHEN (((new.folder <> ''::text) AND ((old.boot <> new.boot) OR (old.expires_at < (new.expires_at - new.lasts)) OR (old.folder <> new.folder) OR (old.folder_host <> new.folder_host)))) EXECUTE FUNCTION truegreen_leases_folder_late_turn()
  leases_folder_turn: CREATE TRIGGER leases_folder_turn BEFORE INSERT ON public.leases FOR EACH ROW WHEN ((new.folder <> ''::text)) EXECUTE FUNCTION truegreen_leases_folder_turn()

TABLE limits
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  file text NOT NULL
  hours bigint NOT NULL
  agent text NOT NULL
  label text NOT NULL
  cost bigint
  tokens bigint
  runs bigint
  turns bigint NOT NULL DEFAULT 0
  stated bigint NOT NULL DEFAULT 0
  limits_check: CHECK (((cost IS NOT NULL) OR (tokens IS NOT NULL) OR (runs IS NOT NULL)))
  limits_cost_check: CHECK ((cost > 0))
  limits_file_hours_agent_label_key: UNIQUE (file, hours, agent, label)
  limits_hours_check: CHECK ((hours = ANY (ARRAY[(1)::bigint, (24)::bigint])))
  limits_id_key: UNIQUE (id)
  limits_pkey: PRIMARY KEY (key)
  limits_runs_check: CHECK ((runs > 0))
  limits_tokens_check: CHECK ((tokens > 0))
  limits_file_hours_agent_label_key: CREATE UNIQUE INDEX limits_file_hours_agent_label_key ON public.limits USING btree (file, hours, agent, label)
  limits_id_key: CREATE UNIQUE INDEX limits_id_key ON public.limits USING btree (id)
  limits_pkey: CREATE UNIQUE INDEX limits_pkey ON public.limits USING btree (key)
  limits_dropped: CREATE TRIGGER limits_dropped BEFORE DELETE ON public.limits FOR EACH ROW EXECUTE FUNCTION truegreen_limits_dropped()
  limits_kept: CREATE TRIGGER limits_kept BEFORE UPDATE ON public.limits FOR EACH ROW EXECUTE FUNCTION truegreen_limits_kept()
  limits_no_truncate: CREATE TRIGGER limits_no_truncate BEFORE TRUNCATE ON public.limits FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE limits_key_seq

TABLE messages
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  agent_key bigint NOT NULL
  sender text NOT NULL
  body text NOT NULL
  disposition text NOT NULL
  idempotency_key text
  at bigint NOT NULL
  messages_agent_key_fkey: FOREIGN KEY (agent_key) REFERENCES agents(key)
  messages_disposition_check: CHECK ((disposition = ANY ('{delivered,queued_for_resume,duplicate}'::text[])))
  messages_id_key: UNIQUE (id)
  messages_idempotency_key_key: UNIQUE (idempotency_key)
  messages_pkey: PRIMARY KEY (key)
  messages_agent: CREATE INDEX messages_agent ON public.messages USING btree (agent_key, key)
  messages_id_key: CREATE UNIQUE INDEX messages_id_key ON public.messages USING btree (id)
  messages_idempotency_key_key: CREATE UNIQUE INDEX messages_idempotency_key_key ON public.messages USING btree (idempotency_key)
  messages_pkey: CREATE UNIQUE INDEX messages_pkey ON public.messages USING btree (key)
  messages_heard: CREATE TRIGGER messages_heard BEFORE INSERT ON public.messages FOR EACH ROW EXECUTE FUNCTION truegreen_messages_heard()
  messages_kept: CREATE TRIGGER messages_kept BEFORE UPDATE ON public.messages FOR EACH ROW EXECUTE FUNCTION truegreen_messages_kept()
  messages_no_delete: CREATE TRIGGER messages_no_delete BEFORE DELETE ON public.messages FOR EACH ROW EXECUTE FUNCTION truegreen_messages_no_delete()
  messages_no_truncate: CREATE TRIGGER messages_no_truncate BEFORE TRUNCATE ON public.messages FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE messages_key_seq

TABLE meters
  name text NOT NULL
  label text NOT NULL
  shard bigint NOT NULL
  total bigint NOT NULL
  meters_pkey: PRIMARY KEY (name, label, shard)
  meters_pkey: CREATE UNIQUE INDEX meters_pkey ON public.meters USING btree (name, label, shard)

TABLE occurrences
  key bigint NOT NULL IDENTITY d
  routine_key bigint NOT NULL
  slot text NOT NULL
  generation bigint NOT NULL DEFAULT 0
  first_at bigint NOT NULL
  due_at bigint NOT NULL
  times bigint NOT NULL DEFAULT 1
  state text NOT NULL
  cause text NOT NULL
  task_key bigint
  actor text NOT NULL
  at bigint NOT NULL
  updated_at bigint NOT NULL
  occurrences_pkey: PRIMARY KEY (key)
  occurrences_routine_key_fkey: FOREIGN KEY (routine_key) REFERENCES routines(key)
  occurrences_slot: UNIQUE (routine_key, slot)
  occurrences_state_check: CHECK ((state = ANY (ARRAY['fired'::text, 'skipped'::text, 'missed'::text, 'waiting'::text])))
  occurrences_task: CHECK (((state = ANY (ARRAY['fired'::text, 'missed'::text])) = (task_key IS NOT NULL)))
  occurrences_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  occurrences_times: CHECK (((times = 1) OR (state = 'missed'::text)))
  occurrences_times_check: CHECK ((times > 0))
  occurrences_missed: CREATE INDEX occurrences_missed ON public.occurrences USING btree (routine_key) WHERE (state = 'missed'::text)
  occurrences_of_routine: CREATE INDEX occurrences_of_routine ON public.occurrences USING btree (routine_key, key)
  occurrences_of_task: CREATE UNIQUE INDEX occurrences_of_task ON public.occurrences USING btree (task_key) WHERE (task_key IS NOT NULL)
  occurrences_pkey: CREATE UNIQUE INDEX occurrences_pkey ON public.occurrences USING btree (key)
  occurrences_slot: CREATE UNIQUE INDEX occurrences_slot ON public.occurrences USING btree (routine_key, slot)
  occurrences_waiting: CREATE INDEX occurrences_waiting ON public.occurrences USING btree (routine_key, key) WHERE (state = 'waiting'::text)
  occurrences_kept: CREATE TRIGGER occurrences_kept BEFORE UPDATE ON public.occurrences FOR EACH ROW EXECUTE FUNCTION truegreen_occurrences_kept()
  occurrences_no_delete: CREATE TRIGGER occurrences_no_delete BEFORE DELETE ON public.occurrences FOR EACH ROW EXECUTE FUNCTION truegreen_occurrences_no_delete()
  occurrences_no_truncate: CREATE TRIGGER occurrences_no_truncate BEFORE TRUNCATE ON public.occurrences FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE occurrences_key_seq

TABLE outlets
  name text NOT NULL
  xact bigint NOT NULL
  event_key bigint NOT NULL
  at bigint NOT NULL
  outlets_pkey: PRIMARY KEY (name)
  outlets_pkey: CREATE UNIQUE INDEX outlets_pkey ON public.outlets USING btree (name)

TABLE pins
  file text NOT NULL
  reach text NOT NULL
  run_key bigint NOT NULL
  actor text NOT NULL
  at bigint NOT NULL
  pins_pkey: PRIMARY KEY (file)
  pins_pkey: CREATE UNIQUE INDEX pins_pkey ON public.pins USING btree (file)

TABLE policies
  kind text NOT NULL
  after bigint NOT NULL
  within bigint NOT NULL
  pause bigint NOT NULL
  most bigint NOT NULL
  file text NOT NULL DEFAULT ''::text
  stated bigint NOT NULL DEFAULT 0
  policies_after_check: CHECK (((after >= 2) AND (after <= 100)))
  policies_check: CHECK (((pause >= 1000000) AND (pause <= most)))
  policies_kind_check: CHECK ((kind = ANY (ARRAY['agent'::text, 'provider'::text, 'fleet'::text])))
  policies_most_check: CHECK ((most <= '86400000000'::bigint))
  policies_pkey: PRIMARY KEY (kind)
  policies_within_check: CHECK (((within >= 1000000) AND (within <= '86400000000'::bigint)))
  policies_pkey: CREATE UNIQUE INDEX policies_pkey ON public.policies USING btree (kind)
  policies_kept: CREATE TRIGGER policies_kept BEFORE UPDATE ON public.policies FOR EACH ROW EXECUTE FUNCTION truegreen_policies_kept()
  policies_no_delete: CREATE TRIGGER policies_no_delete BEFORE DELETE ON public.policies FOR EACH ROW EXECUTE FUNCTION truegreen_policies_no_delete()
  policies_no_truncate: CREATE TRIGGER policies_no_truncate BEFORE TRUNCATE ON public.policies FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

TABLE posts
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  outlet text NOT NULL
  subject text NOT NULL
  task_id text
  body text NOT NULL
  state text NOT NULL
  tries bigint NOT NULL DEFAULT 0
  due_at bigint NOT NULL
  error text NOT NULL DEFAULT ''::text
  created_at bigint NOT NULL
  updated_at bigint NOT NULL
  posts_id_key: UNIQUE (id)
  posts_outlet_subject_key: UNIQUE (outlet, subject)
  posts_pkey: PRIMARY KEY (key)
  posts_state_check: CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'given_up'::text, 'unsaid'::text])))
  posts_due: CREATE INDEX posts_due ON public.posts USING btree (due_at, key) WHERE (state = 'waiting'::text)
  posts_given_up: CREATE INDEX posts_given_up ON public.posts USING btree (outlet) WHERE (state = 'given_up'::text)
  posts_id_key: CREATE UNIQUE INDEX posts_id_key ON public.posts USING btree (id)
  posts_in_turn: CREATE INDEX posts_in_turn ON public.posts USING btree (outlet, task_id, key) WHERE (state = 'waiting'::text)
  posts_outlet_subject_key: CREATE UNIQUE INDEX posts_outlet_subject_key ON public.posts USING btree (outlet, subject)
  posts_past: CREATE INDEX posts_past ON public.posts USING btree (updated_at) WHERE (state = ANY (ARRAY['sent'::text, 'unsaid'::text]))
  posts_pkey: CREATE UNIQUE INDEX posts_pkey ON public.posts USING btree (key)
  posts_silent: CREATE INDEX posts_silent ON public.posts USING btree (task_id, key) WHERE (state = ANY (ARRAY['given_up'::text, 'unsaid'::text]))
  posts_unsaid: CREATE INDEX posts_unsaid ON public.posts USING btree (outlet, key) WHERE (state = 'unsaid'::text)

SEQUENCE posts_key_seq

TABLE probes
  breaker_key bigint NOT NULL
  run_id text NOT NULL
  probes_breaker_key_fkey: FOREIGN KEY (breaker_key) REFERENCES breakers(key)
  probes_pkey: PRIMARY KEY (breaker_key)
  probes_pkey: CREATE UNIQUE INDEX probes_pkey ON public.probes USING btree (breaker_key)
  probes_run: CREATE INDEX probes_run ON public.probes USING btree (run_id)
  probes_begun: CREATE TRIGGER probes_begun BEFORE INSERT ON public.probes FOR EACH ROW EXECUTE FUNCTION truegreen_probes_begun()
  probes_no_truncate: CREATE TRIGGER probes_no_truncate BEFORE TRUNCATE ON public.probes FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  probes_no_update: CREATE TRIGGER probes_no_update BEFORE UPDATE ON public.probes FOR EACH ROW EXECUTE FUNCTION truegreen_probes_no_update()
  probes_over: CREATE TRIGGER probes_over BEFORE DELETE ON public.probes FOR EACH ROW EXECUTE FUNCTION truegreen_probes_over()

TABLE refusals
  key bigint NOT NULL IDENTITY d
  task_key bigint
  run_id text NOT NULL
  verb text NOT NULL
  code text NOT NULL
  actor text NOT NULL
  message text NOT NULL
  evidence text NOT NULL
  times bigint NOT NULL
  first_at bigint NOT NULL
  last_at bigint NOT NULL
  refusals_pkey: PRIMARY KEY (key)
  refusals_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  refusals_pkey: CREATE UNIQUE INDEX refusals_pkey ON public.refusals USING btree (key)
  refusals_same: CREATE UNIQUE INDEX refusals_same ON public.refusals USING btree (COALESCE(task_key, (0)::bigint), run_id, verb, code, actor)
  refusals_task: CREATE INDEX refusals_task ON public.refusals USING btree (task_key, key)
  refusals_again_metered: CREATE TRIGGER refusals_again_metered AFTER UPDATE ON public.refusals FOR EACH ROW EXECUTE FUNCTION truegreen_refusals_again_metered()
  refusals_metered: CREATE TRIGGER refusals_metered AFTER INSERT ON public.refusals FOR EACH ROW EXECUTE FUNCTION truegreen_refusals_metered()
  refusals_no_delete: CREATE TRIGGER refusals_no_delete BEFORE DELETE ON public.refusals FOR EACH ROW EXECUTE FUNCTION truegreen_refusals_no_delete()
  refusals_no_truncate: CREATE TRIGGER refusals_no_truncate BEFORE TRUNCATE ON public.refusals FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE refusals_key_seq

TABLE requests
  actor text NOT NULL
  request_key text NOT NULL
  fingerprint text NOT NULL
  at bigint NOT NULL
  requests_pkey: PRIMARY KEY (actor, request_key)
  requests_old: CREATE INDEX requests_old ON public.requests USING btree (at)
  requests_pkey: CREATE UNIQUE INDEX requests_pkey ON public.requests USING btree (actor, request_key)

TABLE reservations
  task_key bigint NOT NULL
  holder text NOT NULL
  expires_at bigint NOT NULL
  reservations_pkey: PRIMARY KEY (task_key)
  reservations_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  reservations_pkey: CREATE UNIQUE INDEX reservations_pkey ON public.reservations USING btree (task_key)

TABLE routines
  key bigint NOT NULL IDENTITY d
  name text NOT NULL
  kind text NOT NULL
  settings text NOT NULL
  contract text NOT NULL
  digest text NOT NULL
  source text NOT NULL
  paused_by text NOT NULL DEFAULT ''::text
  paused_at bigint
  next_at bigint
  generation bigint NOT NULL DEFAULT 0
  iteration bigint NOT NULL DEFAULT 0
  failures bigint NOT NULL DEFAULT 0
  task_key bigint
  ended text
  ended_at bigint
  gone_at bigint
  revision bigint NOT NULL DEFAULT 1
  created_at bigint NOT NULL
  updated_at bigint NOT NULL
  routines_cycle: CHECK (((kind = 'cycle'::text) OR (ended IS NULL)))
  routines_ended: CHECK (((ended IS NULL) = (ended_at IS NULL)))
  routines_kind_check: CHECK ((kind = ANY (ARRAY['schedule'::text, 'cycle'::text])))
  routines_name: UNIQUE (name)
  routines_next: CHECK (((kind = 'schedule'::text) OR (next_at IS NULL)))
  routines_paused: CHECK (((paused_at IS NULL) = (paused_by = ''::text)))
  routines_pkey: PRIMARY KEY (key)
  routines_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  routines_name: CREATE UNIQUE INDEX routines_name ON public.routines USING btree (name)
  routines_pkey: CREATE UNIQUE INDEX routines_pkey ON public.routines USING btree (key)
  routines_kept: CREATE TRIGGER routines_kept BEFORE UPDATE ON public.routines FOR EACH ROW EXECUTE FUNCTION truegreen_routines_kept()
  routines_no_delete: CREATE TRIGGER routines_no_delete BEFORE DELETE ON public.routines FOR EACH ROW EXECUTE FUNCTION truegreen_routines_no_delete()
  routines_no_truncate: CREATE TRIGGER routines_no_truncate BEFORE TRUNCATE ON public.routines FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE routines_key_seq

TABLE runs
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  task_key bigint NOT NULL
  attempt bigint NOT NULL
  fence bigint NOT NULL
  status text NOT NULL
  exit_reason text
  exit_detail text
  exit_code bigint
  signal bigint
  ended_by text
  agent_key bigint
  isolation text NOT NULL DEFAULT ''::text
  verdict text NOT NULL DEFAULT 'unknown'::text
  level text
  verdict_reason text NOT NULL DEFAULT ''::text
  cell text
  base_digest text NOT NULL DEFAULT ''::text
  digest text NOT NULL DEFAULT ''::text
  usage text NOT NULL DEFAULT '{}'::text
  facts text NOT NULL DEFAULT '{}'::text
  created_at bigint NOT NULL
  seen_at bigint
  ended_at bigint
  judged_at bigint
  standing text NOT NULL DEFAULT 'unchecked'::text
  lane text
  cost bigint NOT NULL DEFAULT 0
  tokens bigint NOT NULL DEFAULT 0
  cost_granted bigint NOT NULL DEFAULT 10000
  tokens_granted bigint NOT NULL DEFAULT 1
  required_level text
  proof text NOT NULL DEFAULT ''::text
  admission text NOT NULL DEFAULT ''::text
  folder_host text NOT NULL DEFAULT ''::text
  folder text NOT NULL DEFAULT ''::text
  processes text NOT NULL DEFAULT 'unknown'::text
  runs_agent_key_fkey: FOREIGN KEY (agent_key) REFERENCES agents(key)
  runs_cell: CHECK (((cell IS NULL) = (exit_reason IS NULL)))
  runs_cell_check: CHECK ((cell = ANY ('{true_green,silent_failure,reported_failure,undecided,unverified,awaiting_verdict,rescued,failed,outage,rescue_under_way,finished_at_the_cap,cap_hit,kept,stopped,blocked}'::text[])))
  runs_cost_check: CHECK ((cost >= 0))
  runs_ended_at: CHECK (((ended_at IS NULL) = (exit_reason IS NULL)))
  runs_ended_by: CHECK (((ended_by IS NULL) = (exit_reason IS NULL)))
  runs_ended_by_check: CHECK ((ended_by = ANY ('{agent,cap,operator,lead,supervisor,machine}'::text[])))
  runs_ends: CHECK ((((exit_reason || '/'::text) || status) = ANY ('{done/exited,max_iterations/capped,blocked/exited,blocked/crashed,blocked/stopped,blocked/lost,fatal_error/crashed,fatal_error/lost,fatal_error/missed,user_cancelled/stopped,user_cancelled/terminated,unknown/exited,unknown/crashed,unknown/missed}'::text[])))
  runs_exit_pair: CHECK ((((exit_reason IS NULL) = (exit_detail IS NULL)) AND (((exit_reason || '/'::text) || exit_detail) = ANY ('{done/completed,done/declared_failure,done/noop,max_iterations/turn_cap,max_iterations/time_cap,max_iterations/idle_cap,max_iterations/cost_cap,max_iterations/token_cap,max_iterations/context_cap,max_iterations/reentry_cap,blocked/approval_checkpoint,blocked/approval_expired,blocked/permission_denied,blocked/egress_denied,blocked/connector_missing,blocked/refused,blocked/input_needed,fatal_error/agent_error,fatal_error/launch_failed,fatal_error/signaled,fatal_error/oom,fatal_error/process_lost,fatal_error/zero_output,fatal_error/provider_error,fatal_error/rate_limited,fatal_error/auth_invalid,fatal_error/disk_full,fatal_error/config_invalid,fatal_error/supervisor_crashed,fatal_error/supervisor_restarted,user_cancelled/stopped,user_cancelled/canceled,user_cancelled/terminated,user_cancelled/superseded,unknown/unclaimed,unknown/unclassified}'::text[]))))
  runs_exit_reason_check: CHECK ((exit_reason = ANY ('{done,max_iterations,blocked,fatal_error,user_cancelled,unknown}'::text[])))
  runs_id_key: UNIQUE (id)
  runs_level_check: CHECK ((level = ANY ('{A0,A1,A2,A3,A4}'::text[])))
  runs_pkey: PRIMARY KEY (key)
  runs_processes_check: CHECK ((processes = ANY (ARRAY['unknown'::text, 'gone'::text, 'unconfirmed'::text, 'alive'::text])))
  runs_reason_when_ended: CHECK (((exit_reason IS NULL) = (status = ANY ('{starting,running,paused}'::text[]))))
  runs_required_level_check: CHECK ((required_level = ANY ('{A0,A1,A2,A3,A4}'::text[])))
  runs_standing_check: CHECK ((standing = ANY ('{unchecked,checked,falsified}'::text[])))
  runs_status_check: CHECK ((status = ANY ('{starting,running,paused,exited,crashed,capped,stopped,terminated,lost,missed}'::text[])))
  runs_task_key_attempt_key: UNIQUE (task_key, attempt)
  runs_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  runs_tokens_check: CHECK ((tokens >= 0))
  runs_verdict_check: CHECK ((verdict = ANY ('{passed,failed,inconclusive,unknown,pending}'::text[])))
  runs_agent: CREATE INDEX runs_agent ON public.runs USING btree (agent_key, key) WHERE (agent_key IS NOT NULL)
  runs_ended: CREATE INDEX runs_ended ON public.runs USING btree (ended_at, key) WHERE (ended_at IS NOT NULL)
  runs_id_key: CREATE UNIQUE INDEX runs_id_key ON public.runs USING btree (id)
  runs_live: CREATE INDEX runs_live ON public.runs USING btree (key) WHERE (exit_reason IS NULL)
  runs_live_of_agent: CREATE INDEX runs_live_of_agent ON public.runs USING btree (agent_key, task_key) WHERE ((agent_key IS NOT NULL) AND (exit_reason IS NULL))
  runs_one_in_lane: CREATE UNIQUE INDEX runs_one_in_lane ON public.runs USING btree (lane) WHERE ((lane IS NOT NULL) AND (exit_reason IS NULL))
  runs_one_live: CREATE UNIQUE INDEX runs_one_live ON public.runs USING btree (task_key) WHERE (exit_reason IS NULL)
  runs_pkey: CREATE UNIQUE INDEX runs_pkey ON public.runs USING btree (key)
  runs_task_key_attempt_key: CREATE UNIQUE INDEX runs_task_key_attempt_key ON public.runs USING btree (task_key, attempt)
  runs_tasks_of_agent: CREATE INDEX runs_tasks_of_agent ON public.runs USING btree (agent_key, task_key, key) WHERE (agent_key IS NOT NULL)
  runs_ended_metered: CREATE TRIGGER runs_ended_metered AFTER UPDATE ON public.runs FOR EACH ROW WHEN (((old.exit_reason IS NULL) AND (new.exit_reason IS NOT NULL))) EXECUTE FUNCTION truegreen_runs_ended_metered()
  runs_ended_tallied: CREATE TRIGGER runs_ended_tallied AFTER UPDATE ON public.runs FOR EACH ROW WHEN (((old.cell IS NULL) AND (new.cell IS NOT NULL))) EXECUTE FUNCTION truegreen_runs_ended_tallied()
  runs_in_turn: CREATE TRIGGER runs_in_turn BEFORE INSERT ON public.runs FOR EACH ROW WHEN ((new.exit_reason IS NULL)) EXECUTE FUNCTION truegreen_runs_in_turn()
  runs_judged_tallied: CREATE TRIGGER runs_judged_tallied AFTER UPDATE ON public.runs FOR EACH ROW WHEN (((old.cell IS NOT NULL) AND ((new.cell <> old.cell) OR (new.standing <> old.standing)))) EXECUTE FUNCTION truegreen_runs_judged_tallied()
  runs_kept: CREATE TRIGGER runs_kept BEFORE UPDATE ON public.runs FOR EACH ROW EXECUTE FUNCTION truegreen_runs_kept()
  runs_let_through: CREATE TRIGGER runs_let_through AFTER INSERT ON public.runs FOR EACH ROW WHEN ((new.exit_reason IS NULL)) EXECUTE FUNCTION truegreen_runs_let_through()
  runs_missed_metered: CREATE TRIGGER runs_missed_metered AFTER INSERT ON public.runs FOR EACH ROW WHEN ((new.exit_reason IS NOT NULL)) EXECUTE FUNCTION truegreen_runs_missed_metered()
  runs_no_delete: CREATE TRIGGER runs_no_delete BEFORE DELETE ON public.runs FOR EACH ROW EXECUTE FUNCTION truegreen_runs_no_delete()
  runs_no_truncate: CREATE TRIGGER runs_no_truncate BEFORE TRUNCATE ON public.runs FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  runs_spent: CREATE TRIGGER runs_spent AFTER UPDATE ON public.runs FOR EACH ROW WHEN (((new.exit_reason IS NOT NULL) AND ((old.exit_reason IS NULL) OR (new.cost <> old.cost) OR (new.tokens <> old.tokens)))) EXECUTE FUNCTION truegreen_runs_spent()
  runs_started: CREATE TRIGGER runs_started BEFORE INSERT ON public.runs FOR EACH ROW EXECUTE FUNCTION truegreen_runs_started()
  runs_tallied: CREATE TRIGGER runs_tallied AFTER INSERT ON public.runs FOR EACH ROW WHEN ((new.cell IS NOT NULL)) EXECUTE FUNCTION truegreen_runs_tallied()
  runs_waited_for: CREATE TRIGGER runs_waited_for BEFORE INSERT ON public.runs FOR EACH ROW EXECUTE FUNCTION truegreen_runs_waited_for()

SEQUENCE runs_key_seq

TABLE schema_migrations
  version bigint NOT NULL
  name text NOT NULL
  checksum text NOT NULL
  applied_at bigint NOT NULL
  schema_migrations_pkey: PRIMARY KEY (version)
  schema_migrations_pkey: CREATE UNIQUE INDEX schema_migrations_pkey ON public.schema_migrations USING btree (version)

TABLE schema_objects
  name text NOT NULL
  definition text NOT NULL
  schema_objects_pkey: PRIMARY KEY (name)
  schema_objects_pkey: CREATE UNIQUE INDEX schema_objects_pkey ON public.schema_objects USING btree (name)

TABLE spending
  hour bigint NOT NULL
  agent text NOT NULL
  labels text NOT NULL
  shard bigint NOT NULL
  cost bigint NOT NULL
  tokens bigint NOT NULL
  runs bigint NOT NULL
  spending_cost_check: CHECK ((cost >= 0))
  spending_pkey: PRIMARY KEY (hour, agent, labels, shard)
  spending_runs_check: CHECK ((runs >= 0))
  spending_tokens_check: CHECK ((tokens >= 0))
  spending_pkey: CREATE UNIQUE INDEX spending_pkey ON public.spending USING btree (hour, agent, labels, shard)
  spending_kept: CREATE TRIGGER spending_kept BEFORE UPDATE ON public.spending FOR EACH ROW EXECUTE FUNCTION truegreen_spending_kept()
  spending_no_delete: CREATE TRIGGER spending_no_delete BEFORE DELETE ON public.spending FOR EACH ROW EXECUTE FUNCTION truegreen_spending_no_delete()
  spending_no_truncate: CREATE TRIGGER spending_no_truncate BEFORE TRUNCATE ON public.spending FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

TABLE strikes
  key bigint NOT NULL IDENTITY d
  kind text NOT NULL
  subject text NOT NULL
  signature text NOT NULL
  task_key bigint NOT NULL
  at bigint NOT NULL
  strikes_kind_check: CHECK ((kind = ANY (ARRAY['agent'::text, 'provider'::text, 'fleet'::text])))
  strikes_pkey: PRIMARY KEY (key)
  strikes_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  strikes_alike: CREATE INDEX strikes_alike ON public.strikes USING btree (kind, subject, signature, at)
  strikes_old: CREATE INDEX strikes_old ON public.strikes USING btree (at)
  strikes_pkey: CREATE UNIQUE INDEX strikes_pkey ON public.strikes USING btree (key)
  strikes_no_truncate: CREATE TRIGGER strikes_no_truncate BEFORE TRUNCATE ON public.strikes FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  strikes_no_update: CREATE TRIGGER strikes_no_update BEFORE UPDATE ON public.strikes FOR EACH ROW EXECUTE FUNCTION truegreen_strikes_no_update()
  strikes_over: CREATE TRIGGER strikes_over BEFORE DELETE ON public.strikes FOR EACH ROW EXECUTE FUNCTION truegreen_strikes_over()

SEQUENCE strikes_key_seq

TABLE switches
  name text NOT NULL
  actor text NOT NULL
  reason text NOT NULL
  at bigint NOT NULL
  switches_name_check: CHECK ((name = 'frozen'::text))
  switches_pkey: PRIMARY KEY (name)
  switches_pkey: CREATE UNIQUE INDEX switches_pkey ON public.switches USING btree (name)

TABLE tallies
  hour bigint NOT NULL
  cell text NOT NULL
  standing text NOT NULL
  exit_reason text NOT NULL
  mode text NOT NULL
  role text NOT NULL
  shard bigint NOT NULL
  runs bigint NOT NULL
  tallies_pkey: PRIMARY KEY (hour, cell, standing, exit_reason, mode, role, shard)
  tallies_pkey: CREATE UNIQUE INDEX tallies_pkey ON public.tallies USING btree (hour, cell, standing, exit_reason, mode, role, shard)

TABLE tasks
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  title text NOT NULL
  goal text NOT NULL
  role text NOT NULL
  mode text NOT NULL
  status text NOT NULL
  exit_reason text
  exit_detail text
  run_status text
  verdict text NOT NULL DEFAULT 'unknown'::text
  cell text
  silent bigint NOT NULL DEFAULT 0
  rescued bigint NOT NULL DEFAULT 0
  overridden bigint NOT NULL DEFAULT 0
  sealed_at bigint
  fence bigint NOT NULL DEFAULT 0
  revision bigint NOT NULL
  head bytea NOT NULL
  attempt bigint NOT NULL DEFAULT 0
  attempts bigint NOT NULL DEFAULT 0
  attempts_max bigint NOT NULL
  deferrals bigint NOT NULL DEFAULT 0
  deferrals_max bigint NOT NULL
  qa_rounds bigint NOT NULL DEFAULT 0
  qa_rounds_max bigint NOT NULL
  priority bigint NOT NULL DEFAULT 0
  not_before bigint NOT NULL DEFAULT 0
  agent_key bigint
  parent_key bigint
  qa_of_key bigint
  created_by text NOT NULL
  contract text NOT NULL
  contract_digest text NOT NULL
  acceptance text
  created_at bigint NOT NULL
  updated_at bigint NOT NULL
  settled_at bigint
  falsified bigint NOT NULL DEFAULT 0
  checked bigint NOT NULL DEFAULT 0
  proof text
  proof_mode text NOT NULL DEFAULT 'required'::text
  noop bigint NOT NULL DEFAULT 0
  tasks_agent_key_fkey: FOREIGN KEY (agent_key) REFERENCES agents(key)
  tasks_attempts: CHECK (((attempts >= 0) AND (attempts <= attempts_max)))
  tasks_cell_check: CHECK ((cell = ANY ('{true_green,silent_failure,reported_failure,undecided,unverified,awaiting_verdict,rescued,failed,outage,rescue_under_way,finished_at_the_cap,cap_hit,kept,stopped,blocked}'::text[])))
  tasks_check: CHECK ((silent =
CASE
    WHEN (cell = 'silent_failure'::text) THEN 1
    ELSE 0
END))
  tasks_checked_check: CHECK ((checked = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  tasks_deferrals: CHECK (((deferrals >= 0) AND (deferrals <= deferrals_max)))
  tasks_exit_fits_status: CHECK (
CASE status
    WHEN 'succeeded'::text THEN ((exit_reason IS NOT NULL) AND ((exit_reason = 'done'::text) OR (rescued = 1)))
    WHEN 'blocked'::text THEN ((exit_reason IS NOT NULL) AND (exit_reason = 'blocked'::text))
    WHEN 'canceled'::text THEN ((exit_reason IS NOT NULL) AND (exit_reason = 'user_cancelled'::text))
    WHEN 'terminated'::text THEN ((exit_reason IS NOT NULL) AND (exit_reason = 'user_cancelled'::text))
    WHEN 'failed'::text THEN ((exit_reason IS NOT NULL) AND (exit_reason <> 'user_cancelled'::text))
    ELSE (1 = 1)
END)
  tasks_exit_pair: CHECK ((((exit_reason IS NULL) = (exit_detail IS NULL)) AND (((exit_reason || '/'::text) || exit_detail) = ANY ('{done/completed,done/declared_failure,done/noop,max_iterations/turn_cap,max_iterations/time_cap,max_iterations/idle_cap,max_iterations/cost_cap,max_iterations/token_cap,max_iterations/context_cap,max_iterations/reentry_cap,blocked/approval_checkpoint,blocked/approval_expired,blocked/permission_denied,blocked/egress_denied,blocked/connector_missing,blocked/refused,blocked/input_needed,fatal_error/agent_error,fatal_error/launch_failed,fatal_error/signaled,fatal_error/oom,fatal_error/process_lost,fatal_error/zero_output,fatal_error/provider_error,fatal_error/rate_limited,fatal_error/auth_invalid,fatal_error/disk_full,fatal_error/config_invalid,fatal_error/supervisor_crashed,fatal_error/supervisor_restarted,user_cancelled/stopped,user_cancelled/canceled,user_cancelled/terminated,user_cancelled/superseded,unknown/unclaimed,unknown/unclassified}'::text[]))))
  tasks_exit_reason_check: CHECK ((exit_reason = ANY ('{done,max_iterations,blocked,fatal_error,user_cancelled,unknown}'::text[])))
  tasks_falsified_check: CHECK ((falsified = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  tasks_fence_check: CHECK ((fence >= 0))
  tasks_green_is_proven: CHECK (((status <> 'succeeded'::text) OR ((verdict = 'passed'::text) AND (acceptance IS NOT NULL))))
  tasks_id_key: UNIQUE (id)
  tasks_mode_check: CHECK ((mode = ANY ('{interactive,assisted,autonomous}'::text[])))
  tasks_noop_check: CHECK ((noop = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  tasks_overridden_check: CHECK ((overridden = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  tasks_parent_key_fkey: FOREIGN KEY (parent_key) REFERENCES tasks(key)
  tasks_pkey: PRIMARY KEY (key)
  tasks_proof_check: CHECK ((proof = ANY ('{shown,missing,waived}'::text[])))
  tasks_proof_mode_check: CHECK ((proof_mode = ANY ('{required,regression}'::text[])))
  tasks_qa_of_key_fkey: FOREIGN KEY (qa_of_key) REFERENCES tasks(key)
  tasks_qa_rounds: CHECK (((qa_rounds >= 0) AND (qa_rounds <= qa_rounds_max)))
  tasks_rescued_check: CHECK ((rescued = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  tasks_run_status_check: CHECK ((run_status = ANY ('{starting,running,paused,exited,crashed,capped,stopped,terminated,lost,missed}'::text[])))
  tasks_settled: CHECK (((settled_at IS NULL) OR (status = ANY ('{blocked,succeeded,failed,canceled,terminated}'::text[]))))
  tasks_status_check: CHECK ((status = ANY ('{queued,running,awaiting_approval,pending_eval,failed_pending_eval,pending_qa,needs_review,blocked,succeeded,failed,canceled,terminated}'::text[])))
  tasks_terminated_is_sealed: CHECK (((status <> 'terminated'::text) OR (sealed_at IS NOT NULL)))
  tasks_verdict_check: CHECK ((verdict = ANY ('{passed,failed,inconclusive,unknown,pending}'::text[])))
  task_words: CREATE INDEX task_words ON public.tasks USING gin (to_tsvector('simple'::regconfig, translate("left"(((title || ' '::text) || goal), 100000), './:@_+=,;()[]<>#&*!?|~^$-'::text, '                         '::text)))
  tasks_begun: CREATE INDEX tasks_begun ON public.tasks USING btree (status, attempt) WHERE ((status = 'queued'::text) AND (attempt > 0))
  tasks_blocked: CREATE INDEX tasks_blocked ON public.tasks USING btree (status, settled_at) WHERE (status = 'blocked'::text)
  tasks_cell: CREATE INDEX tasks_cell ON public.tasks USING btree (cell, (((silent * '4611686018427387904'::bigint) + key))) WHERE (cell IS NOT NULL)
  tasks_cell_exit_reason: CREATE INDEX tasks_cell_exit_reason ON public.tasks USING btree (cell, exit_reason, ((key + (silent * '4611686018427387904'::bigint)))) WHERE (cell IS NOT NULL)
  tasks_exit_reason: CREATE INDEX tasks_exit_reason ON public.tasks USING btree (exit_reason, (((silent * '4611686018427387904'::bigint) + key))) WHERE (exit_reason IS NOT NULL)
  tasks_id_key: CREATE UNIQUE INDEX tasks_id_key ON public.tasks USING btree (id)
  tasks_one_open_qa: CREATE UNIQUE INDEX tasks_one_open_qa ON public.tasks USING btree (qa_of_key) WHERE ((qa_of_key IS NOT NULL) AND (NOT (status = ANY ('{blocked,succeeded,failed,canceled,terminated}'::text[]))))
  tasks_pkey: CREATE UNIQUE INDEX tasks_pkey ON public.tasks USING btree (key)
  tasks_qa: CREATE INDEX tasks_qa ON public.tasks USING btree (qa_of_key) WHERE (qa_of_key IS NOT NULL)
  tasks_queued: CREATE INDEX tasks_queued ON public.tasks USING btree (key) WHERE (status = 'queued'::text)
  tasks_ready: CREATE INDEX tasks_ready ON public.tasks USING btree (status, priority DESC, key) WHERE (status = 'queued'::text)
  tasks_role: CREATE INDEX tasks_role ON public.tasks USING btree (role, (((silent * '4611686018427387904'::bigint) + key)))
  tasks_role_status: CREATE INDEX tasks_role_status ON public.tasks USING btree (role, status, ((key + (silent * '4611686018427387904'::bigint))))
  tasks_sealed: CREATE INDEX tasks_sealed ON public.tasks USING btree (sealed_at) WHERE (sealed_at IS NOT NULL)
  tasks_silent: CREATE INDEX tasks_silent ON public.tasks USING btree (key) WHERE (silent = 1)
  tasks_status: CREATE INDEX tasks_status ON public.tasks USING btree (status, (((silent * '4611686018427387904'::bigint) + key)))
  tasks_status_exit_reason: CREATE INDEX tasks_status_exit_reason ON public.tasks USING btree (status, exit_reason, ((key + (silent * '4611686018427387904'::bigint)))) WHERE (exit_reason IS NOT NULL)
  tasks_blocked_by_hand: CREATE TRIGGER tasks_blocked_by_hand BEFORE UPDATE ON public.tasks FOR EACH ROW WHEN (((new.status = 'blocked'::text) AND (old.status <> 'blocked'::text) AND (new.revision = old.revision))) EXECUTE FUNCTION truegreen_tasks_blocked_by_hand()
  tasks_blocked_counted: CREATE TRIGGER tasks_blocked_counted AFTER UPDATE ON public.tasks FOR EACH ROW WHEN (((new.status = 'blocked'::text) AND (old.status <> 'blocked'::text) AND (new.revision = old.revision))) EXECUTE FUNCTION truegreen_tasks_blocked_counted()
  tasks_counted: CREATE TRIGGER tasks_counted AFTER INSERT ON public.tasks FOR EACH ROW EXECUTE FUNCTION truegreen_tasks_counted()
  tasks_falsified: CREATE TRIGGER tasks_falsified AFTER UPDATE ON public.tasks FOR EACH ROW WHEN (((old.status = 'succeeded'::text) AND (new.status <> 'succeeded'::text))) EXECUTE FUNCTION truegreen_tasks_falsified()
  tasks_kept: CREATE TRIGGER tasks_kept BEFORE UPDATE ON public.tasks FOR EACH ROW EXECUTE FUNCTION truegreen_tasks_kept()
  tasks_no_delete: CREATE TRIGGER tasks_no_delete BEFORE DELETE ON public.tasks FOR EACH ROW EXECUTE FUNCTION truegreen_tasks_no_delete()
  tasks_no_truncate: CREATE TRIGGER tasks_no_truncate BEFORE TRUNCATE ON public.tasks FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  tasks_open: CREATE TRIGGER tasks_open BEFORE INSERT ON public.tasks FOR EACH ROW EXECUTE FUNCTION truegreen_tasks_open()
  tasks_recounted: CREATE TRIGGER tasks_recounted AFTER UPDATE ON public.tasks FOR EACH ROW WHEN (((new.status IS DISTINCT FROM old.status) OR (new.run_status IS DISTINCT FROM old.run_status) OR (new.cell IS DISTINCT FROM old.cell) OR (new.checked IS DISTINCT FROM old.checked))) EXECUTE FUNCTION truegreen_tasks_recounted()
  tasks_rescued_metered: CREATE TRIGGER tasks_rescued_metered AFTER UPDATE ON public.tasks FOR EACH ROW WHEN (((old.rescued = 0) AND (new.rescued = 1))) EXECUTE FUNCTION truegreen_tasks_rescued_metered()

SEQUENCE tasks_key_seq

TABLE tokens
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  role text NOT NULL
  name text NOT NULL
  digest bytea NOT NULL
  task_key bigint
  run_key bigint
  fence bigint
  created_at bigint NOT NULL
  expires_at bigint
  revoked_at bigint
  kind text NOT NULL DEFAULT 'key'::text
  tokens_check: CHECK (((role <> ALL (ARRAY['agent'::text, 'judge'::text])) OR ((run_key IS NOT NULL) AND (fence IS NOT NULL))))
  tokens_digest_key: UNIQUE (digest)
  tokens_id_key: UNIQUE (id)
  tokens_kind_check: CHECK ((kind = ANY (ARRAY['key'::text, 'login'::text, 'session'::text])))
  tokens_pkey: PRIMARY KEY (key)
  tokens_role_check: CHECK (((role = ANY ('{agent,judge,lead,operator,viewer,system}'::text[])) AND (role <> 'system'::text)))
  tokens_run_key_fkey: FOREIGN KEY (run_key) REFERENCES runs(key)
  tokens_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  tokens_digest_key: CREATE UNIQUE INDEX tokens_digest_key ON public.tokens USING btree (digest)
  tokens_id_key: CREATE UNIQUE INDEX tokens_id_key ON public.tokens USING btree (id)
  tokens_of_people: CREATE INDEX tokens_of_people ON public.tokens USING btree (key) WHERE (run_key IS NULL)
  tokens_pkey: CREATE UNIQUE INDEX tokens_pkey ON public.tokens USING btree (key)
  tokens_task: CREATE INDEX tokens_task ON public.tokens USING btree (task_key) WHERE (task_key IS NOT NULL)
  tokens_kept: CREATE TRIGGER tokens_kept BEFORE UPDATE ON public.tokens FOR EACH ROW EXECUTE FUNCTION truegreen_tokens_kept()
  tokens_no_delete: CREATE TRIGGER tokens_no_delete BEFORE DELETE ON public.tokens FOR EACH ROW EXECUTE FUNCTION truegreen_tokens_no_delete()
  tokens_no_truncate: CREATE TRIGGER tokens_no_truncate BEFORE TRUNCATE ON public.tokens FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE tokens_key_seq

TABLE told
  outlet text NOT NULL
  item_key bigint NOT NULL
  subject text NOT NULL
  post_id text NOT NULL
  at bigint NOT NULL
  arrived_at bigint
  step bigint NOT NULL DEFAULT 0
  since bigint NOT NULL DEFAULT 0
  told_item_key_fkey: FOREIGN KEY (item_key) REFERENCES inbox(key)
  told_pkey: PRIMARY KEY (outlet, item_key)
  told_pkey: CREATE UNIQUE INDEX told_pkey ON public.told USING btree (outlet, item_key)
  told_post: CREATE INDEX told_post ON public.told USING btree (post_id)

TABLE waivers
  task_key bigint NOT NULL
  needed text NOT NULL
  actor text NOT NULL
  reason text NOT NULL
  at bigint NOT NULL
  waivers_pkey: PRIMARY KEY (task_key, needed)
  waivers_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  waivers_pkey: CREATE UNIQUE INDEX waivers_pkey ON public.waivers USING btree (task_key, needed)
  waivers_no_delete: CREATE TRIGGER waivers_no_delete BEFORE DELETE ON public.waivers FOR EACH ROW EXECUTE FUNCTION truegreen_waivers_no_delete()
  waivers_no_truncate: CREATE TRIGGER waivers_no_truncate BEFORE TRUNCATE ON public.waivers FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()
  waivers_no_update: CREATE TRIGGER waivers_no_update BEFORE UPDATE ON public.waivers FOR EACH ROW EXECUTE FUNCTION truegreen_waivers_no_update()

TABLE wakes
  key bigint NOT NULL IDENTITY d
  id text NOT NULL
  agent_key bigint NOT NULL
  task_key bigint
  cause text NOT NULL
  body text NOT NULL
  due_at bigint NOT NULL
  state text NOT NULL
  why text NOT NULL DEFAULT ''::text
  run_id text NOT NULL DEFAULT ''::text
  armed_by text NOT NULL
  created_at bigint NOT NULL
  updated_at bigint NOT NULL
  wakes_agent_key_fkey: FOREIGN KEY (agent_key) REFERENCES agents(key)
  wakes_cause_check: CHECK ((cause = ANY (ARRAY['resume'::text, 'message'::text, 'schedule'::text])))
  wakes_fired_by: CHECK (((state = 'fired'::text) = (run_id <> ''::text)))
  wakes_id_key: UNIQUE (id)
  wakes_pkey: PRIMARY KEY (key)
  wakes_ready_for: CHECK (((state <> ALL (ARRAY['ready'::text, 'fired'::text])) OR (task_key IS NOT NULL)))
  wakes_state_check: CHECK ((state = ANY (ARRAY['armed'::text, 'ready'::text, 'fired'::text, 'void'::text])))
  wakes_task_key_fkey: FOREIGN KEY (task_key) REFERENCES tasks(key)
  wakes_agent: CREATE INDEX wakes_agent ON public.wakes USING btree (agent_key, key)
  wakes_due: CREATE INDEX wakes_due ON public.wakes USING btree (due_at, key) WHERE (state = 'armed'::text)
  wakes_id_key: CREATE UNIQUE INDEX wakes_id_key ON public.wakes USING btree (id)
  wakes_one_ready: CREATE UNIQUE INDEX wakes_one_ready ON public.wakes USING btree (task_key) WHERE (state = 'ready'::text)
  wakes_pkey: CREATE UNIQUE INDEX wakes_pkey ON public.wakes USING btree (key)
  wakes_armed: CREATE TRIGGER wakes_armed BEFORE INSERT ON public.wakes FOR EACH ROW EXECUTE FUNCTION truegreen_wakes_armed()
  wakes_kept: CREATE TRIGGER wakes_kept BEFORE UPDATE ON public.wakes FOR EACH ROW EXECUTE FUNCTION truegreen_wakes_kept()
  wakes_no_delete: CREATE TRIGGER wakes_no_delete BEFORE DELETE ON public.wakes FOR EACH ROW EXECUTE FUNCTION truegreen_wakes_no_delete()
  wakes_no_truncate: CREATE TRIGGER wakes_no_truncate BEFORE TRUNCATE ON public.wakes FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()

SEQUENCE wakes_key_seq

TABLE workers
  key bigint NOT NULL IDENTITY d
  name text NOT NULL
  holder text NOT NULL
  labels text NOT NULL
  seats bigint NOT NULL
  version text NOT NULL
  started_at bigint NOT NULL
  seen_at bigint NOT NULL
  busy bigint NOT NULL DEFAULT 0
  draining bigint NOT NULL DEFAULT 0
  workers_draining_check: CHECK ((draining = ANY (ARRAY[(0)::bigint, (1)::bigint])))
  workers_holder_key: UNIQUE (holder)
  workers_pkey: PRIMARY KEY (key)
  workers_seats_check: CHECK ((seats > 0))
  workers_holder_key: CREATE UNIQUE INDEX workers_holder_key ON public.workers USING btree (holder)
  workers_pkey: CREATE UNIQUE INDEX workers_pkey ON public.workers USING btree (key)

SEQUENCE workers_key_seq

CREATE OR REPLACE FUNCTION public.truegreen_agents_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF OLD.status = 'terminated' AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.terminated_at IS DISTINCT FROM OLD.terminated_at OR NEW.session IS DISTINCT FROM OLD.session) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/terminated: terminated is final'; END IF;
  IF NEW.status <> OLD.status AND NOT ((OLD.status || '>' || NEW.status) = ANY ('{pending>completed,pending>error,pending>in_progress,pending>terminated,in_progress>completed,in_progress>error,in_progress>terminated,completed>in_progress,completed>terminated,error>in_progress,error>terminated}'::text[])) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: no edge leads between these statuses of an agent'; END IF;
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.name IS DISTINCT FROM OLD.name OR NEW.definition IS DISTINCT FROM OLD.definition OR NEW.parent_key IS DISTINCT FROM OLD.parent_key OR NEW.registered_by IS DISTINCT FROM OLD.registered_by OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.kind IS DISTINCT FROM OLD.kind THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: the identity of an agent is frozen'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_agents_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: agents are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_agents_registered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.status <> 'terminated' AND EXISTS (SELECT 1 FROM agents p WHERE p.key = NEW.parent_key AND p.status = 'terminated') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/terminated: a child of a terminated agent is terminated'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_artifacts_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: artifacts are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_artifacts_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: artifacts are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_breakers_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.subject IS DISTINCT FROM OLD.subject OR NEW.name IS DISTINCT FROM OLD.name OR NEW.opened_at IS DISTINCT FROM OLD.opened_at THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a breaker stays about what it opened for'; END IF;
  IF OLD.closed_at IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: a closed breaker stays closed'; END IF;
  IF NEW.open_until < OLD.open_until OR NEW.trips NOT IN (OLD.trips, OLD.trips + 1) OR (NEW.trips = OLD.trips AND (NEW.signature IS DISTINCT FROM OLD.signature)) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what a breaker holds back waits no shorter than was said'; END IF;
  IF (NEW.closed_at IS DISTINCT FROM OLD.closed_at OR NEW.closed_by IS DISTINCT FROM OLD.closed_by OR NEW.reason IS DISTINCT FROM OLD.reason) AND NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, OLD.id, '') <> events.data AND events.actor = NEW.closed_by AND events.reason = NEW.reason) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a breaker closes only with its event, which says by whom and why'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_breakers_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: breakers are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_charges_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.run_key IS DISTINCT FROM OLD.run_key OR NEW.budget IS DISTINCT FROM OLD.budget OR NEW.subject IS DISTINCT FROM OLD.subject OR NEW.used_max IS DISTINCT FROM OLD.used_max OR NEW.used < OLD.used THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what was charged stays charged'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_charges_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: charges are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_claims_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: claims are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_claims_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: claims are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_conditions_armed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.met_at IS NOT NULL OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.status = 'queued' AND t.sealed_at IS NULL) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: a queued task waits, and what it waits for has not happened yet'; END IF;
  IF NOT EXISTS (SELECT 1 FROM tasks t JOIN events e ON e.task_key = t.key AND e.revision = t.revision WHERE t.key = NEW.task_key AND e.actor = NEW.armed_by AND (e.event = 'open' OR replace(e.data, NEW.id, '') <> e.data)) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a condition begins with its event'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_conditions_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.what IS DISTINCT FROM OLD.what OR NEW.armed_by IS DISTINCT FROM OLD.armed_by OR NEW.created_at IS DISTINCT FROM OLD.created_at THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a condition stays about what it was made for'; END IF;
  IF OLD.met_at IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: a condition is met once, and stays met'; END IF;
  IF NOT EXISTS (SELECT 1 FROM tasks t JOIN events e ON e.task_key = t.key AND e.revision = t.revision WHERE t.key = OLD.task_key AND e.actor = NEW.met_by AND (replace(e.data, OLD.id, '') <> e.data)) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a condition is met only with its event, which says by whom'; END IF;
  IF OLD.kind = 'human' AND NOT substr(NEW.met_by, 1, 9) = 'operator:' THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what a person is asked is answered by a person'; END IF;
  IF OLD.kind = 'file' AND NOT (substr(NEW.met_by, 1, 7) = 'system:' OR substr(NEW.met_by, 1, 9) = 'operator:') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a file is seen by whoever would start the task'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_conditions_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: conditions are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_deliveries_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: deliveries are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_deliveries_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: deliveries are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_demands_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: demands are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_demands_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: demands are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_events_again_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('moved', NEW.event, mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_events_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: events are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_events_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: events are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_events_true()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.task_key IS NOT NULL AND (NEW.event <> 'open' OR NEW.revision <> 1) AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.revision = NEW.revision - 1 AND t.fence <= NEW.fence) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: the task has moved on: its revision or fence is another'; END IF;
  IF ((NEW.event) = ANY ('{start,declare,fall_silent,pause,resume,block,retry,fail,review,chain,accept,unblock,reopen,cancel,terminate}'::text[])) <> (NEW.from_status IS NOT NULL) OR (NEW.from_status IS NULL) <> (NEW.to_status IS NULL) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: a move names the statuses that it leads from and to, a note names none'; END IF;
  IF NEW.from_status IS NOT NULL AND NOT ((NEW.event || ':' || NEW.from_status || '>' || NEW.to_status) = ANY ('{start:queued>running,declare:running>pending_eval,fall_silent:running>failed_pending_eval,pause:running>awaiting_approval,resume:awaiting_approval>running,block:running>blocked,block:awaiting_approval>blocked,block:failed_pending_eval>blocked,retry:running>queued,retry:pending_eval>queued,retry:failed_pending_eval>queued,retry:pending_qa>queued,retry:needs_review>queued,fail:running>failed,fail:pending_eval>failed,fail:failed_pending_eval>failed,fail:pending_qa>failed,fail:needs_review>failed,review:pending_eval>needs_review,review:failed_pending_eval>needs_review,review:pending_qa>needs_review,chain:pending_eval>pending_qa,chain:failed_pending_eval>pending_qa,accept:pending_eval>succeeded,accept:failed_pending_eval>succeeded,accept:pending_qa>succeeded,accept:needs_review>succeeded,unblock:blocked>queued,reopen:failed>queued,reopen:canceled>queued,reopen:succeeded>queued,cancel:queued>canceled,cancel:running>canceled,cancel:awaiting_approval>canceled,cancel:pending_eval>canceled,cancel:failed_pending_eval>canceled,cancel:pending_qa>canceled,cancel:needs_review>canceled,cancel:blocked>canceled,terminate:queued>terminated,terminate:running>terminated,terminate:awaiting_approval>terminated,terminate:pending_eval>terminated,terminate:failed_pending_eval>terminated,terminate:pending_qa>terminated,terminate:needs_review>terminated,terminate:blocked>terminated}'::text[])) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: no such edge'; END IF;
  IF NEW.from_status IS NOT NULL AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.status = NEW.from_status AND t.sealed_at IS NULL) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: the task is not in the status that the event leads from, or it is sealed'; END IF;
  IF NEW.to_status IS NOT NULL AND NEW.to_status = 'blocked' AND NEW.level <> 'warn' THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a block is written with level warn'; END IF;
  IF NEW.hash IS NULL AND (NEW.actor <> 'system:database' OR NEW.event <> 'block') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: an event carries its hash'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_findings_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('checks', NEW.outcome || '|' || NEW.kind, mod(pg_backend_pid(), 64), 1), ('check_us', NEW.kind, mod(pg_backend_pid(), 64), NEW.duration_us) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_findings_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: findings are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_findings_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: findings are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_findings_unavailable_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('evaluator_unavailable', '', mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_inbox_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.cause IS DISTINCT FROM OLD.cause OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.state = 'resolved' AND (NEW.state IS DISTINCT FROM OLD.state OR NEW.outcome IS DISTINCT FROM OLD.outcome OR NEW.times IS DISTINCT FROM OLD.times OR NEW.topic IS DISTINCT FROM OLD.topic OR NEW.closed_by IS DISTINCT FROM OLD.closed_by)) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a resolved item stays resolved, and keeps its cause'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_inbox_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('inbox', NEW.severity || '|' || NEW.state, mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_inbox_moved_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('inbox', OLD.severity || '|' || OLD.state, mod(pg_backend_pid(), 64), -1), ('inbox', NEW.severity || '|' || NEW.state, mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_inbox_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: inbox are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_jobs_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.engine IS DISTINCT FROM OLD.engine OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.handle <> '' AND NEW.handle IS DISTINCT FROM OLD.handle) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a job stays the order that it was'; END IF;
  IF (NEW.state <> OLD.state AND OLD.state || '>' || NEW.state NOT IN ('placed>taken', 'placed>lost', 'placed>over', 'taken>lost', 'taken>over')) OR (OLD.state IN ('lost', 'over') AND (NEW.word IS DISTINCT FROM OLD.word OR NEW.said IS DISTINCT FROM OLD.said OR NEW.gone_at IS DISTINCT FROM OLD.gone_at)) OR (NEW.holder IS DISTINCT FROM OLD.holder) AND OLD.state || '>' || NEW.state <> 'placed>taken' THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: a job is taken once, and what became of it stays'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_jobs_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: jobs are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_leases_folder_free()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM leases other WHERE other.run_key <> NEW.run_key AND other.folder <> '' AND other.expires_at >= (NEW.expires_at - NEW.lasts) AND other.boot = NEW.boot AND other.folder_host = NEW.folder_host AND (substr(other.folder, 1, length(NEW.folder)) = NEW.folder OR substr(NEW.folder, 1, length(other.folder)) = other.folder)) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/held: another run works in this folder: truegreen list --status running'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_leases_folder_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM leases other WHERE other.run_key <> NEW.run_key AND other.folder <> '' AND other.expires_at >= (NEW.expires_at - NEW.lasts) AND other.boot = NEW.boot AND other.folder_host = NEW.folder_host AND (substr(other.folder, 1, length(NEW.folder)) = NEW.folder OR substr(NEW.folder, 1, length(other.folder)) = other.folder)) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: its lease ran out, and another run works in its folder'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_leases_folder_late_turn()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO folder_turns (host, turns) VALUES (NEW.folder_host, 1) ON CONFLICT (host) DO UPDATE SET turns = folder_turns.turns + 1;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_leases_folder_turn()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO folder_turns (host, turns) VALUES (NEW.folder_host, 1) ON CONFLICT (host) DO UPDATE SET turns = folder_turns.turns + 1;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_limits_dropped()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, OLD.id, '') <> events.data AND house.revision > OLD.stated) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a limit goes only with its event'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_limits_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.file IS DISTINCT FROM OLD.file OR NEW.hours IS DISTINCT FROM OLD.hours OR NEW.agent IS DISTINCT FROM OLD.agent OR NEW.label IS DISTINCT FROM OLD.label THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a limit stays about what it was set for'; END IF;
  IF (NEW.cost IS DISTINCT FROM OLD.cost OR NEW.tokens IS DISTINCT FROM OLD.tokens OR NEW.runs IS DISTINCT FROM OLD.runs OR NEW.stated IS DISTINCT FROM OLD.stated) AND NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, OLD.id, '') <> events.data AND house.revision > OLD.stated AND house.revision = NEW.stated) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what may be spent changes only with its event'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_messages_heard()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key AND a.status = 'terminated') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/terminated: a terminated agent gets no messages'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_messages_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.agent_key IS DISTINCT FROM OLD.agent_key OR NEW.sender IS DISTINCT FROM OLD.sender OR NEW.body IS DISTINCT FROM OLD.body OR NEW.idempotency_key IS DISTINCT FROM OLD.idempotency_key OR NEW.at IS DISTINCT FROM OLD.at THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a message stays as it was sent'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_messages_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: messages are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_no_truncate()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ BEGIN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: the record is kept: truncate is refused'; END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_occurrences_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.routine_key IS DISTINCT FROM OLD.routine_key OR NEW.slot IS DISTINCT FROM OLD.slot OR NEW.generation IS DISTINCT FROM OLD.generation OR NEW.first_at IS DISTINCT FROM OLD.first_at OR NEW.due_at IS DISTINCT FROM OLD.due_at OR NEW.times IS DISTINCT FROM OLD.times OR NEW.actor IS DISTINCT FROM OLD.actor OR NEW.at IS DISTINCT FROM OLD.at THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: an occurrence stays what it is about'; END IF;
  IF OLD.state <> 'waiting' OR NEW.state = 'waiting' THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what became of an occurrence stays; one that waits becomes something once'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_occurrences_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: occurrences are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_policies_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.kind IS DISTINCT FROM OLD.kind THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: there are terms for every kind of breaker'; END IF;
  IF (NEW.after IS DISTINCT FROM OLD.after OR NEW.within IS DISTINCT FROM OLD.within OR NEW.pause IS DISTINCT FROM OLD.pause OR NEW.most IS DISTINCT FROM OLD.most OR NEW.file IS DISTINCT FROM OLD.file OR NEW.stated IS DISTINCT FROM OLD.stated) AND NOT EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL AND events.revision = house.revision WHERE replace(events.data, '"' || OLD.kind || '"', '') <> events.data AND house.revision > OLD.stated AND house.revision = NEW.stated) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: when breakers open changes only with its event'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_policies_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: policies are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_probes_begun()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM runs WHERE runs.id = NEW.run_id) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a run is a probe from its start on, or never'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_probes_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: probes are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_probes_over()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM runs WHERE runs.id = OLD.run_id AND (runs.exit_reason IS NULL OR runs.verdict = 'pending')) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a probe stays until something came of it: one tries at a time'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_refusals_again_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('refused', NEW.code, mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_refusals_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('refused', NEW.code, mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_refusals_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: refusals are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_routines_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.name IS DISTINCT FROM OLD.name OR NEW.created_at IS DISTINCT FROM OLD.created_at THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a routine keeps its name'; END IF;
  IF NEW.revision <> OLD.revision + 1 OR NEW.generation < OLD.generation OR (NEW.generation = OLD.generation AND NEW.kind = OLD.kind AND NEW.iteration < OLD.iteration) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: a cycle never goes back'; END IF;
  IF (NEW.settings IS DISTINCT FROM OLD.settings OR NEW.contract IS DISTINCT FROM OLD.contract) AND NEW.digest = OLD.digest THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what a routine does changes only with its digest: settings taken over mend it'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_routines_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: routines are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_ended_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('runs', NEW.status || '|' || NEW.exit_reason || '|' || NEW.exit_detail || '|' || COALESCE((SELECT name FROM agents WHERE key = NEW.agent_key), ''), mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_ended_tallied()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT NEW.ended_at / 3600000000, NEW.cell, NEW.standing, NEW.exit_reason, mode, role, mod(pg_backend_pid(), 64), 1 FROM tasks WHERE key = NEW.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs + 1;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_in_turn()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE limits SET turns = turns + 1 WHERE EXISTS (SELECT 1 FROM demands WHERE demands.task_key = NEW.task_key AND (limits.agent IN ('', demands.agent) AND (limits.label = '' OR replace(demands.labels, limits.label, '') <> demands.labels)));
  DELETE FROM probes WHERE breaker_key IN (SELECT breakers.key FROM breakers CROSS JOIN demands WHERE breakers.closed_at IS NULL AND demands.task_key = NEW.task_key AND breakers.open_until <= NEW.created_at AND ((breakers.kind = 'agent' AND breakers.subject = demands.definition) OR (breakers.kind = 'provider' AND breakers.subject = demands.client) OR (breakers.kind = 'fleet' AND 1 = 1)) AND NOT EXISTS (SELECT 1 FROM probes JOIN runs probing ON probing.id = probes.run_id WHERE probes.breaker_key = breakers.key AND (probing.exit_reason IS NULL OR probing.verdict = 'pending')));
  INSERT INTO probes (breaker_key, run_id) SELECT breakers.key, NEW.id FROM breakers CROSS JOIN demands WHERE breakers.closed_at IS NULL AND demands.task_key = NEW.task_key AND breakers.open_until <= NEW.created_at AND ((breakers.kind = 'agent' AND breakers.subject = demands.definition) OR (breakers.kind = 'provider' AND breakers.subject = demands.client) OR (breakers.kind = 'fleet' AND 1 = 1)) AND NOT EXISTS (SELECT 1 FROM probes WHERE probes.breaker_key = breakers.key) ON CONFLICT DO NOTHING;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_judged_tallied()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT OLD.ended_at / 3600000000, OLD.cell, OLD.standing, OLD.exit_reason, mode, role, mod(pg_backend_pid(), 64), -1 FROM tasks WHERE key = OLD.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs - 1;
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT NEW.ended_at / 3600000000, NEW.cell, NEW.standing, NEW.exit_reason, mode, role, mod(pg_backend_pid(), 64), 1 FROM tasks WHERE key = NEW.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs + 1;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.fence IS DISTINCT FROM OLD.fence OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.agent_key IS DISTINCT FROM OLD.agent_key OR NEW.base_digest IS DISTINCT FROM OLD.base_digest OR NEW.isolation IS DISTINCT FROM OLD.isolation OR NEW.lane IS DISTINCT FROM OLD.lane OR NEW.cost_granted IS DISTINCT FROM OLD.cost_granted OR NEW.tokens_granted IS DISTINCT FROM OLD.tokens_granted OR NEW.folder_host IS DISTINCT FROM OLD.folder_host OR NEW.folder IS DISTINCT FROM OLD.folder THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: the identity of a run is frozen'; END IF;
  IF NEW.exit_reason IS NULL AND (NEW.cost IS DISTINCT FROM OLD.cost OR NEW.tokens IS DISTINCT FROM OLD.tokens) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what a run used is known when it has ended'; END IF;
  IF OLD.exit_reason IS NOT NULL AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.exit_reason IS DISTINCT FROM OLD.exit_reason OR NEW.exit_detail IS DISTINCT FROM OLD.exit_detail OR NEW.exit_code IS DISTINCT FROM OLD.exit_code OR NEW.signal IS DISTINCT FROM OLD.signal OR NEW.ended_by IS DISTINCT FROM OLD.ended_by OR NEW.ended_at IS DISTINCT FROM OLD.ended_at OR NEW.usage IS DISTINCT FROM OLD.usage OR NEW.digest IS DISTINCT FROM OLD.digest OR NEW.admission IS DISTINCT FROM OLD.admission) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: the first exit reason won; an ended run stays as it ended'; END IF;
  IF (NEW.processes IS DISTINCT FROM OLD.processes) AND (OLD.processes <> 'unknown' OR NEW.exit_reason IS NULL) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: whether the processes of a run are gone is recorded once, with or after its end'; END IF;
  IF ((NEW.verdict = 'passed' AND OLD.verdict <> 'passed') OR (NEW.cell IS DISTINCT FROM OLD.cell AND NEW.cell IN ('true_green', 'rescued', 'finished_at_the_cap', 'kept'))) AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.attempt = NEW.attempt AND t.verdict = 'passed') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a run passes only with its task'; END IF;
  IF NEW.cell = 'reported_failure' AND NEW.cell IS DISTINCT FROM OLD.cell AND NEW.admission = '' AND NOT EXISTS (SELECT 1 FROM claims c WHERE c.run_key = NEW.key AND c.kind IN ('failed', 'blocked')) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a failure is a reported one only if the agent said so'; END IF;
  IF (OLD.standing = 'falsified' AND NEW.standing <> 'falsified') OR (NEW.standing = 'checked' AND OLD.standing <> 'checked' AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.attempt = NEW.attempt AND t.checked = 1)) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a run is checked only with its task, and what turned out wrong stays so'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_let_through()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM breakers CROSS JOIN demands WHERE breakers.closed_at IS NULL AND demands.task_key = NEW.task_key AND ((breakers.kind = 'agent' AND breakers.subject = demands.definition) OR (breakers.kind = 'provider' AND breakers.subject = demands.client) OR (breakers.kind = 'fleet' AND 1 = 1)) AND (breakers.open_until > NEW.created_at OR NOT EXISTS (SELECT 1 FROM probes WHERE probes.breaker_key = breakers.key AND probes.run_id = NEW.id))) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/held: a breaker is open: truegreen breakers'; END IF;
  IF EXISTS (SELECT 1 FROM limits CROSS JOIN demands WHERE demands.task_key = NEW.task_key AND (limits.agent IN ('', demands.agent) AND (limits.label = '' OR replace(demands.labels, limits.label, '') <> demands.labels)) AND (limits.runs < COALESCE((SELECT CAST(SUM(spending.runs) AS bigint) FROM spending WHERE spending.hour >= (NEW.created_at / 3600000000 / limits.hours) * limits.hours AND (limits.agent IN ('', spending.agent) AND (limits.label = '' OR replace(spending.labels, limits.label, '') <> spending.labels))), 0) + COALESCE((SELECT CAST(SUM(1) AS bigint) FROM runs live WHERE live.exit_reason IS NULL AND EXISTS (SELECT 1 FROM demands own WHERE own.task_key = live.task_key AND (limits.agent IN ('', own.agent) AND (limits.label = '' OR replace(own.labels, limits.label, '') <> own.labels)) LIMIT 1 OFFSET 0)), 0) OR limits.cost < COALESCE((SELECT CAST(SUM(spending.cost) AS bigint) FROM spending WHERE spending.hour >= (NEW.created_at / 3600000000 / limits.hours) * limits.hours AND (limits.agent IN ('', spending.agent) AND (limits.label = '' OR replace(spending.labels, limits.label, '') <> spending.labels))), 0) + COALESCE((SELECT CAST(SUM(live.cost_granted) AS bigint) FROM runs live WHERE live.exit_reason IS NULL AND EXISTS (SELECT 1 FROM demands own WHERE own.task_key = live.task_key AND (limits.agent IN ('', own.agent) AND (limits.label = '' OR replace(own.labels, limits.label, '') <> own.labels)) LIMIT 1 OFFSET 0)), 0) OR limits.tokens < COALESCE((SELECT CAST(SUM(spending.tokens) AS bigint) FROM spending WHERE spending.hour >= (NEW.created_at / 3600000000 / limits.hours) * limits.hours AND (limits.agent IN ('', spending.agent) AND (limits.label = '' OR replace(spending.labels, limits.label, '') <> spending.labels))), 0) + COALESCE((SELECT CAST(SUM(live.tokens_granted) AS bigint) FROM runs live WHERE live.exit_reason IS NULL AND EXISTS (SELECT 1 FROM demands own WHERE own.task_key = live.task_key AND (limits.agent IN ('', own.agent) AND (limits.label = '' OR replace(own.labels, limits.label, '') <> own.labels)) LIMIT 1 OFFSET 0)), 0))) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/held: what may be spent is spent, or set aside for others: truegreen limits'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_missed_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('runs', NEW.status || '|' || NEW.exit_reason || '|' || NEW.exit_detail || '|' || COALESCE((SELECT name FROM agents WHERE key = NEW.agent_key), ''), mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: runs are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_spent()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.cost < OLD.cost OR NEW.tokens < OLD.tokens THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what was spent stays spent'; END IF;
  INSERT INTO spending (hour, agent, labels, shard, cost, tokens, runs) SELECT NEW.ended_at / 3600000000, demands.agent, demands.labels, mod(pg_backend_pid(), 64), NEW.cost - OLD.cost, NEW.tokens - OLD.tokens, CASE WHEN OLD.exit_reason IS NULL THEN 1 ELSE 0 END FROM demands WHERE demands.task_key = NEW.task_key ON CONFLICT (hour, agent, labels, shard) DO UPDATE SET cost = spending.cost + excluded.cost, tokens = spending.tokens + excluded.tokens, runs = spending.runs + excluded.runs;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_started()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.status NOT IN ('starting', 'missed') OR NEW.verdict <> 'unknown' OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.key = NEW.task_key AND t.sealed_at IS NULL AND (NEW.status = 'missed' OR (t.status = 'running' AND t.fence = NEW.fence))) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: a run begins under the fence of its running task'; END IF;
  IF NEW.status <> 'missed' AND EXISTS (SELECT 1 FROM switches WHERE name = 'frozen') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/frozen: the store is frozen: nothing starts before truegreen thaw --reason WHY'; END IF;
  IF EXISTS (SELECT 1 FROM wakes w WHERE w.task_key = NEW.task_key AND w.state = 'ready' AND w.agent_key IS DISTINCT FROM NEW.agent_key) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: the task is queued to wake another agent'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_tallied()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs) SELECT NEW.ended_at / 3600000000, NEW.cell, NEW.standing, NEW.exit_reason, mode, role, mod(pg_backend_pid(), 64), 1 FROM tasks WHERE key = NEW.task_key ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard) DO UPDATE SET runs = tallies.runs + 1;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_runs_waited_for()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.status <> 'missed' AND EXISTS (SELECT 1 FROM conditions WHERE conditions.task_key = NEW.task_key AND conditions.met_at IS NULL LIMIT 1 OFFSET 0) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/held: the task waits for something that has not happened: truegreen why'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_spending_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.hour IS DISTINCT FROM OLD.hour OR NEW.agent IS DISTINCT FROM OLD.agent OR NEW.labels IS DISTINCT FROM OLD.labels OR NEW.shard IS DISTINCT FROM OLD.shard OR NEW.cost < OLD.cost OR NEW.tokens < OLD.tokens OR NEW.runs < OLD.runs THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what was spent stays spent'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_spending_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: spending are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_strikes_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: strikes are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_strikes_over()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM breakers WHERE breakers.opened_at - 86400000000 > OLD.at) AND NOT EXISTS (SELECT 1 FROM breakers WHERE breakers.kind = OLD.kind AND breakers.subject = OLD.subject AND breakers.closed_at >= OLD.at AND (breakers.signature = OLD.signature OR breakers.kind = 'provider')) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a failure counts until its breaker has closed'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_blocked_by_hand()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO events (id, task_key, revision, at, level, event, from_status, to_status, actor, reason, fence, data) VALUES ('evt_' || substr(md5(random()::text || clock_timestamp()::text), 1, 18), OLD.key, OLD.revision + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, 'warn', 'block', OLD.status, 'blocked', 'system:database', 'blocked by raw SQL', OLD.fence, '{}');
  DELETE FROM leases WHERE run_key IN (SELECT key FROM runs WHERE task_key = OLD.key);
  UPDATE agents SET status = 'completed' WHERE status = 'in_progress' AND key IN (SELECT agent_key FROM runs WHERE task_key = OLD.key AND exit_reason IS NULL);
  UPDATE runs SET status = 'stopped', exit_reason = NEW.exit_reason, exit_detail = NEW.exit_detail, ended_by = 'operator', ended_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, cell = 'blocked' WHERE task_key = OLD.key AND exit_reason IS NULL;
  UPDATE runs SET verdict = 'unknown', cell = 'blocked' WHERE task_key = OLD.key AND attempt = OLD.attempt AND verdict = 'pending';
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_blocked_counted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE tasks SET revision = revision + 1, cell = 'blocked', silent = 0, checked = 0, verdict = 'unknown', settled_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, run_status = (SELECT status FROM runs WHERE task_key = NEW.key AND attempt = NEW.attempt) WHERE key = NEW.key;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_counted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO counters (shard, run_status, status, cell, checked, tasks) VALUES (mod(pg_backend_pid(), 64), COALESCE(NEW.run_status, ''), NEW.status, COALESCE(NEW.cell, ''), NEW.checked, 1) ON CONFLICT (status, cell, run_status, checked, shard) DO UPDATE SET tasks = counters.tasks + 1;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_falsified()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE runs SET standing = 'falsified' WHERE task_key = OLD.key AND attempt = OLD.attempt;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.title IS DISTINCT FROM OLD.title OR NEW.goal IS DISTINCT FROM OLD.goal OR NEW.role IS DISTINCT FROM OLD.role OR NEW.contract IS DISTINCT FROM OLD.contract OR NEW.contract_digest IS DISTINCT FROM OLD.contract_digest OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.created_by IS DISTINCT FROM OLD.created_by OR NEW.parent_key IS DISTINCT FROM OLD.parent_key OR NEW.qa_of_key IS DISTINCT FROM OLD.qa_of_key OR NEW.proof_mode IS DISTINCT FROM OLD.proof_mode THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: the contract and the identity of a task are frozen'; END IF;
  IF NEW.fence < OLD.fence THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: the fence never falls'; END IF;
  IF OLD.sealed_at IS NOT NULL AND (NEW.status <> OLD.status OR NEW.sealed_at IS DISTINCT FROM OLD.sealed_at) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/terminated: sealed stays sealed'; END IF;
  IF NEW.rescued < OLD.rescued OR NEW.overridden < OLD.overridden OR NEW.falsified < OLD.falsified OR NEW.noop < OLD.noop THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a badge stays for ever'; END IF;
  IF NEW.revision NOT IN (OLD.revision, OLD.revision + 1) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/stale: revisions go up one by one'; END IF;
  IF NEW.status <> OLD.status AND NOT ((OLD.status || '>' || NEW.status) = ANY ('{queued>running,running>pending_eval,running>failed_pending_eval,running>awaiting_approval,awaiting_approval>running,running>blocked,awaiting_approval>blocked,failed_pending_eval>blocked,running>queued,pending_eval>queued,failed_pending_eval>queued,pending_qa>queued,needs_review>queued,running>failed,pending_eval>failed,failed_pending_eval>failed,pending_qa>failed,needs_review>failed,pending_eval>needs_review,failed_pending_eval>needs_review,pending_qa>needs_review,pending_eval>pending_qa,failed_pending_eval>pending_qa,pending_eval>succeeded,failed_pending_eval>succeeded,pending_qa>succeeded,needs_review>succeeded,blocked>queued,failed>queued,canceled>queued,succeeded>queued,queued>canceled,running>canceled,awaiting_approval>canceled,pending_eval>canceled,failed_pending_eval>canceled,pending_qa>canceled,needs_review>canceled,blocked>canceled,queued>terminated,running>terminated,awaiting_approval>terminated,pending_eval>terminated,failed_pending_eval>terminated,pending_qa>terminated,needs_review>terminated,blocked>terminated}'::text[])) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: no edge leads from the old status to the new one'; END IF;
  IF OLD.status = 'queued' AND NEW.status = 'running' AND NEW.fence <= OLD.fence THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: a start raises the fence'; END IF;
  IF NEW.revision = OLD.revision AND ((NOT (NEW.status = 'blocked' AND OLD.status <> 'blocked' AND NEW.revision = OLD.revision) AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.exit_reason IS DISTINCT FROM OLD.exit_reason OR NEW.exit_detail IS DISTINCT FROM OLD.exit_detail)) OR NEW.mode IS DISTINCT FROM OLD.mode OR NEW.run_status IS DISTINCT FROM OLD.run_status OR NEW.verdict IS DISTINCT FROM OLD.verdict OR NEW.cell IS DISTINCT FROM OLD.cell OR NEW.silent IS DISTINCT FROM OLD.silent OR NEW.rescued IS DISTINCT FROM OLD.rescued OR NEW.overridden IS DISTINCT FROM OLD.overridden OR NEW.falsified IS DISTINCT FROM OLD.falsified OR NEW.checked IS DISTINCT FROM OLD.checked OR NEW.proof IS DISTINCT FROM OLD.proof OR NEW.noop IS DISTINCT FROM OLD.noop OR NEW.sealed_at IS DISTINCT FROM OLD.sealed_at OR NEW.settled_at IS DISTINCT FROM OLD.settled_at OR NEW.fence IS DISTINCT FROM OLD.fence OR NEW.head IS DISTINCT FROM OLD.head OR NEW.attempt IS DISTINCT FROM OLD.attempt OR NEW.acceptance IS DISTINCT FROM OLD.acceptance OR NEW.attempts IS DISTINCT FROM OLD.attempts OR NEW.attempts_max IS DISTINCT FROM OLD.attempts_max OR NEW.deferrals IS DISTINCT FROM OLD.deferrals OR NEW.deferrals_max IS DISTINCT FROM OLD.deferrals_max OR NEW.qa_rounds IS DISTINCT FROM OLD.qa_rounds OR NEW.qa_rounds_max IS DISTINCT FROM OLD.qa_rounds_max OR NEW.agent_key IS DISTINCT FROM OLD.agent_key) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: what is known about a task changes only with its event'; END IF;
  IF NEW.revision > OLD.revision AND NOT EXISTS (SELECT 1 FROM events e WHERE e.task_key = OLD.key AND e.revision = NEW.revision AND ((NEW.status = OLD.status AND (e.to_status IS NULL OR e.actor = 'system:database')) OR (e.from_status = OLD.status AND e.to_status = NEW.status))) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a status changes only with its event'; END IF;
  IF OLD.status = 'succeeded' AND NEW.status <> 'succeeded' AND NEW.falsified = 0 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a verdict that is overturned is called false'; END IF;
  IF NEW.status = 'succeeded' AND OLD.status <> 'succeeded' AND NEW.qa_of_key IS NULL AND NOT ((COALESCE(NEW.proof, '') = 'shown' AND EXISTS (SELECT 1 FROM runs r JOIN findings f ON f.run_key = r.key WHERE r.task_key = NEW.key AND r.attempt = NEW.attempt AND f.binding = 1 AND f.phase <> 'baseline' AND f.outcome = 'passed' AND f.kind <> 'claim' AND (f.before = 'failed' OR f.kind IN ('evaluator', 'qa', 'person')))) OR (COALESCE(NEW.proof, '') = 'waived' AND (NEW.proof_mode = 'regression' OR (NEW.noop = 1 AND COALESCE(NEW.exit_detail, '') = 'noop')))) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a task succeeds only with a recorded proof that its work made the difference'; END IF;
  IF NEW.checked = 1 AND OLD.checked = 0 AND NOT EXISTS (SELECT 1 FROM runs r JOIN findings f ON f.run_key = r.key WHERE r.task_key = NEW.key AND r.attempt = NEW.attempt AND f.binding = 1 AND f.phase <> 'baseline' AND f.kind NOT IN ('claim', 'person') AND f.outcome IN ('passed', 'failed')) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: checked is what a check gave an answer about'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: tasks are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_open()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.status <> 'queued' OR NEW.revision <> 1 OR NEW.exit_reason IS NOT NULL OR NEW.sealed_at IS NOT NULL OR NEW.rescued <> 0 OR NEW.overridden <> 0 OR NEW.falsified <> 0 OR NEW.checked <> 0 OR NEW.noop <> 0 OR NEW.verdict <> 'unknown' OR NEW.cell IS NOT NULL OR NEW.acceptance IS NOT NULL OR NEW.proof IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: a task begins queued, without an exit, a verdict, a seal or a badge'; END IF;
  IF NOT EXISTS (SELECT 1 FROM events WHERE task_key = NEW.key AND revision = 1 AND event = 'open') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: a task begins with its open event'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_recounted()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO counters (shard, run_status, status, cell, checked, tasks) VALUES (mod(pg_backend_pid(), 64), COALESCE(OLD.run_status, ''), OLD.status, COALESCE(OLD.cell, ''), OLD.checked, -1) ON CONFLICT (status, cell, run_status, checked, shard) DO UPDATE SET tasks = counters.tasks - 1;
  INSERT INTO counters (shard, run_status, status, cell, checked, tasks) VALUES (mod(pg_backend_pid(), 64), COALESCE(NEW.run_status, ''), NEW.status, COALESCE(NEW.cell, ''), NEW.checked, 1) ON CONFLICT (status, cell, run_status, checked, shard) DO UPDATE SET tasks = counters.tasks + 1;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tasks_rescued_metered()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO meters (name, label, shard, total) VALUES ('rescued', '', mod(pg_backend_pid(), 64), 1) ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tokens_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.role IS DISTINCT FROM OLD.role OR NEW.digest IS DISTINCT FROM OLD.digest OR NEW.task_key IS DISTINCT FROM OLD.task_key OR NEW.run_key IS DISTINCT FROM OLD.run_key OR NEW.fence IS DISTINCT FROM OLD.fence OR NEW.name IS DISTINCT FROM OLD.name OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.created_at IS DISTINCT FROM OLD.created_at OR NEW.expires_at IS DISTINCT FROM OLD.expires_at OR OLD.revoked_at IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a token can only be revoked, once'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_tokens_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: tokens are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_waivers_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: waivers are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_waivers_no_update()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: waivers are kept: update is refused'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_wakes_armed()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key AND a.status = 'terminated') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/terminated: a terminated agent is never woken'; END IF;
  IF NEW.state <> 'armed' THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: a wake-up begins armed'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_wakes_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.agent_key IS DISTINCT FROM OLD.agent_key OR NEW.cause IS DISTINCT FROM OLD.cause OR NEW.body IS DISTINCT FROM OLD.body OR NEW.due_at IS DISTINCT FROM OLD.due_at OR NEW.armed_by IS DISTINCT FROM OLD.armed_by OR NEW.created_at IS DISTINCT FROM OLD.created_at OR (OLD.task_key IS NOT NULL AND NEW.task_key IS DISTINCT FROM OLD.task_key) THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: a wake-up stays as it was armed'; END IF;
  IF OLD.state || '>' || NEW.state NOT IN ('armed>ready', 'armed>void', 'ready>fired', 'ready>void') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/illegal_move: a wake-up is used once'; END IF;
  IF NEW.state <> 'void' AND EXISTS (SELECT 1 FROM agents a WHERE a.key = NEW.agent_key AND a.status = 'terminated') THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/terminated: a terminated agent does not wake'; END IF;
  RETURN NEW;
END $function$;

CREATE OR REPLACE FUNCTION public.truegreen_wakes_no_delete()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF 1 = 1 THEN RAISE EXCEPTION USING ERRCODE = 'TG001', MESSAGE = 'truegreen/forbidden: wakes are kept: delete is refused'; END IF;
  RETURN OLD;
END $function$;
