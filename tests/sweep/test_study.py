"""The study of a search: what is drawn, how trials are judged, and an old journal."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from hornn.sweep.space import constants, distribution
from hornn.sweep.study import POSITION, Batch, best, build_pruner, counted, open_study, read_score
from outcome import Command
from sweep.searches import FAKE


def test_scores_of_characters_are_shown_in_bits() -> None:
    assert read_score(8.0, "valid_bpc") == pytest.approx(3)
    assert read_score(8.0, "valid_ppl") == 8.0


def test_what_is_drawn_follows_from_the_batches_before_alone(tmp_path: Path) -> None:
    """Whatever order the trials end in, also once draws follow from outcomes, which they do not for the first ten."""
    optuna = pytest.importorskip("optuna", reason="needs the tune extra")
    space = {"lr": optuna.distributions.FloatDistribution(0.1, 2.0, log=True)}
    drawn = []
    for order in (1, -1):
        study = open_study(optuna, tmp_path / f"{order}.log", "an identity")
        params: dict[int, Any] = {}
        for begin in range(0, 16, 4):
            earlier = [trial for position, trial in counted(study).items() if position < begin]
            for position in list(range(begin, begin + 4))[::order]:
                params[position] = Batch(optuna, earlier, None).draw(space, 1, position)
                study.add_trial(
                    optuna.trial.create_trial(
                        params=params[position],
                        distributions=space,
                        value=abs(math.log(params[position]["lr"] / 0.5)),
                        user_attrs={POSITION: position},
                    )
                )
        assert list(counted(study)) == list(range(16))
        drawn.append([params[position]["lr"] for position in range(16)])
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 16


def test_a_journal_of_an_earlier_version_goes_on(tmp_path: Path) -> None:
    """Its trials have no positions, and one may have been left at work."""
    optuna = pytest.importorskip("optuna", reason="needs the tune extra")
    space = {"lr": optuna.distributions.FloatDistribution(0.1, 2.0, log=True)}
    study = open_study(optuna, tmp_path / "journal.log", "an identity")
    for value in (3.0, 2.0):
        study.tell(study.ask(space), value)
    study.ask(space)
    study = open_study(optuna, tmp_path / "journal.log", "an identity")
    assert list(counted(study)) == [0, 1]
    assert best(study).value == 2.0
    assert not study.get_trials(states=(optuna.trial.TrialState.RUNNING,))


def test_trials_are_judged_epoch_by_epoch(tmp_path: Path) -> None:
    """So that it does not count how many epochs had passed when somebody looked."""
    optuna = pytest.importorskip("optuna", reason="needs the tune extra")
    create = optuna.trial.create_trial
    earlier = [create(value=9.0, intermediate_values={1: 20.0, 2: 10.0, 3: 9.0}) for _ in range(2)]
    batch = Batch(optuna, earlier, build_pruner(optuna, {"trials": 2, "epoch": 2}))
    assert batch.pruned_at([30.0]) is None
    assert batch.pruned_at([30.0, 15.0, 1.0]) == 2
    assert batch.pruned_at([30.0, 9.0, 9.5]) is None
    assert Batch(optuna, earlier[:1], batch.pruner).pruned_at([30.0, 15.0, 12.0]) is None


def test_a_constant_is_tried_as_its_list_has_it_and_within_its_range() -> None:
    """Of a range four digits are enough; they must not leave it."""
    optuna = pytest.importorskip("optuna", reason="needs the tune extra")
    space = {
        "listed": [0.015625, 0.99995],
        "ranged": {"low": 0.9, "high": 0.99996},
        "least": {"low": 0.123456, "high": 1},
    }
    places = {key: distribution(optuna, key, values) for key, values in space.items()}
    drawn = {"listed": 0.99995, "ranged": 0.999955, "least": 0.123457}
    assert constants(drawn, places) == {"listed": 0.99995, "ranged": 0.99996, "least": 0.1235}
    drawn = {"listed": 0.015625, "ranged": 0.912345, "least": 0.12345601}
    assert constants(drawn, places) == {"listed": 0.015625, "ranged": 0.9123, "least": 0.1235}


def test_a_range_is_searched_as_it_says() -> None:
    optuna = pytest.importorskip("optuna", reason="needs the tune extra")
    for low, high in ((0.1, 2.0), (1, 20)):
        places = [distribution(optuna, "lr", {"low": low, "high": high, "log": log}) for log in (True, False)]
        assert [(place.low, place.high, place.log) for place in places] == [
            (low, high, True),
            (low, high, False),
        ]
        assert not distribution(optuna, "lr", {"low": low, "high": high}).log


def test_another_seed_draws_other_constants() -> None:
    optuna = pytest.importorskip("optuna", reason="needs the tune extra")
    space = {"lr": optuna.distributions.FloatDistribution(0.1, 2.0)}
    drawn = [
        Batch(optuna, [], None).draw(space, seed, position)["lr"] for seed in (1, 2) for position in (0, 1)
    ]
    assert len(set(drawn)) == 4


def test_pruning_begins_after_so_many_trials_and_epochs() -> None:
    optuna = pytest.importorskip("optuna", reason="needs the tune extra")
    scores = {1: 20.0, 2: 10.0, 3: 9.0}
    earlier = [optuna.trial.create_trial(value=9.0, intermediate_values=scores) for _ in range(2)]
    batch = Batch(optuna, earlier, build_pruner(optuna, {"trials": 1, "epoch": 3}))
    assert batch.pruned_at([30.0, 15.0, 12.0]) == 3
    assert Batch(optuna, earlier[:1], batch.pruner).pruned_at([30.0, 15.0, 12.0]) == 3


@pytest.mark.slow
def test_a_search_that_goes_on_inside_a_batch_judges_by_the_batches_before(
    command: Command, quick_jobs: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one in one go does: the first trial of a batch is no measure for the second."""
    pytest.importorskip("optuna", reason="needs the tune extra")
    monkeypatch.chdir(tmp_path)
    words = [*FAKE, "batch=2", "pruning={trials:1,epoch:1}", "seed=2"]
    for trials in (1, 2):
        assert command("tune", *words, f"trials={trials}").code == 0
    (path,) = Path("outputs/studies").glob("*/study.json")
    first, second = json.loads(path.read_text())["trials"]
    assert second["valid_ppl"] is None or second["valid_ppl"] > first["valid_ppl"], "or it says nothing"
    assert [first["state"], second["state"]] == ["complete", "complete"]
