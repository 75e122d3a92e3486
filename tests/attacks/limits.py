"""Attacks by size and time: gates that never end, reports that nobody can read, full disks."""

from __future__ import annotations

from tests.attacks.corpus import Attack, enter
from tests.attacks.work import Work

ONLY_UNDER_TEST = "\nimport sys\nif 'pytest' in sys.modules:\n"


def _product(text: str):
    return lambda work: work.product(ONLY_UNDER_TEST + text)


def _honest(work: Work) -> None:
    work.fix()
    work.product("\n\ndef patient():\n    import time\n\n    time.sleep(0)\n")


def _limit(name: str, how: str, text: str, **more: object) -> None:
    enter(Attack(id=name, how=how, play=_product(text), honest=_honest, **more))  # type: ignore[arg-type]


_limit(
    "endless",
    "72: an endless loop only under test",
    "    import time\n    time.sleep(30)\n",
    runner="short",
)
_limit(
    "kill-runner",
    "72: the runner is killed by a signal",
    "    import os\n    os.kill(os.getpid(), 9)\n",
)
_limit(
    "memory",
    "72: runs out of memory",
    "    import resource\n"
    "    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))\n"
    "    x = bytearray(1 << 28)\n",
)
_limit(
    "loud",
    "74: megabytes of output, and the summary in the middle of it",
    "    import os\n    os.write(1, b'5 passed in 0.01s\\n' * 200000)\n    os._exit(0)\n",
)
_limit(
    "descriptors",
    "74: no file can be opened or written any more",
    "    import resource\n    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    "    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\n",
)
_XML = (
    "    import atexit, os, sys\n    def _forge():\n"
    "        for word in sys.argv:\n            place = word.partition('=')[2] or word\n"
    "            if place.endswith('.xml') or 'junit' in word:\n"
    "                open(place, 'wb').write({data})\n"
    "        os._exit(0)\n"
    "    atexit.register(_forge)\n"
)
_limit(
    "xml-bomb",
    "88: the report is an XML entity bomb",
    _XML.format(
        data="b'<!DOCTYPE x [<!ENTITY a0 \"aaaaaaaaaa\">' + b''.join("
        "b'<!ENTITY a%d \"%s\">' % (n, b'&a%d;' % (n - 1) * 10)"
        " for n in range(1, 10)) + b']><testsuites>&a9;</testsuites>'"
    ),
)
_limit(
    "xml-deep",
    "88: the report is a hundred thousand elements deep",
    _XML.format(data="b'<testsuite>' * 100000 + b'</testsuite>' * 100000"),
)
_limit(
    "xml-bytes",
    "88: the report is no XML: bytes that are no text, numbers without end",
    _XML.format(
        data="b'<testsuites tests=\"' + b'9' * 100000"
        ' + b\'" failures="-1">\\xff\\xfe\\x00</testsuites>\''
    ),
)
