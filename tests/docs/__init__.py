"""The documentation under test, and the pages of it that are made from the code."""
