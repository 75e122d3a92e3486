"""What agents say about their work, and what was observed of it. Read, never believed.

`files` reads declarations, `statements` finds what a message states, `checking` holds both against
what the host found. Whether the work is done is the gates' to say, not this room's. Each part is
asked for by its name: whoever reads a declaration need not load a grammar.
"""
