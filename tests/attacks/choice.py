"""Which attacks and twins run with the tests; all others run by `python -m tests.attacks`."""

from __future__ import annotations
