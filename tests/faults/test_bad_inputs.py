"""Each of hundreds of commands that cannot be is refused in one line."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from faults.bad_inputs import Bad, bad_inputs
from faults.commands import ForkServer
from faults.draws import COUNT, SEED
from faults.places import Place, fault_of

FEW = 5


def chosen() -> list[Any]:
    """COUNT x 30 of them, spread over all; a few for every run of the tests."""
    everything = bad_inputs()
    wanted = min(len(everything), 30 * COUNT)
    picked = sorted(random.Random(SEED).sample(range(len(everything)), wanted))
    few = set(picked[:: -(-wanted // FEW)])
    return [
        pytest.param(everything[i], id=f"{i}", marks=[] if i in few else [pytest.mark.faults]) for i in picked
    ]


@pytest.fixture(scope="module")
def place(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(server, tmp_path_factory.mktemp("place"))
    yield made
    made.close()


@pytest.mark.parametrize("bad", chosen())
def test_a_bad_input_is_one_line(place: Place, bad: Bad) -> None:
    ended = place.run(bad)
    fault = fault_of(ended)
    assert fault is None, f"{bad.label}: {fault}"
