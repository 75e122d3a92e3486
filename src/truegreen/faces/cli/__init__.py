"""The command line: one module per group of commands, loaded when one of them is used."""
