"""Other job systems at the same work; each module here runs in an environment of its own."""
