"""What a person sees of a run before it starts, after each epoch, and after it ended."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from hornn.data.text import TextData

console = Console()


def announce(
    run_dir: Path, model: str, size: str, data: TextData, notes: Sequence[str], resume: bool
) -> None:
    """The model with its `size`, its data, what else is to be noted, and where it all goes."""
    tokens = ", ".join(f"{split} {count:,}" for split, count in data.describe()["tokens"].items())
    console.print(f"[bold]{model}[/] on [bold]{data.name}[/]: {size}", highlight=False)
    console.print(f"  tokens: {tokens}; vocabulary {len(data.vocabulary):,}", highlight=False)
    for note in notes:
        console.print(f"  {note}", highlight=False, soft_wrap=True)
    if not data.has_split("valid"):
        console.print("  there is no third split: validation reads the test text", highlight=False)
    for splits in data.corpus.same_texts():
        console.print(f"  [yellow]warning: {describe_same_text(splits)}[/]", highlight=False, soft_wrap=True)
    console.print(f"  {'continues in' if resume else 'writes to'} {run_dir}", highlight=False, soft_wrap=True)


def describe_same_text(splits: Sequence[str]) -> str:
    """What it means that these splits are one text, and what to do about it."""
    keys = ", ".join(f"data.{split}" for split in splits[:-1]) + f" and data.{splits[-1]}"
    if "train" in splits:
        of = " and ".join(split for split in splits if split != "train")
        return f"{keys} hold the same text: perplexity on {of} says nothing of text that is new; give other files"
    return f"{keys} hold the same text: the best epoch is chosen on the test text; give another file"


def describe_epoch(record: Mapping[str, float], is_best: bool) -> str:
    """An epoch in one line; the best so far has a star."""
    return (
        f"epoch {record['epoch']:>4}  lr {record['lr']:<7.4g} train {record['train_ppl']:8.2f}"
        f"  valid {record['valid_ppl']:8.2f}{' *' if is_best else '  '}"
        f"  {record['tokens_per_second']:>7,.0f} tokens/s  {record['seconds']:6.1f} s"
    )


def conclude(run_dir: Path, result: Mapping[str, Any], how: str) -> None:
    """How the test split was scored, the perplexities beside the unigram's, and where they are kept."""
    unigram = result["unigram"]
    console.print(how, highlight=False, soft_wrap=True)
    console.print(f"{'perplexity':>12}  {'valid':>9}  {'test':>9}", style="bold", highlight=False)
    for row, valid, test in (
        (result["choices"]["model"], result["valid_ppl"], result["test_ppl"]),
        ("unigram", unigram["valid_ppl"], unigram["test_ppl"]),
    ):
        console.print(f"{row:>12}  {valid:9.2f}  {test:9.2f}", highlight=False)
    if result["valid_ppl"] > unigram["valid_ppl"] and result.get("metrics"):
        steps = result["metrics"][-1]["step"]
        note = f"worse than the unigram after {steps:,} updates: it has learned no context yet"
        console.print(
            f"[yellow]{note}; train longer (trainer.max_epochs, trainer.max_steps)[/]", soft_wrap=True
        )
    console.print(f"{run_dir / 'result.json'}", highlight=False, soft_wrap=True)
    if (run_dir / "wandb").is_dir():
        console.print(f"browse: wandb leet {run_dir / 'wandb'}", highlight=False, soft_wrap=True)
