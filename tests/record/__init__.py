"""Tests of the record: what is true, and that it stays so."""
