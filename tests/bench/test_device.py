"""The benchmark on a GPU: what it leaves out, how it waits, and what its results say."""

import json

import pytest
import torch

from bench.rows import timed
from hornn.bench import meter, program, tables, work
from hornn.bench.changes import render_changes
from hornn.bench.meter import Meter
from hornn.bench.plan import QUICK
from hornn.bench.sections import Bench
from hornn.bench.tables import SECTIONS


def test_a_gpu_leaves_out_what_is_about_the_cpu(monkeypatch):
    with pytest.raises(ValueError, match="--device must be one of cpu, cuda, got 'tpu'"):
        program.choose_sections(["step"], "tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert program.choose_sections(["roofline", "head"], "cuda") == ["head"]
    of_the_cpu = {"roofline", "loops", "start", "table", "text8"}
    assert program.choose_sections(SECTIONS, "cuda") == [name for name in SECTIONS if name not in of_the_cpu]
    with pytest.raises(ValueError, match="roofline would measure the CPU: leave out --device cuda"):
        program.choose_sections(["roofline"], "cuda")
    running = Bench(QUICK, Meter(), [])
    assert running.backends == ("eager", "native")
    assert running._replace(device=torch.device("cuda")).backends == ("eager", "native", "graph")


def test_a_gpu_is_waited_for_before_the_clock_is_read(monkeypatch):
    said = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: said.append(device.type))
    monkeypatch.setattr(meter.time, "perf_counter", lambda: said.append("read") or 1.0)
    assert meter.clock_of(torch.device("cuda"))() == 1.0
    assert said == ["cuda", "read"]
    assert meter.clock_of(work.CPU)() == 1.0
    assert said == ["cuda", "read", "read"]


def test_results_name_the_gpu_that_they_are_of(results, monkeypatch):
    read = program.read(results)
    assert "device" not in read
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Abacus 9")
    gpu = json.loads(json.dumps(program.report(Bench(QUICK, Meter(), [timed()], torch.device("cuda")))))
    assert gpu["device"] == "Abacus 9"
    assert tables.render(gpu).startswith("Abacus 9 in a machine with ")
    assert "Now on Abacus 9 in" in render_changes(gpu, read)


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_gpu_that_is_not_there(command, tmp_path):
    outcome = command("bench", "--device", "cuda", "--out", str(tmp_path / "a" / "b"))
    assert outcome.code == 2
    assert outcome.err == "error: --device cuda needs a CUDA device and this machine has none: leave it out\n"
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(("words", "device"), [([], "cpu"), (["--device", "cuda"], "cuda")])
def test_a_benchmark_is_of_the_cpu_unless_another_device_is_named(command, monkeypatch, words, device):
    asked = []
    monkeypatch.setattr(program, "run", lambda *arguments: asked.append(arguments[-1]))
    assert command("bench", *words).code == 0
    assert asked == [device]
