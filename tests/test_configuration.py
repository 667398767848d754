"""The strict command line, on a small application of its own: the exit code and the one line on stderr."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from omegaconf import OmegaConf

from hornn.configuration import check_keys

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
    "conf/experiment/bad_key.yaml": """
# @package _global_
sed: 3
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
from hornn.configuration import check_keys, compose_reference, launch

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
        case "interrupt": raise KeyboardInterrupt
        case "interrupt_lightning":
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt:
                sys.exit(1)
        case "fault": {}["absent"]
    print(f"seed={cfg.seed} HYDRA_FULL_ERROR={os.environ.get('HYDRA_FULL_ERROR')}")

launch(main)
""",
}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("toy")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.lstrip())
    return folder


def run_process(app: Path, *words: str, **environment: str) -> Outcome:
    """The command in a process of its own."""
    source = str(Path(__file__).parents[1] / "src")
    env = {**os.environ, "PYTHONPATH": source, **environment}
    done = subprocess.run(
        [sys.executable, "toy.py", *words], cwd=app, env=env, capture_output=True, text=True, timeout=60
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def run(app: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The same script as `__main__` of this process, which saves half a second each time."""

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


TOP = "the top level takes: action, checkpoint, experiment, logger, model, run_dir, seed, tags, trainer"
FOFE = "model=hornn_fofe takes: alpha, hidden_size, order"
MODELS = "model is one of: hornn_fofe, misspelt, rnn, untargeted"
EXPERIMENTS = (
    "experiment is one of: bad_choice, bad_include, bad_key, bad_nested, bad_value, bad_yaml, hornn/ptb"
)
ANYWHERE = "(from a config file or the command line)"

# Command line -> what the one line says, in full or, where it is Hydra's wording, in part.
BAD = {
    # unknown keys
    "sed=1": f"unknown key 'sed'; did you mean 'seed'? {TOP}",
    "modle=rnn": f"unknown key 'modle'; did you mean 'model'? {TOP}",
    "modle.order=3": f"unknown key 'modle'; did you mean 'model'? {TOP}",
    "experimnt=hornn/ptb": f"unknown key 'experimnt'; did you mean 'experiment'? {TOP}",
    "max_epochs=3": f"unknown key 'max_epochs'; did you mean 'trainer.max_epochs'? {TOP}",
    "~modl": f"unknown key 'modl'; did you mean 'model'? {TOP}",
    "seed.x=3": "unknown key 'seed.x'; seed takes one value, not keys",
    "model.ordr=3": f"unknown key 'model.ordr'; did you mean 'model.order'? {FOFE}",
    "model.input_size=3": f"unknown key 'model.input_size'; did you mean 'model.hidden_size'? {FOFE}",
    "+model.ordr=3": f"unknown key 'model.ordr' {ANYWHERE}; did you mean 'model.order'? {FOFE}",
    "+model.input_size=3": f"'model.input_size' {ANYWHERE}; did you mean 'model.hidden_size'? {FOFE}",
    "model.hidden_size.x=3": "unknown key 'model.hidden_size.x'; model.hidden_size takes one value, not keys",
    "model.order=3 model=rnn": (
        "unknown key 'model.order'; did you mean 'model.hidden_size'? model=rnn takes: bias, hidden_size"
    ),
    "experiment=hornn/ptb model.order=4": (
        "unknown key 'model.order'; did you mean 'model.hidden_size'? model=rnn takes: bias, hidden_size"
    ),
    "-m model=hornn_fofe,rnn model.order=1": (
        "unknown key 'model.order'; did you mean 'model.hidden_size'? model=rnn takes: bias, hidden_size"
    ),
    "hydra.run.dri=x": "unknown key 'hydra.run.dri'; did you mean 'hydra.run.dir'? hydra.run takes: dir",
    # unknown choices
    "model=hornn_fof": f"unknown model 'hornn_fof'; did you mean 'hornn_fofe'? {MODELS}",
    "-m model=rnn,hornn_fof": f"unknown model 'hornn_fof'; did you mean 'hornn_fofe'? {MODELS}",
    "model=3": f"unknown model '3'; {MODELS}",
    "-m model=rnn,hornn_fofe logger=3": "unknown logger '3'; logger is one of: csv",
    "model=null": f"unknown model 'null'; did you mean 'rnn'? {MODELS}",
    "experiment=hornn/ptbb": f"unknown experiment 'hornn/ptbb'; did you mean 'hornn/ptb'? {EXPERIMENTS}",
    "experiment=hornn": f"unknown experiment 'hornn'; did you mean 'hornn/ptb'? {EXPERIMENTS}",
    "experiment.hornn=ptb": f"'experiment' is a group without keys: write experiment=CHOICE; {EXPERIMENTS}",
    "model.rnn=3": f"unknown key 'model.rnn'; did you mean 'model=rnn'? {MODELS}",
    "-cn confg": "unknown config 'confg'; did you mean 'config'? config is one of: config",
    # the same from files
    "experiment=bad_key": (
        f"unknown key 'sed' {ANYWHERE}; did you mean 'seed'? the top level takes: action, checkpoint, model,"
        " run_dir, seed, tags, trainer"
    ),
    "experiment=bad_nested": f"unknown key 'model.ordr' {ANYWHERE}; did you mean 'model.order'? {FOFE}",
    "experiment=bad_value": (
        "'model' takes keys (hidden_size, order), not the value 'rnn'; if that is a choice, give model=rnn on"
        " the command line or 'override /model: rnn' in a file's defaults"
    ),
    "experiment=bad_choice": (
        f"unknown model 'rn' (from the defaults list of a config file); did you mean 'rnn'? {MODELS}"
    ),
    "experiment=bad_include": f"unknown experiment 'hornn/ptbb'; did you mean 'hornn/ptb'? {EXPERIMENTS}",
    "experiment=bad_yaml": "experiment/bad_yaml.yaml",
    "model=misspelt": (
        f"unknown key 'model.hiden_size' {ANYWHERE}; did you mean 'model.bias'? model=misspelt takes: bias"
    ),
    "model=untargeted": (
        "cannot use model._target_ 'toy_parts.Elmann': module 'toy_parts' has no attribute 'Elmann'"
    ),
    "model._target_=absent.Cell": "cannot use model._target_ 'absent.Cell': No module named 'absent'",
    # what cannot be read
    "model.order": "cannot read 'model.order': missing EQUAL at '<EOF>'; write key=value",
    "=3": "cannot read '=3': it has no key; write key=value",
    'checkpoint="x': "cannot read 'checkpoint=\"x': ",
    "checkpoint=1,2": "Ambiguous value for argument 'checkpoint=1,2'",
    "+seed=4": "An item is already at 'seed'. Either remove + prefix: 'seed=4'",
    "--epochs 5": "cannot place '--epochs' on the command line: settings are written key=value",
    "seed=1 -m seed=2": "cannot place 'seed=2' on the command line: ",
    "--cfg everything": "argument --cfg/-c: invalid choice: 'everything' (choose from 'job', 'hydra', 'all')",
    "-cp absent": "Primary config directory not found.",
    # bad values, found in the job
    "model.order=0": "order must be 1 or more, got 0",
    "trainer.max_epochs=-1": "trainer: max_epochs must be 0 or more, got -1",
    "trainer.max_epochs=two": "trainer: '<' not supported between instances of 'str' and 'int'",
    "action=read": "missing value 'checkpoint': give checkpoint=...",
    "action=read checkpoint=${absent}": "checkpoint: Interpolation key 'absent' not found",
    "action=read checkpoint=${fail:it}": (
        "checkpoint: ValueError raised while resolving interpolation: cannot resolve it"
    ),
    "action=open": "absent/file: No such file or directory; check the path",
    "action=deny": "/closed: Permission denied; check its permissions or choose another folder",
    "action=write run_dir=/full": (
        "No space left on device; free some space on that disk or write elsewhere with run_dir=FOLDER"
        " (the results of this run go below /full)"
    ),
    "action=lightning": "no such accelerator",
    "-m model.order=2,0": "order must be 1 or more, got 0 (in the job model.order=0)",
}


@pytest.mark.parametrize("command", BAD)
def test_bad_input_is_one_line(run, command: str) -> None:
    code, out, err = run(*command.split())
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    assert BAD[command] in err
    if not command.startswith("-m model.order"):
        assert "seed=" not in out, "the job ran to its end"


@pytest.mark.parametrize("command", ["action=interrupt", "action=interrupt_lightning"])
def test_interruption_is_one_line(run, command: str) -> None:
    assert run(command)[::2] == (130, "error: interrupted\n")


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("seed=2", "seed=2"),
        ("experiment=hornn/ptb", "seed=7"),
        ("experiment=hornn/ptb seed=3 model.bias=true", "seed=3"),
        ("trainer.limit_val_batches=5", "limit_val_batches=5"),
        ("trainer.limit_val_batches=4 trainer.limit_val_batches=5", "limit_val_batches=5"),
        ("~trainer.limit_val_batches", "limit_val_batches=None"),
        ("trainer.plugins.a=1 trainer.plugins.b=2", "limit_val_batches=None"),
        ("logger=csv logger.anything=1", "seed=1"),
        ("+tags.paper=hornn", "seed=1"),
        ("-m model=rnn model.bias=true", "seed=1"),
        ("-m seed=1,2", "seed=2"),
    ],
)
def test_good_input_passes(run, command: str, printed: str) -> None:
    code, out, err = run(*command.split())
    assert (code, err) == (0, "")
    assert printed in out


def test_fault_of_the_program_keeps_its_traceback(run) -> None:
    with pytest.raises(KeyError, match="absent"):
        run("action=fault")


@pytest.mark.slow
def test_shell_sees_one_line_and_the_exit_code(app: Path) -> None:
    assert run_process(app, "model.order=0") == (
        2,
        "limit_val_batches=None\n",
        "error: order must be 1 or more, got 0\n",
    )
    code, out, err = run_process(app, "-m", "model.order=1,0,2")
    assert (code, err) == (2, "error: order must be 1 or more, got 0 (in the job model.order=0)\n")
    assert (
        out.count("seed=1 HYDRA_FULL_ERROR=None") == 2
    )  # the good jobs ran, and children would see no variable
    code, out, err = run_process(app, "--cfg", "job", "trainer.limit_val_batches=5")
    assert (code, err) == (0, "")
    assert "limit_val_batches: 5" in out
    code, _, err = run_process(app, "action=fault")
    assert code == 1
    assert err.startswith("Traceback (most recent call last):")
    assert err.endswith("KeyError: 'absent'\n")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["model.order=0", "model=rn", "model.ordr=3", "action=interrupt"])
def test_full_error_shows_the_traceback(app: Path, command: str) -> None:
    code, _, err = run_process(app, command, HYDRA_FULL_ERROR="1")
    assert code != 0
    assert "Traceback (most recent call last):" in err
    assert "error: " not in err.splitlines()[-1][:7]


@pytest.mark.slow
def test_import_is_light() -> None:
    check = (
        "import hornn.configuration, sys; sys.exit(bool({'torch', 'lightning', 'wandb'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", check], timeout=60).returncode == 0


DECIMAL = "decimal.Decimal"  # takes value and context
REFERENCE = OmegaConf.create(
    {
        "seed": 1,
        "model": {"_target_": DECIMAL, "value": 1},
        "plain": {"a": {"b": 1}, "none": None, "list": [{"_target_": DECIMAL}]},
        "empty": {},
        "link": "${plain.a}",
    }
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": {"context": 2, "_partial_": True}},
        {"model": {"value": {"_target_": DECIMAL, "value": "1"}}},
        {"model": {"context": {"any": {"key": 1}}}},
        {"model": {"_target_": "builtins.dict", "anything": 1}},  # tells no signature
        {"plain": {"a": None, "list": [{"any": 1}, {"_target_": DECIMAL}], "none": "${plain.a}"}},
        {"empty": {"any": {"key": 1}}},
    ],
)
def test_check_keys_accepts(changes: dict) -> None:
    check_keys(OmegaConf.merge(REFERENCE, changes), REFERENCE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": {"contxt": 2}},
            "'model.contxt' .* did you mean 'model.context'. model takes: context, value",
        ),
        ({"model": {"value": {"x": 1}}}, "'model.value.x' .*; model.value takes one value, not keys"),
        (
            {"model": {"context": {"_target_": DECIMAL, "valu": 1}}},
            "'model.context.valu' .* 'model.context.value'",
        ),
        ({"plain": {"a": {"c": 1}}}, "'plain.a.c' .*; plain.a takes: b"),
        ({"plain": {"value": 1}}, "'plain.value' .*; did you mean 'model.value'. plain takes: a, list, none"),
        ({"plain": {"list": [{"_target_": DECIMAL, "valu": 1}]}}, "'plain.list.0.valu'"),
        ({"plain": {"none": {"x": 1}}}, "'plain.none.x' .*; plain.none takes one value"),
        ({"plain": 3}, "'plain' takes keys .a, list, none., not the value 3"),
        ({"link": {"_target_": "absent"}}, "cannot use link._target_ 'absent': No module named 'absent'"),
        ({"link": {"_target_": "math.pi"}}, "cannot use link._target_ 'math.pi': .*not a callable"),
    ],
)
def test_check_keys_refuses(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_keys(OmegaConf.merge(REFERENCE, changes), REFERENCE)


def test_check_keys_hides_what_the_program_supplies() -> None:
    with pytest.raises(ValueError, match=r"unknown key 'model.value' .* model takes: context$"):
        check_keys(REFERENCE, REFERENCE, {"model": {"value"}})
