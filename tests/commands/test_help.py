"""What --help shows."""

import sys
from typing import Any

import pytest

from commands.outcomes import refusal
from hornn.command_line.help_text import fit
from hornn.commands.entry import COMMANDS, main
from outcome import Command


def test_help_of_train_shows_groups_choices_and_keys(command: Command) -> None:
    code, out, err = command("train", "--help")
    assert (code, err) == (0, "")
    for line in (
        "trainer: cpu, ddp, debug, gpu",
        "logger: csv, mlflow, tensorboard, wandb, wandb_offline",
        "callbacks: device_stats, early_stopping, layer_norms, none, samples, snapshots,\n  word_frequency\n",
        "data: an4, files, midi, music, ptb, pydoc, text8",
        "hornn_fofe",
        "hornn_gated",
        "model.order=3",
        "data.root=FOLDER",
        "trainer.max_epochs=20",
        "overwrite=true",
        "HYDRA_FULL_ERROR=1",
        "# of all that is drawn",
    ):
        assert line in out


@pytest.mark.parametrize(
    ("entry", "keys"),
    [
        (
            "evaluate",
            ["checkpoint", "split: null", "text", "batch_size: 1 ", "# a UTF-8 file to score", "result"],
        ),
        pytest.param(
            *("score", ["checkpoint", 'text: "-"', "per_token: false", "batch_size: 64"]),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *("rescore", ["nbest", "references", "dev_references", "lm_weight", "word_penalty"]),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *(
                "transcribe",
                ["checkpoint", "wav", "grammar: shipped", "acoustic_scale", "nbest", "json: false"],
            ),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            *(
                "generate",
                ["checkpoint", "prompt", "length: 50", "temperature: null", "seed: 1", "json: false"],
            ),
            marks=pytest.mark.thorough,
        ),
    ],
)
def test_help_of_the_others_shows_their_keys(command: Command, entry: str, keys: list[str]) -> None:
    code, out, err = command(entry, "--help")
    assert (code, err) == (0, "")
    assert f"python src/{entry}.py checkpoint=PATH" in out
    for key in keys:
        assert key in out
    assert "_self_" not in out
    assert "hydra" not in out
    assert "oc.env" not in out
    assert "root: ~/.cache/hornn/data  # or the folder that HORNN_DATA names" in out


@pytest.mark.parametrize(
    "entry",
    [
        *("bench", "dashboard", "parameters", "report", "sweep_status"),
        *(pytest.param(entry, marks=pytest.mark.thorough) for entry in ("analyse", "tune")),
    ],
)
def test_the_other_entries_have_a_help(command: Command, entry: str) -> None:
    code, out, err = command(entry, "--help")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 3


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "tune" else pytest.mark.thorough) for name in COMMANDS]
)
def test_every_command_of_hornn_has_a_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hornn", name, "--help"])
    code: Any = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code
    assert not code
    out, err = capsys.readouterr()
    assert len(out.splitlines()) > 3
    assert err == ""


def test_the_help_names_the_command_that_was_typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["hornn", "status", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().out.startswith("usage: hornn status [-h] [name]\n")


@pytest.mark.parametrize("width", [30, 80, 200])
def test_a_help_is_as_wide_as_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = "group/one: first, second, third, and_so_on\nkey: null   # what it is, said\n            # in two lines"
    fitted = fit(text)
    assert fitted.replace("\n            #", "").replace("\n ", "") == text.replace("\n            #", "")
    assert max(map(len, fitted.splitlines())) <= width
    assert fitted.count("\n") == {30: 3, 80: 1, 200: 1}[width]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hornn tr", "train transcribe"),
        ("hornn train model=hornn_g", "model=hornn_gated"),
        ("/opt/generate/hornn generate leng", "length="),
        ("hornn report --", ""),
    ],
)
def test_tab_completes_commands_choices_and_keys(
    line: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    monkeypatch.setenv("COMP_POINT", str(len(line)))
    monkeypatch.setattr(sys, "argv", ["hornn", "-sc", "query=bash"])
    main()
    assert capsys.readouterr().out.strip() == offered


def test_the_completion_is_that_of_hornn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COMP_LINE", raising=False)
    monkeypatch.setattr(sys, "argv", ["/usr/bin/hornn", "-sc", "install=bash"])
    main()
    assert capsys.readouterr().out.strip().endswith("-F hydra_bash_completion hornn")


@pytest.mark.each(2)
@pytest.mark.parametrize(
    ("entry", "word", "nearest"),
    [("generate", "lenght=3", "length"), ("evaluate", "chekpoint=a", "checkpoint")],
)
def test_an_unknown_key_names_what_the_command_takes(
    command: Command, entry: str, word: str, nearest: str
) -> None:
    for setting in (word, "model=rnn"):
        line = refusal(command(entry, "checkpoint=x", setting))
        assert "takes: " in line
        assert not {"callbacks", "logger", "model", "trainer"} & set(
            line.rpartition("takes: ")[2].strip().split(", ")
        )
    assert f"did you mean {nearest!r}" in refusal(command(entry, "checkpoint=x", word))


@pytest.mark.parametrize("entry", ["bench", "parameters", "report", "sweep_status"])
def test_an_unknown_option_is_one_line(command: Command, entry: str) -> None:
    assert "--help lists the options" in refusal(command(entry, "--fancy"))


def test_hydras_own_help(command: Command) -> None:
    code, out, err = command("train", "--hydra-help")
    assert (code, err) == (0, "")
    assert "--cfg" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", "-cn", "evaluate"], "--config-name=evaluate is the file of another command: leave it out"),
        (["train", "-cn", "tune", "model=rnn"], "--config-name=tune is the file of another command"),
        (["evaluate", "-cn", "score", "checkpoint=x"], "--config-name=score is the file of another command"),
        (["train", "hydra.run.dir=elsewhere"], "hydra.run.dir=elsewhere moves no run: give run_dir=FOLDER"),
        (["train", "-m", "model=glob(zzz*)"], "model=glob(zzz*) names no value: nothing fits it"),
        (["tune", "hydra.mode=multirun", "model=rnn"], "a search runs its trials itself"),
    ],
)
def test_words_of_hydra_that_would_be_unheeded(command: Command, words: list[str], said: str) -> None:
    assert said in refusal(command(*words))
