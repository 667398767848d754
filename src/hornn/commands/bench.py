"""Measure our code beside torch's own layers on this machine: `hornn bench --help`."""

from argparse import Namespace
from pathlib import Path

from hornn.command_line import ending
from hornn.command_line.options import Parser


def main() -> str | None:
    parser = Parser(description="Our training step, evaluation and memory beside torch's own, as ratios.")
    add = parser.add_argument
    add(
        "--out",
        type=Path,
        default=Path("outputs/bench"),
        help="results go to OUT.json and OUT.md; default %(default)s",
    )
    add("--against", type=Path, metavar="FILE.json", help="earlier results to compare with")
    add("--only", metavar="NAME,...", help="sections, such as step,memory; a wrong name lists them all")
    add(
        "--device",
        default="cpu",
        help="cpu, the default, or cuda: what does not concern the CPU alone, on a GPU",
    )
    add("--rounds", type=int, metavar="N", help="quiet rounds a row, at most 5 in series; default 15")
    add("--quick", action="store_true", help="tiny sizes: whether everything runs, not how fast")
    add("--write", action="store_true", help="measure nothing, write --tables to docs/ and README.md")
    add(
        "--tables",
        type=Path,
        metavar="FILE.json",
        default=Path("outputs/tables/bench.json"),
        help="default %(default)s",
    )
    options = parser.parse_args()
    measuring = [
        key for key in ("out", "against", "only", "device", "rounds", "quick") if given(parser, options, key)
    ]
    if options.write and measuring:
        parser.error(
            f"--{measuring[0]} is of a measurement, and --write makes none: leave one of the two out"
        )
    if not options.write and given(parser, options, "tables"):
        parser.error(f"--tables={options.tables} says what --write writes: give --write, or leave it out")
    from hornn.bench import program  # after the command line is understood: torch takes seconds to load

    if options.write:
        if not Path("docs").is_dir():
            parser.error("--write renews docs/ and README.md, and there is no docs/ here: go to the checkout")
        return "\n".join(map(str, program.renew(Path(), options.tables))) or None
    names = program.SECTIONS if options.only is None else options.only.split(",")
    plan = program.choose_plan(options.quick, options.rounds)
    program.run(options.out, options.against, names, plan, options.device)
    return None


def given(parser: Parser, options: Namespace, key: str) -> bool:
    return bool(getattr(options, key) != parser.get_default(key))


def run() -> None:
    ending.run(main)
