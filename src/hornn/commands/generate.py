"""Write text with a trained language model: `hornn generate --help`."""

from hornn.command_line.using import using

run = using("generate", "hornn.use.generate")
