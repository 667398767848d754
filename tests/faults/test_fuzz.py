"""One damaged file of each kind; `make fuzz` tries them for minutes."""

import pytest

from faults.commands import ForkServer
from faults.draws import SEED
from faults.fuzz import KINDS, Inputs


@pytest.fixture(scope="module")
def inputs(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return Inputs(server, tmp_path_factory.mktemp("fuzz"), SEED)


@pytest.mark.each(2)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_one_line(inputs: Inputs, kind: str) -> None:
    fault = inputs.try_one(kind, 0)
    assert fault is None, f"--seed {SEED} --kind {kind} --number 0: {fault}"


def test_the_same_dice_do_the_same_damage(inputs: Inputs) -> None:
    damaged = []
    for _ in range(2):
        inputs.try_one("arpa", 1)
        damaged.append((inputs.run_dir / "damaged.arpa").read_bytes())
    assert damaged[0] == damaged[1] != (inputs.folder / "good.arpa").read_bytes()
