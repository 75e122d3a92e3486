"""The gate kind `pytest`: tests that judge an agent's work, run by a runner that it can't reach.

A session of pytest with the interpreter, the settings, the conftests and the test ids that were
there before the agent; and beside it a control session with changed expectations, which must fail.
"""
