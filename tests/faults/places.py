"""A folder with all that commands name: a text, a finished run, a run of counts, and room for one bad file."""

import os
import re
import shutil
from pathlib import Path

from faults.bad_inputs import Bad
from faults.commands import Ended, ForkServer
from small_text import write_text

SMALL = [
    "data.eval_batch_size=2",
    "model.hidden_size=6",
    "logger=csv",
    "trainer.enable_progress_bar=false",
    "trainer.max_epochs=1",
]
SECONDS = 90.0  # after which a command hangs
MEMORY = 2**31  # bytes of address space beyond what the imports hold
ROOM = 600.0  # MiB resident, the imports' 300 among them


class Place:
    """Commands in one folder, and what may be said of their ends."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.text = write_text(folder)
        for name, model in (("run", []), ("counts", ["model=kn", "model.order=2"])):
            words = [*self.text, *SMALL[:1], *SMALL[2:], *(model or SMALL[1:2])]
            if model:
                words.append("model.fallback_discounts=[0.5,1,1.5]")
            ended = server.run("train", *words, f"run_dir={folder / name}", folder=folder)
            assert ended.code == 0, ended.err

    def run(self, bad: Bad) -> Ended:
        self.put(bad)
        words = [word.replace("{folder}", str(self.folder)) for word in bad.words]
        return self.server.run(
            bad.entry, *self.common(bad, words), *words, folder=self.folder, seconds=SECONDS, memory=MEMORY
        )

    def common(self, bad: Bad, words: list[str]) -> list[str]:
        """The settings of a good command, without those that the bad one says otherwise."""
        cache = f"data.cache_dir={self.folder / 'cache'}"
        if bad.entry in ("evaluate", "analyse"):
            settings = [cache, f"checkpoint={self.folder / 'run' / 'best.ckpt'}"]
        elif bad.entry in ("generate", "score", "rescore"):
            settings = [f"checkpoint={self.folder / 'run' / 'best.ckpt'}"]
        elif bad.entry == "tune":
            settings = [*self.text, *SMALL, "trials=1"]
        else:
            settings = [*self.text, *SMALL, f"run_dir={self.folder / 'new'}"]
            shutil.rmtree(self.folder / "new", ignore_errors=True)
        given = {word.lstrip("+~").partition("=")[0] for word in words}
        if "sweep" in given:  # stands in its place
            given.add("checkpoint")
        chosen = {f"{key}." for key in given if "." not in key} - {"trainer.", "logger."}
        if "-m" in given:
            given.add("run_dir")
        return [
            word
            for word in settings
            if word.partition("=")[0] not in given
            and not (word.startswith("model.hidden_size") and "model." in chosen)
        ]

    def put(self, bad: Bad) -> None:
        """Write the bad file to each place where a command may look for it."""
        if bad.file is None:
            return
        for name in ("bad", "bad.arpa", "bad-run/result.json", "bad-conf/sweeps/bad.yaml"):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bad.file)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def fault_of(ended: Ended, refused: bool = True) -> str | None:
    """What is wrong with how a command ended; `refused`: it may not end well."""
    if ended.late:
        return "it hangs"
    if ended.memory_mb > ROOM:
        return f"it takes {ended.memory_mb:,.0f} MiB"
    if "Traceback" in ended.err:
        raised = re.findall(r"^[\w.]+(?:Error|Exception|Exit|Interrupt)\b.*", ended.err, re.MULTILINE)
        return f"a traceback: {(raised or ['?'])[-1]}"
    if ended.code == 0:
        return "it is not refused" if refused else None
    if ended.code < 0:
        return f"it is ended by signal {-ended.code}: {ended.err}"
    if refused and "training diverged" in ended.err:
        return f"it trains before it is refused: {ended.err}"
    lines = ended.err.splitlines()
    if len(lines) != 1 or not lines[0].startswith("error: "):
        return f"exit code {ended.code} with {len(lines)} lines: {os.linesep.join(lines[:5])}"
    return None
