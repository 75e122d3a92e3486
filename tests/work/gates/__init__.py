"""Tests of the gates: every kind, and that none passes by accident."""
