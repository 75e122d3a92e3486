"""Types are known before threads read them: a second one in the middle of that kills a process."""

from __future__ import annotations

import subprocess
import sys

from tests.record.lives import contract
from tests.table import each_row

SLOWLY = """
import sys, threading, time
from types import FunctionType
import msgspec._utils as learning
{begun}
from truegreen.contract import read_contract

def slowly(obj):
    learnt.append(obj)
    sleep(0.05)
    return real(obj)

learn = learning.get_class_annotations  # msgspec keeps the function: only its code can be another
learning.real = FunctionType(learn.__code__, learn.__globals__)
learning.learnt, learning.sleep = [], time.sleep
learn.__code__ = slowly.__code__
threads = [threading.Thread(target=read_contract, args=(sys.argv[1],)) for _ in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
print("alive", len(learning.learnt))
"""
BEGUN = {
    "scheduler": """
import os, tempfile
from truegreen.record.ledger import open_ledger
from truegreen.scheduler import Scheduler
from truegreen.supervisor.place import Place
folder = tempfile.mkdtemp()
ledger = open_ledger(f"sqlite:///{folder}/store.db")
Scheduler(ledger, Place(folder, (folder,), os.environ, ("truegreen",), folder), seats=2).close()
ledger.close()
""",
    "site": """
from types import SimpleNamespace
from truegreen.faces.web.site import site
site(SimpleNamespace(address=SimpleNamespace(hosts=())))
""",
}


@each_row("begun", BEGUN)
def test_threads_that_read_a_type_for_the_first_time_at_once_end_nothing(begun: str) -> None:
    script = SLOWLY.format(begun=BEGUN[begun])
    words = [sys.executable, "-c", script, contract().text()]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "alive 0"), done.stderr[-2000:]
