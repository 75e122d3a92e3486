"""Golden files: recorded public output. Tests compare it, `make golden` records it again."""
