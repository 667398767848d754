"""A program in the place of src/train.py whose runs cost nothing, for searches."""

import math
import os
import time
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from hornn.command_line.messages import launch
from hornn.result import write_result
from hornn.run.composed import as_dict
from hornn.run.identity import identify
from hornn.sweep.parent_watch import end_with_launcher
from hornn.writing import write_atomically

ROOT = Path(__file__).parents[2]


@hydra.main(version_base="1.3", config_path=str(ROOT / "conf"), config_name="config")
def main(cfg: DictConfig) -> None:
    """A run without training: the validation perplexity has its lowest at optimizer.lr = 0.5, the test's its highest.

    FAKE_UNIT: `nll` for the scores of music. FAKE_EPOCH: seconds an epoch takes. FAKE_DIVERGE: the rate above which it
    diverges. FAKE_FAIL: it fails. FAKE_END: it ends with this exit code.
    """
    end_with_launcher()
    identity = identify(HydraConfig.get().runtime.choices, as_dict(cfg))
    run_dir = identity.folder
    metrics = run_dir / "metrics.csv"
    unit = os.environ.get("FAKE_UNIT", "ppl")
    rows = metrics.read_text().splitlines() if metrics.exists() else [f"epoch,valid_{unit}"]
    with (run_dir / "starts").open("a") as starts:
        print(len(rows), os.environ["HORNN_SWEEP"], os.environ["HORNN_ROW"], file=starts)
    (run_dir / "gpus").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    if os.environ.get("FAKE_END"):
        raise SystemExit(int(os.environ["FAKE_END"]))
    if os.environ.get("FAKE_FAIL"):
        raise ValueError("the corpus is on fire")
    distance = 100 * abs(math.log(cfg.optimizer.lr / 0.5))
    result = {**identity.to_dict(), "epochs": 3}
    if cfg.optimizer.lr > float(os.environ.get("FAKE_DIVERGE", "inf")):
        error = "the loss is infinite"
        write_result(
            run_dir, {**result, "status": "diverged", "error": error, "valid_ppl": None, "test_ppl": None}
        )
        raise ValueError(error)
    for epoch in range(len(rows), cfg.trainer.max_epochs + 1):
        time.sleep(float(os.environ.get("FAKE_EPOCH", "0")))
        rows.append(f"{epoch},{100 + distance + 30 / epoch}")
        write_atomically(metrics, "\n".join(rows) + "\n")
    scores = {f"valid_{unit}": 110 + distance, f"test_{unit}": 1000 - distance}
    write_result(run_dir, {**result, "status": "completed", **scores})


if __name__ == "__main__":
    launch(main)
