"""The figures that a scoring command ends with: shown, checked and written."""

import codecs
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from rich.console import Console

from hornn.data.text import MANY_UNKNOWN
from hornn.data.vocabulary import Vocabulary
from hornn.metrics import bits, perplexity
from hornn.result import finite
from hornn.run.identity import FILES, SNAPSHOTS
from hornn.shown import shown
from hornn.writing import require_folder, require_writable, write_atomically


def require_probabilities(mean: float, name: str, dynamic_lr: float | None = None) -> None:
    """Raise ValueError where the mean -ln P of a text, in nats, cannot come from a model of text.

    dynamic_lr: the rate at which it learned from that text, if it did.
    """
    if not math.isfinite(perplexity(mean)):
        cause = "its weights are damaged or have diverged"
        if dynamic_lr is not None:
            cause = f"dynamic_lr={dynamic_lr:g} is too large"
        elif mean == math.inf:  # of counts, or of an ARPA file with log10 p = -inf
            cause = (
                f"a token has the probability 0, or {cause}; a mixture with another model knows such a token"
            )
        raise ValueError(f"{name} gives no finite perplexity ({mean:g} nats per token): {cause}")
    if mean < 0:
        raise ValueError(f"{name} gives probabilities above 1: it is damaged, make or copy it again")


def figures_of_text(nll: float, nll_known: float, tokens: int, unknown: int, unit: str) -> dict[str, float]:
    """What the -ln P of a text is to a person, by the names that are shown.

    nll: the sum over all tokens, in nats; nll_known: over those that the vocabulary has. Where a token is not among
    these, they have a perplexity of their own, for all others are read as one word. unit: of the tokenizer.
    """
    known = tokens - unknown
    return {
        "perplexity": perplexity(nll / tokens),
        f"bits_per_{'character' if unit == 'char' else 'token'}": bits(nll / tokens),
        "tokens": tokens,
        "out_of_vocabulary": unknown,
        **({"perplexity_known": perplexity(nll_known / known)} if unknown and known else {}),
    }


def warn_of_unknown(figures: Mapping[str, Any], vocabulary: Vocabulary) -> None:
    """Say on standard error where so much of a text is unknown that its perplexity says little.

    A text may have as many unknown words as training showed, and as many again.
    """
    share = figures["out_of_vocabulary"] / figures["tokens"]
    if share > max(MANY_UNKNOWN, 2 * vocabulary.unknown_share):
        said = f"warning: {100 * share:.1f} % of the tokens are unknown, and read as one word: perplexity says little"
        others = "; perplexity known is of all others" if "perplexity_known" in figures else ""
        console_of_texts(stderr=True).print(said + others, style="yellow", markup=False)


def as_json(record: Mapping[str, Any]) -> str:
    """A record for standard output, with each character itself where the output is in UTF-8.

    In its place another encoding would get `\\N`, which is no JSON.
    """
    encoding = sys.stdout.encoding
    return json.dumps(record, ensure_ascii=encoding is not None and codecs.lookup(encoding).name != "utf-8")


def require_target(target: Any, sources: Iterable[Path] = ()) -> None:
    """Raise ValueError or OSError unless a file can be written there, beside the files that are read; null is none."""
    if target is None:
        return
    if isinstance(target, bool) or not isinstance(target, str | int | Path):
        raise ValueError(f"a file to write must be a path, got {target!r}: give one path")
    path = Path(str(target))
    require_folder(path)
    if path.is_dir():
        raise ValueError(f"{target} is a folder: give the path of a file to write")
    if path.name in FILES or path.match(SNAPSHOTS):
        raise ValueError(
            f"{target} has the name of a run's own file, which only a run writes: give another name"
        )
    for source in sources:
        if path.exists() and source.exists() and path.samefile(source):
            raise ValueError(f"{target} is a file that this command reads: give another name to write to")
    if path.is_symlink() or (path.exists() and not path.is_file()):  # root may replace /dev/null itself
        raise ValueError(
            f"{target} is a link, a pipe or a device, and a new file would take its place: give the path of a file"
        )
    require_writable(path)


def console_of_texts(stderr: bool = False) -> Console:
    """A console that shows texts and paths of the user's letter by letter."""
    return Console(stderr=stderr, highlight=False, soft_wrap=True, emoji=False)


def text_of(cfg: DictConfig, key: str) -> Path:
    """The text file that a key of a command names. ValueError where it names none."""
    if cfg[key] is None or cfg[key] == "":
        raise ValueError(f"{key}= names no text file: give the path of one, or - for standard input")
    return Path(str(cfg[key]))


def require_each_once(key: str, paths: Sequence[Path]) -> None:
    """Raise ValueError where two of the paths that a key names lead to one file."""
    if len({path.resolve() for path in paths}) < len(paths):
        raise ValueError(f"{key}= names a file twice: give each once")


def files_of(cfg: DictConfig, *keys: str) -> Iterator[Path]:
    """The files that these keys of a command name, each key one file, a list of files, or none."""
    for key in keys:
        value = OmegaConf.select(cfg, key)  # null for a key that is missing, too
        for each in value if isinstance(value, ListConfig) else [value]:
            if each is not None:
                yield Path(str(each))


def report(
    figures: Mapping[str, Any], console: Console, result: Any = None, exact: Mapping[str, float] | None = None
) -> None:
    """Show the figures, one a line, and write them as JSON to the file `result`, if there is one.

    exact: numbers in full precision for that file, of figures that are shown as text.
    """
    for name, value in figures.items():
        lines = (
            [f"{each:.4f}  {part}" for part, each in value.items()] if isinstance(value, Mapping) else value
        )
        for number, line in enumerate(lines if isinstance(lines, list) else [lines]):
            text = line
            if isinstance(line, int | float):
                whole = isinstance(line, int) or name.endswith("second")
                digits = 0 if whole else 3 if name.startswith("bits") else 2
                text = f"{line:,.{digits}f}"
            if name == "out_of_vocabulary" and figures["tokens"]:
                text += f" ({100 * line / figures['tokens']:.1f} %)"
            console.print(f"{'' if number else name.replace('_', ' '):>18}  {shown(str(text))}", markup=False)
    if result is not None:
        write_atomically(Path(str(result)), json.dumps(finite({**figures, **(exact or {})}), indent=2) + "\n")
