"""Tables and figures of all sweeps beside the published numbers: `hornn report --help`."""

from pathlib import Path

from hornn.command_line import ending
from hornn.command_line.options import Parser
from hornn.places import CONF


def main() -> str:
    parser = Parser(description=__doc__)
    parser.add_argument(
        "--results", type=Path, default=Path("outputs"), help="folder of runs, records and tables"
    )
    own = Path("sweeps")
    parser.add_argument(
        "--sweeps", type=Path, default=own if own.is_dir() else CONF / "sweeps", help="folder of sweep files"
    )
    parser.add_argument("--out", type=Path, default=Path("outputs/report"), help="folder written")
    for option, does in (
        ("--keep", "copy results of finished runs to RESULTS/tables, to be committed, write nothing else"),
        (
            "--write",
            "from committed results write RESULTS/tables/**/README.md and the generated blocks in "
            "*.md and docs/, nothing else",
        ),
    ):
        parser.add_argument(option, action="store_true", help=does)
    given = parser.parse_args()
    from hornn.reporting.commands import keep_for_commit, write_pages, write_report

    if given.keep:
        return keep_for_commit(given.results, given.sweeps)
    if given.write:
        return write_pages(given.results, given.sweeps, Path())
    return write_report(given.results, given.sweeps, given.out)


def run() -> None:
    ending.run(main)
