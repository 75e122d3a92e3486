"""`truegreen top`: everything at one glance, and keys for what a person does about it.

It reads the record like any face, and acts through `faces.deeds`. Textual is loaded only for the
live view; one frame for a pipe needs none.
"""
