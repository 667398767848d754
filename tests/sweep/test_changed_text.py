"""A sweep on a text of one's own knows what the text holds."""

from pathlib import Path

import pytest

from sweep.mini import Launch, recorded, starts, statuses, write_table

TABLE = """# @package _global_
defaults:
  - override /data: files
trainer: {max_epochs: 1}
sweep:
  name: mini
  title: "Mini"
  paper: "no paper"
  metric: test_ppl
  metric_label: "perplexity, test"
  lower_is_better: true
  seeds: [1]
  rows:
    - {name: elman, label: elman, run: [model=rnn]}
    - {name: second-order, label: second-order, run: [model=hornn, model.order=2], start: elman}
"""


@pytest.mark.thorough
def test_a_line_more_is_another_run(launch: Launch, folder: Path) -> None:
    write_table(TABLE)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("a b c\n" * 40)
    words = ["sweeps=mini", *(f"data.{split}={split}.txt" for split in ("train", "valid", "test"))]
    words.append(f"data.cache_dir={folder / 'cache'}")
    assert launch(*words).code == 0
    before = recorded()
    assert (statuses(), len(starts())) == (["done", "done"], 2)
    assert "2 of 2 done" in launch(*words).out
    assert len(starts()) == 2

    with (folder / "train.txt").open("a") as file:
        file.write("a b c d\n")
    assert launch(*words).code == 0
    after = recorded()
    assert (statuses(), len(starts())) == (["done", "done"], 4)
    assert all(after[run].name != before[run].name for run in before)
