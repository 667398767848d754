"""Config files put together without Hydra. tests/reporting/test_sweep_files.py holds every row against Hydra."""

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from hornn.recipe import flatten, load, read_choice, resolve

ROOT = Path(__file__).parents[1]


def test_a_number_without_a_point_is_a_number() -> None:
    choices, config = resolve(["optimizer.lr=1e-5", "model=rnn"], {}, ROOT / "conf")
    assert (choices["model"], config["optimizer"]["lr"]) == ("rnn", 1e-5)


@pytest.mark.parametrize("choice", ["none", "../../etc/passwd", "rnn.yaml", "", "/etc/passwd"])
def test_a_choice_that_is_not_there(choice: str) -> None:
    with pytest.raises(ValueError, match=r"unknown model .*; it is one of: clockwork, "):
        read_choice("model", choice)


def test_a_choice_of_a_folder_of_one_s_own(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.yaml").write_text("_target_: my.Cell\nhidden_size: 3\n")
    (tmp_path / "model" / "wide.yaml").write_text("defaults: [mine]\nhidden_size: 30\n")
    folders = (ROOT / "conf", tmp_path)
    assert read_choice("model", "wide", folders) == {"_target_": "my.Cell", "hidden_size": 30}


def test_a_choice_of_one_s_own_does_not_take_the_name_of_another(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path, ours = tmp_path / "model" / "lstm.yaml", ROOT / "conf" / "model" / "lstm.yaml"
    path.write_text("_target_: my.Cell\nhidden_size: 3\n")
    with pytest.raises(ValueError, match=f"{path} and {ours} have one name and are not the same: give yours"):
        read_choice("model", "lstm", (tmp_path, ROOT / "conf"))
    with pytest.raises(ValueError, match=f"{ours} and {path} have one name and are not the same: give yours"):
        resolve(["model=lstm"], {}, ROOT / "conf", tmp_path)
    path.write_bytes(ours.read_bytes())
    assert read_choice("model", "lstm", (tmp_path, ROOT / "conf"))["hidden_size"] == 400
    assert resolve(["model=lstm"], {}, ROOT / "conf", tmp_path)[1]["model"]["hidden_size"] == 400


HOSTILE = {
    "a constructor's name": "a: !!bool x",
    "a tag of nobody's": "a: !mine x",
    "a value in itself": "a: &a {b: *a}",
    "an anchor": "a: &a 1",
    "nested": f"a: {'[' * 101}{']' * 101}",
    "nested more": "[" * 100_000,
    "no number": "a: 0b_",
    "many digits": f"a: {'9' * 5000}",
    "a key that is a list": "? [1]\n: 2",
    "a list": "[1, 2]",
    "no list of defaults": "defaults: 5",
    "no group": "defaults: [{5: 6}]",
    "a character that acts": "a: \0",
    "doubled again and again": "a: &a {b: 1}\n"
    + "".join(f"{n}: &{n} {{x: *a, y: *a}}\n" for n in range(100)),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_yaml_of_a_stranger_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "theirs.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"theirs\.yaml") as refused:
        load(path)
    assert "\n" not in str(refused.value)


def test_what_is_nested_a_hundred_deep_is_read(tmp_path: Path) -> None:
    (tmp_path / "deep.yaml").write_text(f"a: {'[' * 99}{']' * 99}")
    assert load(tmp_path / "deep.yaml")["a"]


def test_a_date_is_a_text_as_to_hydra() -> None:
    assert resolve(["optimizer.lr=2026-13-45"], {}, ROOT / "conf")[1]["optimizer"]["lr"] == "2026-13-45"


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (["optimizer.lr=!!int foo"], "'optimizer.lr=!!int foo' has no value: tags"),
        (["a.b=1", "a.b.c=2"], "a.b.c lies below b, which has a value"),
        (["a.b.c=2", "a.b=1"], "a.b has a value and keys below it"),
        (["network={dropout:0.3}"], "has the key 'network.dropout:0.3': write a blank behind each colon"),
    ],
)
def test_an_override_that_cannot_be(run: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve(run, {}, ROOT / "conf")


@pytest.mark.parametrize(
    ("run", "key", "value"),
    [
        (["model=rnn", "~model.activation", "+model.activation=relu"], "model.activation", "relu"),
        (
            ["callbacks=[snapshots,early_stopping]", "~callbacks.early_stopping"],
            "callbacks.early_stopping.patience",
            None,
        ),
        (
            ["callbacks=[snapshots,early_stopping]", "~callbacks.early_stopping"],
            "callbacks.snapshots.epochs",
            [1],
        ),
        (["experiment=hornn/ptb", "~experiment"], "trainer.max_epochs", 20),
        (["network={dropout: 0.3}"], "network.dropout", 0.3),
        (["~schedule", "schedule=constant"], "schedule._target_", None),
        (["experiment=hornn/ptb", "~experiment", "experiment=hornn/modern"], "trainer.max_epochs", 20),
    ],
)
def test_words_count_in_their_order_as_to_hydra(run: list[str], key: str, value: Any) -> None:
    with initialize_config_dir(str(ROOT / "conf"), version_base=None):
        cfg = OmegaConf.to_container(compose("config", run), resolve=False)
    for config in (cfg, resolve(run, {}, ROOT / "conf")[1]):
        assert flatten(config).get(key) == value  # type: ignore[arg-type]


def test_null_takes_the_place_of_a_whole_node() -> None:
    """As to Hydra: `logger: null` in a sweep file leaves the loggers out."""
    assert "wandb" in resolve([], {}, ROOT / "conf")[1]["logger"]
    assert resolve([], {"logger": None}, ROOT / "conf")[1]["logger"] is None


def test_all_our_files_can_be_read() -> None:
    paths = [path for folder in ("conf", "sweeps") for path in (ROOT / folder).rglob("*.yaml")]
    assert len(paths) > 100
    for path in paths:
        if path.read_text().replace("#", "").strip():
            load(path)
