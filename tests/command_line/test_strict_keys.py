"""What a config may hold: on the small application's command line, and of nodes made here."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from hornn.command_line.strict_keys import BY_FILE, GIVEN, check_keys
from hornn.run.identity import GROUPS

TOP = "the top level takes: action, checkpoint, experiment, logger, model, run_dir, seed, tags, trainer"
FOFE = "model=hornn_fofe takes: alpha, hidden_size, order"
RNN = "model=rnn takes: bias, hidden_size; order is a key of model=hornn_fofe"
ANYWHERE = "(from a config file or the command line)"
BY_CHOICE = "is set by the choice of model: write conf/model/NAME.yaml and give model=NAME"

# Command line -> what the one line says.
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
    "model.order=3 model=rnn": f"unknown key 'model.order'; {RNN}",
    "experiment=hornn/ptb model.order=4": f"unknown key 'model.order'; {RNN}",
    "-m model=hornn_fofe,rnn model.order=1": f"unknown key 'model.order'; {RNN}",
    "hydra.run.dri=x": "unknown key 'hydra.run.dri'; did you mean 'hydra.run.dir'? hydra.run takes: dir",
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
    "model=misspelt": (
        f"unknown key 'model.hiden_size' {ANYWHERE}; did you mean 'model.hidden_size'? "
        "model=misspelt takes: bias, hidden_size"
    ),
    "model=untargeted": (
        "cannot use model._target_ 'toy_parts.Elmann': module 'toy_parts' has no attribute 'Elmann'"
    ),
    "trainer._target_=absent.Trainer": (
        "cannot use trainer._target_ 'absent.Trainer': No module named 'absent': put its folder on PYTHONPATH"
    ),
    # a class that no file chose
    "model._target_=absent.Cell": f"model._target_ {BY_CHOICE}",
    "model=rnn model._target_=toy_parts.Fofe": f"model._target_ {BY_CHOICE}",
    "model._target_=toy_parts.Elman model.bias=true": f"model._target_ {BY_CHOICE}",
    "-m seed=1,2 model._target_=toy_parts.Elman": f"model._target_ {BY_CHOICE} (in the job",
    "experiment=bad_class": f"model._target_ {BY_CHOICE}",
    "model._convert_=all": f"model._convert_ {BY_CHOICE}",
    "~model._partial_": f"model._partial_ {BY_CHOICE}",
}


@pytest.mark.each(6)
@pytest.mark.parametrize("command", BAD)
def test_bad_key_is_one_line(refuse: Callable[[str], str], command: str) -> None:
    assert BAD[command] in refuse(command)


DECIMAL = "decimal.Decimal"  # takes value and context
REFERENCE = OmegaConf.create(
    {
        "seed": 1,
        "model": {"_target_": DECIMAL, "value": 1, "_counted_": True},
        "plain": {"a": {"b": 1}, "none": None, "list": [{"_target_": DECIMAL}]},
        "empty": {},
        "link": "${plain.a}",
        "logger": {"_target_": DECIMAL},
    }
)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model": {"context": 2}},
        {"logger": {"context": 2, "_partial_": True}},
        {"model": {"value": {"_target_": DECIMAL, "value": "1"}}},
        {"model": {"context": {"any": {"key": 1}}}},
        {"logger": {"_target_": "builtins.dict", "anything": 1}},  # tells no signature
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


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class Cell(:", "invalid syntax (unread.py, line 1)"),
        ("Cell = Rnn", "NameError: name 'Rnn' is not defined (FOLDER/unread.py:1)"),
        ("raise RuntimeError", "RuntimeError (FOLDER/unread.py:1)"),
        ("raise SystemExit(3)", "SystemExit: 3 (FOLDER/unread.py:1)"),
        (
            "import absent",
            "ModuleNotFoundError: No module named 'absent' (FOLDER/unread.py:1): put its folder on PYTHONPATH",
        ),
        ("Cell = 3", "it is of type int, not a callable: name a class"),
        ("", "module 'unread' has no attribute 'Cell'"),
    ],
)
def test_a_module_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    config = own_module(tmp_path, monkeypatch, code)
    line = f"cannot use model._target_ 'unread.Cell': {message.replace('FOLDER', str(tmp_path))}"
    with pytest.raises(ValueError, match=f"^{re.escape(line)}$"):
        check_keys(config, config)


def test_an_interrupted_import_is_no_error_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = own_module(tmp_path, monkeypatch, "raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        check_keys(config, config)


def test_a_hint_that_cannot_be_read_allows_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import math\nclass Cell:\n    def __init__(self, size: 'math.Absent' = 1): pass"
    config = own_module(tmp_path, monkeypatch, code)
    check_keys(OmegaConf.merge(config, {"model": {"size": 2}}), config)


def own_module(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> DictConfig:
    """A config whose model is the class `Cell` of a module with this code."""
    (folder / "unread.py").write_text(f"{code}\n")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "unread", raising=False)
    return OmegaConf.create({"model": {"_target_": "unread.Cell"}})


def test_every_choice_in_a_name_fixes_its_class() -> None:
    """A run's name holds the word of a choice, and no class: two classes behind one word would share a name."""
    assert set(BY_FILE) == set(GROUPS)


@pytest.mark.parametrize("group", BY_FILE)
@pytest.mark.parametrize("key", ["_target_", "_partial_", "_convert_", "_recursive_", "_args_", "_counted_"])
def test_a_class_is_the_choice_of_a_file(group: str, key: str) -> None:
    """Neither set where the file leaves it out, nor changed, nor taken away."""
    line = rf"^{group}.{key} is set by the choice of {group}: write conf/{group}/NAME.yaml and give {group}=NAME$"
    bare, full = {group: {"size": 1}}, {group: {"size": 1, key: "one"}}
    other = {group: {"size": 1, key: "other"}}
    for given, chosen in ((full, bare), (other, full), (bare, full)):
        with pytest.raises(ValueError, match=line):
            check_keys(OmegaConf.create(given), OmegaConf.create(chosen))


def test_check_keys_hides_what_the_program_supplies() -> None:
    with pytest.raises(ValueError, match=r"unknown key 'model.value' .* model takes: context$"):
        check_keys(REFERENCE, REFERENCE, {"model": {"value"}})


def test_a_cell_without_its_size_names_the_key_that_it_needs() -> None:
    typed = {"model": {"_target_": "hornn.cells.elman.Rnn", "_partial_": True, "hiden_size": 8}}
    config = OmegaConf.create(typed)
    takes = r"did you mean 'model.hidden_size'\? model takes: activation, bias, hidden_size$"
    with pytest.raises(ValueError, match=takes):
        check_keys(config, config, GIVEN)
