"""One process of a run of several: trains each [cut, overrides] of a JSON file, one after the other.

`cut` is the number of updates after which a run is left as by a kill, null for a run that ends by itself.

RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 MASTER_ADDR=... MASTER_PORT=... TORCHELASTIC_RUN_ID=... python one_rank.py FILE
"""

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

from hydra import compose, initialize_config_dir
from hydra.core.hydra_config import HydraConfig
from lightning import Trainer
from omegaconf import OmegaConf, open_dict

from hornn.run.keeper import RunKeeper
from hornn.run.train import train

CONF = Path(__file__).parents[2] / "conf"


class Cut(BaseException):
    """Nothing of the program runs after it, as after a kill."""


def run(overrides: list[str]) -> None:
    """What `python src/train.py OVERRIDES` does, in this process."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        cfg = compose("config", overrides, return_hydra_config=True)
    HydraConfig.instance().set_config(cfg)
    with open_dict(cfg):
        del cfg["hydra"]
    train(OmegaConf.create(OmegaConf.to_container(cfg)))


def run_and_cut(overrides: list[str], cut: int) -> None:
    whole = RunKeeper.on_train_batch_end

    def stop(keeper: RunKeeper, trainer: Trainer, *args: Any) -> None:
        whole(keeper, trainer, *args)
        if trainer.global_step == cut:
            raise Cut

    RunKeeper.on_train_batch_end = stop  # type: ignore[method-assign]
    with suppress(Cut):
        run(overrides)
    RunKeeper.on_train_batch_end = whole  # type: ignore[method-assign]


if __name__ == "__main__":
    for cut, overrides in json.loads(Path(sys.argv[1]).read_text()):
        if cut:
            run_and_cut(overrides, cut)
        else:
            run(overrides)
