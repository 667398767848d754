"""Training by an optimizer of torch's that a config names."""

from pathlib import Path

import pytest
import torch
import yaml

from commands.outcomes import result_of
from outcome import Command


def test_an_output_layer_in_bf16_follows_a_fused_step(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    """Torch does not count it as a change of the weights."""
    scores = []
    for fused in (False, True):
        name = f"fused_{fused}".lower()
        (tmp_path / "optimizer").mkdir(exist_ok=True)
        node = {"_target_": "torch.optim.Adam", "_partial_": True, "lr": 0.01, "fused": fused}
        (tmp_path / "optimizer" / f"{name}.yaml").write_text(yaml.safe_dump(node))
        words = [*small, "model=rnn", "network.backend=eager", "network.precision=bf16", f"optimizer={name}"]
        run = tmp_path / name
        assert command("train", f"--config-dir={tmp_path}", *words, f"run_dir={run}").code == 0
        scores.append(result_of(run)["valid_ppl"])
        norms = ("grad_norm", "max_grad_norm")  # which torch's optimizer does not measure
        assert not any(key in record for record in result_of(run)["metrics"] for key in norms)
    assert scores[0] == pytest.approx(scores[1], rel=1e-4)


def test_states_of_other_shapes_go_on(command: Command, small: list[str], tmp_path: Path) -> None:
    """Adafactor keeps a row and a column for a matrix."""
    (tmp_path / "optimizer").mkdir()
    node = {"_target_": "torch.optim.Adafactor", "_partial_": True, "lr": 0.01}
    (tmp_path / "optimizer" / "factored.yaml").write_text(yaml.safe_dump(node))
    kept = [word for word in small if "max_epochs" not in word]
    words = [f"--config-dir={tmp_path}", *kept, "optimizer=factored", "schedule=constant"]
    for epochs, more in ((1, []), (2, [f"continue_from={tmp_path / '1'}"])):
        run = [f"trainer.max_epochs={epochs}", f"run_dir={tmp_path / str(epochs)}", *more]
        done = command("train", *words, *run)
        assert (done.code, done.err) == (0, "")
    assert len(result_of(tmp_path / "2")["metrics"]) == 2


def test_a_state_of_the_program_s_own_optimizer_has_the_shapes_of_weights(
    command: Command, small: list[str], tmp_path: Path
) -> None:
    kept = [word for word in small if "max_epochs" not in word]
    words = [*kept, "schedule=constant", f"run_dir={tmp_path / 'run'}"]
    assert command("train", *words, "trainer.max_epochs=1").code == 0
    last = tmp_path / "run" / "last.ckpt"
    checkpoint = torch.load(last, weights_only=True)
    state = next(iter(checkpoint["optimizer_states"][0]["state"].values()))
    state["momentum"] = torch.zeros(7)
    torch.save(checkpoint, last)
    more = [f"continue_from={tmp_path / 'run'}", f"run_dir={tmp_path / 'more'}", "trainer.max_epochs=2"]
    done = command("train", *kept, "schedule=constant", *more)
    assert done.code == 2
    assert "last.ckpt (the state of the optimizer has the" in done.err
