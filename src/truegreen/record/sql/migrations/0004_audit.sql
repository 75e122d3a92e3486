-- Reports look at the runs that ended in a period.

CREATE INDEX runs_ended ON runs (ended_at{then_key}) WHERE ended_at IS NOT NULL;
