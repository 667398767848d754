"""Where the program's own files lie, in a checkout and in an installed package alike."""

import re
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).parent
PLACES = ("root", "cache_dir", "url")  # of a corpus: a matter of this machine, no file may name them
OWN_TEXT = ("data.train", "data.valid", "data.test")  # keys that say where files of one's own lie
# Inside of the installed package, or at the top of the checkout; `sweeps` is in there, too.
CONF = PACKAGE / "conf" if (PACKAGE / "conf").is_dir() else PACKAGE.parents[1] / "conf"


def sweep_files() -> Path:
    """The folder of sweep files: `sweeps` where the command runs, if it has any, else the program's own."""
    own = Path("sweeps")
    return own if any(own.glob("*.yaml")) else CONF / "sweeps"


def require_one(name: str, folders: Iterable[Path]) -> None:
    """Raise ValueError where several of the folders have different files of this name: one would count in silence."""
    first, *others = [path for folder in folders if (path := folder / f"{name}.yaml").is_file()] or [Path()]
    for other in others:
        if other.read_bytes() != first.read_bytes():
            raise ValueError(
                f"{first} and {other} have one name and are not the same: give yours another name"
            )


def script_of(command: Path) -> Path:
    """What a further process runs for the file of a command: the script in `src/` of a checkout, else the file."""
    script = PACKAGE.parent / command.name
    return script if command.parent == PACKAGE / "commands" and script.is_file() else command


def as_typed(text: str) -> str:
    """The text with its commands as they are typed here: without a checkout `python src/train.py` is `hornn train`."""
    if (PACKAGE.parent / "train.py").is_file():
        return text
    return re.sub(r"python src/(?:sweep_)?(\w+)\.py", r"hornn \1", text)
