"""The table of weight counts: every cell at its paper's size, ours beside the published number."""

from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from hornn.blocks import renew_pages
from hornn.build import bound
from hornn.cells.base import Cell
from hornn.network import SequenceModel
from hornn.recipe import read_choice

TABLE = Path(__file__).with_suffix(".yaml")


def count_parameters(row: DictConfig) -> int:
    """Weights of the language model over `row.vocabulary` words, or of the cell alone with `row.input` inputs.

    Raises ValueError for a model of counts: how many numbers it stores depends on its text, and `result.json` says it.
    """
    cell = bound({**read_choice("model", row.model), **row.get("set", {})}, Cell, "model")
    with torch.device("meta"):
        if "vocabulary" in row:
            return SequenceModel([1] * row.vocabulary, cell).num_parameters
        return sum(parameter.numel() for parameter in cell(input_size=row.input).parameters())


def published_count(text: str) -> tuple[float, float]:
    """`8.3M` -> 8,300,000 and 100,000, the unit of its last digit."""
    number, scale = float(text[:-1]), {"K": 1e3, "M": 1e6}[text[-1]]
    decimals = len(text[:-1].partition(".")[2])
    return number * scale, scale * 10**-decimals


def render() -> str:
    """The table as Markdown. Published and ours are equal if they differ by less than the last digit's unit."""
    table: Any = OmegaConf.load(TABLE)
    lines = [
        "| `model=` | arguments | paper | equation | counted | ours | published | equal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in table.rows:
        count = count_parameters(row)
        published = row.get("published")
        equal = ""
        if published is not None:
            number, unit = published_count(published)
            equal = "yes" if abs(count - number) < unit else "no"
            published += "" if row.get("verified", True) else " (unverified)"
        arguments = " ".join(f"{key}={value}" for key, value in row.get("set", {}).items())
        counted = f"model, {row.vocabulary:,} words" if "vocabulary" in row else f"cell, {row.input} inputs"
        lines.append(
            f"| `{row.model}` | {arguments} | {table.papers[row.paper]} | {row.equation} | {counted} "
            f"| {count:,} | {published or 'none'} | {equal} |"
        )
    return "\n".join(lines)


def renew(folder: Path) -> list[Path]:
    """Write the table into the pages of `folder` that have a block for it; the pages that changed."""
    text = render()
    return renew_pages(folder, lambda _: {"parameters": lambda _: text})
