"""The benchmark's results as tables."""

import string
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from hornn.bench.commands import start, table
from hornn.bench.meter import QUIET, Row
from hornn.bench.sections import (
    EPOCH,
    Bench,
    evaluation,
    head,
    memory,
    order,
    roofline,
    step,
    thesis,
    trainer,
    vary,
)
from hornn.bench.tasks import characters, loops, music, sentences, speech
from hornn.bench.text8 import text8
from hornn.bench.work import Sizes
from hornn.scan import BACKENDS


class Section(NamedTuple):
    """A table: what measures its rows, its heading, a line on what it shows, its columns as formats of a row."""

    measure: Callable[[Bench], list[Row]]
    title: str
    note: str
    columns: dict[str, str]


OURS = {"work": "{work}", "ours": "`{ours}`", "backend": "{scan}", "output layer": "{layer}"}
TIMES = {
    **OURS,
    "ms": "{ours_ms:.1f}",
    "other": "{other}",
    "other, ms": "{other_ms:.1f}",
    "ratio": "{ratio:.2f}",
    "spread": "{spread[0]:.2f}-{spread[1]:.2f}",
    "rounds dropped": "{drops}",
}
EPOCHS = TIMES | {
    "s per epoch": "{epoch_seconds:.0f}",
    "published, s": "{published_seconds}",
    "published ratio": "{published_ratio:.2f}",
}
SPEEDS = TIMES | {"tokens/s": "{ours_speed:,.0f}", "other, tokens/s": "{other_speed:,.0f}"}
MEGABYTES = {
    **OURS,
    "MB": "{ours_mb:.0f} ({ours_range[0]:.0f}-{ours_range[1]:.0f})",
    "other": "{other}",
    "other, MB": "{other_mb:.0f} ({other_range[0]:.0f}-{other_range[1]:.0f})",
    "ratio": "{ratio:.2f}",
}
BOUNDS = {
    **OURS,
    "GFLOP": "{gflop:.1f}",
    "ms": "{ms:.1f}",
    "GFLOP/s": "{speed:.0f}",
    "bound, ms": "{bound_ms:.1f}",
    "reached": "{reached:.0%}",
    "rounds dropped": "{drops}",
}
ESTIMATES = {
    "row": "{work}",
    "model": "`{ours}`",
    "ms an update": "{ms:.0f}",
    "words/s": "{speed:,.0f}",
    "hours an epoch": "{epoch_hours:.1f}",
    "epochs at most": "{epochs}",
    "hours at most": "{hours:.0f}",
    "on the head": "{head_hours:.1f}",
    "memory, MB": "{peak_mb:.0f}",
}
SERIES = "A step of FOFE of order 3 beside nn.RNN's, at other sizes than the table above in one respect."
SECTIONS = {
    "step": Section(
        step, "Training step", "Forward pass, backward pass and update, beside torch's own in fp32.", TIMES
    ),
    "thesis": Section(
        thesis,
        "Seconds per epoch",
        f"{EPOCH:,} steps, beside our rnn, whose own row shows the noise. Published: Soltani's thesis, table 6.3 "
        "(verified), on one TITAN X.",
        EPOCHS,
    ),
    "order": Section(
        order, "Order", "A training step beside the step of order 1, whose own row shows the noise.", TIMES
    ),
    "hidden": Section(
        partial(vary, "hidden_size", "H = E", "hidden_sizes"), "Width of the state", SERIES, TIMES
    ),
    "vocabulary": Section(partial(vary, "vocab_size", "V", "vocab_sizes"), "Vocabulary", SERIES, TIMES),
    "length": Section(partial(vary, "seq_len", "T", "seq_lens"), "Tokens per chunk", SERIES, TIMES),
    "batch": Section(partial(vary, "batch_size", "B", "batch_sizes"), "Columns of the stream", SERIES, TIMES),
    "characters": Section(
        characters,
        "Characters",
        "Training steps on 50 characters, 600 units, 20 columns, chunks of 100; a deep transition beside nn.RNN.",
        TIMES,
    ),
    "music": Section(
        music,
        "Music",
        "Training steps on 10 sequences of 100 to 200 frames, 400 units; padded here, packed by torch there.",
        TIMES,
    ),
    "speech": Section(
        speech,
        "Speech",
        "Training steps on 8 utterances of 150 to 300 frames of 80 numbers, padded; 500 units, 200 classes. Beside "
        "torch's layers, and our cells beside one another.",
        TIMES,
    ),
    "loops": Section(
        loops,
        "Cells without a counterpart in torch",
        "Training steps on 200 classes of frames, 500 units, 32 columns of 20, beside the cell's own loop over `step`; "
        "GRU and LSTM for comparison.",
        TIMES,
    ),
    "evaluation": Section(
        evaluation,
        "Evaluation",
        "Exact scores of a text with carried state, in fp32. The chunks named are the other side's, whose logits leave "
        "the cache in longer ones; ours hold 1,200 tokens.",
        SPEEDS,
    ),
    "sentences": Section(
        sentences,
        "Sentences",
        "Exact scores in fp32 of lines of 5 to 39 words, each from a fresh state: 14,000 words, 100 units; in torch by "
        "padded batches of lines of similar length.",
        SPEEDS,
    ),
    "start": Section(
        start,
        "Start",
        "The time to a command's first output, beside a program that imports torch alone.",
        TIMES,
    ),
    "table": Section(
        table,
        "A table of runs",
        "Two trainings by the launcher, with all that belongs to them: two at a time with one thread each, beside one "
        "at a time with all threads. On a machine with two threads.",
        SPEEDS,
    ),
    "memory": Section(
        memory,
        "Memory",
        "Five steps: the peak above the memory after the imports, median and range of some fresh processes.",
        MEGABYTES,
    ),
    "head": Section(
        head, "Two-level softmax", "Forward and backward pass of the output layer alone, in fp32.", TIMES
    ),
    "trainer": Section(
        trainer, "Trainer", "A training step inside of the trainer beside the same in a bare loop.", TIMES
    ),
    "text8": Section(
        text8,
        "The tables on text8",
        "Updates of each network by its own recipe on random words of a vocabulary of 44,000, in CPU time of one "
        "process; from it the hours of training on 16.8 million words, without validation. Likewise the hours at most "
        "on the head: 1.05 million words, a vocabulary of 8,088.",
        ESTIMATES,
    ),
    "roofline": Section(
        roofline,
        "Distance from the machine's peak",
        "The bound is the time of the step's matrix products at the measured peak.",
        BOUNDS,
    ),
}


def render(results: Mapping[str, Any], only: Collection[str] = tuple(SECTIONS)) -> str:
    """The tables of the sections in `only` as Markdown, without rows of a backend that is no more."""
    rows = [row for row in results["rows"] if row.get("backend", "auto") in BACKENDS]
    measured = {row["section"] for row in rows}
    names = [name for name in SECTIONS if name in measured and name in only]
    tables = [render_section(name, [row for row in rows if row["section"] == name]) for name in names]
    return "\n\n".join([describe(results), *tables])


RATIOS = {  # section, row: what a reader of the first page wants to know
    "One training step of a FOFE network of order 3, beside torch's `nn.RNN`": ("step", "hornn_fofe"),
    "One training step of an LSTM, beside torch's `nn.LSTM`": ("step", "lstm"),
    "Memory of that FOFE network in training, beside `nn.RNN`": ("memory", "hornn_fofe"),
}


def render_ratios(results: Mapping[str, Any]) -> str:
    """Three ratios of native kernels, in the precision that the machine is good at, for a page without room for more.

    ValueError where a row is not measured.
    """
    lines = []
    for says, (section, ours) in RATIOS.items():
        wanted = {"section": section, "ours": ours, "scan": "native", "precision": "auto"}
        row = next((row for row in results["rows"] if wanted.items() <= row.items()), None)
        if row is None or "ratio" not in row:
            raise ValueError(
                f"the benchmark has no row of {section} for {ours}: measure it, then write again"
            )
        pair = (
            ("{ours_ms:.0f} ms", "{other_ms:.0f} ms")
            if "ours_ms" in row
            else ("{ours_mb:.0f} MB", "{other_mb:.0f} MB")
        )
        lines.append([says, *(text.format_map(row) for text in (*pair, "{ratio:.2f}"))])
    shown = header(["", "ours", "torch", "ratio"]) + [f"| {' | '.join(cells)} |" for cells in lines]
    precision = next(row["dtype"] for row in results["rows"] if row.get("scan") == "native")
    return "\n".join([*shown, "", f"{place(results)}, output layer in {precision}, {origin(results)}."])


def render_alone(name: str, results: Mapping[str, Any]) -> str:
    """One table, with the machine and the state of the code."""
    rows = [row for row in results["rows"] if row["section"] == name]
    return f"{render_section(name, rows)}\n\n{place(results)}, {origin(results)}."


def describe(results: Mapping[str, Any]) -> str:
    """Where, when and how it was measured."""
    on, rounds = results["machine"], results["rounds"]
    steered = "".join(f", {key}={value}" for key, value in on["environment"].items())
    noise = (
        f"rounds in which other processes took more than {QUIET:.0%} of a core are dropped"
        if results["filtered"]
        else "this system does not tell what other processes take, so no round is dropped"
    )
    return (
        f"{place(results)}{steered}, {on['memory_gb']} GB, {on['system']}, "
        f"torch {on['torch']}, Python {on['python']}; {origin(results)}. "
        f"{Sizes(**results['sizes'])} where nothing else is said. Medians of {rounds['most']} rounds, of "
        f"{rounds['series']} in series, each with a sample of both sides; {noise}. Ratio: ours / other; spread: "
        "its least and largest."
    )


def place(results: Mapping[str, Any]) -> str:
    """The GPU where one did the work, the processor and its threads."""
    on = results["machine"]
    gpu = f"{results['device']} in a machine with " if results.get("device") else ""
    return f"{gpu}{on.get('processor')}, {on.get('threads')} threads"


def origin(results: Mapping[str, Any]) -> str:
    """The day and the state of the code."""
    state = " with changes" if results.get("dirty") else ""
    return f"{results['date'][:10]}, commit {(results.get('commit') or 'unknown')[:10]}{state}"


def render_section(name: str, rows: list[Row]) -> str:
    """One table, and below it what could not be measured and why."""
    section = SECTIONS[name]
    lines = [f"**{section.title}.** {section.note}", "", *header(section.columns)]
    lines += [cells(section.columns.values(), row) for row in rows if "missing" not in row]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if "missing" in row:
            which = reasons.setdefault(row["missing"], [])
            which += [name] if (name := f"`{row['ours']}` {row['backend']}") not in which else []
    lines += [
        line for why, which in reasons.items() for line in ("", f"Not measured: {', '.join(which)}: {why}")
    ]
    return "\n".join(lines)


def header(columns: Collection[str]) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def cells(formats: Collection[str], row: Row) -> str:
    """A line of a table; a cell whose values the row lacks is empty."""
    layer = f"{row['dtype']}, native" if row.get("native") else row.get("dtype")
    loop = row.get("loop_dtype", "fp32")
    scan = row.get("scan") if loop == "fp32" else f"{row['scan']}, {loop}"
    row = {**row, "scan": scan, "layer": layer, "drops": describe_drops(row)}
    texts = []
    for format_ in formats:
        names = [name.partition("[")[0] for _, name, _, _ in string.Formatter().parse(format_) if name]
        absent = any(row.get(name) is None for name in names)
        texts.append("" if absent else format_.format_map(row))
    return f"| {' | '.join(texts)} |"


def describe_drops(row: Row) -> str | None:
    """How many rounds were dropped; a row that never got quiet keeps them all, and is marked."""
    if row.get("quiet") is None:
        return "no filter" if "rounds" in row else None
    return (
        str(row["dropped"]) if row["quiet"] else f"**never quiet**: {row['dropped']} of {row['rounds']} loud"
    )
