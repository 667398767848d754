"""The commands: `hornn NAME ...`, and in a checkout `python src/NAME.py ...`."""
