import gc
import json
import math
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from hornn.bench import meter, program, sections, tables, work
from hornn.bench.meter import PATIENCE, Meter
from hornn.bench.sections import QUICK, Bench
from hornn.bench.tables import SECTIONS
from hornn.bench.work import FofeLoop, LstmLoop, Sizes, TorchModel, Variant
from hornn.cells.hornn import FofeHornn
from hornn.data.streams import ChunkStream
from hornn.scan import scan

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


class Machine:
    """Time that passes only in samples; `noise` gives the cores that others use in each round."""

    def __init__(self, noise, ours=2.0, other=4.0):
        self.now, self.used = 0.0, 0.0
        self.noise, self.lengths = iter(noise), {"ours": ours, "other": other}

    def sample(self, side):
        def take():
            if side == "ours":
                self.load = next(self.noise)
            seconds = self.lengths[side] * (1 + self.load)
            self.now += seconds
            self.used += self.load * seconds
            return 1e3 * seconds

        return take

    def compare(self, rounds):
        meter = Meter(clock=lambda: self.now, others=lambda: self.used)
        return meter.compare(self.sample("ours"), self.sample("other"), rounds)


def test_rounds_with_other_load_are_dropped():
    row = Machine([0.0, 0.5, 0.04, 0.06, 0.0]).compare(rounds=3)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (3, 2, True)
    assert row["ours_ms"] == pytest.approx(2000)
    assert row["other_ms"] == pytest.approx(4000)


def test_a_row_that_never_gets_quiet_keeps_all_rounds_and_says_so():
    rounds = 2
    row = Machine([0.5] * rounds * PATIENCE).compare(rounds)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (rounds * PATIENCE, rounds * PATIENCE, False)
    assert row["ours_ms"] == pytest.approx(3000)
    row = Machine([0.0, *[0.5] * (rounds * PATIENCE - 1)]).compare(rounds)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (rounds * PATIENCE, rounds * PATIENCE - 1, False)


def test_without_knowledge_of_others_every_round_counts():
    machine = Machine([0.5, 0.5])
    meter = Meter(clock=lambda: machine.now, others=lambda: None)
    row = meter.compare(machine.sample("ours"), machine.sample("other"), 2)
    assert (row["rounds"], row["dropped"], row["quiet"]) == (2, 0, None)


def test_the_ratio_is_the_median_over_rounds_not_the_ratio_of_medians():
    ours, other = iter([1.0, 6.0, 3.0]), iter([1.0, 2.0, 4.0])
    row = Meter(clock=lambda: 0.0, others=lambda: None).compare(lambda: next(ours), lambda: next(other), 3)
    assert (row["ours_ms"], row["other_ms"]) == (3.0, 2.0)
    assert row["ratio"] == 1.0
    assert row["spread"] == [0.75, 3.0]


def test_a_sample_repeats_short_work_and_gives_the_time_of_once():
    now, calls = [0.0], []

    def work():
        calls.append(1)
        now[0] += 0.1

    sample = Meter(seconds=0.25, clock=lambda: now[0]).sampler(work)
    calls.clear()
    assert sample() == pytest.approx(100)
    assert len(calls) == 3


def test_no_garbage_is_collected_while_samples_are_taken():
    seen = []

    def sample():
        seen.append(gc.isenabled())
        return 1.0

    Meter(others=lambda: None).compare(sample, sample, 1)
    assert seen == [False, False]
    assert gc.isenabled()


def test_cpu_of_others_is_what_the_system_counts_less_our_own(tmp_path, monkeypatch):
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 20 30 9999 777 4 5 6 50 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    monkeypatch.setattr(meter.os, "sysconf", lambda name: {"SC_CLK_TCK": 10}[name])
    monkeypatch.setattr(meter.time, "process_time", lambda: 1.5)
    assert meter.cpu_of_others(stat) == pytest.approx(16.5 - 1.5)


def test_a_system_that_does_not_tell_is_known_as_such(tmp_path):
    assert meter.cpu_of_others(tmp_path / "absent") is None
    (tmp_path / "stat").write_text("cpu  0 0 0 0 0 0 0 0 0 0\n")
    assert meter.cpu_of_others(tmp_path / "stat") is None


def allocate(megabytes):
    held = []
    return lambda: held or held.append(b"x" * (megabytes * 2**20))


def test_memory_is_the_median_over_processes(monkeypatch):
    peaks = iter([30.0, 10.0, 50.0])
    monkeypatch.setattr(meter, "apart", lambda function, *arguments: next(peaks))
    row = sections.memory_beside([40.0, 60.0, 200.0], lambda: None)
    assert (row["ours_mb"], row["other_mb"], row["ratio"]) == (30.0, 60.0, 0.5)
    assert (row["ours_range"], row["other_range"]) == ([10.0, 50.0], [40.0, 200.0])


@pytest.mark.slow
def test_memory_is_the_rise_of_the_peak_in_a_process_of_its_own():
    rise = meter.apart(meter.memory_of, partial(allocate, 64))
    assert 64 <= rise < 80


def test_the_naive_loops_compute_what_they_stand_beside():
    torch.manual_seed(0)
    x = torch.randn(5, 2, 4)
    loop, cell = FofeLoop(4), FofeHornn(4, 4, order=3, alpha=0.6)
    with torch.no_grad():
        cell.W_in.copy_(loop.W_in.weight)
        cell.W_h.copy_(torch.stack([tap.weight for tap in loop.taps]))
    torch.testing.assert_close(loop(x)[0], scan(cell, x, cell.initial_state(2))[0])
    lstm, cells = nn.LSTM(4, 4, bias=False), LstmLoop(4)
    cells.cell.weight_ih.data, cells.cell.weight_hh.data = lstm.weight_ih_l0.data, lstm.weight_hh_l0.data
    torch.testing.assert_close(cells(x)[0], lstm(x)[0])


@pytest.mark.parametrize("layer", work.LAYERS)
def test_torch_scores_a_text_in_chunks_as_in_one_pass(layer):
    torch.manual_seed(0)
    ids = work.draw_text(20, 23).numpy()
    model = TorchModel(layer, Sizes(20, 4))
    whole, chunks = (work.score_with_torch(model, ChunkStream(ids, 0, 1, length)) for length in (23, 5))
    assert whole.shape == (23,)
    torch.testing.assert_close(chunks, whole)


def test_gflop_of_a_step():
    network = work.build(Variant("hornn", backend="eager"), Sizes())
    gflop = sections.matrix_gflop(network, Sizes())
    assert gflop["head"] == pytest.approx(14.4)
    assert sum(gflop.values()) == pytest.approx(6e-9 * 600 * (10_000 * 400 + 400 * 400 + 3 * 400 * 400))


def test_an_order_is_asked_for():
    assert work.build(Variant("hornn_fofe", 5, "eager"), QUICK.sizes).cells[0].order == 5


def test_sections_are_checked_ordered_and_completed():
    assert program.choose_sections(["roofline", "head"]) == ["step", "head", "roofline"]
    with pytest.raises(ValueError, match="no section 'speed': --only takes step, thesis"):
        program.choose_sections(["speed"])


def test_the_roofline_of_known_steps(monkeypatch):
    """At 100 GFLOP/s, 1 + 3 GFLOP take 40 ms."""
    monkeypatch.setattr(sections, "resolve_precision", lambda *_: "fp32")
    step = {
        "section": "step",
        "work": "training step",
        "ours": "rnn",
        "backend": "eager",
        "precision": "auto",
    }
    step |= {"scan": "eager", "dtype": "fp32", "other": "nn.RNN"}
    step |= {"ours_ms": 80.0, "gflop": {"cells": 1.0, "head": 3.0}}
    left_out = [{**step, "missing": "why"}, {**step, "other": "FOFE loop"}, {**step, "section": "order"}]
    plan = QUICK._replace(product=50)
    once = 2e-9 * 50**3 / 100  # seconds of a product at that speed
    ticks = iter(n * once for n in range(100))
    running = Bench(plan, Meter(0.0, clock=lambda: next(ticks)), [step, *left_out])
    peak, row = sections.roofline(running)
    assert peak["speed"] == pytest.approx(100)
    assert (row["gflop"], row["speed"]) == (4.0, pytest.approx(50))
    assert (row["bound_ms"], row["reached"]) == (pytest.approx(40), pytest.approx(0.5))


def timed(**changes):
    names = {
        "section": "step",
        "work": "training step",
        "ours": "rnn",
        "backend": "eager",
        "precision": "auto",
    }
    values = {"other": "nn.RNN", "scan": "eager", "dtype": "bf16", "ours_ms": 60.0, "other_ms": 100.0}
    rounds = {"ratio": 0.6, "spread": [0.5, 0.7], "rounds": 15, "dropped": 3, "quiet": True}
    return {**names, **values, **rounds, **changes}


def test_a_table_in_markdown():
    table = tables.render_section("step", [timed()]).splitlines()
    assert table[0].startswith("**Training step.**")
    assert table[2:] == [
        "| work | ours | backend | output layer | ms | other | other, ms | ratio | spread | rounds dropped |",
        "|---|---|---|---|---|---|---|---|---|---|",
        "| training step | `rnn` | eager | bf16 | 60.0 | nn.RNN | 100.0 | 0.60 | 0.50-0.70 | 3 |",
    ]


def test_marks_in_a_table():
    lines = tables.render_section(
        "step",
        [
            timed(quiet=False, rounds=60, dropped=50),
            timed(quiet=None, native=True),
            {**timed(), "missing": "no compiler", "backend": "native"},
            {**timed(), "missing": "no compiler", "backend": "native", "ours": "hornn"},
        ],
    ).splitlines()
    assert lines[4].endswith("| **never quiet**: 50 of 60 loud |")
    assert lines[5].endswith("| no filter |")
    assert "| bf16, native |" in lines[5]
    assert lines[6:] == ["", "Not measured: `rnn` native, `hornn` native: no compiler"]


def test_a_value_that_a_row_lacks_is_an_empty_cell():
    epoch = timed(epoch_seconds=92.9, published_seconds=None, published_ratio=None)
    assert tables.render_section("thesis", [epoch]).endswith("| 3 | 93 |  |  |")


def test_changes_since_another_measurement():
    then = [
        timed(ours_ms=80.0, ratio=0.4),
        timed(ours="gru"),
        timed(section="order"),
        timed(backend="native"),
    ]
    now = [timed(), timed(ours="lstm"), {**timed(backend="native"), "missing": "why"}]
    del now[2]["ours_ms"]
    (change,) = tables.compare_rows(now, then)
    assert change["change"] == pytest.approx(60 / 80)
    assert change["ratio_change"] == pytest.approx(0.6 / 0.4)
    assert change["noise"] is None
    (change,) = tables.compare_rows([timed()], [timed(quiet=False)])
    assert change["noise"] == "never quiet"
    memory = {"section": "memory", "ours": "rnn", "ours_mb": 90.0, "ratio": 0.5}
    (change,) = tables.compare_rows([memory], [{**memory, "ours_mb": 60.0}])
    assert (change["change"], change["ratio_change"], change["unit"]) == (1.5, 1.0, "MB")


@pytest.fixture
def results(tmp_path):
    """A file of results at the quick sizes, with one row."""
    running = Bench(QUICK, Meter(), [timed()])
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(program.report(running)))
    return path


def test_results_can_be_read_back(results):
    read = program.read(results)
    assert read["rows"] == [timed()]
    assert read["machine"]["threads"] == torch.get_num_threads()
    assert "| `rnn` | eager |" in tables.render(read)
    changes = tables.render_changes(read, read)
    assert "1 rows of both." in changes
    assert "Now on" not in changes
    elsewhere = {**read, "machine": {**read["machine"], "threads": 99}}
    assert "then on" in tables.render_changes(read, elsewhere)
    assert tables.describe({**read, "filtered": False}).count("does not tell") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ('{"schema_ver', "is damaged"),
        ("[1, 2]", "is damaged"),
        ('{"machine": {}}', "is damaged"),
        ('{"schema_version": 99}', "has schema version 99, this program reads 1"),
        ('{"schema_version": 1, "rows": []}', "damaged: date, machine, sizes, rounds, filtered cannot"),
        ("rows", "damaged: rows cannot"),
        ("sizes", "damaged: sizes cannot"),
    ],
)
def test_a_file_to_compare_with_is_checked_before_anything_is_measured(
    results, content, message, monkeypatch
):
    def measure(*_):
        raise AssertionError("measured")

    monkeypatch.setitem(SECTIONS, "head", SECTIONS["head"]._replace(measure=measure))
    if content is None:
        results.unlink()
    else:
        good = json.loads(results.read_text())
        bad = {"rows": {**good, "rows": [{"section": "speed"}]}, "sizes": {**good, "sizes": {"V": 1}}}
        results.write_text(json.dumps(bad[content]) if content in bad else content)
    with pytest.raises(ValueError, match=message):
        program.run(results.with_name("out"), results, ["head"], QUICK)


def test_other_sizes_are_not_compared(results):
    with pytest.raises(ValueError, match="measured at V = 50"):
        program.run(results.with_name("out"), results, ["head"], QUICK._replace(sizes=Sizes()))


def test_the_readme_gets_the_tables_between_its_marks(tmp_path, results):
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n{BEGIN}\nold\n{END}\nend\n")
    program.renew(readme, results)
    once = readme.read_text()
    assert once.startswith(f"# Title\n{BEGIN}\n")
    assert once.endswith(f"\n{END}\nend\n")
    assert "old" not in once
    assert "| training step | `rnn` |" in once
    program.renew(readme, results)
    assert readme.read_text() == once


@pytest.mark.parametrize("text", ["nothing", BEGIN, f"{END} {BEGIN}"])
def test_a_readme_without_the_marks_is_left_alone(tmp_path, results, text):
    readme = tmp_path / "README.md"
    readme.write_text(text)
    with pytest.raises(ValueError, match="no place for the bench"):
        program.renew(readme, results)
    assert readme.read_text() == text


def test_published_seconds_are_those_of_the_thesis():
    rows = {key: seconds for key, seconds in sections.PUBLISHED.items() if seconds}
    assert rows["rnn", None] == sections.RNN_SECONDS
    assert len(rows) == 6


@pytest.mark.slow
def test_every_section_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(meter, "apart", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(meter, "peak_memory_mb", iter(range(1, 1000)).__next__)
    program.run(tmp_path / "bench", plan=QUICK)
    printed = capsys.readouterr().out
    read = program.read(tmp_path / "bench.json")
    assert {row["section"] for row in read["rows"]} == set(SECTIONS)
    markdown = (tmp_path / "bench.md").read_text()
    for section in SECTIONS.values():
        assert f"**{section.title}.**" in markdown
        assert f"**{section.title}.**" in printed
    for row in read["rows"]:
        assert "missing" in row or math.isfinite(row.get("ratio", 1.0))
    models = {row["ours"] for row in read["rows"] if row["section"] == "step" and "missing" not in row}
    assert models == set(sections.STEPS)
    program.run(tmp_path / "again", tmp_path / "bench.json", ["head"], QUICK)
    assert "1 rows of both" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "speed"], "error: there is no section 'speed'"),
        (["--rounds", "0"], "error: rounds must be"),
        (["--rounds", "many"], "error: argument --rounds"),
        (["--speed"], "error: unrecognized arguments: --speed"),
        (["--against", "absent.json"], "error: absent.json cannot be read"),
        (["--readme", "absent.md", "--tables", "absent.json"], "error: absent.json cannot be read"),
    ],
)
def test_a_mistake_is_one_line(command, words, message):
    outcome = command("bench", *words)
    assert outcome.code == 2
    assert outcome.err.startswith(message)
    assert outcome.err.count("\n") == 1


@pytest.mark.slow
def test_the_command(command, tmp_path):
    outcome = command(
        "bench", "--quick", "--only", "head", "--rounds", "1", "--out", str(tmp_path / "a" / "b")
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("**Two-level softmax.**")
    assert Path(tmp_path / "a" / "b.md").exists()
