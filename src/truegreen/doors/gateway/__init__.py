"""The model gateway: the agent thinks through it, with a key that dies with its run.

The real keys stay on this side. Every request is looked at against the record before it goes on,
and what the answer used is counted. It starts no process, and sets nothing but a tripwire.
"""
