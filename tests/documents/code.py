"""The fenced blocks of a page, and how the tests run each.

The language behind the fence says what a block is: `bash` (or nothing) for commands, `python`, `yaml`; blocks of the
languages in `SHOWN` are read by people alone. A comment on the line before a block steers its test:

    <!-- test: KEY=VALUE ... -->      these overrides go into each Python command of the block, in the place of the same
                                      keys where it has them; a sweep (-m) then really runs its jobs
    <!-- test: compose only -->       the config is composed and checked, nothing is trained
    <!-- test: skip, REASON -->       nothing runs

Without one, a training runs two updates of a tiny network on a tiny text, once its own words have been composed and
checked. A sweep composes those of its jobs that have a word which no job before them has; one whose file the page
itself writes runs them all, with two updates each. Every other command runs as it stands.

A Python or YAML block whose first lines hold a comment with a path is written to that file. The other Python blocks
of a page share one namespace. Files that exist in the folder where the commands run: `RUN`, `A`, `B` (finished runs),
`KN` (an n-gram model), `FILE` (a text), `NBEST` (a list of hypotheses), `corpora` (with `tiny`, a corpus of speech),
`a.txt`, `b.txt`, `c.txt` (one for each split).
"""

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

SHELL, SHOWN = ("", "bash", "sh"), ("text", "bibtex", "markdown", "mermaid", "json", "diff", "latex")
FENCE = re.compile(r"^(`{3,})(\w*)[ \t]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
DIRECTIVE = re.compile(r"<!-- test: ([^\n]*?) -->\n\s*\Z")
FILE = re.compile(r"^# ([\w./-]+\.(?:py|yaml))$", re.MULTILINE)
ENTRY = re.compile(r"^(\S*python3?) src/(\w+)\.py\b(.*)$", re.DOTALL)
COMPOSE_ONLY, SKIP = "compose only", "skip,"
CHECK = "HORNN_TEST_COMPOSE_ONLY=1"  # the fork server then trains nothing
QUIET = ("logger=csv", "trainer.enable_progress_bar=false")
UPDATES = "trainer.max_steps=2"
SMALL = (UPDATES, "model.hidden_size=20", "checkpoint_every=0")
CHUNKS = ("data.batch_size=4", "data.seq_len=5", "data.eval_batch_size=2")
TEXT = ("data=files", "data.train=train.txt", "data.valid=valid.txt", "data.test=test.txt")


class Block(NamedTuple):
    """`line`: where its fence stands in the page; `steer`: what the comment before it says."""

    line: int
    language: str
    text: str
    steer: str

    @property
    def file(self) -> str | None:
        """The path that a comment in its first two lines names."""
        match = FILE.search("\n".join(self.text.splitlines()[:2]))
        return match[1] if match else None


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        before = DIRECTIVE.search(text, 0, match.start())
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(line, match[2], match[3], before[1].strip() if before else ""))
    return found


def commands_of(text: str) -> list[str]:
    """The commands of a shell block: continued lines joined, remarks behind two blanks dropped."""
    joined = re.sub(r"[ \t]*\\\n\s*", " ", text)
    lines = [re.sub(r"(^|\s+)#\s.*$", "", line).strip() for line in joined.splitlines()]
    return [line for line in lines if line]


def to_run(command: str, steer: str = "", own_sweeps: Collection[str] = ()) -> list[str]:
    """The shell commands that stand for a command of a page; `own_sweeps`: sweep files that the page writes."""
    if match := ENTRY.match(command):
        named = re.search(r"\bsweeps=([\w-]+)", command)
        if named and named[1] in own_sweeps and not steer:
            steer = UPDATES
        return entry_to_run(match[1], match[2], match[3], steer)
    first, *rest = command.split()
    if first == "make":
        target, given = (rest or [""])[0], re.search(r'ARGS="(.*)"', command)
        train = to_run(f"python src/train.py {given[1] if given else 'experiment=demo'}", steer)
        return [f"make -n {shlex.join(shlex.split(command)[1:])}", *(train if target == "train" else [])]
    if first == "wandb":
        return [f"wandb {rest[0]} --help > /dev/null"]
    if first in ("pip", "git", "cd", "source") or command.startswith((".venv/bin/pip", "python3 -m venv")):
        return []
    return [f"bash -n {command.removeprefix('bash ')}"] if command.endswith(".ci/run") else [command]


def entry_to_run(python: str, entry: str, words: str, steer: str) -> list[str]:
    given = steer.split() if steer and steer != COMPOSE_ONLY else []
    written = f"{CHECK} {python} src/{entry}.py{words}"
    if steer == COMPOSE_ONLY or (entry == "bench" and "--write" not in words):
        return [written]
    if entry == "dashboard" and "--spec" not in words:
        return [f"{python} src/dashboard.py{words.replace(' --offline', '')} --spec=dashboard.json"]
    if entry not in ("train", "tune"):
        return [f"{python} src/{entry}.py{with_words(words, given)}"]
    several = re.search(r"(^| )(-m|--multirun)( |$)", words)
    if not given and (several or entry == "tune" or re.search(r"--(help|cfg)\b", words)):
        return [written] if "--" not in words else [f"{python} src/{entry}.py{words}"]
    if given:
        return [f"{python} src/{entry}.py{with_words(words, [*QUIET, *given])}"]
    small = [*QUIET]
    # n-grams are counted in a second, and need more than a tiny text; a mixture needs the text of its models
    if not re.search(r"\bmodel=(kn|mixture)", words):
        small += [*SMALL, *CHUNKS, *(() if re.search(r"\bdata=files", words) else TEXT)]
    return [written, f"{python} src/{entry}.py{with_words(words, small)}"]


def with_words(words: str, more: Sequence[str]) -> str:
    """A command's words with these overrides behind its first options, in the place of words with the same keys."""
    for word in more:
        words = re.sub(rf"(?<=\s){re.escape(word.partition('=')[0])}=\S+", "", words)
    options = re.match(r"(?: --?[a-z]+)*", words)
    assert options
    return options[0] + "".join(f" {word}" for word in more) + words[options.end() :]
