"""An agent can't change the program that judges it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.walk.conftest import Walk, python
from tests.work.running import need_jail
from truegreen.work import jail, shim

# Only opens and touches: should the shield be gone, the test must not be what does the harm.
TRIES = f"""
import os
shim, folder = {shim.__file__!r}, {jail.own_package()!r}
def tried(deed):
    try:
        deed()
    except OSError as error:
        return error.strerror
    return "done"
print(tried(lambda: os.close(os.open(shim, os.O_RDWR))))
print(tried(lambda: os.utime(shim)))
print(tried(lambda: os.chmod(folder, os.stat(folder).st_mode)))
print(tried(lambda: os.rename(folder, folder)))
print(tried(lambda: os.rmdir(folder + "/work")))
print(tried(lambda: os.mkdir(folder + "/work")))
open("seen", "w").write(open(shim).readline())
"""


@pytest.mark.criterion("O04")
def test_our_own_code_is_read_only_for_a_jailed_agent(walk: Walk) -> None:
    need_jail()
    before = os.stat(shim.__file__).st_mtime_ns
    got = walk.run("--isolation", "jail", "--gate", "test -s seen", *python(TRIES))
    assert got.status == 0
    said = Path(got.latest["facts"]["log"]).read_text().splitlines()
    assert "done" not in said[:3] + said[4:]
    assert said[0] == "Read-only file system"
    assert os.stat(shim.__file__).st_mtime_ns == before
