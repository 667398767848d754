"""The installed package works without the checkout: its command, its configs, a cell of the user's own."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hornn
from hornn.commands.entry import COMMANDS

ROOT = Path(__file__).parents[1]
MINE = """
_target_: hornn.cells.elman.Rnn
_partial_: true
hidden_size: 5
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip installs it from the wheel."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = folder.glob("hornn-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder / "site"), str(wheel)], check=True)
    return folder / "site"


@pytest.mark.thorough
@pytest.mark.slow(seconds=30)
def test_the_wheel_works_outside_of_the_checkout(installed: Path, tmp_path: Path) -> None:
    def run(*words: str, fails: bool = False) -> str:
        done = subprocess.run(
            [sys.executable, str(installed / "bin" / "hornn"), *words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(installed)},
            capture_output=True,
            text=True,
        )
        assert bool(done.returncode) == fails, done.stderr
        return done.stderr if fails else done.stdout

    assert run("--version").strip() == "hornn 0.1.0"
    (tmp_path / "own" / "model").mkdir(parents=True)
    (tmp_path / "own" / "model" / "mine.yaml").write_text(MINE)
    small = ["data=pydoc", "trainer.max_steps=2", "logger=csv", "network.backend=eager"]
    run("train", "-m", "--config-dir=own", "model=mine", "seed=2", *small)
    results = [json.loads(path.read_text()) for path in tmp_path.glob("outputs/mine/pydoc/*/*/result.json")]
    assert sorted(result["seed"] for result in results) == [2]
    assert "adhoc" in run("status")
    assert "index.html" in run("report")
    assert "python src" not in (tmp_path / "outputs" / "report" / "index.html").read_text()
    shown_by = {
        "score": "hornn score checkpoint=PATH",
        "dashboard": "usage: hornn dashboard",
        "report": "usage: hornn report",
    }
    for entry, shown in shown_by.items():
        said = run(entry, "--help")
        assert shown in said
        assert "python src" not in said
    refused = run("train", "sweeps=[memory]", fails=True)
    assert "give hornn train -m sweeps=memory" in refused
    assert (installed / "hornn" / "py.typed").is_file()


def test_every_command_is_one_line_of_help() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from hornn.commands.entry import main; main()", "--help"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for name in COMMANDS:
        assert f"\n  {name} " in done.stdout
        assert (ROOT / "src" / "hornn" / "commands" / f"{name}.py").is_file()


def test_a_reader_of_the_help_may_go_away() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", "from hornn.commands.entry import main; main()"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_unknown_command_is_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from hornn.commands.entry import main; main()", "trian"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr == f"error: unknown command 'trian'; it is one of: {', '.join(COMMANDS)}\n"


def test_what_the_package_offers_is_typed() -> None:
    of_text = {"GrowingText", "Model", "Score", "load"}
    of_music = {"MusicModel", "PieceScore", "load_music", "read_midi", "write_midi"}
    of_speech = {"SpeechModel", "Transcript", "load_speech"}
    assert set(hornn.__all__) < set(dir(hornn)), "for whoever completes a name"
    assert set(hornn.__all__) == {*of_text, "make_network", "results", *of_music, *of_speech}


def test_the_version_is_the_package_s() -> None:
    assert hornn.__version__ == importlib.metadata.version("hornn")
