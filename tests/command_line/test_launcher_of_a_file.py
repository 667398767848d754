"""`override /hydra/launcher` in an experiment or a sweep counts (hydra#2946), below the command line."""

from pathlib import Path

import pytest

from outcome import Command

FILES = {
    "experiment/by_joblib": "joblib",
    "sweeps/by_basic": "basic",
}


@pytest.mark.parametrize(
    ("words", "launcher"),
    [
        (["model=rnn"], "process"),
        (["experiment=by_joblib"], "joblib"),
        (["sweeps=by_basic"], "basic"),
        (["experiment=by_joblib", "sweeps=by_basic"], "basic"),  # the sweep stands behind the experiment
        (["experiment=by_joblib", "hydra/launcher=process"], "process"),
    ],
)
@pytest.mark.parametrize("entry", ["train", "tune"])
def test_the_launcher_of_a_file_counts(
    command: Command, tmp_path: Path, words: list[str], launcher: str, entry: str
) -> None:
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    for name, chosen in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        text = f"# @package _global_\ndefaults: [override /hydra/launcher: {chosen}]\n"
        (tmp_path / f"{name}.yaml").write_text(text)
    done = command(entry, f"--config-dir={tmp_path}", *words, "--info", "defaults")
    assert (done.code, done.err) == (0, "")
    assert f"hydra/launcher/{launcher} " in done.out


def test_an_unknown_launcher_of_a_file_is_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "x.yaml").write_text(
        "# @package _global_\ndefaults: [override /hydra/launcher: slrm]\n"
    )
    done = command("train", f"--config-dir={tmp_path}", "experiment=x")
    assert done.code == 2
    assert done.err.startswith(
        "error: unknown hydra/launcher 'slrm' (from the defaults list of a config file)"
    )
