"""From waveforms to word errors by one command, on tones; what a network says of whole sequences."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hornn.cells.elman import Rnn
from hornn.data.sequences import Example, SequenceStream
from hornn.data.streams import ChunkStream
from hornn.module import TruncatedBptt
from hornn.network import SequenceModel
from hornn.optim.descent import MomentumSGD
from hornn.optim.schedules import Constant
from hornn.run import train
from hornn.speech.data import build_data
from hornn.speech.gmm_counts import GmmCounts
from hornn.speech.lexicon import read_lexicon
from hornn.use.posteriors import log_probs_of
from speech.conftest import Run
from speech.mixtures import from_arrays, log_densities


@pytest.fixture(scope="module")
def folder(run: Run) -> Path:
    """The folder that the tiny corpus lies in, prepared."""
    return run.root


def places(folder: Path) -> list[str]:
    return [f"data.root={folder}", "data.name=tiny", f"data.cache_dir={folder / 'cache'}", "logger=csv"]


def words_of(folder: Path, run_dir: Path) -> list[str]:
    small = ["model.hidden_size=16", "data.batch_size=4", "trainer.enable_progress_bar=false"]
    return ["experiment=hornn_acoustic/an4", *places(folder), *small, f"run_dir={run_dir}"]


def read(run_dir: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((run_dir / "result.json").read_text())
    return result


def test_from_waveforms_to_word_errors(run: Run) -> None:
    result = read(run.folder)
    assert result["test_accuracy"] > 0.8
    for end, name in (("", "shipped"), ("_bigram", "bigram")):
        errors = list(map(int, result[f"test_errors{end}"].split()))
        assert len(errors) == 5
        assert result[f"test_wer{end}"] == 100 * sum(errors) / 11 < 20
        valid, test = result[f"valid_wer{end}"], result[f"test_wer{end}"]
        assert f"word errors by the {name} grammar: valid {valid:.2f} %, test {test:.2f} %" in run.out
    (first,) = result["utterances"]  # of the one speaker
    assert (first["id"], first["said"], list(first["heard"])) == ("eve-0", "YES NO", ["shipped", "bigram"])
    assert all(set(heard.split()) <= {"YES", "NO", "SO"} for heard in first["heard"].values())


def test_chunks_shorter_than_the_delay_are_scored(
    run: Run, command: Callable[..., Any], tmp_path: Path
) -> None:
    """The first of them has no target, from which a training could not learn."""
    figures = tmp_path / "figures.json"
    done = command("evaluate", run.checkpoint, *run.places, "seq_len=3", f"result={figures}")
    assert done.code == 0, done.err
    found = json.loads(figures.read_text())["nats_per_frame"]
    assert found == pytest.approx(read(run.folder)["test_nll"], rel=1e-5)


def test_the_mixtures_alone_are_a_run_of_counts(
    command: Callable[..., Any], folder: Path, tmp_path: Path
) -> None:
    done = command("train", "experiment=hornn_acoustic/gmm", *places(folder), f"run_dir={tmp_path}")
    assert done.code == 0, done.err
    result = read(tmp_path)
    assert result["test_wer"] < 20
    assert result["test_accuracy"] > 0.8
    assert 0 < result["test_nll"] < result["baselines"]["state frequencies"]["test_nll"]


def test_the_mixtures_give_the_densities_of_kaldi(folder: Path) -> None:
    data = build_data(root=str(folder), cache_dir=str(folder / "cache"), name="tiny", delay=0)
    data.prepare_data()
    data.setup()
    train, valid = data.whole("train"), data.whole("valid")
    counts = GmmCounts(15)
    counts.fit(train, valid)
    kaldi = from_arrays(read_lexicon(data.corpus.dictionary), data.prepared.model)
    for cepstra in valid.cepstra:
        np.testing.assert_allclose(counts.log_densities(cepstra), log_densities(kaldi, cepstra), rtol=1e-3)
    again = GmmCounts(15)
    again.load_state(counts.state())
    assert (again.score(valid) == counts.score(valid)).all()
    with pytest.raises(ValueError, match="these mixtures are not of 16 states"):
        GmmCounts(16).load_state(counts.state())


def test_counts_of_words_are_refused(command: Callable[..., Any], folder: Path, tmp_path: Path) -> None:
    done = command("train", "model=kn", "data=an4", *places(folder), f"run_dir={tmp_path / 'run'}")
    assert done.code != 0
    assert "model=kn predicts classes and data=an4 holds states: choose another one" in done.err


def test_a_corpus_that_is_not_there_is_refused(command: Callable[..., Any], tmp_path: Path) -> None:
    done = command("train", *words_of(tmp_path, tmp_path / "run"))
    assert done.code != 0
    assert (
        f"there is no folder {tmp_path / 'tiny'}: give data.root and data.name of an existing one" in done.err
    )
    assert len(done.err.strip().splitlines()) == 1
    (tmp_path / "tiny").mkdir()
    done = command("train", *words_of(tmp_path, tmp_path / "run"))
    assert done.code != 0
    assert f"{tmp_path / 'tiny' / 'etc'} must hold one list NAME_train.fileids" in done.err


@pytest.mark.parametrize("seq_len", [3, 100])
def test_every_sequence_is_read_as_if_alone(seq_len: int) -> None:
    torch.manual_seed(0)
    network = SequenceModel([1] * 5, partial(Rnn, hidden_size=6), dropout=0.5, input_width=4)
    rng = np.random.default_rng(0)
    examples = [
        Example(rng.standard_normal((size, 4)).astype(np.float32), np.zeros(size)) for size in (7, 2, 9, 4)
    ]
    network.train()
    found = log_probs_of(network, SequenceStream(examples, 3, seq_len))
    network.eval()
    for example, log_probs in zip(examples, found, strict=True):
        features, _ = network(torch.from_numpy(example.inputs).unsqueeze(1), network.initial_state(1))
        np.testing.assert_allclose(
            log_probs, network.head.log_probs(features)[:, 0].detach().numpy(), atol=1e-6
        )


def test_after_a_test_the_network_is_where_it_was_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lightning puts it on the CPU at the end, where loops that are recorded on a GPU cannot run."""
    network = SequenceModel([1] * 5, partial(Rnn, hidden_size=6), input_width=4)
    stream = SequenceStream([Example(np.zeros((2, 4)), np.zeros(2))], 1, 1)
    data = SimpleNamespace(stream=lambda split: stream)
    trainer = SimpleNamespace(strategy=SimpleNamespace(root_device=torch.device("meta")))
    monkeypatch.setattr(train, "log_probs_of", lambda network, stream: [network.device.type])
    module = TruncatedBptt(network, partial(MomentumSGD, lr=1.0), Constant())
    training = train.Training(data, 1, module, trainer, SimpleNamespace())  # type: ignore[arg-type]
    assert training.log_probs("test") == ["meta"]
    data.stream, data.name = (lambda split: ChunkStream(np.arange(9), 0, 1, 3)), "ptb"
    with pytest.raises(
        ValueError, match=r"^ptb is one sequence, too long for all its log_probs: see Data\.judge"
    ):
        training.log_probs("test")


@pytest.mark.parametrize(
    "change",
    [
        {"prior": None},
        {"weights": None},
        {"weights": np.array(1.0)},
        {"sizes": np.array([0, 3, 1])},
        {"sizes": np.array([-1, 4, 1])},
        {"sizes": np.array([1.0, 2.0, 1.0])},
        {"sizes": np.array([2**62, 2**62, 2**63 - 2**62 - 4 + 2**62])},
        {"means": np.zeros((4, 38))},
        {"more": np.zeros(1)},
    ],
)
def test_mixtures_of_a_checkpoint_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    state = {
        "sizes": np.array([1, 2, 1]),
        "weights": np.array([1.0, 0.5, 0.5, 1.0]),
        "means": np.zeros((4, 39)),
        "inverse_variances": np.ones((4, 39)),
        "stay": np.full(3, 0.5),
        "prior": np.full(3, 1 / 3),
    }
    GmmCounts(3).load_state(state)
    changed = {name: value for name, value in {**state, **change}.items() if value is not None}
    with pytest.raises(ValueError, match="these mixtures are not of 3 states: train them anew"):
        GmmCounts(3).load_state(changed)
