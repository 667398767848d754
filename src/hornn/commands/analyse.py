"""Measure the memory of a trained network: `hornn analyse --help`."""

from hornn.command_line.using import using

run = using("analyse", "hornn.analysis.analyse")
