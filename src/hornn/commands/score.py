"""Score texts, one a line: `hornn score --help`."""

from hornn.command_line.using import using

run = using("score", "hornn.use.score")
