"""The command `hornn`: the first word chooses what runs."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

from hornn.command_line.ending import FAILED, end, run, start

COMMANDS = {
    "train": "train a language model, or the runs of a sweep",
    "evaluate": "perplexity of a corpus or a text under a trained model or a mixture",
    "score": "score texts, one a line, as they arrive",
    "rescore": "the best hypotheses of n-best lists, and their word error rate",
    "generate": "write text with a trained model",
    "transcribe": "the words of recordings with their times, or n-best lists to rescore",
    "analyse": "how far a trained network looks back",
    "tune": "search constants on validation",
    "status": "how far sweeps are",
    "report": "tables and figures of all sweeps",
    "dashboard": "the same on Weights & Biases",
    "parameters": "weight counts at the papers' sizes",
    "bench": "the speed of this machine beside torch's own layers",
}
# Commands whose words are choices and keys.
USE_HYDRA = ("train", "evaluate", "score", "rescore", "generate", "transcribe", "analyse", "tune")


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if word == "-sc":
        complete()
        return
    if word in ("-h", "--help"):
        lines = [f"  {name:<12} {does}" for name, does in COMMANDS.items()]
        run(
            lambda: "\n".join(
                ["hornn COMMAND ...; `hornn COMMAND --help` says what a command takes", "", *lines]
            )
        )
    elif word == "--version":
        run(lambda: f"hornn {version('hornn')}")
    elif word not in COMMANDS:
        end(f"unknown command {word!r}; it is one of: {', '.join(COMMANDS)}", FAILED)
    else:
        # Lightning starts further ranks by the words of this command line.
        sys.argv = [str(Path(__file__).with_name(f"{word}.py")), *sys.argv[2:]]
        start(word)


def complete() -> None:
    """What a shell asks for when Tab is pressed, by Hydra's own completion: `hornn -sc install=bash`.

    Hydra completes the words of one program, so the command is taken out of the line.
    """
    typed = os.environ.get("COMP_LINE", "")
    words = typed.split()
    if len(words) > 2 or (len(words) == 2 and typed[-1:].isspace()):
        name = words[1] if words[1] in USE_HYDRA else ""
        if not name:
            return
        line = typed.replace(f" {words[1]}", "", 1)
        os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
    elif words:
        print(" ".join(name for name in COMMANDS if name.startswith("".join(words[1:]))))
        return
    else:  # it is to be installed
        name = USE_HYDRA[0]
    start(name)
