"""Training by an optimizer of torch's that a config names."""

from pathlib import Path

import pytest
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
