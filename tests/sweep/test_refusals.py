"""Multiruns that cannot be: one line that says so before any job."""

from pathlib import Path

import pytest

from sweep.mini import TABLE, Launch, starts, write_table

pytestmark = pytest.mark.slow


@pytest.mark.each(5)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hydra.launcher.jbos=2"], "unknown key 'hydra.launcher.jbos'; did you mean 'hydra.launcher.jobs'?"),
        (["hydra.launcher.jobs=0"], "hydra.launcher.jobs must be a whole number >= 1, got 0"),
        (
            ["hydra.launcher.on_failure=panic"],
            "hydra.launcher.on_failure must be one of continue, stop, got 'panic'",
        ),
        (["hydra.sweeper.retry_failed=1"], "hydra.sweeper.retry_failed must be true or false, got 1"),
        (["hydra.launcher.gpus=all"], "hydra.launcher.gpus must be auto or a list such as [0,1], got 'all'"),
        (["hydra/launcher=proces"], "unknown hydra/launcher 'proces'; did you mean 'process'?"),
        (["sweeps=mini", "model=lstm"], "row 'elman' of sweep 'mini' sets model itself"),
        (
            ["sweeps=mini", "sweep.seeds=1"],
            "sweep.seeds must list different whole numbers such as [1,2,3], got 1",
        ),
        (
            ["sweeps=mini", "hydra.sweeper.only=elman"],
            "hydra.sweeper.only must be a list of rows such as [elman], got 'elman'",
        ),
        (
            ["sweeps=mini", "hydra.sweeper.only=[elmann]"],
            "hydra.sweeper.only: no row 'elmann' to run; the table has: elman, second-order",
        ),
        (
            ["hydra.sweeper.only=[elman]"],
            "hydra.sweeper.only=['elman'] picks rows of a table: give one by sweeps=NAME",
        ),
        (
            ["sweeps=mini", "sweep.name=a/b"],
            "sweep.name must be letters, digits, '.', '_' and '-', got 'a/b'",
        ),
        (
            ["model=rnn", "seed=1,2", "run_dir=here"],
            "seeds 1 and 2 of rnn would both write to here: leave out run_dir",
        ),
        (
            ["sweeps=mini", "sweep.seeds=3,4"],
            "sweep.seeds=3,4 is several values of a key of the table: write sweep.seeds=[3,4] for one list",
        ),
        (["model=rnn", "sweep.name=one,two"], "is several values of a key of the table: give one name"),
        (
            ["sweeps=mini", "sweep.metric=valid_ppl"],
            "sweep.metric is for the report, which reads it in the sweep file: write it there, in mini.yaml",
        ),
        (["hydra.sweeper.params=null"], "hydra.sweeper.params must hold keys and values, such as model: "),
        (
            ["hydra.sweeper.params={model:[rnn,lstm]}"],
            "hydra.sweeper.params: model lists its values in one text, such as 'A,B', got ['rnn', 'lstm']",
        ),
        (["sweeps=mini", "sweep.sedes=[3]"], "sweep: unknown key 'sedes'; it takes: name, "),
        (
            ["sweeps=mini", "sweep.grid.model.order=[1,2]"],
            "the table of this command has no sweep.grid.model.order",
        ),
        (["model=rnn,lstm", "sweep.seeds=[3,4]"], "sweep.seeds is of a table: give one by sweeps=NAME"),
        (["model=rnn,lstm", "+sweep.seeds=[3,4]"], "sweep.seeds is of a table: give one by sweeps=NAME"),
        (["model=rnn,lstm", "sweep.nmae=mine"], "sweep: unknown key 'nmae'; it takes: name, "),
        (
            ["sweeps=mini", "sweep.seeds=[3]", "seed=4"],
            "seed= and sweep.seeds= are both the seeds of all rows",
        ),
        (["sweeps=mini", "model={order: 3}"], "row 'second-order' of sweep 'mini' sets model.order itself"),
        (
            ["sweeps=mini", "sweep.seeds=null"],
            "the table of this command has no sweep.seeds, or null: give it a",
        ),
        (["seed=interval(1,2)"], "seed=interval(1,2) is no list of values: write seed=VALUE,VALUE"),
    ],
)
def test_bad_input_is_one_line(launch: Launch, words: list[str], message: str) -> None:
    code, _, err = launch(*words)
    assert code == 2
    assert err.count("\n") == 1
    assert message in err
    assert not starts()


@pytest.mark.parametrize("mode", [["-m"], []])
@pytest.mark.parametrize(
    ("word", "message"),
    [
        (
            "sweeps=mini,maxi",
            "sweeps=mini,maxi: a command takes one table; give python src/train.py -m sweeps=mini, then"
            " python src/train.py -m sweeps=maxi",
        ),
        (
            "sweeps=[mini]",
            "sweeps=[mini]: a command takes one table; give python src/train.py -m sweeps=mini",
        ),
        (
            "sweep=mini,maxi",
            "sweep=mini,maxi: a command takes one table; give python src/train.py -m sweeps=",
        ),
        (
            "sweep=mini",
            "sweep takes keys, such as sweep.seeds=[1,2], got 'mini'; did you mean sweeps=mini?",
        ),
    ],
)
def test_a_command_takes_one_table(
    folder: Path, command: Launch, mode: list[str], word: str, message: str
) -> None:
    code, out, err = command("train", "--config-dir=conf", *mode, word)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {message}")


def test_the_command_line_cannot_say_what_rows_start_from(launch: Launch) -> None:
    write_table(f"{TABLE}    - {{name: deep, label: deep, run: [model=lstm], start: elman}}\n")
    code, _, err = launch("sweeps=mini", "init_from=some.ckpt")
    assert code == 2
    assert err.startswith(
        "error: row 'deep' of sweep 'mini' sets init_from itself: the command line cannot set it"
    )


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "{name: elman, label: elman, run: [model=rnn]}",
            "row 'elman' of sweep 'mini': each row has a name of its own",
        ),
        ("{run: [model=rnn]}", "row 'None' of sweep 'mini': each row has a name of its own"),
        ("{name: x}", "row 'x' of sweep 'mini' has no list 'run'"),
        ("{name: x, run: model=rnn}", "row 'x' of sweep 'mini' has no list 'run'"),
        (
            "{name: x, label: x, run: ['model=rnn,lstm']}",
            "row 'x' of sweep 'mini': model=rnn,lstm is several runs",
        ),
        (
            "{name: x, label: x, run: [model=rnn], start: told-of}",
            "row 'x' of sweep 'mini' starts from 'told-of': name a row with a run that starts from no other",
        ),
        (
            "{name: x, label: x, run: [model=lstm], start: elman, seeds: [1, 2]}",
            "row 'x' of sweep 'mini' starts from 'elman': give both the same seeds, got [1, 2] and [1]",
        ),
        (
            "{name: x, label: x, run: [model=rnn], start: x}",
            "row 'x' of sweep 'mini' starts from 'x': name a row with a run",
        ),
        (
            "{name: x, label: x, run: [model=mixture], start: [elman, told-of]}",
            "row 'x' of sweep 'mini' starts from 'told-of': name a row with a run that starts from no other",
        ),
        (
            "{name: x, label: x, run: [model=mixture], start: []}",
            "start must be the name of a row or a list of names, got []",
        ),
        (
            "{name: x, label: x, run: [model=rnn, seed=5]}",
            "row 'x' of sweep 'mini' sets the seed: seeds: [5] does so for a row",
        ),
        (
            "{name: x, label: x, run: [model=rnn, model.hidden_size=16, model.hidden_size=32]}",
            "row 'x' of sweep 'mini': model.hidden_size is given twice, by model.hidden_size=16 and by ",
        ),
        (
            "{name: x, label: x, run: [model=rn]}",
            "mini.yaml: row 'x': unknown model 'rn'; it is one of: clockwork",
        ),
        (
            "{name: x, label: x, run: [model=rnn, model.hidden_size=200]}",
            "rows 'elman' and 'x' have the same run model=rnn model.hidden_size=200: keep one",
        ),
    ],
)
def test_a_bad_row_is_one_line(launch: Launch, row: str, message: str) -> None:
    write_table(f"{TABLE}    - {row}\n")
    code, _, err = launch("sweeps=mini")
    assert code == 2
    assert err.count("\n") == 1
    assert message in err
    assert not starts()


def test_a_metric_that_no_run_measures_is_warned_of(launch: Launch) -> None:
    write_table(TABLE.replace("metric: test_ppl", "metric: tset_ppl"))
    code, _, err = launch("sweeps=mini")
    assert code == 0
    assert "mini.yaml: no run of ours measures 'tset_ppl'; did you mean 'test_ppl'?" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("start: elman", "stat: elman"),
            "sweep 'mini', row 'again': unknown key 'stat'; it takes: name,",
        ),
        (("rows:", "rowss:"), "sweep 'mini': unknown key 'rowss'; it takes: name, title, paper"),
        (
            ("- {name: elman", "- hello\n    - {name: elman"),
            "sweep 'mini': row 1 must hold keys and values, got 'hello'",
        ),
    ],
)
def test_a_key_that_no_table_takes(launch: Launch, change: tuple[str, str], message: str) -> None:
    table = TABLE + "    - {name: again, label: again, run: [model=rnn, init_from_lr=0.5], start: elman}\n"
    assert change[0] in table
    write_table(table.replace(*change))
    code, _, err = launch("sweeps=mini")
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert not starts()


@pytest.mark.each(2)
@pytest.mark.parametrize("rows", ["", "rows:", "rows: []", "rows: {a: 1}", "rows: hello"])
def test_a_table_without_rows(launch: Launch, rows: str) -> None:
    write_table(f"# @package _global_\nsweep:\n  name: mini\n  {rows}\n")
    code, _, err = launch("sweeps=mini")
    assert (code, err.count("\n")) == (2, 1)
    assert "sweep 'mini': rows must list the rows of the table, got " in err
    assert not starts()


@pytest.mark.each(3)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: mini", "name: minor", "sweep.name is 'minor': it must be the file's name, 'mini'"),
        ('title: "Mini"', "title: 7", "sweep: title must be a text, got 7"),
        ("metric: test_ppl", "metric: 5", "sweep: metric must be a text or a list such as [A, B], got 5"),
        (
            "lower_is_better: true",
            'lower_is_better: "yes"',
            "sweep: lower_is_better must be true or false or null, got 'yes'",
        ),
        ('  paper: "no paper"\n', "", "sweep: paper is missing"),
        ("name: elman", "name: a/../b c", "row 'a/../b c': a name has letters, digits and . _ - alone"),
        ("name: elman", "name: ../../evil", "row '../../evil': a name has letters, digits and . _ - alone"),
        ("label: elman", "label: 5", "row 'elman': label must be a text, got 5"),
        ("seeds: [1]", "seeds: [-1, 4294967296]", "a seed is from 0 to 4294967295, got [-1, 4294967296]"),
        (
            "label: elman",
            "label: elman, published: {value: .nan, verified: true, source: x}",
            "row 'elman': published: value must be a finite number, got nan",
        ),
        (
            "  rows:",
            "  claims: [{says: 5, better: elman, than: zzz}]\n  rows:",
            "sweep.claims: says must be a text, got 5",
        ),
        (
            "  rows:",
            "  claims: [{says: it, better: zzz, than: elman}]\n  rows:",
            "sweep.claims: 'it' names 'zzz', which is no row",
        ),
        (
            "  rows:",
            "  figure: {x_label: x, base: nope}\n  rows:",
            "sweep.figure.base names 'nope', which is no row",
        ),
    ],
)
def test_a_file_that_a_report_would_refuse(launch: Launch, old: str, new: str, message: str) -> None:
    assert old in TABLE
    write_table(TABLE.replace(old, new, 1))
    code, _, err = launch("sweeps=mini")
    assert (code, err.count("\n")) == (2, 1)
    assert "mini" in err
    assert message in err
    assert not starts()


def test_a_row_sets_by_a_mapping_what_the_command_line_sets(launch: Launch) -> None:
    write_table(f"{TABLE}    - {{name: deep, label: deep, run: ['model={{hidden_size: 3}}']}}\n")
    code, _, err = launch("sweeps=mini", "model.hidden_size=4")
    assert code == 2
    assert "row 'deep' of sweep 'mini' sets model.hidden_size itself: the command line cannot set it" in err
