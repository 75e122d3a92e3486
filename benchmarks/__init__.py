"""Measurements of truegreen, each beside the raw thing it is compared with."""
