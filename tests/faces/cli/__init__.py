"""Tests of the command line, through the installed command."""
