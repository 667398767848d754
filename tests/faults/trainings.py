"""A training of three epochs that takes half a second, with all that a continued one has to remember."""

from pathlib import Path

from faults.commands import Ended, ForkServer
from small_text import write_text

SETTINGS = [
    "data.eval_batch_size=2",
    "model.hidden_size=6",
    "logger=csv",
    "trainer.enable_progress_bar=false",
    "trainer.max_epochs=3",
    "schedule.threshold=10",
    "schedule.restore_best=true",
    "weight_noise=0.01",
    "recurrent_dropout=0.1",
    "checkpoint_every=4",
]


class Trainings:
    """Trainings on one text, each in a folder of its own with its own cache of tokens, so that it writes that, too."""

    def __init__(self, server: ForkServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.text = [word for word in write_text(folder) if not word.startswith("data.cache_dir=")]
        self.whole = folder / "whole"
        ended, self.writes = server.count_writes("train", *self.words(self.whole))
        assert ended.code == 0, ended.err

    def words(self, run_dir: Path) -> list[str]:
        return [*self.text, *SETTINGS, f"data.cache_dir={run_dir}-cache", f"run_dir={run_dir}"]

    def go_on(self, run_dir: Path) -> None:
        """The same command again, where the run has not come to its end."""
        if not (run_dir / "result.json").exists():
            ended: Ended = self.server.run("train", *self.words(run_dir))
            assert (ended.code, ended.err) == (0, "")
