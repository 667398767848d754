"""The clusters of words of the two-level softmax: how many, of which sizes, and how they are grouped."""

import pytest

from hornn.heads import two_level
from hornn.heads.two_level import TwoLevelSoftmaxHead, fill_clusters, group_clusters

COUNTS = [40, 21, 13, 8, 5, 4, 3, 2, 2, 1, 1, 0]  # 100 words
V = len(COUNTS)


@pytest.mark.parametrize(
    ("counts", "num_clusters", "sizes"),
    [
        (COUNTS, 1, [12]),
        (COUNTS, 4, [1, 2, 7, 2]),  # 40, 21 + 13, 8 + 5 + 4 + 3 + 2 + 2 + 1 of 100, then the rest
        ([1] * 6, 3, [2, 2, 2]),
        ([1] * 6, 6, [1] * 6),
        ([1] * 7, 3, [3, 3, 1]),
        ([90, 5, 5], 3, [1, 2]),  # one word holds more than two clusters' share
        ([2, 2, 0, 0], 2, [1, 3]),  # words never seen do not open a cluster beyond the last
        ([0, 0, 0], 2, [1, 2]),
    ],
)
def test_clusters_are_filled_to_their_share(counts: list[int], num_clusters: int, sizes: list[int]) -> None:
    assert fill_clusters(counts, num_clusters) == sizes


def test_by_default_there_are_the_square_root_of_v_clusters() -> None:
    assert TwoLevelSoftmaxHead(6, [1] * 30).sizes == TwoLevelSoftmaxHead(6, [1] * 30, 5).sizes == [6] * 5


def test_groups_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_level, "GROUP", 4)
    groups = group_clusters([1, 1, 2, 3, 9, 2, 2, 1])
    assert [(list(range(8))[clusters], words.stop - words.start) for clusters, words in groups] == [
        ([0, 1, 2], 4),
        ([3], 3),
        ([4], 9),
        ([5, 6], 4),
        ([7], 1),
    ]
    assert [words.start for _, words in groups] == [0, 4, 7, 16, 20]


@pytest.mark.parametrize("value", [0, -3, V + 1, 2.0, True, "all"])
def test_refuses_an_impossible_number_of_clusters(value: object) -> None:
    with pytest.raises(ValueError, match=rf"head\.num_clusters must be .* from 1 to {V}, .* got {value!r}$"):
        TwoLevelSoftmaxHead(6, COUNTS, num_clusters=value)  # type: ignore[arg-type]


def test_refuses_counts_that_rise() -> None:
    with pytest.raises(
        ValueError, match=r"counts that fall with the id, .* and these rise: take head=softmax"
    ):
        TwoLevelSoftmaxHead(6, [3, 1, 2])
