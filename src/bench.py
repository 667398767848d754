"""Measure our code beside torch's own layers on this machine: `python src/bench.py --help`."""

import argparse
from pathlib import Path
from typing import NoReturn

from hornn.command_line.ending import FAILED, end, run


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        end(f"{message}; --help lists the options", FAILED)


def main() -> None:
    parser = Parser(description="Our training step, evaluation and memory beside torch's own, as ratios.")
    add = parser.add_argument
    add("--out", type=Path, default=Path("outputs/bench"), help="results go to OUT.json and OUT.md")
    add("--against", type=Path, metavar="FILE.json", help="earlier results to compare with")
    add("--only", metavar="NAME,...", help="sections, such as step,memory; a wrong name lists them all")
    add("--device", default="cpu", help="cpu, or cuda, which leaves out what concerns the CPU alone")
    add("--rounds", type=int, metavar="N", help="quiet rounds a row, at most 5 in series; default 15")
    add("--quick", action="store_true", help="tiny sizes, which show whether everything runs, not how fast")
    add("--write", action="store_true", help="measure nothing, write --tables to docs/speed.md and README.md")
    add("--tables", type=Path, metavar="FILE.json", default=Path("outputs/tables/bench.json"))
    options = parser.parse_args()
    from hornn.bench import program  # after the command line is understood: torch takes seconds to load

    if options.write:
        program.renew(Path(), options.tables)
        return
    names = options.only.split(",") if options.only else program.SECTIONS
    plan = program.choose_plan(options.quick, options.rounds)
    program.run(options.out, options.against, names, plan, options.device)


if __name__ == "__main__":
    run(main)
