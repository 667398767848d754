"""The composition of a config: an unknown choice names the nearest one, an argument that no file names can be set."""

from collections.abc import Callable
from pathlib import Path

import pytest

MODELS = "model is one of: hornn_fofe, misspelt, rnn, untargeted"
EXPERIMENTS = (
    "experiment is one of: bad_choice, bad_class, bad_include, bad_key, bad_nested, bad_override, bad_value,"
    " bad_yaml, hornn/ptb"
)

# Command line -> what the one line says, in full or, where it is Hydra's wording, in part.
BAD = {
    # unknown choices
    "model=hornn_fof": f"unknown model 'hornn_fof'; did you mean 'hornn_fofe'? {MODELS}",
    "-m model=rnn,hornn_fof": f"unknown model 'hornn_fof'; did you mean 'hornn_fofe'? {MODELS}",
    "model=3": f"unknown model '3'; {MODELS}; a file of your own needs --config-dir=FOLDER",
    "-m model=rnn,hornn_fofe logger=3": "unknown logger '3'; logger is one of: csv",
    "model=rnn.yaml": f"unknown model 'rnn.yaml'; did you mean 'rnn'? {MODELS}",
    "model=../model/rnn": "unknown model '../model/rnn'; ",
    "+model@other=rnn": "model@other=rnn: a group has one place here, give model=rnn",
    "hydra.verbose=3": "hydra.verbose must be true, false or names of loggers, got 3",
    "hydra.searchpath=[file:///nowhere]": "hydra.searchpath names file:///nowhere, which is not there: give file:///FOLDER",
    "--package model": "--package shows a part of a config: add --cfg job",
    "model=null": f"unknown model 'null'; {MODELS}",
    "experiment=hornn/ptbb": f"unknown experiment 'hornn/ptbb'; did you mean 'hornn/ptb'? {EXPERIMENTS}",
    "experiment=hornn": f"unknown experiment 'hornn'; did you mean 'hornn/ptb'? {EXPERIMENTS}",
    "experiment.hornn=ptb": f"'experiment' is a group without keys: write experiment=CHOICE; {EXPERIMENTS}",
    "model.rnn=3": f"unknown key 'model.rnn'; did you mean 'model=rnn'? {MODELS}",
    "-cn confg": "unknown config 'confg'; did you mean 'config'? config is one of: config",
    # the same from files
    "experiment=bad_choice": (
        f"unknown model 'rn' (from the defaults list of a config file); did you mean 'rnn'? {MODELS}"
    ),
    "experiment=bad_include": f"unknown experiment 'hornn/ptbb'; did you mean 'hornn/ptb'? {EXPERIMENTS}",
    "experiment=bad_override": (
        "experiment/bad_override.yaml overrides 'modell' in its defaults list, which nothing chooses before it; "
        "did you mean 'model'? the groups are: "
    ),
    "experiment=bad_yaml": "experiment/bad_yaml.yaml",
}


@pytest.mark.each(2)
@pytest.mark.parametrize("command", BAD)
def test_bad_choice_is_one_line(refuse: Callable[[str], str], command: str) -> None:
    assert BAD[command] in refuse(command)


@pytest.mark.each(2)
def test_who_gives_a_folder_is_not_told_to_give_one(refuse: Callable[[str], str], tmp_path: Path) -> None:
    assert refuse(f"--config-dir={tmp_path} model=3").strip().endswith(MODELS)


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("seed=2", "seed=2"),
        ("experiment=hornn/ptb", "seed=7"),
        ("experiment=hornn/ptb seed=3 model.bias=true", "seed=3"),
        ("trainer.limit_val_batches=5", "limit_val_batches=5"),
        ("~trainer.limit_val_batches", "limit_val_batches=None"),
        ("trainer.plugins.a=1 trainer.plugins.b=2", "limit_val_batches=None"),
        ("logger=csv logger.anything=1", "seed=1"),
        ("logger=csv logger._target_=builtins.dict", "seed=1"),
        ("trainer._convert_=all", "seed=1"),
        ("model._target_=toy_parts.Fofe", "seed=1"),  # what the file says
        ("+tags.paper=hornn", "seed=1"),
        ("-m model=rnn model.bias=true", "seed=1"),
        ("-m seed=1,2", "seed=2"),
    ],
)
def test_good_input_passes(run: Callable[..., tuple[int, str, str]], command: str, printed: str) -> None:
    code, out, err = run(*command.split())
    assert (code, err) == (0, "")
    assert printed in out


@pytest.mark.parametrize("content", ["_target_: [x\n", "a: ${\n", "hello\n"])
def test_a_broken_file_is_told_only_where_it_is_chosen(
    app: Path, refuse: Callable[[str], str], content: str
) -> None:
    path = app / "conf" / "model" / "broken.yaml"
    path.write_text(content)
    lines = refuse("model=rnn model.order=3"), refuse("model=broken")
    path.unlink()
    assert "unknown key 'model.order'; model=rnn takes: bias, hidden_size; order is a key of" in lines[0]
    assert "unknown key" not in lines[1]


def test_a_file_of_settings_without_its_package_is_named(app: Path, refuse: Callable[[str], str]) -> None:
    """Hydra would put its keys below the name of the group, and refuse another key than the forgotten one."""
    path = app / "conf" / "experiment" / "strange.yaml"
    path.write_text("# a table\ndefaults:\n  - override /model: rnn\n\nseed: 2\n")
    line = refuse("experiment=strange")
    path.unlink()
    assert f"{path} does not begin with the line '# @package _global_': write it at the top" in line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no keys and values: write lines KEY: VALUE"),
        (b"# @package _global_\n", "holds no keys and values: write lines KEY: VALUE"),
        (b"hello\n", "holds no keys and values: write lines KEY: VALUE"),
        (b"a: !!bool x\nb: 1\n", "has a value that cannot be read ('x'): write it without a tag (!)"),
        (
            b"a: !!int x\nb: 1\n",
            "has a value that cannot be read (invalid literal for int() with base 10: 'x')",
        ),
        (b"7\n", "holds no keys and values: write lines KEY: VALUE"),
        (b"[1, 2]\n", "holds no keys and values: write lines KEY: VALUE"),
        (b"run_dir: caf\xe9\n", "is not UTF-8: byte 0xe9 at offset 12: convert it to UTF-8"),
        (b"\xff\xfe\x00", "is not UTF-8: byte 0xff at offset 0: convert it to UTF-8"),
        (b"a: \x00\n", "special characters are not allowed"),
    ],
)
def test_a_file_without_keys_and_values_is_named(
    app: Path, refuse: Callable[[str], str], content: bytes, message: str
) -> None:
    path = app / "conf" / "experiment" / "strange.yaml"
    path.write_bytes(content)
    line = refuse("experiment=strange")
    path.unlink()
    assert str(path) in line
    assert message in line
