"""Rescore n-best lists: `hornn rescore --help`."""

from hornn.command_line.using import using

run = using("rescore", "hornn.use.rescore")
