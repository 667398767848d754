"""Processes that share the columns of a batch train as one process with all of them, by a recipe of each network."""

import csv
import json
import os
import random
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hornn.result import score_of
from speech.equal import prepare_tiny

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("one_rank.py")
COUNTED = {"ngram/ptb", "ngram/text8", "hornn_acoustic/gmm"}  # trained by counting, in one process
SMALL = {
    "fofe_fnn": ["network.embedding_size=12", "model.hidden_size=14"],
    "nnlm": ["network.embedding_size=12", "model.hidden_size=14"],
    "memn2n": ["model.hidden_size=12", "model.linear_size=6", "model.hops=2", "model.memory_size=20"],
    "scrn": [
        "model.hidden_size=12",
        "model.context_size=5",
        "network.state_grad_norm=0.2",
    ],  # so that the bound bites
    "deep_rnn": ["model.hidden_size=12", "network.recurrent_fan_in=5"],
}
# Beside another recipe for the same networks they have other constants or another text, which no process sees.
ALIKE = {"demo", "hornn/text8", "scrn/text8", "memn2n/text8", "memn2n/released"} | {
    f"hornn_acoustic/mgb3_{hours}h" for hours in (55, 275)
}
RECIPES = sorted(
    name
    for path in (ROOT / "conf/experiment").rglob("*.yaml")
    if (name := str(path.relative_to(ROOT / "conf/experiment").with_suffix(""))) not in COUNTED | ALIKE
)
# Beside the recipes: what none of them has switched on.
OTHERS = {
    "dropout": [
        "model=dots_rnn",
        "model.hidden_size=12",
        "model.transition_dropout=0.3",
        "model.output_dropout=0.2",
    ],
    "dropout of each step": [
        "model=lstm",
        "model.hidden_size=12",
        "network.dropout=0.3",
        "network.input_dropout=0.1",
        "recurrent_dropout=0.2",
        "bptt_window=70",
    ],
    "fewer columns than processes": [
        "model=gru",
        "model.hidden_size=12",
        "network.dropout=0.1",
        "data.batch_size=2",
    ],
    "element clip": [
        "model=hornn_gated",
        "model.hidden_size=12",
        "optimizer.clip_mode=element",
        "optimizer.clip=1e-3",
    ],
}
# Separate sequences, more of them in some batches than in the last, and longer than a chunk.
MUSIC, ROLLS = "deep_rnn/music", "music/JSB_Chorales.mat"
OF_MUSIC = [
    f"experiment={MUSIC}",
    "data.set=jsb_chorales",
    "data.max_len=7",
    "data.seq_len=3",
    "data.batch_size=700",
    "model.hidden_size=12",
    "network.recurrent_fan_in=5",
]
# Frames of speech, whose first steps have no target.
SPEECH = "hornn_acoustic/an4"
OF_SPEECH = [
    f"experiment={SPEECH}",
    "data.seq_len=20",
    "data.batch_size=4",
    "data.eval_batch_size=2",
    "model.hidden_size=12",
]
MOVED = "dropout of each step"  # begun by three processes, cut off, ended by two
# Three processes, of which some hold more columns than others, train what two do not already show.
BY_THREE = [MUSIC, SPEECH, "hornn/ptb", MOVED, "fewer columns than processes"]


def overrides_of(recipe: str) -> list[str]:
    if recipe in OTHERS:
        return ["data.batch_size=7", *OTHERS[recipe], "data.eval_batch_size=2", "data.seq_len=35"]
    small = SMALL.get(recipe.split("/")[0], ["model.hidden_size=12"])
    return [f"experiment={recipe}", *small]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("text")
    draw = random.Random(0)
    for split, lines in {"train": 451, "valid": 31, "test": 33}.items():
        words = [
            " ".join(draw.choice("abcdefgh") * draw.randint(1, 3) for _ in range(9)) for _ in range(lines)
        ]
        (folder / f"{split}.txt").write_text("\n".join(words) + "\n")
    paths = [f"data.{split}={folder / split}.txt" for split in ("train", "valid", "test")]
    return ["data=files", *paths, f"data.cache_dir={folder / 'cache'}"]


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return prepare_tiny(tmp_path_factory.mktemp("speech"))


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    text: list[str],
    speech: list[str],
    forked_python: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A folder with the recipes that are tested, trained by 1, 2 and 3 processes: `1/RECIPE`, `2/RECIPE`, .."""
    selected = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    tested = {params["recipe"] for params in selected if {"recipe", "world_size"} <= params.keys()} | {
        MOVED,
        "element clip",
    }
    folder = tmp_path_factory.mktemp("runs")
    own = {MUSIC: OF_MUSIC, SPEECH: [*speech, *OF_SPEECH]}
    shared = [
        "trainer.max_steps=6",
        "network.precision=fp32",
        "logger=csv",
        "trainer.enable_progress_bar=false",
    ]
    for world_size in (1, 3, 2):
        several = ["trainer=ddp", f"trainer.devices={world_size}"] if world_size > 1 else []
        settings = [*shared, *several, "trainer.accelerator=cpu"]
        jobs: list[tuple[int | None, list[str]]] = [
            (
                None,
                [
                    *own.get(recipe, words_of(recipe, text)),
                    *settings,
                    f"run_dir={folder / str(world_size) / recipe}",
                ],
            )
            for recipe in (BY_THREE if world_size == 3 else (*RECIPES, *OTHERS))
            if recipe in tested and (recipe != MUSIC or has_music())
        ]
        if world_size > 1:
            moved = [
                *words_of(MOVED, text),
                *settings,
                "checkpoint_every=2",
                f"run_dir={folder / 'moved' / MOVED}",
            ]
            jobs.append((3 if world_size == 3 else None, moved))
        train_together(forked_python, jobs, world_size, folder / f"{world_size}.json")
    return folder


def words_of(recipe: str, text: list[str]) -> list[str]:
    return [*text, *overrides_of(recipe)]


def has_music() -> bool:
    return Path(os.environ.get("HORNN_DATA", ""), ROLLS).is_file()


def train_together(
    python: str, jobs: list[tuple[int | None, list[str]]], world_size: int, file: Path
) -> None:
    """Train these, [cut, overrides] each (see one_rank.py), by `world_size` processes that are started once."""
    file.write_text(json.dumps(jobs))
    group = {"WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [
        subprocess.Popen(
            [python, PROGRAM, file],
            env={
                **os.environ,
                **group,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "TORCHELASTIC_RUN_ID": "test",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world_size)
    ]
    said = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world_size, "\n".join(said)[-4000:]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@pytest.mark.each(6)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "world_size"),
    [
        pytest.param(recipe, world_size, marks=[pytest.mark.corpus] if recipe == MUSIC else [])
        for world_size, recipes in ((2, (*RECIPES, *OTHERS)), (3, BY_THREE))
        for recipe in recipes
    ],
)
def test_a_recipe_learns_the_same_on_any_number_of_processes(
    runs: Path, corpus_root: Callable[[str], str], recipe: str, world_size: int
) -> None:
    if recipe == MUSIC:
        corpus_root(ROLLS)
    assert_same(runs / "1" / recipe, runs / str(world_size) / recipe, world_size)


@pytest.mark.slow
def test_a_run_goes_on_by_another_number_of_processes(runs: Path) -> None:
    assert len(json.loads((runs / "moved" / MOVED / "result.json").read_text())["starts"]) == 2
    assert_same(runs / "1" / MOVED, runs / "moved" / MOVED, 2)


@pytest.mark.slow
def test_processes_of_another_launcher_continue_a_finished_run(
    text: list[str], tmp_path: Path, forked_python: str
) -> None:
    """All of them look into its folder at once, while the first one still copies the checkpoints there."""
    settings = [
        *words_of("element clip", text),
        "network.precision=fp32",
        "logger=csv",
        "trainer.accelerator=cpu",
    ]
    short, whole, longer = (f"run_dir={tmp_path / name}" for name in ("short", "whole", "longer"))
    alone = [*settings, "trainer.max_epochs=2", whole]
    several = [*settings, "trainer=ddp", "trainer.devices=2"]
    jobs: list[tuple[int | None, list[str]]] = [
        (None, [*several, "trainer.max_epochs=1", short]),
        (None, [*several, "trainer.max_epochs=2", longer, f"continue_from={tmp_path / 'short'}"]),
    ]
    train_together(forked_python, [(None, alone)], 1, tmp_path / "1.json")
    train_together(forked_python, jobs, 2, tmp_path / "2.json")
    assert len(json.loads((tmp_path / "longer" / "result.json").read_text())["starts"]) == 2
    assert_same(tmp_path / "whole", tmp_path / "longer", 2)


def assert_same(alone: Path, shared: Path, world_size: int) -> None:
    records = []
    for run in (alone, shared):
        with (run / "metrics.csv").open() as file:
            records.append(
                [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file)]
            )
    assert len(records[0]) == len(records[1]) > 0
    for one, other in zip(*records, strict=True):
        assert one["step"] == other["step"]
        for key in ("train_nll", "valid_nll", "grad_norm"):
            assert other[key] == pytest.approx(one[key], rel=1e-6), key
    weights = [torch.load(run / "last.ckpt", weights_only=True)["state_dict"] for run in (alone, shared)]
    for name, weight in weights[0].items():
        torch.testing.assert_close(weights[1][name], weight, rtol=1e-4, atol=1e-6, msg=name)
    figures = [json.loads((run / "result.json").read_text()) for run in (alone, shared)]
    assert score_of(figures[1], "test") == pytest.approx(score_of(figures[0], "test"), rel=1e-6)
    assert figures[1].get("test_accuracy") == pytest.approx(figures[0].get("test_accuracy"), abs=1e-3)
    assert [figure["world_size"] for figure in figures] == [1, world_size]


@pytest.mark.each(2)
@pytest.mark.parametrize("words", [["trainer=ddp", "trainer.devices=1"], ["trainer.strategy=ddp"]])
def test_one_process_of_a_distributed_strategy(
    text: list[str], tmp_path: Path, forked_python: str, words: list[str]
) -> None:
    """The network is wrapped there, too, and DistributedDataParallel takes no gradient that is sparse or in bf16."""
    settings = [*text, *words, "trainer.accelerator=cpu", "model.hidden_size=12", "data.batch_size=7"]
    settings += ["data.eval_batch_size=2", "trainer.max_steps=3", "logger=csv", f"run_dir={tmp_path / 'run'}"]
    done = subprocess.run(
        [forked_python, str(ROOT / "src" / "train.py"), *settings], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads((tmp_path / "run" / "result.json").read_text())["world_size"] == 1


@pytest.mark.slow
def test_two_machines_learn_as_one(runs: Path, text: list[str], tmp_path: Path, forked_python: str) -> None:
    """Two commands with their own NODE_RANK, as on two machines that share the folder of the run."""
    small = [
        *text,
        *overrides_of("element clip"),
        "trainer.max_steps=6",
        "network.precision=fp32",
        "logger=csv",
    ]
    nodes = ["trainer=ddp", "trainer.accelerator=cpu", "trainer.devices=1", "+trainer.num_nodes=2"]
    command = [forked_python, ROOT / "src" / "train.py", *small, *nodes, f"run_dir={tmp_path / 'run'}"]
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    machines = [
        subprocess.Popen(
            command,
            env={**os.environ, **group, "NODE_RANK": str(rank)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [machine.communicate(timeout=300)[1] for machine in machines]
    assert [machine.returncode for machine in machines] == [0, 0], "\n".join(said)[-4000:]
    assert_same(runs / "1" / "element clip", tmp_path / "run", 2)
