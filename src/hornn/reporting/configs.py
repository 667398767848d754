"""What a table must know of the configs of its runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from hornn.checks import in_home
from hornn.places import CONF
from hornn.recipe import folders_of, has_key, resolve
from hornn.reporting.departures import Recipe
from hornn.reporting.grid_rows import Config
from hornn.run.identity import hashed_part, text_keys

UNSAID = "???"  # a value that the command line gives


class Configs(Config, Protocol):
    """What a table must know of the configs of its runs."""

    def recipe(self, run: Sequence[str]) -> Recipe:
        """What the overrides `run` make, by which runs are told apart. ValueError for what there is not."""


class Files(NamedTuple):
    """Configs as the files in `own` and `conf` make them; `base`: what the sweep file gives to each run."""

    base: Mapping[str, Any]
    conf: Path
    own: Path | None = None

    def is_group(self, key: str) -> bool:
        return any((folder / key).is_dir() for folder in folders_of(self.conf, self.own))

    def holds(self, run: Sequence[str], key: str) -> bool:
        return has_key(run, self.base, key, self.conf, self.own)

    def recipe(self, run: Sequence[str]) -> Recipe:
        choices, config = resolve(run, self.base, self.conf, self.own)
        data = config.get("data", {})
        said = {f"data.{key}": str(data.get(key) or UNSAID) for key in text_keys(data)}
        known = not any(UNSAID in path or "${" in path for path in said.values())
        texts = {key: str(in_home(path)) for key, path in said.items()} if known else {}
        return Recipe(*hashed_part(choices, config), texts)


def conf_of(path: Path) -> Path:
    """The folder of configs that a sweep file's words are from: the one beside its own, where there is one."""
    beside = path.resolve().parents[1] / "conf"
    return beside if (beside / "config.yaml").is_file() else CONF
