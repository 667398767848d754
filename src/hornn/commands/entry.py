"""The command `hornn`: the first word chooses what runs."""

import sys
from importlib.metadata import version
from pathlib import Path

from hornn.command_line.ending import FAILED, end, start

COMMANDS = {
    "train": "train a language model, or the runs of a sweep",
    "evaluate": "perplexity of a corpus or a text under a trained model or a mixture",
    "score": "score texts, one a line, as they arrive",
    "rescore": "the best hypotheses of n-best lists, and their word error rate",
    "generate": "write text with a trained model",
    "tune": "search constants on validation",
    "status": "how far sweeps are",
    "report": "tables and figures of all sweeps",
    "dashboard": "the same on Weights & Biases",
    "parameters": "weight counts at the papers' sizes",
    "bench": "the speed of this machine beside torch's own layers",
}


def main() -> None:
    word = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if word in ("-h", "--help"):
        print("hornn COMMAND ...; `hornn COMMAND --help` says what a command takes\n")
        print("\n".join(f"  {name:<12} {does}" for name, does in COMMANDS.items()))
    elif word == "--version":
        print(f"hornn {version('hornn')}")
    elif word not in COMMANDS:
        end(f"unknown command {word!r}; it is one of: {', '.join(COMMANDS)}", FAILED)
    else:
        # Lightning starts further ranks by the words of this command line.
        sys.argv = [str(Path(__file__).with_name(f"{word}.py")), *sys.argv[2:]]
        start(word)
