"""Between the wings: whoever is here knows the record and the work, and neither knows the other.

Coming in loads nothing: who asks whether a supervisor is dead needs none of what a live one does.
`corridor` is the way of a task through its attempts.
"""
