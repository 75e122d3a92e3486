"""Tests of the work: processes, workspaces, agents, gates, verdicts."""
