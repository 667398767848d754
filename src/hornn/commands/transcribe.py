"""Write down what is said in recordings: `hornn transcribe --help`."""

from hornn.command_line.using import using

run = using("transcribe", "hornn.use.speech")
