"""The strict command line: an unknown key or choice, or bad input, is one line that says what would be right."""
