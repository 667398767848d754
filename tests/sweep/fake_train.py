"""What `src/train.py` is to a launcher, without torch: the same command line, files and locks, numbers made up.

FAKE_EPOCH: seconds an epoch takes. FAKE_FAIL, FAKE_DIVERGE, FAKE_DEAF, FAKE_FULL: the seed whose job fails after an
epoch, diverges, does not heed Ctrl-C, or has no room for its log and results. FAKE_REFUSE: the model whose job is
refused before it begins. FAKE_GATE=1: it waits for a file `gate` first. FAKE_GONE: the seed whose folder is removed.
"""

import errno
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import hydra
import yaml
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from hornn.command_line.messages import launch
from hornn.result import read_result, write_result
from hornn.run.composed import as_dict
from hornn.run.identity import CONFIG, LAST, identify
from hornn.run.lock import lock_folder
from hornn.sweep.parent_watch import end_with_launcher
from hornn.writing import write_atomically


def is_chosen(behaviour: str, seed: int) -> bool:
    return os.environ.get(f"FAKE_{behaviour}") == str(seed)


@hydra.main(version_base="1.3", config_path="../../conf", config_name="config")
def main(cfg: DictConfig) -> None:
    end_with_launcher()
    identity = identify(HydraConfig.get().runtime.choices, as_dict(cfg))
    run_dir = identity.folder
    while os.environ.get("FAKE_GATE") and not Path("gate").exists():
        time.sleep(0.01)
    lock = lock_folder(run_dir)
    if os.environ.get("FAKE_REFUSE") == identity.choices["model"]:
        raise ValueError("there is no such machine")
    if cfg.overwrite:
        for name in ("result.json", "metrics.csv", LAST):
            (run_dir / name).unlink(missing_ok=True)
    elif read_result(run_dir):
        raise ValueError(f"{run_dir} holds a run")
    if is_chosen("GONE", cfg.seed):
        shutil.rmtree(run_dir)
        raise SystemExit
    if is_chosen("DEAF", cfg.seed):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if is_chosen("FULL", cfg.seed):
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, 1)
        os.dup2(full, 2)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # nor is there any for its results
    (run_dir / CONFIG).write_text(yaml.safe_dump(identity.to_dict()))
    (run_dir / "pid").write_text(str(os.getpid()))
    metrics = run_dir / "metrics.csv"
    rows = metrics.read_text().splitlines() if metrics.exists() else ["epoch,valid_ppl"]
    keys = (
        "HORNN_SWEEP",
        "HORNN_ROW",
        "OMP_NUM_THREADS",
        "HORNN_RUNS_ON_GPU",
        "CUDA_VISIBLE_DEVICES",
        "FORCE_COLOR",
        "HORNN_RUN",
    )
    with Path(run_dir, "starts").open("a") as starts:
        print(f"epoch={len(rows)}", *(f"{key}={os.environ.get(key)}" for key in keys), file=starts)
    result = {
        **identity.to_dict(),
        "epochs": cfg.trainer.max_epochs,
        "valid_ppl": 90.0,
        "test_ppl": 80.0 + cfg.seed,
    }
    for epoch in range(len(rows), cfg.trainer.max_epochs + 1):
        time.sleep(float(os.environ.get("FAKE_EPOCH", "0")))
        rows.append(f"{epoch},{200 / epoch}")
        write_atomically(metrics, "\n".join(rows) + "\n")
        (run_dir / LAST).touch()
        print(f"epoch {epoch}")
        if is_chosen("FAIL", cfg.seed):
            raise ValueError("the corpus is on fire")
        if is_chosen("DIVERGE", cfg.seed):
            write_result(run_dir, {**result, "status": "diverged", "error": "the loss is infinite"})
            raise ValueError("the loss is infinite")
    write_result(run_dir, {**result, "status": "completed"})
    sys.stdout.flush()
    lock.close()


if __name__ == "__main__":
    launch(main)
