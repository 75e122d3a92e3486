"""The tests, as a package, so that the tree may mirror the source tree with equal file names."""
