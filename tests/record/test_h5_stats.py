import collections, pytest
from tests.record import test_histories as H
from hypothesis import settings, HealthCheck
from hypothesis.stateful import run_state_machine_as_test
from tests.conftest import *
stats=collections.Counter(); sts=collections.Counter()
orig=H.History.both
def both(self, task, real, model):
    import inspect
    name=inspect.stack()[1].function
    if name=="shown": name=inspect.stack()[2].function
    before=task.model.status
    r=orig(self,task,real,model)
    stats[(name, "ok" if r else "no")]+=1; sts[(before,task.model.status)]+=1
    return r
@pytest.mark.timeout(500)
def test_stats(sqlite_url, postgres_url):
    H.History.both=both
    H.History.urls=(sqlite_url,postgres_url); H.History.ledgers=[open_ledger(u) for u in H.History.urls]
    run_state_machine_as_test(H.History, settings=settings(max_examples=250, stateful_step_count=40, suppress_health_check=list(HealthCheck)))
    for k,v in sorted(stats.items()): print(k,v)
    print([ (k,v) for k,v in sorted(sts.items()) if k[0]!=k[1]])
