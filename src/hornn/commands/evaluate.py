"""Score text with a trained language model: `hornn evaluate --help`."""

from hornn.command_line.using import using

run = using("evaluate", "hornn.use.evaluate")
