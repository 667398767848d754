"""A small application of its own under the strict command line: `run` gives what a shell sees of it."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outcome import Outcome

FILES = {
    "conf/config.yaml": """
defaults:
  - _self_
  - model: hornn_fofe
  - trainer: cpu
  - logger: null
  - experiment: null
  - override hydra/job_logging: none
  - override hydra/hydra_logging: none
seed: 1
checkpoint: ???
action: none
run_dir: null
tags: {}
hydra:
  output_subdir: null
  run: {dir: .}
  sweep: {dir: ., subdir: .}
""",
    "conf/model/rnn.yaml": "{_target_: toy_parts.Elman, _partial_: true, hidden_size: 3}",
    "conf/model/hornn_fofe.yaml": "{_target_: toy_parts.Fofe, _partial_: true, hidden_size: 3, order: 2}",
    "conf/model/misspelt.yaml": "{_target_: toy_parts.Elman, _partial_: true, hiden_size: 3}",
    "conf/model/untargeted.yaml": "{_target_: toy_parts.Elmann}",
    "conf/trainer/cpu.yaml": "{_target_: toy_parts.Trainer, max_epochs: 2}",
    "conf/logger/csv.yaml": "{_target_: toy_parts.make_logger, folder: logs}",
    "conf/experiment/hornn/ptb.yaml": """
# @package _global_
defaults: [override /model: rnn]
seed: 7
""",
    "conf/experiment/bad_choice.yaml": """
# @package _global_
defaults: [override /model: rn]
""",
    "conf/experiment/bad_include.yaml": """
# @package _global_
defaults: [hornn/ptbb]
""",
    "conf/experiment/bad_class.yaml": """
# @package _global_
model: {_target_: toy_parts.Elman}
""",
    "conf/experiment/bad_key.yaml": """
# @package _global_
sed: 3
""",
    "conf/experiment/bad_override.yaml": """
# @package _global_
defaults: [override /modell: rnn]
""",
    "conf/experiment/bad_nested.yaml": """
# @package _global_
model: {ordr: 3}
""",
    "conf/experiment/bad_value.yaml": """
# @package _global_
model: rnn
""",
    "conf/experiment/bad_yaml.yaml": """
# @package _global_
model: [rnn
""",
    "toy_parts.py": """
class Elman:
    def __init__(self, input_size, hidden_size, bias=False):
        pass

class Fofe:
    def __init__(self, input_size, hidden_size, order, alpha=0.6):
        if order < 1:
            raise ValueError(f"order must be 1 or more,\\n got {order}")

class Trainer:
    def __init__(self, max_epochs, limit_val_batches=None, plugins=None, callbacks=None):
        if max_epochs < 0:
            raise ValueError(f"max_epochs must be 0 or more, got {max_epochs}")
        max_epochs + 1
        print(f"limit_val_batches={limit_val_batches}")

def make_logger(folder, **options):
    pass
""",
    "toy.py": """
import errno, os, sys
import hydra
from hydra.utils import instantiate
from omegaconf import OmegaConf
from hornn.command_line.messages import launch
from hornn.command_line.strict_keys import check_keys, compose_reference

class MisconfigurationException(Exception):
    pass

def fail(reason):
    raise ValueError(f"cannot resolve {reason}")

OmegaConf.register_new_resolver("fail", fail, replace=True)

@hydra.main(version_base="1.3", config_path="conf", config_name="config")
def main(cfg):
    check_keys(cfg, compose_reference())
    instantiate(cfg.trainer)
    instantiate(cfg.model)(input_size=4)
    match cfg.action:
        case "read": print(cfg.checkpoint)
        case "open": open("absent/file")
        case "write": raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case "deny": raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/closed")
        case "lightning": raise MisconfigurationException("no such\\n accelerator")
        case "memory": raise RuntimeError("can't allocate memory: 9 bytes\\nframe 0")
        case "interrupt": raise KeyboardInterrupt
        case "interrupt_lightning":
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt:
                sys.exit(1)
        case "interrupt_cleanup":
            try:
                raise KeyboardInterrupt
            finally:
                None.restored
        case "interrupt_full":
            try:
                raise KeyboardInterrupt
            finally:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case "fault": {}["absent"]
    print(f"seed={cfg.seed} HYDRA_FULL_ERROR={os.environ.get('HYDRA_FULL_ERROR')}")

launch(main)
""",
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.lstrip())
    return folder


@pytest.fixture
def run(
    app: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """The script as `__main__` of this process, which saves half a second each time."""

    def run_here(*words: str) -> Outcome:
        monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)
        monkeypatch.chdir(app)
        monkeypatch.syspath_prepend(str(app))
        monkeypatch.setattr(sys, "argv", ["toy.py", *words])
        code = 0
        try:
            runpy.run_path("toy.py", run_name="__main__")
        except SystemExit as stop:
            code = stop.code
        return Outcome(code, *capsys.readouterr())

    return run_here


@pytest.fixture
def refuse(run: Callable[..., Outcome]) -> Callable[[str], str]:
    """The one line on stderr of a command that is refused."""

    def line_of(command: str) -> str:
        code, out, err = run(*command.split())
        assert code == 2
        assert err.count("\n") == 1
        assert err.startswith("error: ")
        if not command.startswith("-m model.order"):
            assert "seed=" not in out, "the job ran to its end"
        return err

    return line_of
