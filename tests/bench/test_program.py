"""The command and its files: results written, read back, compared and shown in pages."""

import json
import math
import sys
from pathlib import Path

import pytest
import torch

from bench.rows import timed
from hornn.bench import commands, meter, program, sections, tables
from hornn.bench.changes import render_changes
from hornn.bench.plan import QUICK
from hornn.bench.tables import SECTIONS
from hornn.bench.work import Sizes


def test_sections_are_checked_ordered_and_completed():
    assert program.choose_sections(["roofline", "head"]) == ["step", "head", "roofline"]
    with pytest.raises(ValueError, match="no section 'speed': --only takes step, thesis"):
        program.choose_sections(["speed"])


def test_results_can_be_read_back(results):
    read = program.read(results)
    assert read["rows"] == [timed()]
    assert read["machine"]["threads"] == torch.get_num_threads()
    assert "| `rnn` | eager |" in tables.render(read)
    unchanged = render_changes(read, read)
    assert "1 rows of both." in unchanged
    assert "Now on" not in unchanged
    elsewhere = {**read, "machine": {**read["machine"], "threads": 99}}
    assert "then on" in render_changes(read, elsewhere)
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


def test_what_got_slower_is_an_error(results, monkeypatch):
    monkeypatch.setitem(SECTIONS, "step", SECTIONS["step"]._replace(measure=lambda _: [timed(**now)]))
    now = {"ratio": 0.8, "spread": [0.5, 0.9]}
    program.run(results.with_name("out"), results, ["step"], QUICK)
    now = {"ratio": 0.8, "spread": [0.65, 0.9]}
    with pytest.raises(
        ValueError, match=r"by more than the spread: step, .* rnn eager: 0.80 of nn.RNN, was 0.60"
    ):
        program.run(results.with_name("out"), results, ["step"], QUICK)


def test_a_command_that_fails_is_no_measurement(tmp_path):
    python = [sys.executable, "-c"]
    assert 0 < commands.first_output([*python, "print(1)"], tmp_path) < 60
    with pytest.raises(ValueError, match="ended with 3: no luck"):
        commands.first_output([*python, "import sys; sys.stderr.write('no luck'); sys.exit(3)"], tmp_path)


def test_nothing_is_measured_where_torch_is_slowed_down(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    with pytest.raises(
        ValueError, match=r"OMP_WAIT_POLICY=PASSIVE makes torch's layers .* slower .* unset it"
    ):
        program.run(tmp_path / "out", None, ["head"])
    assert not list(tmp_path.iterdir())


def test_other_sizes_are_not_compared(results):
    with pytest.raises(ValueError, match="measured at V = 50"):
        program.run(results.with_name("out"), results, ["head"], QUICK._replace(sizes=Sizes()))


def measured_rows():
    """What the ratios are taken from."""
    steps = [timed(ours=model, scan="native", dtype="bf16") for model in ("hornn_fofe", "lstm")]
    memory = {**steps[0], "section": "memory", "ours_mb": 165.0, "other_mb": 304.0, "ratio": 0.543}
    memory.pop("ours_ms")
    return [*steps, memory]


def test_pages_with_a_block_get_the_tables_and_the_ratios(tmp_path, results):
    page = tmp_path / "docs" / "speed-figures.md"
    page.parent.mkdir()
    page.write_text("# Title\n<!-- speed -->\nold\n<!-- end -->\nend\n")
    assert program.renew(tmp_path, results) == [page]
    once = page.read_text()
    assert once.startswith("# Title\n<!-- speed -->\n")
    assert once.endswith("\n<!-- end -->\nend\n")
    assert "old" not in once
    assert "| training step | `rnn` |" in once
    assert program.renew(tmp_path, results) == []
    readme = tmp_path / "README.md"
    readme.write_text("<!-- ratios -->\n<!-- end -->")
    with pytest.raises(
        ValueError, match=r"README.md, line 1: the benchmark has no row of step for hornn_fofe"
    ):
        program.renew(tmp_path, results)
    results.write_text(json.dumps({**program.read(results), "rows": measured_rows()}))
    program.renew(tmp_path, results)
    assert readme.read_text().count("\n| One training step of ") == 2
    assert "beside `nn.RNN` | 165 MB | 304 MB | 0.54 |" in readme.read_text()
    assert ", output layer in bf16, " in readme.read_text()


def test_a_page_gets_what_the_tables_on_text8_take(tmp_path, results):
    page = tmp_path / "README.md"
    page.write_text("<!-- text8 -->\n<!-- end -->")
    row = {"section": "text8", "work": "RNN", "ours": "rnn", "peak_mb": 900.0, "ms": 1000.0, "speed": 600.0}
    row |= {"epoch_hours": 7.79, "epochs": 10, "hours": 77.9, "head_hours": 3.14}
    measured = {**program.read(results), "rows": [row]}
    results.write_text(json.dumps(measured))
    program.renew(tmp_path, results)
    assert "| RNN | `rnn` | 1000 | 600 | 7.8 | 10 | 78 | 3.1 | 900 |" in page.read_text()


def test_a_page_gets_the_tables_of_another_machine(tmp_path, results):
    page = tmp_path / "README.md"
    page.write_text("<!-- speed: other -->\n<!-- end -->")
    with pytest.raises(ValueError, match=r"README.md, line 1: .*other.json cannot be read"):
        program.renew(tmp_path, results)
    other = {**program.read(results), "rows": measured_rows()}
    results.with_name("other.json").write_text(json.dumps(other))
    program.renew(tmp_path, results)
    assert "| training step | `lstm` |" in page.read_text()
    page.write_text("<!-- speed: other memory -->\n<!-- end -->")
    program.renew(tmp_path, results)
    assert "**Memory.**" in page.read_text()
    assert "**Training step.**" not in page.read_text()
    page.write_text("<!-- speed: other evaluations -->\n<!-- end -->")
    with pytest.raises(ValueError, match=r"README.md, line 1: there is no section 'evaluations'"):
        program.renew(tmp_path, results)


@pytest.mark.slow
def test_every_section_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(meter, "apart", lambda function, *arguments: function(*arguments))
    monkeypatch.setattr(meter, "peak_memory_mb", iter(range(1, 1000)).__next__)
    monkeypatch.setattr(commands, "first_output", lambda line, folder: 1.0)
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
        (["--device", "tpu"], "error: --device must be one of cpu, cuda, got 'tpu'"),
        (["--speed"], "error: unrecognized arguments: --speed"),
        (["--against", "absent.json"], "error: absent.json cannot be read"),
        (["--write", "--tables", "absent.json"], "error: absent.json cannot be read"),
        (
            ["--write", "--only", "step"],
            "error: --only is of a measurement, and --write makes none: leave one of the two out",
        ),
        (
            ["--tables", "absent.json"],
            "error: --tables=absent.json says what --write writes: give --write, or leave it out",
        ),
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
