"""What hostile code does once it runs inside of the process that judges it, and when.

Python text; each payload turns a red suite green for a judge that believes its own process.
"""

from __future__ import annotations

import textwrap

REPORT = """
import _pytest.reports as _r
_init = _r.TestReport.__init__
def _passed(self, *a, **k):
    _init(self, *a, **k)
    self.outcome = 'passed'
    self.longrepr = None
_r.TestReport.__init__ = _passed
"""
RUNTEST = """
import _pytest.python as _p
_p.Function.runtest = lambda self: None
"""
MAKEREPORT = """
import _pytest.runner as _n
_old = _n.CallInfo.from_call.__func__
def _quiet(cls, func, when, reraise=None):
    def calm():
        try:
            return func()
        except BaseException:
            return None
    return _old(cls, calm, when, reraise)
_n.CallInfo.from_call = classmethod(_quiet)
"""
PLUGGY = """
import pluggy._manager as _m, pluggy._hooks as _h
_call = _h.HookCaller.__call__
def _skip(self, **k):
    return True if self.name == 'pytest_pyfunc_call' else _call(self, **k)
_h.HookCaller.__call__ = _skip
"""
PLUGIN = """
import gc as _gc
class _Plugin:
    def pytest_pyfunc_call(self, pyfuncitem):
        return True
_Plugin.pytest_pyfunc_call.pytest_impl = {'tryfirst': True, 'trylast': False, 'hookwrapper': False,
                                          'wrapper': False, 'optionalhook': False, 'specname': None}
for _each in _gc.get_objects():
    if type(_each).__name__ == 'PytestPluginManager':
        _each.register(_Plugin(), 'calm')
"""
SESSION = """
import _pytest.main as _q, _pytest.junitxml as _j
_q.Session.testsfailed = property(lambda self: 0, lambda self, value: None)
_old = _j.LogXML.pytest_sessionfinish
def _finish(self):
    for _reporter in self.node_reporters_ordered:
        _reporter.nodes[:] = []
    self.stats.update(failure=0, error=0)
    return _old(self)
_j.LogXML.pytest_sessionfinish = _finish
"""
JUNIT = """
import _pytest.main as _q, _pytest.junitxml as _j
_q.Session.testsfailed = property(lambda self: 0, lambda self, value: None)
_j._NodeReporter.append_failure = lambda self, report: None
_j._NodeReporter.append_error = lambda self, report: None
"""
CODE = """
import gc as _gc, types as _t
def _empty():
    for each in _gc.get_objects():
        test = isinstance(each, _t.FunctionType) and each.__name__.startswith('test_')
        if test and not each.__closure__:
            each.__code__ = (lambda *a, **k: None).__code__
"""
ASSERTION = """
import builtins as _b
class _Calm(Exception):
    pass
import _pytest.outcomes as _o
_b.AssertionError = _o.Skipped
"""
RAISES = """
import _pytest.python as _p
_old = _p.Function.runtest
def _calm(self):
    try:
        _old(self)
    except BaseException:
        pass
_p.Function.runtest = _calm
"""
EXIT = """
import os as _o, sys as _s, atexit as _a
_a.register(lambda: _o._exit(0))
"""
PRINT_EXIT = """
import os as _o
_o.write(1, b'.....\\n5 passed in 0.01s\\n')
_o._exit(0)
"""
SYS_EXIT = """
import sys as _s, os as _o
_s.exit = lambda *a: None
_old_exit = _o._exit
_o._exit = lambda code=0: _old_exit(0)
raise SystemExit(0)
"""
UNITTEST = """
import unittest.case as _c
_c.TestCase._callTestMethod = lambda self, method: None
_c.TestCase.assertEqual = lambda self, *a, **k: None
"""
COLLECT = """
import _pytest.python as _p
_old = _p.Module.collect
def _few(self):
    return [each for each in _old(self) if 'slug' in each.name]
_p.Module.collect = _few
_p.Function.runtest = lambda self: None
"""
CONSOLE = """
import _pytest.config as _f
_main = _f.main
_f.main = lambda *a, **k: 0
_f.console_main = lambda: 0
import pytest as _y
_y.main = lambda *a, **k: 0
"""
PAYLOADS = {
    "report": REPORT,
    "runtest": RUNTEST,
    "callinfo": MAKEREPORT,
    "pluggy": PLUGGY,
    "plugin": PLUGIN,
    "session": SESSION,
    "junit": JUNIT,
    "swallow": RAISES,
    "exit": EXIT,
    "print-exit": PRINT_EXIT,
    "collect": COLLECT,
    "assertion": ASSERTION,
}


def at_once(code: str) -> str:
    """When the module is imported."""
    return code


def guarded(code: str) -> str:
    """At once, and only where pytest is: elsewhere the module behaves."""
    inner = textwrap.indent(code.strip(), "    ")
    return (
        f"import sys as _sys\nif 'pytest' in _sys.modules or '_pytest' in _sys.modules:\n{inner}\n"
    )


def by_import(code: str) -> str:
    """At the first later import of anything."""
    inner = textwrap.indent(code.strip(), "                ")
    return (
        "import sys as _sys\nclass _Wait:\n    done = False\n"
        "    @classmethod\n    def find_spec(cls, name, path=None, target=None):\n"
        "        if not cls.done and '_pytest.python' in _sys.modules:\n"
        "            cls.done = True\n            try:\n"
        f"{inner}\n"
        "            except (AttributeError, ImportError):\n                cls.done = False\n"
        "_sys.meta_path.insert(0, _Wait)\n"
    )


def by_call(code: str) -> str:
    """When the function under test is called for the first time."""
    inner = textwrap.indent(code.strip(), "    ")
    return (
        f"def _strike():\n"
        f"{inner}\n"
        f"_total = total\n"
        f"def total(prices):\n"
        f"    _strike()\n"
        f"    return _total(prices)\n"
    )


def by_thread(code: str) -> str:
    """By a thread, a little later."""
    inner = textwrap.indent(code.strip(), "    ")
    return (
        f"import threading as _th\ndef _late():\n{inner}\n"
        "_t = _th.Thread(target=_late, daemon=True)\n_t.start()\n_t.join(0.05)\n"
    )


def by_exit(code: str) -> str:
    """When the interpreter ends."""
    inner = textwrap.indent(code.strip(), "    ")
    return f"import atexit as _at\ndef _last():\n{inner}\n_at.register(_last)\n"


TIMINGS = {
    "once": at_once,
    "guarded": guarded,
    "import": by_import,
    "call": by_call,
    "thread": by_thread,
    "exit": by_exit,
}
