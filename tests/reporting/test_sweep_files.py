"""Sweep files: what is wrong with one is said in one message, and those of the papers hold all published numbers."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from omegaconf import OmegaConf

from hornn.identity import effective, is_counted
from hornn.network import LanguageModel
from hornn.reporting.recipe import departures, flatten
from hornn.reporting.runs import find_runs
from hornn.reporting.sweeps import Sweep, read_sweep, read_sweeps

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT.parent / "shared" / "reference" / "published.yaml"
OURS = {
    "ptb_baselines",
    "ptb_decay",
    "ptb_deep",
    "ptb_fofe",
    "ptb_modern",
    "ptb_modern_recipe",
    "ptb_recipe",
    "ptb_scrn",
}  # of no paper
SWEEPS = {sweep.name: sweep for sweep in read_sweeps(ROOT / "sweeps")}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  title:", "  tittle:", "toy.yaml: sweep: unknown key 'tittle'; it takes: name, title"),
        ('  title: "Toy: order and pooling"\n', "", "toy.yaml: sweep: title is missing"),
        ("  name: toy", "  name: tuy", "sweep.name is 'tuy': it must be the file's name, 'toy'"),
        ("name: sum-3", "name: sum-2", "rows 'sum-2' and 'sum-2' have the same name sum-2: keep one"),
        (
            "model.order=3",
            "model.order=2",
            "rows 'sum-2' and 'sum-3' have the same run model=hornn model.order=2",
        ),
        ("      group: sum", "      grop: sum", "toy.yaml: row 'sum-2': unknown key 'grop'"),
        (', source: "recalled"', "", "toy.yaml: row 'sum-3': published: source is missing"),
        (
            'source: "recalled"',
            'source: " "',
            "row 'sum-3': the published 108 has no source: say where it was read",
        ),
        ("verified: false", "verified: perhaps", "row 'sum-3': published: verified cannot be 'perhaps'"),
        ("value: 108", "value: true", "row 'sum-3': published: value cannot be True"),
        ("state: not built", "state: later", "unknown state 'later'; it is one of: not built, quoted"),
        (
            "      state: not built\n",
            "",
            "row 'stack': give either run, or run: null and state: not built | quoted",
        ),
        ("run: [model=rnn]", "run: [model]", "row 'rnn': run must list overrides key=value, got ['model']"),
        ("run: [model=rnn]", "run: model=rnn", "row 'rnn': run cannot be 'model=rnn'"),
        ("model=rnn", "model=rnnn", "row 'rnn': unknown model 'rnnn'; it is one of: hornn, hornn_max, rnn"),
        ("toy/text", "toy/txt", "unknown experiment 'toy/txt'; it is one of: toy/speech, toy/text"),
        ("model.order=2]", "model.order=3]", "have the same run model=hornn model.order=3"),
        ("name: rnn", "name: a/b", "row 'a/b': a name has letters, digits and . _ - alone"),
        ("seeds: [1, 2]", "seeds: [1, 1]", "sweep.seeds must list different whole numbers, got [1, 1]"),
        (
            "  seeds:",
            "  relative_to: elman\n  seeds:",
            "toy.yaml: sweep.relative_to names 'elman', which is no row",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, than: [rnn, elman]}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so' names 'elman', which is no row",
        ),
        (
            "  seeds:",
            "  claims: [{says: so, better: rnn, than: sum-2, metric: valid_ppl}]\n  seeds:",
            "toy.yaml: sweep.claims: 'so' names the metric 'valid_ppl', which the table has not",
        ),
        ("  seeds:", "  claims: [{better: rnn, than: sum-2}]\n  seeds:", "sweep.claims: says is missing"),
        ("seeds: [1, 2]", "seeds: []", "sweep.seeds must list different whole numbers, got []"),
        ('  metric_label: "perplexity, test"\n', "", "sweep.metric 'test_ppl' needs a metric_label"),
        ("  rows:\n", "  rows:\n    - text\n", "row 'text' must hold keys and values, got 'text'"),
        ("  figure: {x: order,", "  figure: {z: 1, x: order,", "sweep.figure: unknown key 'z'"),
        (
            "  figure: {x: order,",
            "  figure: {base: elman, x: order,",
            "toy.yaml: sweep.figure.base names 'elman', which is no row",
        ),
        (
            "name: sum-3\n",
            "name: sum-3\n      start: elman\n",
            "toy.yaml: row 'sum-3' starts from 'elman': give a row with a run that starts from no other",
        ),
        ("sweep:\n", "sweep: [\n", "toy.yaml is not YAML: "),
    ],
)
def test_what_is_wrong_is_said(broken: Callable[[str, str], Path], old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_sweep(broken(old, new))
    assert message in str(caught.value)


def test_several_metrics_take_numbers_by_key(place: Any) -> None:
    path = place.write_sweep(
        "two",
        """
sweep:
  name: two
  title: Two
  paper: P
  metric: [{key: valid_ppl, label: valid}, {key: test_ppl, label: test}]
  lower_is_better: true
  seeds: [1]
  rows:
    - name: a
      label: A
      run: [model=rnn]
      published: {test_ppl: {value: 1, verified: true, source: s}}
""",
    )
    assert read_sweep(path).rows[0].published["test_ppl"].value == 1
    path.write_text(path.read_text().replace("{test_ppl:", "{test_bpc:"))
    with pytest.raises(ValueError, match="published names 'test_bpc'; the metrics are: valid_ppl, test_ppl"):
        read_sweep(path)


def test_the_same_run_has_one_identity_in_every_file(place: Any) -> None:
    toy = read_sweep(place.sweeps / "toy.yaml")
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: other")
    other = read_sweep(place.write_sweep("other", text.replace("toy/text", "toy/speech")))
    assert toy.rows[0].identity != other.rows[0].identity
    rows = text.replace("toy/text", "toy/speech").replace("model=rnn", "experiment=toy/text, model=rnn")
    other = read_sweep(place.write_sweep("other", rows))
    assert toy.rows[0].identity == other.rows[0].identity


def test_the_weights_that_a_row_starts_from_are_of_its_recipe(place: Any) -> None:
    """A result that started from scratch is not by it."""
    text = (place.sweeps / "toy.yaml").read_text().replace("name: toy", "name: other")
    rows = text.replace("name: sum-3\n", "name: sum-3\n      start: sum-2\n")
    scratch, other = (
        read_sweep(place.sweeps / "toy.yaml").rows,
        read_sweep(place.write_sweep("other", rows)).rows,
    )
    was, now = ({row.name: row for row in those}["sum-3"] for those in (scratch, other))
    assert was.identity != now.identity
    config = {"model": {"order": 3}, "init_from": None}
    assert departures(was.recipe, config) == []
    (label,) = (row.label for row in other if row.name == "sum-2")
    assert departures(now.recipe, config) == [f"init_from=None, not that of {label}"]
    assert departures(now.recipe, {**config, "init_from": "outputs/a/best.ckpt"}) == []


def test_a_recipe_is_what_hydra_composes() -> None:
    """Every value that a row's recipe holds is that of the config composed by Hydra."""
    for name in ("hornn_table1", "scrn_table2", "deep_rnn_table3"):
        for row in (SWEEPS[name].rows[0], SWEEPS[name].rows[3]):
            with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
                cfg = compose("config", [f"sweeps={name}", *(row.run or ())])
            config: Any = OmegaConf.to_container(cfg, resolve=True)
            assert row.recipe.keys() <= flatten(config).keys()
            assert departures(row.recipe, effective(config)) == []
            config["optimizer"]["lr"] = 77
            assert [text.partition(",")[0] for text in departures(row.recipe, effective(config))] == [
                "optimizer.lr=77"
            ]


def test_a_folder_without_sweeps_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no folder .*absent: give --sweeps FOLDER"):
        read_sweeps(tmp_path / "absent")


# -- the papers' tables --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published() -> list[dict[str, Any]]:
    if not REFERENCE.exists():
        pytest.skip(f"needs {REFERENCE.name} in ../shared/reference, beside the checkout")
    rows: list[dict[str, Any]] = yaml.load(REFERENCE.read_text(), yaml.CSafeLoader)["rows"]
    return rows


SLUGS = {"RNN": "rnn", "DT(S)-RNN": "dts_rnn", "DOT(S)-RNN": "dots_rnn", "DOT(S)-RNN*": "dots_rnn-star"}
SLUGS |= {"sRNN": "srnn", "sRNN 2 layers": "srnn", "RNN with fast dropout (Bayer 2013)": "fast-dropout"}
SLUGS |= {
    "HORNN": "hornn",
    "Max HORNN": "hornn_max",
    "FOFE HORNN": "hornn_fofe",
    "Gated HORNN": "hornn_gated",
}
SLUGS |= {"HORNN (also max, FOFE)": "hornn", "RNN (1st order)": "rnn", "LSTM": "lstm", "SCRNN": "scrn"}
SLUGS |= {"KN 5-gram": "kn5", "CSLM5": "cslm5", "genCNN": "gencnn", "Gated word&char": "gated-word-char"}
SLUGS |= {"E2E Mem Net": "memn2n", "Stack RNN": "stack-rnn", "Deep RNN": "deep-rnn", "FOFE-FNN": "fofe-fnn"}
SLUGS |= {"LSTMP": "lstmp", "ReLU HORNNP": "hornnp_relu", "sigmoid HORNNP": "hornnp_sigmoid"}
SLUGS |= {"sigmoid RNN": "rnn_sigmoid", "ReLU RNN": "rnn_relu", "sigmoid ResRNN": "resrnn_sigmoid"}
SLUGS |= {"ReLU ResRNN": "resrnn_relu", "sigmoid HORNN": "hornn_sigmoid", "ReLU HORNN": "hornn_relu"}
SLUGS |= {
    "Ngram": "ngram",
    "Ngram + cache": "ngram-cache",
    "5-gram": "ngram",
    "5-gram + cache": "ngram-cache",
}
SLUGS |= {"SRN (Bengio 2013)": "srn-bengio", "SRN + leaky neurons (Bengio 2013)": "leaky-bengio"}


def place_of(number: dict[str, Any]) -> tuple[str, str, str] | None:
    """Sweep, row and metric where a published number belongs; None for what is in no table of ours."""
    config, split, data = number["config"], number["split"], number["dataset"]
    name = SLUGS.get(number["row"], "")
    ordered = f"{name}-{config['order']}" if config.get("order", 1) > 1 else name
    units = f"{config.get('hidden')}-{config.get('context')}"
    match number["document"], number["table"]:
        case "hornn_paper", "table1":
            return "hornn_table1", ordered, "test_ppl"
        case "hornn_thesis", "table6.2":
            return "hornn_table1", ordered, "test_ppl"
        case "hornn_paper", "table2":
            return "hornn_table2", ordered, "test_ppl"
        case "hornn_thesis", "table6.4":
            return "hornn_table2", ordered, "test_ppl"
        case ("hornn_paper", "table3") | ("hornn_thesis", "table6.5"):
            return "hornn_table3", ordered, "test_ppl"
        case ("hornn_paper", "text section 4.1.1") | ("hornn_thesis", "text section 6.2.2"):
            row = f"{name}-3" if "HORNN" in number["row"] else name
            return (
                "thesis_parameters",
                row,
                "num_parameters" if data and split is None else "seconds_per_epoch",
            )
        case "hornn_thesis", "table6.3":
            return "thesis_table63", ordered, "seconds_per_epoch"
        case "hornn_thesis", "table6.1":
            return "thesis_table61", data, f"corpus.tokens.{split}"
        case "hornn_thesis", "figure6.1":
            return "thesis_figure61", f"alpha-{config['alpha']}", "test_ppl"
        case "scrn", "table1":
            row = name or "-".join([number["row"].lower(), *str(config["hidden"]).split()])
            if number["row"] == "LSTM":
                row = f"lstm-{config['hidden']}"
            if number["row"] == "SCRN":
                row = f"scrn-{units}"
            return "scrn_table1", row, f"{split}_ppl"
        case "scrn", "table2":
            return "scrn_table2", f"scrn-{units}-{config['context_weights']}", "test_ppl"
        case "scrn", "table3":
            return "scrn_table3", f"scrn-{units}", "test_ppl"
        case "scrn", "table4":
            row = f"{number['row'].lower()}-{units.removesuffix('-None')}"
            return "scrn_table4", row, "test_ppl"
        case "scrn", "text section 3.2":
            return "scrn_table1", name, "test_ppl"
        case "scrn", "text section 3.3":
            return "scrn_table4", name, "test_ppl"
        case "deep_rnn", "table1":
            return "deep_rnn_table1", f"{data}-{name}", "num_parameters"
        case "deep_rnn", "table2" | "text section 5.3.1":
            return "deep_rnn_table2", f"{data}-{name}", "test_nll"
        case "deep_rnn", "table3":
            unit, key = {"ptb_char": ("characters", "test_bpc"), "ptb_word": ("words", "test_ppl")}[data]
            who = "graves" if "Graves" in number["row"] else "mikolov"
            return "deep_rnn_table3", f"{name or who}-{unit}", key
        case "hornn_acoustic", "table1":
            row = f"{name}-{config['layers']}-{config['params_millions']}"
            return "acoustic_table1", row, f"wer_{config['decoding']}"
        case "hornn_acoustic", "table2":
            return "acoustic_table2", f"{name}-{config['layers']}", f"wer_{config['decoding']}"
        case "hornn_acoustic", "text below table2":
            return "acoustic_table2", "dnn-7", f"wer_{config['decoding']}"
        case "hornn_acoustic", "figure2":
            return "acoustic_figure2", name, f"wer_{config['decoding']}"
        case "hornn_acoustic", "abstract":
            return None
    raise AssertionError(f"no place for {number}")


def test_every_published_number_stands_in_its_row(published: list[dict[str, Any]]) -> None:
    """Value, verified mark and dynamic evaluation; a thesis table that repeats one of the paper has its place there."""
    places = Counter()
    for number in published:
        place = place_of(number)
        if place is None:
            continue
        sweep, name, key = place
        (row,) = (row for row in SWEEPS[sweep].rows if row.name == name)
        ours = row.published[key]
        assert (ours.value, ours.verified) == (number["value"], number["verified"]), place
        dynamic = "dynamic" in number["row"] or bool(number["config"].get("dynamic_evaluation"))
        assert row.dynamic or not dynamic, place
        places[(number["document"], *place)] += 1
    assert set(places.values()) == {1}


def test_no_row_shows_a_number_that_is_not_published(published: list[dict[str, Any]]) -> None:
    known = {place_of(number) for number in published}
    shown = {
        (sweep.name, row.name, key)
        for sweep in SWEEPS.values()
        if sweep.name not in OURS
        for row in sweep.rows
        for key in row.published
    }
    assert shown == known - {None}


def test_tables_of_our_own_show_numbers_of_the_papers() -> None:
    """Each is that of some row with the same run, or with the same label where nothing is run."""
    rows = [(sweep, row) for sweep in SWEEPS.values() for row in sweep.rows]
    papers = {
        (row.identity or row.label, number.value, number.verified)
        for sweep, row in rows
        if sweep.name not in OURS
        for number in row.published.values()
    }
    shown = {
        (row.identity or row.label, number.value, number.verified)
        for sweep, row in rows
        if sweep.name in OURS
        for number in row.published.values()
    }
    assert shown
    assert shown <= papers


@pytest.mark.parametrize(
    ("table", "study", "key"),
    [
        ("hornn_table2", "ptb_decay", "optimizer.weight_decay"),
        ("ptb_modern", "ptb_modern_recipe", "network.dropout"),
    ],
)
def test_a_cell_s_own_constant_is_the_one_that_validation_chooses(table: str, study: str, key: str) -> None:
    """Of those that are measured, in the study that tries several; where none is named, the recipe's is the best."""
    found = find_runs(list(SWEEPS.values()), ROOT / "outputs", committed_only=True)
    named = {row.name: row for row in SWEEPS[table].rows}
    tried = [row for row in (*named.values(), *SWEEPS[study].rows) if row.run is not None]
    valid = {
        row.identity: run.result["valid_ppl"]
        for row in tried
        for run in found.runs.get(row.identity, [])
        if run.state == "done"
    }
    studied = {row.identity for row in SWEEPS[study].rows}
    compared = 0
    for name, row in named.items():
        assert row.identity in studied or not name.endswith("-own"), name
        alike = {
            other.identity for other in tried if {**row.recipe, key: other.recipe.get(key)} == other.recipe
        }
        measured = alike & valid.keys()
        if len(alike) > 1 and measured and f"{name}-own" not in named:
            assert min(measured, key=valid.__getitem__) == row.identity, name
            compared += 1
    assert compared


def test_all_tables_are_there() -> None:
    names = "hornn_table1 hornn_table2 hornn_table3 thesis_table61 thesis_table63 thesis_figure61 thesis_parameters"
    names += (
        " scrn_table1 scrn_table2 scrn_table3 scrn_table4 deep_rnn_table1 deep_rnn_table2 deep_rnn_table3"
    )
    names += " acoustic_table1 acoustic_table2 acoustic_figure2"
    assert SWEEPS.keys() == {*names.split(), *OURS}


def runs() -> Iterator[Any]:
    for sweep in SWEEPS.values():
        for row in sweep.rows:
            if row.run is not None:
                yield pytest.param(sweep, row.run, id=f"{sweep.name}-{row.name}")


@pytest.mark.parametrize(("sweep", "run"), list(runs()))
def test_each_run_is_a_run_of_its_experiment(sweep: Sweep, run: tuple[str, ...]) -> None:
    """It composes, every override is in force, and its recipe is that of the experiment, not the default."""
    chosen = dict(word.split("=", 1) for word in run)
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        cfg = compose("config", [f"sweeps={sweep.name}", *run], return_hydra_config=True)
    choices = cfg.hydra.runtime.choices
    assert choices.experiment == chosen.pop("experiment", choices.experiment)
    paper = {"Soltani": "hornn", "Mikolov": "scrn", "Pascanu": "deep_rnn"}[sweep.paper.split()[0]]
    if "experiment" not in dict(word.split("=", 1) for word in run):
        assert choices.experiment.startswith(f"{paper}/")
    for key, value in chosen.items():
        found = choices[key] if key in choices else OmegaConf.select(cfg, key, default="no such key")
        assert ("null" if found is None else str(found).lower()) == value, key
    if is_counted(cfg.model):
        instantiate(cfg.model)(vocab_size=10, eos_id=0)
        return
    with torch.device("meta"):
        LanguageModel([1] * 10, instantiate(cfg.model), cfg.network.embedding_size, cfg.network.num_layers)
