"""The help of a command that Hydra runs, as wide as the terminal; elsewhere 80 columns."""

import re
from shutil import get_terminal_size
from textwrap import wrap

# A key with its comment, a group with its choices, a folder that a variable may name.
COMMENT, CHOICES = re.compile(r"( *\S.*? +)# (.*)"), re.compile(r"([\w/]+: )(\w+, .*)")
FOLDER = re.compile(r"\$\{oc\.env:(\w+),\$\{oc\.env:HOME\}(.*?)\}")


def fit(text: str) -> str:
    """Wrap the comments and lists of choices of a help, and write the default folders as a person does."""
    text = re.sub(r"\n {4,}# ", " ", text)  # a comment goes on below itself
    text = FOLDER.sub(r"~\2  # or the folder that \1 names", text)
    return "\n".join(
        part for line in text.split("\n") for part in fit_line(line, get_terminal_size().columns)
    )


def fit_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    if found := COMMENT.fullmatch(line):
        key, below, rest = f"{found[1]}# ", f"{' ' * len(found[1])}# ", found[2]
    elif found := CHOICES.fullmatch(line):
        key, below, rest = found[1], "  ", found[2]
    else:
        return [line]
    return wrap(rest, width, initial_indent=key, subsequent_indent=below, break_long_words=False)
